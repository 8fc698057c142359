#!/usr/bin/env bash
# A real Apache Pulsar cluster on loopback, for tests and benchmarks: one ZooKeeper, one bookie, N brokers.
#   tests/pulsar-cluster.sh start | stop | status | kill-broker I | start-broker I
# Broker I (from 1) is pulsar://127.0.0.1:(PULSAR_PORT + I) and http://127.0.0.1:(PULSAR_WEB_PORT + I).
# Needs what tests/pulsar-standalone.sh needs; 0.4 GB of memory, and 0.5 GB for each broker.
# Environment (all optional):
#   PULSAR_RUN            folder for data, logs and pids        .cache/pulsar-cluster-run
#   PULSAR_BROKERS        number of brokers                     2
#   PULSAR_PORT, PULSAR_WEB_PORT  bases of the brokers' ports   6660, 8090
#   PULSAR_ZK_PORT, PULSAR_BOOKIE_PORT                          2281, 3281; the port after the bookie's is used, too
#   PULSAR_EXTRA_CONF     lines "key=value" for the brokers' configuration
#   PULSAR_START_TIMEOUT  seconds to wait for each part         180
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/tests/pulsar-dist.sh"
. "$root/tests/end-process.sh"
run=${PULSAR_RUN:-$root/.cache/pulsar-cluster-run}
brokers=${PULSAR_BROKERS:-2}
port=${PULSAR_PORT:-6660}
web=${PULSAR_WEB_PORT:-8090}
zk=${PULSAR_ZK_PORT:-2281}
bookie=${PULSAR_BOOKIE_PORT:-3281}
timeout=${PULSAR_START_TIMEOUT:-180}
small="-XX:TieredStopAtLevel=1"
export PULSAR_GC="-XX:+UseSerialGC" PULSAR_GC_LOG=" "

running() { [[ -s $run/$1.pid ]] && kill -0 "$(<"$run/$1.pid")" 2>/dev/null; }
is_healthy() { [[ $(curl --noproxy '*' -s -m 5 "http://127.0.0.1:$((web + $1))/admin/v2/brokers/health" 2>/dev/null) == ok ]]; }
is_listening() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# NAME COMMAND...: runs it in the background; bin/pulsar becomes the JVM, so $! is the JVM's pid.
launch() {
  local name=$1
  shift
  PULSAR_LOG_DIR=$run/logs/$name nohup "$@" >"$run/$name.log" 2>&1 </dev/null &
  echo $! >"$run/$name.pid"
}

# NAME CONDITION...: waits until it holds.
await() {
  local name=$1 end=$((SECONDS + timeout))
  shift
  until "$@"; do
    running "$name" || { echo "$name ended; last lines of $run/$name.log:" >&2; tail -n 15 "$run/$name.log" >&2; exit 1; }
    ((SECONDS < end)) || { echo "$name is not ready after $timeout s, see $run/$name.log" >&2; exit 1; }
    sleep 0.25
  done
}

start_broker() {
  local name=broker-$1
  running "$name" && return
  # Later lines win. Topics stay where they are: no splitting, no shedding. Resource groups act only with a transport of their usage.
  cp "$dist/conf/broker.conf" "$run/$name.conf"
  cat >>"$run/$name.conf" <<CONF

clusterName=real
metadataStoreUrl=zk:127.0.0.1:$zk
configurationMetadataStoreUrl=zk:127.0.0.1:$zk
bindAddress=127.0.0.1
advertisedAddress=127.0.0.1
brokerServicePort=$((port + $1))
webServicePort=$((web + $1))
managedLedgerDefaultEnsembleSize=1
managedLedgerDefaultWriteQuorum=1
managedLedgerDefaultAckQuorum=1
brokerDeleteInactiveTopicsEnabled=false
loadBalancerAutoBundleSplitEnabled=false
loadBalancerSheddingEnabled=false
resourceUsageTransportClassName=org.apache.pulsar.broker.resourcegroup.ResourceUsageTopicTransportManager
resourceUsageTransportPublishIntervalInSecs=5
numIOThreads=2
numHttpServerThreads=4
${PULSAR_EXTRA_CONF:-}
CONF
  PULSAR_BROKER_CONF=$run/$name.conf PULSAR_MEM=${PULSAR_MEM:-"-Xms128m -Xmx384m -XX:MaxDirectMemorySize=256m"} launch "$name" bin/pulsar broker
  await "$name" is_healthy "$1"
}

