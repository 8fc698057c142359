#!/usr/bin/env bash
# A real Apache Pulsar broker (standalone: RocksDB metadata, one bookie, no ZooKeeper) on loopback, for tests.
#   tests/pulsar-standalone.sh start | stop | status
# Needs Java 17 or newer, Maven, curl, tar; 260 MB of disk, 1.3 GB of memory. start fetches the server distribution once through Maven, starts an
# empty broker in the background and waits until it is healthy.
# Environment (all optional):
#   PULSAR_RUN            folder for data, logs and pid         .cache/pulsar-run
#   PULSAR_PORT, PULSAR_WEB_PORT                                16650, 18080
#   PULSAR_LISTENERS      listeners that clients may ask for beside the broker's own: name:pulsar://127.0.0.1:port, by commas
#   PULSAR_EXTRA_CONF     lines "key=value" for the configuration
#   PULSAR_START_TIMEOUT  seconds to wait                       180
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/tests/pulsar-dist.sh"
run=${PULSAR_RUN:-$root/.cache/pulsar-run}
port=${PULSAR_PORT:-16650}
web=${PULSAR_WEB_PORT:-18080}
timeout=${PULSAR_START_TIMEOUT:-180}
url=http://127.0.0.1:$web
place="pulsar://127.0.0.1:$port $url" ready=healthy unready="starting or sick"

is_ready() { [[ $(curl --noproxy '*' -s -m 5 "$url/admin/v2/brokers/health" 2>/dev/null) == ok ]]; }

configure() {
  rm -rf "$run"
  mkdir -p "$run"
  # Later lines win. listeningInterface keeps the bookie on loopback, too; resource groups act only with a transport of their usage.
  cp "$dist/conf/standalone.conf" "$run/standalone.conf"
  # Not advertisedAddress: it excludes listeners. The first listener is the broker's own.
  cat >>"$run/standalone.conf" <<EOF

bindAddress=127.0.0.1
internalListenerName=own
advertisedListeners=own:pulsar://127.0.0.1:$port${PULSAR_LISTENERS:+,$PULSAR_LISTENERS}
listeningInterface=lo
brokerServicePort=$port
webServicePort=$web
brokerDeleteInactiveTopicsEnabled=false
resourceUsageTransportClassName=org.apache.pulsar.broker.resourcegroup.ResourceUsageTopicTransportManager
resourceUsageTransportPublishIntervalInSecs=5
${PULSAR_EXTRA_CONF:-}
EOF
  # The transport wants the cluster before standalone has made it on an empty store, and the broker gives up. So make the cluster first.
  bin/pulsar initialize-cluster-metadata --cluster standalone \
    --metadata-store "rocksdb://$run/metadata" --configuration-metadata-store "rocksdb://$run/metadata" \
    --web-service-url "$url" --broker-service-url "pulsar://127.0.0.1:$port" >"$run/prepare.log" 2>&1 ||
    { echo "could not make the cluster; last lines of $run/prepare.log:" >&2; tail -n 15 "$run/prepare.log" >&2; exit 1; }
}

launch() {
  fetch
  export PULSAR_STANDALONE_CONF=$run/standalone.conf PULSAR_LOG_DIR=$run/logs PULSAR_GC_LOG=" "
  export PULSAR_MEM=${PULSAR_MEM:-"-Xms256m -Xmx1g -XX:MaxDirectMemorySize=512m"}
  cd "$dist"
  configure
  # bin/pulsar becomes the JVM, so $! is the JVM's pid.
  nohup bin/pulsar standalone -nfw -nss --metadata-dir "$run/metadata" --bookkeeper-dir "$run/bookkeeper" \
    >"$run/out.log" 2>&1 </dev/null &
}

. "$root/tests/broker.sh"
