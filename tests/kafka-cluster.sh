#!/usr/bin/env bash
# A real Apache Kafka cluster (KRaft) on loopback, for tests and benchmarks: N brokers, the first of which is the controller, too.
#   tests/kafka-cluster.sh start | stop | status | kill-broker I | start-broker I
# Broker I (from 1) is 127.0.0.1:(KAFKA_PORT + I), SASL_PLAINTEXT with PLAIN. Users admin, acme and globex may do everything, guest nothing;
# the password of each is its name and "-secret". Ports + 10 + I are for the brokers themselves, + 20 for the controller.
# Needs what headgate needs: Python and Java; 0.4 GB of memory for each broker.
# Environment (all optional):
#   KAFKA_RUN             folder for data, logs and pids        .cache/kafka-cluster-run
#   KAFKA_BROKERS         number of brokers, at most 9          2
#   KAFKA_PORT            base of the ports                     19200
#   KAFKA_START_TIMEOUT   seconds to wait for each broker       60
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
run=${KAFKA_RUN:-$root/.cache/kafka-cluster-run}
brokers=${KAFKA_BROKERS:-2}
port=${KAFKA_PORT:-19200}
timeout=${KAFKA_START_TIMEOUT:-60}
. "$root/tests/kafka-dist.sh"
. "$root/tests/end-process.sh"

running() { [[ -s $run/$1.pid ]] && kill -0 "$(<"$run/$1.pid")" 2>/dev/null; }
is_ready() { (exec 3<>"/dev/tcp/127.0.0.1/$((port + $1))") 2>/dev/null; }

configure() {
  local roles=broker listeners="CLIENT://127.0.0.1:$((port + $1)),INTERNAL://127.0.0.1:$((port + 10 + $1))" controller=""
  [[ $1 == 1 ]] && roles=broker,controller controller=",CONTROLLER://127.0.0.1:$((port + 20))"
  mkdir -p "$run/$1"
  cat >"$run/$1/server.properties" <<EOF
process.roles=$roles
node.id=$1
controller.quorum.bootstrap.servers=127.0.0.1:$((port + 20))
listeners=$listeners$controller
advertised.listeners=$listeners$controller
controller.listener.names=CONTROLLER
inter.broker.listener.name=INTERNAL
listener.security.protocol.map=CLIENT:SASL_PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.client.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_admin="admin-secret" user_acme="acme-secret" user_globex="globex-secret" user_guest="guest-secret";
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:admin;User:acme;User:globex;User:ANONYMOUS
log.dirs=$run/$1/data
$small_properties
EOF
  if [[ $1 == 1 ]]; then format "$run/1/server.properties" --standalone; else format "$run/$1/server.properties" --no-initial-controllers; fi
}

start_broker() {
  running "$1" && return
  kafka "$run/$1/server.properties" "$run/$1/out.log"
  echo $! >"$run/$1.pid"
  local end=$((SECONDS + timeout))
  until is_ready "$1"; do
    running "$1" || { echo "broker $1 ended; last lines of $run/$1/out.log:" >&2; tail -n 15 "$run/$1/out.log" >&2; exit 1; }
    ((SECONDS < end)) || { echo "broker $1 is not ready after $timeout s, see $run/$1/out.log" >&2; exit 1; }
    sleep 0.25
  done
}

start() {
  if running 1; then echo "already running"; return; fi
  fetch
  rm -rf "$run"
  mkdir -p "$run"
  cluster_id=$(storage_tool random-uuid 2>>"$run/format.log" | tail -n 1)
  local broker
  for ((broker = 1; broker <= brokers; broker++)); do configure "$broker"; start_broker "$broker"; done
  status
}

stop() {
  local broker
  for ((broker = brokers; broker >= 1; broker--)); do
    running "$broker" && end_process "$(<"$run/$broker.pid")" 30
    rm -f "$run/$broker.pid"
  done
  echo "stopped"
}

status() {
  local broker code=0
  for ((broker = 1; broker <= brokers; broker++)); do
    if running "$broker" && is_ready "$broker"; then
      echo "broker $broker: ready, 127.0.0.1:$((port + broker)) (pid $(<"$run/$broker.pid"))"
    else
      echo "broker $broker: not running or not ready"
      code=1
    fi
  done
  return $code
}

case ${1:-}${2:+ $2} in
  start | stop | status) "$1" ;;
  kill-broker\ [1-9]) kill -9 "$(<"$run/$2.pid")"; rm -f "$run/$2.pid"; echo "killed broker $2" ;;
  start-broker\ [1-9]) fetch; start_broker "$2"; status ;;
  *) echo "usage: $0 start|stop|status|kill-broker I|start-broker I" >&2; exit 64 ;;
esac
