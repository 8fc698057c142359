#!/usr/bin/env bash
# A real Apache Kafka broker (KRaft, one node that is broker and controller) on loopback, for tests. Needs what headgate needs: Python and Java.
#   tests/kafka-broker.sh start | stop | status
# start fetches the jars once through Spark's own resolver (40 MB), starts an empty broker in the background and waits until it is ready.
# Environment (all optional):
#   KAFKA_RUN             folder for data, logs and pid         .cache/kafka-run
#   KAFKA_PORT, KAFKA_CONTROLLER_PORT                           19092, 19093
#   KAFKA_START_TIMEOUT   seconds to wait                       60
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
run=${KAFKA_RUN:-$root/.cache/kafka-run}
port=${KAFKA_PORT:-19092}
controller=${KAFKA_CONTROLLER_PORT:-19093}
timeout=${KAFKA_START_TIMEOUT:-60}
place=127.0.0.1:$port ready=ready unready=starting
java=${JAVA_HOME:+$JAVA_HOME/bin/}java

is_ready() { (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }

fetch() {
  . "$root/scripts/find-python.sh"
  local jars
  jars=$("$python" "$root/scripts/bootstrap.py" "$root/scripts/jars.py" kafka-broker)
  # Spark's resolver leaves Scala's library out of whatever it resolves; Spark's own copy fits.
  classpath="$jars/*:$(ls "$root"/.venv/lib/python3.*/site-packages/pyspark/jars/scala-library-2.13.*.jar)"
}

storage_tool() { "$java" -Xmx128m -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$classpath" kafka.tools.StorageTool "$@"; }

configure() {
  rm -rf "$run"
  mkdir -p "$run"
  cat >"$run/server.properties" <<EOF
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:$controller
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller
advertised.listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$run/data
num.partitions=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
EOF
  local id
  id=$(storage_tool random-uuid 2>>"$run/format.log" | tail -n 1)
  storage_tool format --standalone -t "$id" -c "$run/server.properties" >>"$run/format.log" 2>&1 ||
    { echo "could not format the log folder; last lines of $run/format.log:" >&2; tail -n 15 "$run/format.log" >&2; exit 1; }
}

launch() {
  fetch
  configure
  nohup "$java" -Xms128m -Xmx512m -XX:+UseSerialGC -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$classpath" \
    kafka.Kafka "$run/server.properties" >"$run/out.log" 2>&1 </dev/null &
}

. "$root/tests/broker.sh"
