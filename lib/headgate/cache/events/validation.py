"""Rows that can change nothing, whatever came before them, are refused as they come (entry-cache 2, checks 1).

They take no part in the order of their broker's rows: they move no time, wait for none, and are not counted with it.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from headgate.cache.apply_events import rows_of
from headgate.cache.events.dead_letters import letters_of
from headgate.cache.events.event_columns import EventColumns
from headgate.cache.schemas import ROWS
from headgate.cache.stored.state import NOT_YET
from headgate.core.cache.checks import refusal
from headgate.core.cache.rows import Row
from headgate.core.cache.settings import CacheSettings

_NAMES = [name for name in Row._fields if name != "conf"]
_SETTINGS = CacheSettings()
"""Which keys and values a row of kind conf may set is the same for all settings."""


def sifted(rows: pa.Table) -> tuple[pa.Table, list[dict[str, Any]]]:
    """ROWS that may act, and letters of the others."""
    letters = letters_by_place(rows)
    if not letters:
        return rows, []
    may_act = np.ones(len(rows), np.bool_)
    may_act[list(letters)] = False
    return rows.filter(pa.array(may_act)), list(letters.values())


def letters_by_place(rows: pa.Table) -> dict[int, dict[str, Any]]:
    """Letters of those of ROWS that can change nothing, by their places."""
    if not len(rows):
        return {}
    odd = np.flatnonzero(~EventColumns(events_of(rows)).well_formed())
    some = rows.take(pa.array(odd))
    read = rows_of(some)
    refusals = (refusal(row, NOT_YET, -1, _SETTINGS) for row in read)
    dead = [(at, reason) for at, reason in enumerate(refusals) if reason is not None]
    letters = letters_of(some, read.__getitem__, dead, _SETTINGS)
    return {int(odd[at]): letter for (at, _), letter in zip(dead, letters, strict=True)}


def events_of(rows: pa.Table) -> pa.RecordBatch:
    """ROWS as `event_columns.EventColumns` takes them."""
    (events,) = rows.select(ROWS.names[: len(_NAMES)]).rename_columns(_NAMES).combine_chunks().to_batches()
    return events
