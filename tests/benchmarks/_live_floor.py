"""The input of a live job through an operator that does nothing, collected, without tables and control rows.

A job for spark-submit with the options of jobs/throttle.py; live_job.py runs it.
"""

import argparse
from functools import partial
from typing import Any

from _noop import NoOperator, no_operator_session

from headgate.conf import load_conf
from headgate.engines.stops import Stop
from headgate.spark.input.sources import read_raw
from headgate.spark.job import heed_signals
from headgate.spark.operator import PACKED, apply_operator
from headgate.spark.state import close_stores
from headgate.throttle.routing import Routing, pack_input


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--input", "--format", "--output", "--conf-dir"):
        parser.add_argument(name)
    options = parser.parse_args()
    settings = load_conf(options.conf_dir).settings
    spark = no_operator_session()
    raw = read_raw(spark, settings.input, options.input, options.format)
    packed = raw.mapInArrow(partial(pack_input, options.format, settings.input, Routing()), PACKED)

    def sink(batch: Any, _batch_id: int) -> None:
        batch.toArrow()

    stop = Stop()
    heed_signals(stop)
    stream = packed.transform(apply_operator, NoOperator()).writeStream.foreachBatch(sink)
    interval = f"{settings.trigger.interval_ms} milliseconds"
    query = stream.option("checkpointLocation", f"{options.output}/checkpoint").trigger(processingTime=interval).start()
    stop.wait()
    query.stop()
    close_stores(spark)


if __name__ == "__main__":
    main()
