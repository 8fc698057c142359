"""Connections that are over or silent are forgotten, and no table shows it."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.protocol.array_form import run_arrays
from headgate.protocol.readable_form import run_readable
from headgate.protocol.silence import Silence
from unit.protocol import runs
from unit.protocol.runs import BOTH, OBEDIENT, RULES, TOPIC, batch, mark_row, run, told, trip
from unit.protocol.test_split import batches_of, both, results

SILENT_MS = 300
FED = [BOTH, OBEDIENT, RULES, replace(BOTH, fan_out=True), replace(OBEDIENT, fan_out=True)]
FORMS = pytest.mark.parametrize("form", [run_readable, run_arrays])


def paused(at_ms, *, closes=True):
    """A connection opens, a producer is told to pause, and it closes."""
    rows = [
        runs.given("connect", at_ms, supports_throttle=True),
        runs.given("open", at_ms, producer_id=0, topic=TOPIC, producer="p"),
        runs.given("mark", at_ms + 1, producer_id=0, trips=[trip()]),
        runs.given("receipt", at_ms + 2, request_id=1),
        runs.given("unmark", at_ms + 3, producer_id=0, reason=0, ordinal=1),
    ]
    return [*rows, runs.given("close", at_ms + 4)] if closes else rows


def connections(outcome):
    return outcome.state.connection.to_pylist()


@FORMS
def test_decisions_are_numbered_anew_long_after_a_close(form):
    rules = replace(RULES, silent_ms=SILENT_MS)
    batches = [batch(paused(0)), batch(paused(304)), batch(paused(609)), batch([runs.given("connect", 3000, "other")])]
    outcomes = [run(batches[:count], rules, form=form) for count in range(1, 5)]

    assert [(1, 1), (1, 610), (2, 305)] == sorted(told(outcomes[2], "seq", "at_ms"))
    assert [[runs.A], [runs.A], [runs.A], []] == [connections(outcome) for outcome in outcomes]
    assert 0 == len(outcomes[3].state.names)


@FORMS
def test_a_close_is_known_to_rows_that_come_late_by_less_than_the_silence(form):
    batches = [batch(paused(0)), batch([runs.given("connect", 401, "other")]), batch(paused(200))]
    outcome = run(batches, replace(RULES, silent_ms=SILENT_MS), form=form)

    assert [(1, 1), (2, 201)] == told(outcome, "seq", "at_ms")


@FORMS
def test_what_is_open_stays_if_somebody_says_what_clients_do(form):
    outcome = run(
        [batch(paused(0, closes=False)), batch([runs.given("connect", 3000, "other")], finish_ms=3000)],
        replace(RULES, silent_ms=SILENT_MS),
        form=form,
    )

    assert [runs.A, "other"] == connections(outcome)


@FORMS
def test_of_obedient_clients_what_is_silent_and_free_goes(form):
    rules = replace(OBEDIENT, silent_ms=SILENT_MS)

    def held(at_ms, connection, *, released=True):
        mark, unmark = mark_row(at_ms * 10**6), mark_row((at_ms + 5) * 10**6, "unmark")
        return [{**row, "connection": connection} for row in ([mark, unmark] if released else [mark])]

    first = batch(marks=[*held(0, "a"), *held(0, "b", released=False)])
    outcome = run([first, batch(marks=held(1000, "c"))], rules, form=form)
    assert ["broker-1/b", "broker-1/c"] == sorted(connections(outcome))
    assert ["p"] == [name for name in outcome.state.names.to_pylist() if name != TOPIC]

    close = mark_row(1001 * 10**6, "close", None, topic=None, producer=None) | {"connection": "a"}
    more = run([batch(marks=[close]), batch(marks=held(1100, "a"))], rules, outcome.state, form=form)
    assert ([], 1) == (more.dead_letters, min(told(more, "seq"))[0])


@settings(max_examples=examples(200))
@given(both, st.lists(st.integers(0, 99), max_size=8), st.sampled_from(FED), st.randoms())
def test_forgetting_changes_no_table(rows, cuts, rules, random):
    """Rows come in any order, however late they are."""
    inputs = [] if rules.obedient else rows[0]
    marks = [] if rules is RULES else rows[1]
    whole = random.sample([*inputs, *marks], len(inputs) + len(marks))
    if not whole:
        return
    rules, batches = replace(rules, silent_ms=SILENT_MS), list(batches_of(whole, cuts))
    forgot = run(batches, rules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Silence, "forget", lambda *_: None)
        kept = run(batches, rules)

    assert results(kept) == results(forgot)
