"""The Delta tables of the throttle job and of the connections job."""

from pathlib import PurePath

import pyarrow as pa

from headgate.tables.delta import Tables
from headgate.throttle.kinds import OUTPUT_TABLES
from headgate.throttle.schemas import BATCHES, CONNECTION_TOPICS, CONNECTIONS, CONTROL

SCHEMAS: dict[str, pa.Schema] = {**OUTPUT_TABLES, "batches": BATCHES, "control": CONTROL}
"""Tables of the throttle job."""
OF_CONNECTIONS: dict[str, pa.Schema] = {"connections": CONNECTIONS, "connection_topics": CONNECTION_TOPICS}
"""Tables of the connections job, beside those whose marks it follows."""


def throttle_tables(output: str | PurePath, kept_hours: int = 0) -> Tables:
    """Those of the throttle job under its output folder. kept_hours: as of Tables. Raises TableError."""
    return Tables(output, SCHEMAS, kept_hours)
