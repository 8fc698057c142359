# Kafka's jars, for scripts that start brokers. Source it; it defines fetch, storage_tool, kafka, format and small_properties. Needs `root`, and
# `run` for logs.
# shellcheck shell=bash
java=${JAVA_HOME:+$JAVA_HOME/bin/}java

# Fetches the jars once through Spark's own resolver (40 MB).
fetch() {
  . "$root/scripts/find-python.sh"
  local jars
  jars=$("$python" "$root/scripts/bootstrap.py" "$root/scripts/jars.py" kafka-broker)
  # Spark's resolver leaves Scala's library out of whatever it resolves; Spark's own copy fits.
  classpath="$jars/*:$(ls "$root"/.venv/lib/python3.*/site-packages/pyspark/jars/scala-library-2.13.*.jar)"
}

storage_tool() { "$java" -Xmx128m -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$classpath" kafka.tools.StorageTool "$@"; }

# PROPERTIES OUTPUT: runs a broker in the background.
kafka() {
  nohup "$java" -Xms128m -Xmx512m -XX:+UseSerialGC -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$classpath" \
    kafka.Kafka "$1" >"$2" 2>&1 </dev/null &
}

# PROPERTIES OPTION...: a new log folder. Needs `cluster_id`.
format() {
  local properties=$1
  shift
  storage_tool format -t "$cluster_id" -c "$properties" "$@" >>"$run/format.log" 2>&1 ||
    { echo "could not format the log folder; last lines of $run/format.log:" >&2; tail -n 15 "$run/format.log" >&2; exit 1; }
}

# Of a single node that keeps all internal topics.
small_properties="num.partitions=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0"
