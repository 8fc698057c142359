"""Dispatches stepped through the levels of one broker, and what became of them."""

from dataclasses import replace

import pytest

from headgate.throttle.form import Rules
from headgate.throttle.keys import place_of_level
from headgate.throttle.limits.changes import DISPATCH_LIMIT, REPLICATOR_LIMIT, SUBSCRIPTION_LIMIT
from unit.throttle.domains import (
    FORMS,
    attach,
    changes_block,
    dispatch_limit,
    dispatches_block,
    level_limit,
    step_through,
    tick_block,
)
from unit.throttle.rows import BROKER, SECOND_US, START_US, TOPICS

MS_US = 1000
ADMITTED = Rules(whole_brokers=True)
OFFERED = replace(ADMITTED, offered=True)
T0, T1, T2, T3 = TOPICS
REPLICATOR = "pulsar.repl.west"
HELD = tuple(f"held_by_{scope}" for scope in ("broker", "topic", "subscription", "group"))
DELAYS = ("delayed_reads", "delay_ns", "max_delay_ns")
both_forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
both_traffics = pytest.mark.parametrize("rules", [ADMITTED, OFFERED], ids=["admitted", "offered"])


def of_broker(*rates, **more):
    return level_limit(DISPATCH_LIMIT, "broker", "", *rates, **more)


def of_topics(*rates, scope="default", name="", **more):
    return level_limit(DISPATCH_LIMIT, scope, name, *rates, **more)


def of_subscriptions(*rates, scope="default", name="", **more):
    return level_limit(SUBSCRIPTION_LIMIT, scope, name, *rates, **more)


def of_replicators(*rates, scope="default", name="", **more):
    return level_limit(REPLICATOR_LIMIT, scope, name, *rates, **more)


def of_group(*rates):
    """The limit of the group that everything is attached to then."""
    return [attach("acme", "gold", "tenant"), dispatch_limit("gold", *rates)]


def run(rows, changes, rules, form, until_us, *, finish=True):
    """One batch, and all that is open written at its end."""
    changes = [replace(change, seq=seq) for seq, change in enumerate(changes)]
    blocks = [changes_block(changes), dispatches_block(rows), tick_block(until_us)]
    batches = [blocks, [tick_block(until_us, finish=True)]] if finish else [blocks]
    return step_through(batches, rules, form, stored=False)


def told(outcome, *names):
    """Of each row of the table its second after the start and these columns, by second, topic and subscription."""
    rows = sorted(outcome.dispatch_decisions, key=lambda row: (row["event_time"], row["topic"], row["subscription"]))
    return [
        (round(row["event_time"].timestamp()) - START_US // SECOND_US, *(row[name] for name in names)) for row in rows
    ]


def total(outcome, *names):
    """Sums of these columns over the table."""
    return tuple(sum(row[name] for row in outcome.dispatch_decisions) for name in names)


def level(outcome, column, scope="topic", topic=T0, name=""):
    """Messages and bytes in a column of the state of one level, None: it is not there."""
    state = outcome.state.domains[BROKER].dispatch
    places = [place_of_level(key) for key in state.keys.to_pylist()]
    place = (scope, "" if scope in {"broker", "group"} else topic, name)
    return state.levels[column][places.index(place)].tolist() if place in places else None
