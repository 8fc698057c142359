"""Limiters and producers of a domain, registered as events reach them; topics with the group that they belong to."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.columns import distinct, encoded, no_ints, places, sums_by, whole
from headgate.core.kernels.columns import NO_VALUE, Flags, Ints
from headgate.core.kernels.publish.types import NO_GROUP, UNRESOLVED
from headgate.throttle.keys import BROKER_KEY, are_groups
from headgate.throttle.limits.changes import Change
from headgate.throttle.limits.effective_limits import topics_under
from headgate.throttle.state import DomainState

REPLICATOR = "pulsar.repl"
_LAST = np.iinfo(np.int64).max // 4


def register(domain: DomainState, events: pa.Table, order: Ints, *, broker: bool) -> Ints:
    """Position of each event's topic limiter.

    New limiters are registered in the order topic, broker, group of the first event (by `order`) that reaches them.
    broker: they are charged to the broker's limiter, too.
    """
    rank = np.empty(len(events), np.int64)
    rank[order] = np.arange(len(events))
    topics, codes = encoded(events["topic"])
    first = np.full(len(topics), _LAST)
    np.minimum.at(first, codes, rank)
    shared = pa.array([BROKER_KEY] if broker and len(events) else [], pa.string())
    wanted = pa.concat_arrays([topics, shared])
    reached = np.concatenate([first * 3, np.ones(len(shared), np.int64)])
    found = places(domain.keys, wanted)
    is_open = found[: len(topics)] < 0
    is_open |= domain.limiters["group"][found[: len(topics)]] == UNRESOLVED if len(domain.keys) else False
    of_open = np.flatnonzero(is_open)
    groups, group_codes = _groups(domain, topics.take(pa.array(of_open)))
    first_of_group = np.full(len(groups), _LAST)
    np.minimum.at(first_of_group, group_codes[group_codes >= 0], first[of_open][group_codes >= 0])
    found = np.concatenate([found, _group_positions(domain.keys, groups)])
    reached = np.concatenate([reached, first_of_group * 3 + 2])
    _register_new(domain, pa.concat_arrays([wanted, groups]), found, reached)
    _resolve(domain, found[of_open], found[len(wanted) :], group_codes)
    return found[codes]


def reattach(domain: DomainState, attachments: Sequence[Change]) -> Ints:
    """Carry out attachments of one instant; positions of the group limiters that lose topics with waiting producers.

    A topic whose group they can move is looked up anew: at its next event, or now if producers of it wait.
    """
    if not attachments:
        return no_ints()
    for change in attachments:
        domain.in_force.apply(change)
    group = domain.limiters["group"]
    under = topics_under(attachments, domain.keys).to_numpy().astype(np.int64)
    waiting = np.intersect1d(under, domain.producer_topic[domain.entry_producer])
    old = group[waiting]
    group[under] = UNRESOLVED
    groups, codes = _groups(domain, domain.keys.take(pa.array(waiting)))
    found = _group_positions(domain.keys, groups)
    _register_new(domain, groups, found, np.arange(len(groups)))
    _resolve(domain, waiting, found, codes)
    return np.unique(old[(old >= 0) & (old != domain.limiters["group"][waiting])])


def _groups(domain: DomainState, topics: pa.StringArray) -> tuple[pa.StringArray, Ints]:
    """Distinct keys of the topics' groups, in the order of the topics, and each topic's index among them, -1: none."""
    return encoded(domain.in_force.groups_of(topics))


def _group_positions(keys: pa.StringArray, groups: pa.StringArray) -> Ints:
    """Positions among `keys` of groups' limiters, -1: not there. Topics are many, and left out of the search."""
    if not len(groups):
        return no_ints()
    at = pc.indices_nonzero(are_groups(keys)).to_numpy().astype(np.int64)
    return np.append(at, -1)[places(keys.take(pa.array(at)), groups)]


def _register_new(domain: DomainState, wanted: pa.StringArray, found: Ints, reached: Ints) -> None:
    """Append the limiters of `wanted` whose position in `found` is below 0, in the order of `reached`; fill it in."""
    new = np.flatnonzero(found < 0)
    new = new[np.argsort(reached[new], kind="stable")]
    found[new] = len(domain.keys) + np.arange(len(new))
    _append_limiters(domain, wanted.take(pa.array(new)))


