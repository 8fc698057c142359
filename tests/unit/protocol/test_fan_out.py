"""Marks for all producers of a topic, through one key of the operator (throttle-protocol 7.1, fan_out = topic)."""

from dataclasses import replace

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from examples import examples
from headgate.core.protocol.settings import BrokerSettings
from headgate.errors import StateError
from headgate.protocol.array_form import run_arrays
from headgate.protocol.readable_form import run_readable
from unit.protocol import runs, traffic
from unit.protocol.runs import TOPIC, A, batch, given, mark_row, run, told, trip
from unit.protocol.test_forms import assert_equal
from unit.protocol.test_split import batches_of, both, results, time_of

quick = settings(max_examples=examples(60))
MS = 1_000_000
B, OTHER = "broker-1/b", "persistent://acme/ns/u"
RULES, OBEDIENT, BOTH = (replace(rules, fan_out=True) for rules in (runs.RULES, runs.OBEDIENT, runs.BOTH))
COLUMNS = ("connection", "kind", "at_ms", "producer_id", "reason", "pause_for_millis", "command_kind")
PUBLISH_LIMIT = "pulsar.broker.topic.publish.rate.limit.count"
forms = pytest.mark.parametrize("form", [run_readable, run_arrays])


NAMED = ((A, 7, TOPIC), (B, 8, TOPIC), (B, 9, OTHER))
OPENED = [
    *(given("connect", 0, connection, supports_throttle=True) for connection in (A, B)),
    *(given("open", 0, at, producer_id=id_, topic=topic, producer=f"p{id_}") for at, id_, topic in NAMED),
]
"""Producers 7 and 8 of a topic on two connections, and 9 of another."""


def receipt(at_ms, connection, request_id):
    return given("receipt", at_ms, connection, request_id=request_id)


@forms
def test_each_producer_of_the_topic_is_asked_to_stop_and_let_go(form):
    """What numbers the source gave to its marks is of no account."""
    marked = given("mark", 5, producer_id=7, trips=[trip(0, 5, (-4, 10))])
    let_go = given("unmark", 400, producer_id=7, reason=0, ordinal=5)
    again = given("mark", 500, B, producer_id=8, trips=[trip(0, 1, (-1, 10))])
    receipts = [receipt(at_ms, connection, n) for at_ms, n in ((6, 1), (501, 2)) for connection in (A, B)]
    rows = [*OPENED, marked, *receipts, let_go, again]
    outcome = run([batch(rows, finish_ms=600)], RULES, form=form)

    assert [
        (connection, "command", at_ms, id_, 0, pause_ms, "start")
        for connection, id_ in ((A, 7), (B, 8))
        for at_ms, pause_ms in ((5, 500), (500, 200))
    ] == told(outcome, *COLUMNS)
    assert {A: 1, B: 1} == {at: n for (at, name, _), n in outcome.counts.items() if name == PUBLISH_LIMIT}
    assert [] == outcome.dead_letters


@forms
def test_marks_of_a_throttle_job_find_the_ids_of_all(form):
    marks = [mark_row(5 * MS, producer="p7"), mark_row(300 * MS, "unmark", producer="p7")]
    marks.append(mark_row(5 * MS, type_="ResourceGroupPublishRate", producer="p7", balance=-9))
    outcome = run([batch(OPENED, marks, finish_ms=300)], BOTH, form=form)

    assert [(A, 7, 1, 1000), (B, 8, 1, 1000)] == [
        row[:4] for row in told(outcome, "connection", "producer_id", "reason", "pause_for_millis") if row[3]
    ]


P_OF = {id_: (connection, f"p{id_}") for connection, id_ in ((A, 1), (A, 2), (A, 3), (B, 4), (B, 5))}


def topic_of(id_):
    return f"{TOPIC}{id_}"


