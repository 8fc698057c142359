"""Rows that are dispatches in place of publishes: which ones, and to which of their topic's subscriptions."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.trace.draws import uniforms
from headgate.trace.spec import TraceSpec

DISPATCH_STREAM = 2
SUBSCRIPTION = pa.field("subscription", pa.string())


def with_dispatches(table: pa.Table, spec: TraceSpec, block: int) -> pa.Table:
    """The publishes of a block, `dispatch_share` of them made dispatches; the table as it is with a share of 0.

    A dispatch has a subscription, and neither producer nor connection; nothing else about any row changes.
    """
    if spec.dispatch_share == 0:
        return table
    chosen, which = uniforms(spec.seed, DISPATCH_STREAM, block, 2, len(table))
    is_dispatch = pa.array(chosen < spec.dispatch_share)
    number = pa.array((which * spec.subscriptions_per_topic).astype(np.int64) + 1).cast(pa.string())
    names = pc.binary_join_element_wise("sub", number, "-")
    for column, value in (("kind", "dispatch"), ("producer", None), ("connection", None)):
        place = table.schema.get_field_index(column)
        replaced = pc.if_else(is_dispatch, pa.scalar(value, pa.string()), table[column])
        table = table.set_column(place, table.schema.field(place), replaced)
    place = table.schema.get_field_index("messages")
    return table.add_column(place, SUBSCRIPTION, pc.if_else(is_dispatch, names, pa.scalar(None, pa.string())))
