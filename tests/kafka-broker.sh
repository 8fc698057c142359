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
. "$root/tests/kafka-dist.sh"

is_ready() { (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }

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
$small_properties
EOF
  cluster_id=$(storage_tool random-uuid 2>>"$run/format.log" | tail -n 1)
  format "$run/server.properties" --standalone
}

launch() {
  fetch
  configure
  kafka "$run/server.properties" "$run/out.log"
}

. "$root/tests/broker.sh"