@quick
@drawn(
    st.dictionaries(st.sampled_from(sorted(P_OF)), st.integers(0, MS - 1), min_size=2),
    st.sampled_from([BOTH, runs.BOTH, OBEDIENT, runs.OBEDIENT]),
    st.sampled_from([run_readable, run_arrays]),
    st.randoms(),
)
def test_commands_of_one_millisecond_come_in_the_order_of_their_marks(times, rules, form, random):
    """Property: by the time of the publish in ns, whatever the ids of producers are; equal times by topic."""
    opened = [given("connect", 0, connection, supports_throttle=True) for connection in (A, B)]
    opened += [
        given("open", 0, at, producer_id=id_, topic=topic_of(id_), producer=name) for id_, (at, name) in P_OF.items()
    ]
    marks = [
        mark_row(5 * MS + ns, topic=topic_of(id_), producer=P_OF[id_][1]) | {"connection": P_OF[id_][0][-1]}
        for id_, ns in times.items()
    ]
    inputs = [] if rules.obedient else opened
    outcome = run([batch(inputs, random.sample(marks, len(marks)), finish_ms=5)], rules, form=form)

    for connection in (A, B):
        wanted = sorted((ns, topic_of(id_)) for id_, ns in times.items() if P_OF[id_][0] == connection)
        sent = [row["topic"] for row in outcome.decisions if row["connection"] == connection]
        assert [topic for _, topic in wanted] == sent


@forms
def test_copies_of_one_millisecond_come_in_the_order_of_their_marks(form):
    """Connections are named against the order of the marks: each producer trips its limiter, and the other gets it."""
    named = ((A, 7, TOPIC), (A, 2, OTHER), (B, 1, TOPIC), (B, 9, OTHER))
    opened = [given("connect", 0, connection, supports_throttle=True) for connection in (A, B)]
    opened += [given("open", 0, at, producer_id=id_, topic=topic, producer=f"p{id_}") for at, id_, topic in named]
    marks = [
        mark_row(5 * MS + 200, topic=OTHER, producer="p2"),
        mark_row(5 * MS + 100, topic=TOPIC, producer="p1") | {"connection": "b"},
    ]
    outcome = run([batch(opened, marks, finish_ms=5)], BOTH, form=form)

    assert [(A, 7), (A, 2), (B, 1), (B, 9)] == told(outcome, "connection", "producer_id")


@forms
def test_obedient_clients_are_those_that_were_marked(form):
    marks = [
        mark_row(1 * MS, producer="p", balance=-1),
        mark_row(150 * MS, "unmark", producer="p"),
        mark_row(300 * MS, producer="q", balance=-3) | {"connection": "b"},
        mark_row(650 * MS, "unmark", producer="q") | {"connection": "b"},
        mark_row(700 * MS, producer="q", balance=-1) | {"connection": "b"},
        mark_row(720 * MS, producer="p", balance=-1),
    ]
    outcome = run([batch((), marks, finish_ms=800)], OBEDIENT, form=form)

    assert [
        (A, "start", 1, 200),
        (A, "start", 300, 400),
        (A, "start", 700, 200),
        (A, "extend", 720, 200),
        (B, "start", 300, 400),
        (B, "start", 700, 200),
        (B, "extend", 720, 200),
    ] == told(outcome, "connection", "command_kind", "at_ms", "pause_for_millis")
    assert {A: 1, B: 2} == {at: n for (at, name, _), n in outcome.counts.items() if name == PUBLISH_LIMIT}


@forms
def test_a_connection_that_comes_again_begins_anew(form):
    marks = [
        mark_row(1 * MS, producer="p", balance=-1),
        mark_row(200 * MS, "close", None, topic=None, producer=None),
        mark_row(300 * MS, producer="q", balance=-3) | {"connection": "b"},
        mark_row(700 * MS, "unmark", producer="q") | {"connection": "b"},
        mark_row(800 * MS, producer="p", balance=-1),
        mark_row(950 * MS, "unmark", producer="p"),
        mark_row(960 * MS, producer="q", balance=-1) | {"connection": "b"},
    ]
    outcome = run([batch((), marks, finish_ms=970)], OBEDIENT, form=form)

    assert [(A, at_ms) for at_ms in (1, 800, 960)] + [(B, at_ms) for at_ms in (300, 800, 960)] == [
        row[:2] for row in told(outcome, "connection", "at_ms", "command_kind") if row[2] == "start"
    ]


