"""What limits of dispatches say of levels: which a change concerns, and the rates of each."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.kernels.domain_types import Ints
from headgate.throttle.changes import DISPATCH_LIMIT, REPLICATOR_LIMIT, SUBSCRIPTION_LIMIT, UNLIMITED, Change
from headgate.throttle.keys import BROKER_KEY, group_key, place_of_level
from headgate.throttle.limits import Book
from headgate.throttle.names import without_partition

KIND_OF = {"topic": DISPATCH_LIMIT, "subscription": SUBSCRIPTION_LIMIT, "replicator": REPLICATOR_LIMIT}
"""The kind of change that limits levels of each scope."""


def concerned(keys: pa.StringArray, change: Change) -> list[int]:
    """Positions of the levels whose rates a change can move."""
    if change.scope in {"broker", "group"}:
        key = BROKER_KEY if change.scope == "broker" else group_key(change.name)
        positions: list[int] = pc.indices_nonzero(pc.equal(keys, key)).to_pylist()
        return positions
    places = map(place_of_level, keys.to_pylist())
    return [
        position
        for position, (scope, topic, _) in enumerate(places)
        if KIND_OF.get(scope) == change.kind and change.concerns(without_partition(topic))
    ]


def rates_of(book: Book, keys: Sequence[str]) -> Ints:
    """Messages and bytes, the period in seconds and whether they are relative, a row for each level."""
    places = [place_of_level(key) for key in keys]
    rates = np.empty((len(keys), len(UNLIMITED)), np.int64)
    for scope in {scope for scope, _, _ in places}:
        here = [position for position, place in enumerate(places) if place[0] == scope]
        if scope in KIND_OF:
            topics = pa.array([places[position][1] for position in here])
            rates[here] = book.dispatch_rates(KIND_OF[scope], topics)
        elif scope == "broker":
            rates[here] = book.broker_dispatch_rates
        else:
            rates[here] = [(*book.dispatch_rates_of(places[position][2]), *UNLIMITED[2:]) for position in here]
    return rates