start() {
  if running zookeeper; then echo "already running"; return; fi
  fetch
  rm -rf "$run"
  mkdir -p "$run/logs" "$run/zk" "$run/bookie/journal" "$run/bookie/ledgers"
  cd "$dist"
  printf '%s\n' tickTime=2000 "dataDir=$run/zk" "clientPort=$zk" clientPortAddress=127.0.0.1 admin.enableServer=false >"$run/zookeeper.conf"
  PULSAR_ZK_CONF=$run/zookeeper.conf PULSAR_MEM="-Xms64m -Xmx128m $small" launch zookeeper bin/pulsar zookeeper
  await zookeeper is_listening "$zk"
  PULSAR_MEM="-Xmx128m $small" bin/pulsar initialize-cluster-metadata --cluster real \
    --metadata-store "zk:127.0.0.1:$zk" --configuration-metadata-store "zk:127.0.0.1:$zk" \
    --web-service-url "http://127.0.0.1:$((web + 1))" --broker-service-url "pulsar://127.0.0.1:$((port + 1))" >"$run/prepare.log" 2>&1 ||
    { echo "could not make the cluster; last lines of $run/prepare.log:" >&2; tail -n 15 "$run/prepare.log" >&2; exit 1; }
  sed -e "/^zkServers=/d; /^metadataServiceUri=/d; /^bookiePort=/d; /^journalDirectory=/d; /^ledgerDirectories=/d; /^prometheusStatsHttpPort=/d" \
    -e "/^advertisedAddress=/d; /^listeningInterface=/d; /^allowLoopback=/d; /^httpServerEnabled=/d; /^journalSyncData=/d" \
    "$dist/conf/bookkeeper.conf" >"$run/bookie.conf"
  printf '%s\n' "" "metadataServiceUri=metadata-store:zk:127.0.0.1:$zk" "bookiePort=$bookie" "journalDirectory=$run/bookie/journal" \
    "ledgerDirectories=$run/bookie/ledgers" "prometheusStatsHttpPort=$((bookie + 1))" advertisedAddress=127.0.0.1 \
    listeningInterface=lo allowLoopback=true httpServerEnabled=false journalSyncData=false >>"$run/bookie.conf"
  BOOKIE_CONF=$run/bookie.conf PULSAR_BOOKKEEPER_CONF=$run/bookie.conf PULSAR_MEM="-Xms64m -Xmx192m -XX:MaxDirectMemorySize=192m" \
    launch bookie bin/pulsar bookie
  await bookie is_listening "$bookie"
  local broker
  for ((broker = 1; broker <= brokers; broker++)); do start_broker "$broker"; done
  status
}

stop_part() {
  running "$1" || { rm -f "$run/$1.pid"; return 0; }
  end_process "$(<"$run/$1.pid")" 15
  rm -f "$run/$1.pid"
}

stop() {
  local broker
  for ((broker = 1; broker <= brokers; broker++)); do stop_part "broker-$broker"; done
  stop_part bookie
  stop_part zookeeper
  echo "stopped"
}

status() {
  local broker code=0
  for ((broker = 1; broker <= brokers; broker++)); do
    if running "broker-$broker" && is_healthy "$broker"; then
      echo "broker-$broker: healthy, pulsar://127.0.0.1:$((port + broker)) http://127.0.0.1:$((web + broker)) (pid $(<"$run/broker-$broker.pid"))"
    else
      echo "broker-$broker: not running or not healthy"
      code=1
    fi
  done
  return $code
}

case ${1:-}${2:+ $2} in
  start | stop | status) "$1" ;;
  kill-broker\ [0-9]*) kill -9 "$(<"$run/broker-$2.pid")"; rm -f "$run/broker-$2.pid"; echo "killed broker-$2" ;;
  start-broker\ [0-9]*) cd "$dist"; start_broker "$2"; status ;;
  *) echo "usage: $0 start|stop|status|kill-broker I|start-broker I" >&2; exit 64 ;;
esac
