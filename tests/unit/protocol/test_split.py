"""How inputs and marks are cut into batches does not show (throttle-protocol 9, 18.7)."""

from dataclasses import replace
from itertools import pairwise, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.protocol.key_operator import form_of
from headgate.protocol.readable_form import run_readable
from unit.protocol import runs
from unit.protocol.runs import BOTH, OBEDIENT, TOPIC, batch, mark_row, run, trip

quick = settings(max_examples=examples(60))
CONNECTIONS = ("broker-1/a", "b")
TYPES = ("TopicPublishRate", "ResourceGroupPublishRate", "BrokerPublishRate", "ConnectionOutboundBufferFull")
KINDS = (
    *("open", "publish", "mark", "mark", "receipt", "receipt", "quote", "condition_set", "unmark"),
    *("condition_clear", "close_producer", "close", "connect", "sneeze"),
)
times = st.sampled_from([0, 1, 2, 50, 100, 101, 102, 199, 200, 201, 505, 1000, 1100, 2500])
producers = st.integers(0, 2)
ordinals = st.integers(1, 4)
buckets = st.tuples(st.integers(-20, 12), st.sampled_from([1, 10, 1000]))


@st.composite
def input_rows(draw):
    kind = draw(st.sampled_from(KINDS))
    row = runs.given(kind, draw(times), draw(st.sampled_from(CONNECTIONS)), event_id=str(draw(st.integers(0, 99))))
    row |= {"producer_id": draw(producers), "topic": TOPIC, "producer": f"p{draw(producers)}"}
    if kind == "mark":
        reasons = draw(st.sampled_from([(0,), (1,), (0, 1)]))
        row["trips"] = [trip(reason, draw(ordinals), draw(buckets)) for reason in reasons]
    of_reason = {"quote": (0, 1), "unmark": (0, 1), "condition_set": (2, 4, 5), "condition_clear": (2, 4, 5)}
    if kind in of_reason:
        row |= {"reason": draw(st.sampled_from(of_reason[kind])), "ordinal": draw(ordinals)}
        row["buckets"] = [dict(zip(("balance", "rate"), draw(buckets), strict=True))]
    return row | {"request_id": draw(st.integers(0, 5)), "supports_throttle": draw(st.booleans())}


@st.composite
def mark_rows(draw):
    at_ns = draw(times) * 1_000_000 + draw(st.sampled_from([0, 0, 1, 999_999]))
    action, type_ = draw(st.sampled_from(["mark", "mark", "unmark"])), draw(st.sampled_from(TYPES))
    producer = f"p{draw(producers)}"
    return mark_row(
        at_ns, action, type_, producer=producer, seq=draw(st.integers(0, 2)), balance=draw(st.integers(-9, 0))
    )


OPENED = [
    runs.given(kind, 0, connection, producer_id=0, topic=TOPIC, producer="p0", supports_throttle=True)
    for connection in CONNECTIONS
    for kind in ("connect", "open")
]
both = st.tuples(
    st.lists(input_rows(), max_size=25).map(lambda rows: OPENED + rows), st.lists(mark_rows(), max_size=15)
)


def time_of(row):
    return row["at_ms"] if "at_ms" in row else row["at_ns"] // 1_000_000


def batches_of(rows, cuts):
    places = sorted({0, len(rows), *(cut % (len(rows) + 1) for cut in cuts)})
    for begin, end in pairwise(places):
        some = rows[begin:end]
        yield batch([row for row in some if "at_ms" in row], [row for row in some if "at_ns" in row])
    yield batch(finish_ms=max(map(time_of, rows)))


def results(outcome):
    return outcome._replace(progress=None, state=None)


@quick
@given(both, st.lists(st.integers(0, 99), max_size=6), st.booleans(), st.sampled_from([0, 100, 300]), st.randoms())
def test_batches_change_nothing(rows, cuts, obedient, silent_ms, random):
    """Rows are in the order of their milliseconds; those of one millisecond come in any order, and in any batch."""
    inputs, marks = ([], rows[1]) if obedient else rows
    if not inputs and not marks:
        return
    whole = [*inputs, *marks]
    shuffled = random.sample(whole, len(whole))
    rules = replace(OBEDIENT if obedient else BOTH, silent_ms=silent_ms)
    expected = run(batches_of(sorted(whole, key=time_of), []), rules)
    actual = run(batches_of(sorted(shuffled, key=time_of), cuts), rules)

    assert results(expected) == results(actual)


@pytest.mark.parametrize("form", [run_readable, form_of("numba")])
@pytest.mark.parametrize("rules", [BOTH, replace(BOTH, fan_out=True), OBEDIENT], ids=["both", "fan_out", "obedient"])
def test_marks_that_only_differ_in_what_they_say_act_alike_in_any_order(form, rules):
    marks = [mark_row(0, producer="p0", balance=balance) for balance in (0, -1, -2)]
    first, *others = (
        results(run(batches_of([*([] if rules.obedient else OPENED), *some], []), rules, form=form))
        for some in permutations(marks)
    )

    assert first.decisions
    assert all(first == other for other in others)


@quick
@given(both, st.lists(st.integers(0, 99), max_size=6), st.randoms())
def test_rows_that_are_out_of_order_by_less_than_the_delay_act_in_theirs(rows, cuts, random):
    whole = [*rows[0], *rows[1]]
    late = sorted(whole, key=lambda row: time_of(row) + random.uniform(0, 150))
    expected = run(batches_of(sorted(whole, key=time_of), []), BOTH)
    actual = run(batches_of(late, cuts), replace(BOTH, delay_ms=151))

    assert results(expected) == results(actual)
