#!/usr/bin/env bash
# A real Prometheus on loopback that scrapes one endpoint each second as job `headgate`, for tests.
#   tests/prometheus.sh start | stop | status
#   tests/prometheus.sh promtool ARGUMENT...
# Needs prometheus and promtool on the PATH, or apt-get and dpkg-deb: then start fetches Debian's package once (20 MB) without installing it.
# Environment (all optional):
#   PROMETHEUS_RUN            folder for data, logs and pid     .cache/prometheus-run
#   PROMETHEUS_PORT                                             19090
#   PROMETHEUS_TARGET         what it scrapes                   127.0.0.1:9464
#   PROMETHEUS_START_TIMEOUT  seconds to wait                   30
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/tests/prometheus-dist.sh"
run=${PROMETHEUS_RUN:-$root/.cache/prometheus-run}
port=${PROMETHEUS_PORT:-19090}
target=${PROMETHEUS_TARGET:-127.0.0.1:9464}
timeout=${PROMETHEUS_START_TIMEOUT:-30}
place="http://127.0.0.1:$port scraping $target" ready=ready unready=starting

is_ready() { curl --noproxy '*' -sf -m 5 "http://127.0.0.1:$port/-/ready" >/dev/null; }

launch() {
  fetch
  rm -rf "$run"
  mkdir -p "$run"
  cat >"$run/prometheus.yml" <<END
global: {scrape_interval: 1s, scrape_timeout: 1s}
rule_files: ["$root/conf/alerts.yml"]
scrape_configs:
  - job_name: headgate
    static_configs: [{targets: ["$target"]}]
END
  nohup "$prometheus" --config.file="$run/prometheus.yml" --storage.tsdb.path="$run/data" --web.listen-address="127.0.0.1:$port" \
    >"$run/out.log" 2>&1 </dev/null &
}

if [[ ${1:-} == promtool ]]; then
  shift
  fetch
  exec "$promtool" "$@"
fi
. "$root/tests/broker.sh"
