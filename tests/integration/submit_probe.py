"""A small job for the tests of spark-submit.sh. `submit_probe.py WHAT`:

args ...      prints its arguments and what the wrapper put into its environment, as JSON
exit N        says so and ends with status N
fail          raises
wait          notes its process id, says "waiting" and ends with status 0 on SIGTERM
delta PATH    writes and reads a Delta table there
workers       on a cluster: where driver and workers import headgate from
kafka SERVERS TOPIC   writes a row to a topic and reads it back as a stream
"""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

import headgate
from headgate.core import numbers
from headgate.spark.session import spark_session


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def note_process() -> None:
    Path(os.environ["HEADGATE_PID_FILE"]).write_text(str(os.getpid()))


def show_environment(arguments: list[str]) -> None:
    names = ("HEADGATE_HOME", "HEADGATE_TERMINAL", "COLUMNS", "SPARK_LOCAL_IP")
    say(json.dumps({"arguments": arguments} | {name: os.environ.get(name) for name in names}))


def wait_for_stop() -> None:
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
    note_process()
    say("waiting")
    signal.pause()


def write_and_read(path: str) -> None:
    spark = spark_session("submit-probe")
    spark.range(3).write.format("delta").save(path)
    settings = ("spark.driver.memory", "spark.sql.shuffle.partitions", "spark.sql.session.timeZone")
    seen = {name: spark.conf.get(name) for name in settings}
    say(json.dumps({"rows": spark.read.format("delta").load(path).count()} | seen))


def where_imported(parts: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Runs on the workers. Modules are pickled by name and imported there, so the answer is theirs."""
    for _ in parts:
        pass
    # An executor works in a folder that has its number for a name.
    yield pd.DataFrame({"module": [headgate.__file__], "core": [numbers.__file__], "executor": [Path.cwd().name]})


def show_workers() -> None:
    spark = spark_session("submit-probe")
    # Barrier: both tasks run at the same time, so on two one-core executors each gets one.
    schema = "module string, core string, executor string"
    rows = spark.range(0, 2, 1, 2).mapInPandas(where_imported, schema, barrier=True).collect()
    say(json.dumps({"driver": headgate.__file__, "workers": [row.asDict() for row in rows]}))


def read_from_kafka(servers: str, topic: str) -> None:
    spark = spark_session("submit-probe")
    sent = spark.createDataFrame([("throttled",)], "value string")
    sent.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", topic).save()
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    rows = source.option("subscribe", topic).option("startingOffsets", "earliest").load()
    query = rows.selectExpr("cast(value as string) as value").writeStream.format("memory").queryName("read")
    query.trigger(availableNow=True).start().awaitTermination()
    say(json.dumps([row.value for row in spark.table("read").collect()]))


def main() -> None:
    what, *rest = sys.argv[1:]
    match what:
        case "args":
            show_environment(rest)
        case "exit":
            say(f"ending with {rest[0]}")
            sys.exit(int(rest[0]))
        case "fail":
            raise ValueError("the job's own message")
        case "wait":
            wait_for_stop()
        case "delta":
            write_and_read(*rest)
        case "workers":
            show_workers()
        case "kafka":
            read_from_kafka(rest[rest.index("--servers") + 1], rest[rest.index("--topic") + 1])


if __name__ == "__main__":
    main()
