#!/usr/bin/env bash
# A real Prometheus on loopback that scrapes endpoints each second, for tests.
#   tests/prometheus.sh start | stop | status
#   tests/prometheus.sh promtool ARGUMENT...
# Needs prometheus and promtool on the PATH, or apt-get and dpkg-deb: then start fetches Debian's package once (20 MB) without installing it.
# Environment (all optional):
#   PROMETHEUS_RUN            folder for data, logs and pid     .cache/prometheus-run
#   PROMETHEUS_PORT                                             19090
#   PROMETHEUS_TARGETS        what it scrapes, JOB=ADDRESS...   headgate=127.0.0.1:9464
#   PROMETHEUS_START_TIMEOUT  seconds to wait                   30
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/tests/prometheus-dist.sh"
run=${PROMETHEUS_RUN:-$root/.cache/prometheus-run}
port=${PROMETHEUS_PORT:-19090}
targets=${PROMETHEUS_TARGETS:-headgate=127.0.0.1:9464}
timeout=${PROMETHEUS_START_TIMEOUT:-30}
place="http://127.0.0.1:$port scraping $targets" ready=ready unready=starting

is_ready() { curl --noproxy '*' -sf -m 5 "http://127.0.0.1:$port/-/ready" >/dev/null; }

launch() {
  fetch
  rm -rf "$run"
  mkdir -p "$run"
  cat >"$run/prometheus.yml" <<END
global: {scrape_interval: 1s, scrape_timeout: 1s}
rule_files: ["$root/conf/alerts.yml"]
scrape_configs:
END
  local target
  for target in $targets; do
    printf '  - {job_name: %s, static_configs: [{targets: ["%s"]}]}\n' "${target%%=*}" "${target#*=}" >>"$run/prometheus.yml"
  done
  nohup "$prometheus" --config.file="$run/prometheus.yml" --storage.tsdb.path="$run/data" --web.listen-address="127.0.0.1:$port" \
    >"$run/out.log" 2>&1 </dev/null &
}

if [[ ${1:-} == promtool ]]; then
  shift
  fetch
  exec "$promtool" "$@"
fi
. "$root/tests/broker.sh"
