"""Rows of the control table as tests give them, and what becomes of them on their way to the keys."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

from headgate.arrow.blocks import decode
from headgate.conf import AttachmentRow, ConnectionLimitRow, LimitRow, UnloadLimitRow
from headgate.throttle.limits.control import conf_row, conf_rows, pack_control
from headgate.throttle.routing import Routing
from headgate.throttle.schemas import CONTROL
from unit.throttle.rows import TOPICS

AT = datetime(2026, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)
AT_US = 1_767_268_800_250_000
SLOTS = Routing(slots=3)
WHOLE = Routing(slots=3, whole_brokers=True)
BY_TOPIC = Routing(by_topic=True)
DEFAULT = LimitRow("default", "", 10, 1000)
TENFOLD = LimitRow("default", "", 100, 1000)
GOLD = LimitRow("group", "gold", 50, 0)
IRON = LimitRow("group", "iron", 5, None)
FREE = LimitRow("group", "free", None, None)
ACME = AttachmentRow("tenant", "acme", "gold")
SHOP = AttachmentRow("namespace", "acme/shop", "iron")
UNLOADS = UnloadLimitRow("broker", "", 3, 500)
CONNECTIONS = ConnectionLimitRow(1000, 64, 8, True, 5000, 5, 10)
TOPIC_ROW = conf_row(AT, 1, LimitRow("topic", TOPICS[0], 1, 0)) | {"source": "admin"}
ATTACHMENT_ROW = conf_row(AT, 1, ACME) | {"source": "admin"}
UNLOAD_ROW = conf_row(AT, 1, UNLOADS) | {"source": "admin"}
BROKER_ROW = TOPIC_ROW | {"scope": "broker", "name": ""}
CONNECTIONS_ROW = conf_row(AT, 1, CONNECTIONS) | {"source": "admin"}


def table(rows):
    return pa.Table.from_pylist(rows, CONTROL)


def appended(*starts):
    """The control table after the job was started with each of `starts`, newest rows first, as Delta reads them."""
    rows = []
    for hours, wanted in enumerate(starts):
        rows = conf_rows(wanted, table(rows), AT + timedelta(hours=hours)) + rows
    return rows


def pack(routing, *rows):
    """Packed rows by kind: their keys, and the first block of each kind."""
    batches = pack_control(routing, table(list(rows)).to_batches())
    packed = [row for batch in batches for row in batch.to_pylist()]
    keys, blocks = {}, {}
    for row in packed:
        keys.setdefault(row["kind"], []).append(row["key"])
        blocks.setdefault(row["kind"], decode(row["block"]))
    return keys, blocks