@forms
def test_a_topic_of_two_brokers_that_share_a_key_has_two_limiters(form):
    other = "broker-2/b"
    opened = [given("connect", 0, other, supports_throttle=True)]
    opened.append(given("open", 0, other, producer_id=8, topic=TOPIC, producer="p8"))
    marked = given("mark", 5, producer_id=7, trips=[trip(0, 1, (-4, 10))])
    outcome = run([batch([*OPENED, *opened, marked], finish_ms=9)], RULES, form=form)

    assert {A, B} == {row[0] for row in told(outcome, "connection")}


def test_a_row_that_is_refused_is_one_dead_letter_and_has_no_copies():
    rows = [
        given("mark", 5, producer_id=7, trips=[trip(0, 1, (-4, 0))]),
        given("mark", 5, producer_id=6, trips=[trip(0, 1)]),
        given("mark", 5, "nowhere", producer_id=7, trips=[trip(0, 1)]),
        given("unmark", 6, producer_id=7, reason=4, ordinal=1),
    ]
    outcome = run([batch([*OPENED, *rows], finish_ms=9)], RULES)

    assert ["bad_bucket", "bad_reason", "unknown_connection", "unknown_producer"] == [
        row["reason"] for row in outcome.dead_letters
    ]
    assert [] == outcome.decisions


def test_a_client_that_does_not_answer_for_a_copy_has_its_reads_off_until_the_release():
    marked = given("mark", 5, producer_id=7, trips=[trip(0, 1, (-9, 10))])
    let_go = given("unmark", 300, producer_id=7, reason=0, ordinal=1)
    outcome = run([batch([*OPENED, marked, receipt(6, A, 1), let_go], finish_ms=300)], RULES)

    assert [("command", 5), ("pause", 105), ("resume", 300)] == [
        row[1:] for row in told(outcome, "connection", "kind", "at_ms") if row[0] == B
    ]


@pytest.mark.parametrize(("began", "now"), [(runs.RULES, RULES), (RULES, runs.RULES)])
def test_another_fan_out_than_that_of_the_checkpoint_is_refused(began, now):
    state = run([batch(OPENED)], began).state
    with pytest.raises(StateError, match=r"fan_out: got (topic|tripping), the checkpoint was begun with"):
        run([batch(OPENED)], now, state)


rules_of = st.sampled_from([RULES, OBEDIENT, BOTH])
cuts_of = st.lists(st.integers(0, 99), max_size=6)


def of_sources(rules, rows):
    inputs = [] if rules is OBEDIENT else rows[0]
    return [*inputs, *([] if rules is RULES else rows[1])]


@quick
@drawn(both, cuts_of, rules_of, st.randoms())
def test_batches_change_nothing(rows, cuts, rules, random):
    """Rows are in the order of their milliseconds; those of one come in any order, and in any batch."""
    whole = of_sources(rules, rows)
    if whole:
        shuffled = random.sample(whole, len(whole))
        expected = run(batches_of(sorted(whole, key=time_of), []), rules)
        actual = run(batches_of(sorted(shuffled, key=time_of), cuts), rules)
        assert results(expected) == results(actual)


@quick
@drawn(both, cuts_of, rules_of, st.booleans())
def test_both_forms_tell_the_same(rows, cuts, rules, refills):
    whole = sorted(of_sources(rules, rows), key=time_of)
    if whole:
        keys = {"pause_mode": "bucket_refill" if refills else "second_boundary"}
        assert_equal(batches_of(whole, cuts), replace(rules, settings=BrokerSettings.of(keys)))


@pytest.mark.parametrize("rules", [RULES, OBEDIENT], ids=["inputs", "marks"])
def test_traffic_of_many_connections(rules):
    rows = traffic.marks(1, 10, 300, 2000) if rules is OBEDIENT else traffic.inputs(1, 10, 500, 2000)
    outcome = assert_equal(batches_of(rows, [100, 300, 450]), rules)
    alone = run(batches_of(rows, []), replace(rules, fan_out=False))

    assert len(outcome.decisions) > len(alone.decisions)
