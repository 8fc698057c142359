"""Kinds that act apart: when their step runs, and what follows from the list of kinds."""

from dataclasses import replace

import pytest

from headgate.throttle.form import Rules
from headgate.throttle.kinds import APART, KINDS, OUTPUT_TABLES
from headgate.throttle.ordering import Due
from headgate.throttle.schemas import TRAFFIC
from headgate.throttle.state import PARTS, DomainState
from unit.throttle.domains import (
    changes_block,
    connection_limit,
    rows_block,
    step_through,
    subscribe_limit,
    unload_limit,
)
from unit.throttle.rows import BROKER, SECOND_US, START_US, acts, subscribe, unload

ROW_OF = {"subscribe": subscribe(0), "unload": unload(0), "connection": acts(0, "open", io_thread=1)}
LIMIT_OF = {
    "subscribe": subscribe_limit("default", subscribes=3, period_s=30),
    "unload": unload_limit(3, 2000),
    "connection": connection_limit(cooldown_ms=5),
}
LATER_NS = (START_US + SECOND_US) * 1000
every_kind = pytest.mark.parametrize("kind", APART, ids=lambda kind: kind.rows.name)


def steps_of(kind, domain, *changes):
    """How often the kind acts if only these changes come."""
    acted = []
    counting = replace(kind, act=lambda domain, due: acted.append(due) or kind.act(domain, due))
    counting.step(domain, Due(kind.rows.schema.empty_table(), changes, LATER_NS))
    return len(acted)


@every_kind
def test_where_nothing_of_a_kind_is_there_its_step_does_not_run_and_limits_are_written_down(kind):
    domain = DomainState(BROKER)

    assert 0 == steps_of(kind, domain, LIMIT_OF[kind.rows.name])
    assert [LIMIT_OF[kind.rows.name].says] == [
        change.says for change in domain.in_force.changes() if change.kind in kind.limits
    ]


@every_kind
def test_what_a_kind_keeps_hears_of_limits_and_not_of_time_alone(kind):
    state = step_through(
        [[changes_block([LIMIT_OF[kind.rows.name]]), rows_block(kind.rows.block, [ROW_OF[kind.rows.name]])]], Rules()
    ).state
    domain = state.domains[BROKER]

    assert (0, 1) == (steps_of(kind, domain), steps_of(kind, domain, LIMIT_OF[kind.rows.name]))


def test_every_kind_of_rows_is_a_kind_of_the_domain_with_state_and_tables_of_its_own():
    stored = [name for part in PARTS.values() for name in part.TABLES]
    written = [name for kind in KINDS for name in kind.tables]

    assert list(TRAFFIC) == [kind.rows.block for kind in KINDS]
    assert (len(set(stored)), len(set(written))) == (len(stored), len(written))
    assert [*written, "dead_letters"] == list(OUTPUT_TABLES)