def _resolve(domain: DomainState, topics: Ints, groups: Ints, codes: Ints) -> None:
    """Say of topics' limiters which of `groups`, by `codes`, they are charged to."""
    domain.limiters["group"][topics] = np.append(groups, NO_GROUP)[codes]


def _append_limiters(domain: DomainState, keys: pa.StringArray) -> None:
    if not len(keys):
        return
    domain.keys = pa.concat_arrays([domain.keys, keys])
    rates = np.array([domain.in_force.rates_of(key) for key in keys.to_pylist()], np.int64)
    start = {"rate": rates, "next_drain_ns": np.full(len(keys), NO_VALUE), "group": np.full(len(keys), NO_GROUP)}
    for name, values in domain.limiters.items():
        added = start.get(name, np.zeros((len(keys), *values.shape[1:]), np.int64))
        domain.limiters[name] = np.concatenate([values, added])
    domain.hour = np.concatenate([domain.hour, np.zeros(len(keys), np.int64)])


class Producers(NamedTuple):
    """Producers of the state (first) and of the events: topic, name, connection; and each event's producer."""

    topic: Ints
    name: pa.StringArray
    connection: pa.StringArray
    of_event: Ints


def producers(domain: DomainState, events: pa.Table, topic: Ints, *, offered: bool) -> Producers:
    """In admitted traffic every event counts as a producer of its own, until `keep_waiting`: nothing is looked up."""
    kept = len(domain.producer_topic)
    topics = np.concatenate([domain.producer_topic, topic])
    names = pa.concat_arrays([domain.producer_name, whole(events["producer"])])
    connections = pa.concat_arrays([domain.producer_connection, whole(events["connection"])])
    if not offered:
        return Producers(topics, names, connections, kept + np.arange(len(events)))
    topics, names, connections, producer = _each_once(topics, names, connections)
    return Producers(topics, names, connections, producer[kept:])


def _each_once(
    topics: Ints, names: pa.StringArray, connections: pa.StringArray
) -> tuple[Ints, pa.StringArray, pa.StringArray, Ints]:
    """The distinct ones of these producers in the order of their first rows, and each row's index among them."""
    rows, number = distinct(topics, encoded(names)[1], encoded(connections)[1])
    return topics[rows], names.take(rows), connections.take(rows), number


def replicators(names: pa.StringArray) -> Flags:
    """Which producers are replicators, by Pulsar's prefix of their names: groups do not concern them."""
    is_replicator: Flags = pc.starts_with(names, REPLICATOR).to_numpy(zero_copy_only=False).astype(np.bool_)
    return is_replicator


def keep_waiting(domain: DomainState, known: Producers, *, offered: bool, quantum: int) -> None:
    """Keep the producers that still wait, numbered anew in the order in which they were known.

    In admitted traffic each is kept once, and without a quantum its entries in a queue become one with a count, at the
    place of the first: a limiter whose debt is never paid needs no more space with each publish. A wake-up releases all
    of a queue then, so nothing depends on the order of its entries. In offered traffic there is one of each anyway.
    """
    waiting = np.flatnonzero(_among(len(known.topic), domain.entry_producer, domain.withheld["producer"]))
    number = np.empty(len(known.topic), np.int64)
    number[waiting] = np.arange(len(waiting))
    domain.entry_producer = number[domain.entry_producer]
    domain.withheld["producer"] = number[domain.withheld["producer"]]
    domain.producer_topic, domain.producer_name = known.topic[waiting], known.name.take(waiting)
    domain.producer_connection = known.connection.take(waiting)
    if offered:
        return
    kept = _each_once(domain.producer_topic, domain.producer_name, domain.producer_connection)
    domain.producer_topic, domain.producer_name, domain.producer_connection, number = kept
    domain.entry_producer = number[domain.entry_producer]
    if not quantum:
        _join_entries(domain)


def _join_entries(domain: DomainState) -> None:
    """Make the entries of a producer in a queue one, with the sum of their counts."""
    rows, number = distinct(domain.entry_limiter, domain.entry_producer)
    domain.entry_count = sums_by(domain.entry_count, number, len(rows))
    domain.entry_limiter, domain.entry_producer = domain.entry_limiter[rows], domain.entry_producer[rows]


def _among(count: int, *places: Ints) -> Flags:
    """Which of so many rows are at one of these places."""
    is_there = np.zeros(count, np.bool_)
    for some in places:
        is_there[some] = True
    return is_there
