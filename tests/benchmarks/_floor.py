"""README's Spark command without rules: the bundled trace, parsed and packed, through an operator that does nothing.

A batch a file, collected. A job for spark-submit; first_answer.py runs it beside the real one.
"""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

from _noop import NoOperator, no_operator_session

from headgate.conf import load_conf
from headgate.spark.input.sources import read_raw
from headgate.spark.operator import PACKED, apply_operator
from headgate.spark.state import close_stores
from headgate.throttle.routing import Routing, pack_input
from headgate.trace.demo import DEMO_TRACE, demo_conf
from headgate.trace.write import write_trace

WORK = Path("output/floor")


def main() -> None:
    shutil.rmtree(WORK, ignore_errors=True)
    write_trace(DEMO_TRACE, WORK / "trace", "json")
    settings = demo_conf(load_conf("conf")).settings.input
    spark = no_operator_session()
    raw = read_raw(spark, settings, str(WORK / "trace"), "json")
    packed = raw.mapInArrow(partial(pack_input, "json", settings, Routing()), PACKED)

    def sink(batch: Any, _batch_id: int) -> None:
        batch.toArrow()

    writer = packed.transform(apply_operator, NoOperator()).writeStream.foreachBatch(sink)
    writer.option("checkpointLocation", str(WORK / "checkpoint")).trigger(availableNow=True).start().awaitTermination()
    close_stores(spark)


if __name__ == "__main__":
    main()
