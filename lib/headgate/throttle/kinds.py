"""The kinds of traffic rows in a domain: rows in, limits, state and step, tables out. A new kind is one object here.

What follows from the list: which rows a step takes, who hears of a limit, what the operator gives, what is written.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from headgate.arrow.schemas import DEAD_LETTERS, GROUP_LEAVES, GROUP_USAGE, GROUP_WAITS
from headgate.rows import kinds
from headgate.throttle.apart.connection_step import step_connections
from headgate.throttle.apart.subscribe_step import decide_subscribes
from headgate.throttle.apart.unload_step import run_unloads
from headgate.throttle.limits.changes import (
    ATTACHMENT,
    CONNECTION_LIMIT,
    LIMIT,
    OF_DISPATCH,
    SUBSCRIBE_LIMIT,
    UNLOAD_LIMIT,
)
from headgate.throttle.ordering import Due
from headgate.throttle.schemas import (
    DISPATCH_DECISIONS,
    MARKS,
    PROGRESS,
    SUBSCRIBE_DECISIONS,
    TOPIC_USAGE,
    UNLOAD_OUTCOMES,
)
from headgate.throttle.state import DomainState

if TYPE_CHECKING:
    from headgate.throttle.state_tables import StatePart


@dataclass(frozen=True)
class DomainKind:
    """A kind of rows, and what becomes of them in a domain.

    rows: their name and columns. limits: kinds of the changes that concern it. tables: what it adds to those that it
    shares with others.
    """

    rows: kinds.Kind
    limits: tuple[str, ...]
    tables: Mapping[str, pa.Schema]


@dataclass(frozen=True)
class KindApart(DomainKind):
    """A kind that shares no limiter with another, so that its rows act apart from all others.

    part: the field of DomainState that it keeps. act: carries out what is due, and gives rows by table.
    """

    part: str
    act: Callable[[DomainState, Due], Mapping[str, pa.Table]]

    def step(self, domain: DomainState, due: Due) -> Mapping[str, pa.Table]:
        """What `act` gives; not run where nothing came and nothing is kept: then limits are only written down."""
        part: StatePart = getattr(domain, self.part)
        if len(due.rows) or part.is_due(due.until_ns) or (due.changes and part.is_begun):
            return self.act(domain, due)
        for change in due.changes:
            domain.in_force.apply(change)
        return {}


PUBLISH = DomainKind(kinds.PUBLISH, (LIMIT, ATTACHMENT), {"marks": MARKS, "topic_usage": TOPIC_USAGE})
DISPATCH = DomainKind(kinds.DISPATCH, (*OF_DISPATCH, ATTACHMENT), {"dispatch_decisions": DISPATCH_DECISIONS})
SUBSCRIBE = KindApart(
    kinds.SUBSCRIBE, (SUBSCRIBE_LIMIT,), {"subscribe_decisions": SUBSCRIBE_DECISIONS}, "subscribes", decide_subscribes
)
UNLOAD = KindApart(kinds.UNLOAD, (UNLOAD_LIMIT,), {"unloads": UNLOAD_OUTCOMES}, "unloads", run_unloads)
CONNECTION = KindApart(kinds.CONNECTION, (CONNECTION_LIMIT,), {}, "connections", step_connections)

APART = (SUBSCRIBE, UNLOAD, CONNECTION)
KINDS: tuple[DomainKind, ...] = (PUBLISH, DISPATCH, *APART)
"""Publishes and dispatches share groups, their attachments and the form (form.Form)."""

OUTPUT_TABLES: dict[str, pa.Schema] = {
    **{name: schema for kind in KINDS for name, schema in kind.tables.items()},
    "dead_letters": DEAD_LETTERS,
}
"""Tables of what comes out of the throttle job's operator."""
OF_GROUPS = {"group_usage": GROUP_USAGE, "group_waits": GROUP_WAITS, "group_leaves": GROUP_LEAVES}
"""What the operator says of groups, to those who share quotas."""
OUTPUT_BLOCKS: dict[str, pa.Schema] = {**OUTPUT_TABLES, **OF_GROUPS, "progress": PROGRESS}
"""Kinds of blocks that come out of the operator."""
