"""An operator that does nothing: what parsing, packing and Spark cost."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from headgate.keyed.operator import Block, StateCodec
from headgate.spark.session import spark_session


@dataclass(frozen=True)
class NoOperator:
    """Takes blocks and says nothing. state_bytes: how much it keeps, beside how much came in the last batch."""

    state_bytes: int = 0
    codec = StateCodec(0, dict, lambda _version, _blocks: {}, lambda state: state["kept"])

    def load(self) -> None:
        """See KeyOperator: there is nothing to load."""

    def step(self, key: str, state: dict[str, Any], blocks: Iterable[Block]) -> list[Block]:
        """See KeyOperator."""
        del key
        size = sum(len(block.block) for block in blocks)
        state["kept"] = size.to_bytes(8, "little") + bytes(self.state_bytes)
        return []


def no_operator_session() -> SparkSession:
    """A session whose workers can import this module."""
    spark = spark_session("no operator")
    spark.sparkContext.addPyFile(__file__)
    return spark
