"""What a domain forgets: limiters that are full and idle, and what stands for nobody any more.

A limiter that is full, and for whom nobody waits, is as good as a new one. It is forgotten as an hour of event time
begins in which something happens, if nothing came to it in the hour before: at the same place whatever the batches are,
so that what is written depends on the input alone. It comes back, full, with the next row that it is charged for.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.kernels.columns import NO_VALUE, Flags, Ints
from headgate.core.numbers import HOUR_NS, MILLISECOND_NS
from headgate.throttle.dispatch.dispatch_state import DispatchState
from headgate.throttle.form import Rules
from headgate.throttle.groups.known_topics import KnownTopics
from headgate.throttle.idle import are_full, are_renewed
from headgate.throttle.keys import BROKER_KEY, are_groups, place_of_level
from headgate.throttle.state import DomainState


def forget(domain: DomainState, hour: int, rules: Rules) -> None:
    """Forget what is full and idle as hour number `hour` (since the epoch) begins; nothing of it has happened yet."""
    at_ns = hour * HOUR_NS
    for known in (domain.known_topics, domain.dispatch.known_topics):
        _forget_epoch(known, at_ns, rules)
    position = _forget_limiters(domain, hour)
    domain.connection_topics.forget(position, hour - 1)
    _forget_dispatch(domain.dispatch, hour, rules)


def _forget_epoch(known: KnownTopics, at_ns: int, rules: Rules) -> None:
    """An epoch that ended an hour ago is not the newest any more once anything is counted again."""
    if known.epoch != NO_VALUE and (known.epoch + 1) * rules.epoch_ms * MILLISECOND_NS <= at_ns - HOUR_NS:
        known.clear()


def _forget_limiters(domain: DomainState, hour: int) -> Ints:
    """Where each limiter stands from now on, -1: it is forgotten. Shared ones stay while a topic is charged to them."""
    limiters, group_of = domain.limiters, domain.limiters["group"]
    is_group = are_groups(domain.keys).to_numpy(zero_copy_only=False).astype(np.bool_)
    stays = ~are_full(limiters, 1, hour * HOUR_NS).all(axis=1) | (limiters["next_drain_ns"] != NO_VALUE)
    stays |= domain.hour >= hour - 1
    for places in (
        domain.entry_limiter,
        domain.producer_topic,
        domain.withheld["topic"],
        domain.usage["topic"],
        domain.known_topics.topic,
        domain.known_topics.group,
        domain.dispatch.published.topic,
    ):
        stays[places] = True
    charged = group_of[stays & ~is_group]
    stays[charged[charged >= 0]] = True
    broker = domain.keys.index(BROKER_KEY).as_py()
    if broker >= 0 and stays.any():
        stays[broker] = True
    position = np.where(stays, np.cumsum(stays) - 1, -1)
    if stays.all():
        return position
    kept = np.flatnonzero(stays)
    domain.keys = domain.keys.take(pa.array(kept))
    domain.limiters = {name: values[kept] for name, values in limiters.items()}
    domain.hour = domain.hour[kept]
    group_of = domain.limiters["group"]
    has_group = group_of >= 0
    group_of[has_group] = position[group_of[has_group]]
    domain.entry_limiter = position[domain.entry_limiter]
    domain.producer_topic = position[domain.producer_topic]
    domain.withheld["topic"] = position[domain.withheld["topic"]]
    domain.usage["topic"] = position[domain.usage["topic"]]
    known = domain.known_topics
    known.topic, known.group = position[known.topic], position[known.group]
    domain.dispatch.published.topic = position[domain.dispatch.published.topic]
    return position


def _forget_dispatch(state: DispatchState, hour: int, rules: Rules) -> None:
    waiting = pc.unique(pa.concat_arrays([state.subscription_topic, state.open_topic]))
    topics = state.topic_hour >= hour - 1
    topics |= pc.is_in(state.topics, value_set=waiting).to_numpy(zero_copy_only=False).astype(np.bool_)
    topics[state.known_topics.topic] = True
    levels = ~_level_is_full(state, hour * HOUR_NS, rules) | (state.levels["cause"] != 0)
    is_group = state.are_groups
    is_idle = state.levels["last_ns"].max(axis=1, initial=NO_VALUE) <= (hour - 1) * HOUR_NS
    levels |= ~is_group & ~is_idle
    of_level = [place_of_level(key) for key in state.keys.to_pylist()] if len(waiting) else []
    busy = set(waiting.to_pylist())
    levels |= np.array([place.topic in busy for place in of_level] or [False] * len(levels), np.bool_)
    charged = state.level_of[topics]
    levels[charged[charged >= 0]] = True
    levels[state.known_topics.group] = True
    state.keep(topics, levels)


def _level_is_full(state: DispatchState, at_ns: int, rules: Rules) -> Flags:
    """Whether a level has all its permits; classic windows have when what they are over is renewed."""
    levels = state.levels
    period_s = np.where(state.are_groups, 1, levels["period_s"])[:, None]
    full = are_full(levels, period_s, at_ns)
    if rules.classic:
        full = np.where(state.are_groups[:, None], full, are_renewed(levels, period_s, at_ns))
    is_full: Flags = np.logical_and(full[:, 0], full[:, 1])
    return is_full
