"""The Delta tables of the protocol's job."""

import pyarrow as pa

from headgate.protocol.schemas import DECISIONS, METRICS, TICKS
from headgate.throttle.schemas import DEAD_LETTERS

WRITTEN: dict[str, pa.Schema] = {
    "throttle_decisions": DECISIONS,
    "throttle_metrics": METRICS,
    "protocol_dead_letters": DEAD_LETTERS,
}
"""What a batch brings."""
OF_PROTOCOL: dict[str, pa.Schema] = {**WRITTEN, "protocol_ticks": TICKS}
"""Beside those of the throttle job whose marks are followed."""
