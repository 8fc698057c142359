"""What is refused, under which name, and that it changes nothing else (throttle-protocol 15)."""

import pytest

from headgate.core.numbers import MAX, MIN
from headgate.core.protocol.broker import inputs
from headgate.core.protocol.broker.broker_metrics import BrokerMetrics
from headgate.core.protocol.broker.broker_step import step
from headgate.core.protocol.broker.inputs import Trip
from headgate.core.protocol.settings import BrokerSettings
from unit.core.protocol.broker import brief, metrics, opened, perform, play, rejected, told

GOOD = [[0, 10]]
BAD_BUCKETS = [
    None,
    [],
    [[0, 10]] * 3,
    [[0, 0]],
    [[0, -1]],
    [[0]],
    [[0, 1, 2]],
    [[0.5, 10]],
    [[0, "10"]],
    [[None, 10]],
    [[MAX + 1, 10]],
    [[MIN - 1, 10]],
    [[0, MAX + 1]],
    [[0, True]],
    [[0, 10], None],
    "ab",
]


def marked(*trips, producer=1):
    return inputs.Mark(5, producer, trips)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (marked(producer=9), "unknown_producer"),
        (marked(Trip(7, 0, None), producer=9), "unknown_producer"),
        (marked(Trip(0, 1, GOOD), producer=True), "unknown_producer"),
        (marked(Trip(0, 1, GOOD), producer=None), "unknown_producer"),
        (marked(Trip(0, 1, GOOD), producer=[1]), "unknown_producer"),
        (inputs.Mark(5, 1, None), "bad_reason"),
        (marked(), "bad_reason"),
        (marked(Trip(2, 0, None)), "bad_reason"),
        (marked(Trip(0, 0, None), Trip(-1, 1, GOOD)), "bad_reason"),
        (marked(Trip(0, 0, GOOD), Trip(0, 2, GOOD)), "bad_reason"),
        (marked(Trip(True, 1, GOOD)), "bad_reason"),
        (marked(Trip(None, 1, GOOD)), "bad_reason"),
        (marked(Trip([0], 1, GOOD)), "bad_reason"),
        (marked(Trip(0, 1, None), Trip(1, 0, GOOD)), "bad_ordinal"),
        (marked(Trip(0, None, GOOD)), "bad_ordinal"),
        (marked(Trip(0, 1.0, GOOD)), "bad_ordinal"),
        (marked(Trip(0, MAX + 1, GOOD)), "bad_ordinal"),
        *((marked(Trip(1, 1, GOOD), Trip(0, 1, buckets)), "bad_bucket") for buckets in BAD_BUCKETS),
        (inputs.Publish(5, 9), "unknown_producer"),
        (inputs.CloseProducer(5, 9), "unknown_producer"),
        (inputs.Quote(5, 9, 7, None), "unknown_producer"),
        (inputs.Quote(5, 1, 2, None), "bad_reason"),
        *((inputs.Quote(5, 1, 0, buckets), "bad_bucket") for buckets in BAD_BUCKETS),
        (inputs.Unmark(5, 9, 7, 0), "unknown_producer"),
        (inputs.Unmark(5, 1, 2, 0), "bad_reason"),
        (inputs.Unmark(5, 1, 1, 0), "bad_ordinal"),
        *((inputs.ConditionSet(5, reason, 0), "bad_reason") for reason in (0, 1, 7, 99, None, "2")),
        *((inputs.ConditionClear(5, reason, 0), "bad_reason") for reason in (0, 1, 7, 99, None, "2")),
        (inputs.ConditionSet(5, 2, 0), "bad_ordinal"),
        (inputs.ConditionClear(5, 6, None), "bad_ordinal"),
        *((inputs.Open(5, id_, "t2"), "bad_producer") for id_ in (-1, MAX + 1, None, True, [1])),
        (inputs.Open(5, 2, None), "bad_producer"),
        (inputs.Open(5, 1, "t2"), "duplicate_producer"),
        *((inputs.Receipt(5, id_), "bad_request_id") for id_ in (-1, MAX + 1, None, "1", True)),
        (inputs.Connect(5, False), "duplicate_connection"),
        (inputs.Connect(5, None), "duplicate_connection"),
    ],
)
def test_bad_input_is_refused_by_the_first_name_that_fits_and_changes_nothing(given, error):
    connection = opened()
    before = connection.state()

    assert perform(connection, given) == [rejected(5, error)]

    assert connection.state() == before | {"now_ms": 5}
    assert metrics(connection).values() == {f"headgate.input.rejected.count{{error={error}}}": 1}


@pytest.mark.parametrize(
    "given",
    [
        inputs.Connect(5, True),
        inputs.Open(5, 1, "t1"),
        inputs.Open(5, 0, ""),
        inputs.Open(5, MAX, "t"),
        inputs.Receipt(5, 0),
        inputs.Receipt(5, MAX),
        inputs.Unmark(5, 1, 0, MAX),
        inputs.ConditionClear(5, 2, 1),
        inputs.Quote(5, 1, 0, [[MIN, 1], [MAX, MAX]]),
        inputs.Probe(5),
    ],
)
def test_the_limits_of_what_is_allowed_are_allowed(given):
    assert perform(opened(), given) == []


def test_the_longest_pause_of_the_deepest_debt():
    at_most_ms = 9_223_372_036_855

    connection = play(opened(), [(marked(Trip(0, 1, [[MIN, 1]])), [told(5, 1, at_most_ms)])])

    assert connection.next_due_ms() == 105


@pytest.mark.parametrize("buckets", BAD_BUCKETS)
def test_at_the_second_boundary_marks_need_no_buckets_but_quotes_do(buckets):
    connection = opened(pause_mode="second_boundary")

    play(connection, [(marked(Trip(0, 1, buckets)), [told(5, 1, 995)])])
    play(connection, [(inputs.Quote(6, 1, 0, buckets), [rejected(6, "bad_bucket")])])


@pytest.mark.parametrize("given", [inputs.Open(5, -1, "t"), inputs.Close(5), inputs.Probe(5), inputs.Publish(5, 1)])
def test_without_a_connection_all_but_a_connect_is_unknown(given):
    counts = BrokerMetrics()

    connection, emitted = step(None, given, BrokerSettings(), counts)

    assert (connection, [brief(output) for output in emitted]) == (None, [rejected(5, "unknown_connection")])
    assert counts.values() == {"headgate.input.rejected.count{error=unknown_connection}": 1}


@pytest.mark.parametrize("given", [inputs.Publish(-5, 1), inputs.Connect(-5, True)])
def test_a_bad_time_comes_before_an_unknown_connection(given):
    connection, emitted = step(None, given, BrokerSettings(), BrokerMetrics())

    assert (connection, [brief(output) for output in emitted]) == (None, [rejected(-5, "bad_time")])


def test_a_connection_lives_from_connect_to_close_and_again_with_request_ids_from_1():
    settings, counts = BrokerSettings(), BrokerMetrics()
    life = [
        (inputs.Connect(500, True), []),
        (inputs.Open(500, 1, "t"), []),
        (inputs.Mark(500, 1, [Trip(0, 1, [[0, 1000]])]), [told(500, 1, 10)]),
        (inputs.Close(505), []),
    ]
    connection = None
    for given, expected in [*life, (inputs.Close(506), [rejected(506, "unknown_connection")]), *life]:
        connection, emitted = step(connection, given, settings, counts)
        assert [brief(output) for output in emitted] == expected

    assert connection is None


def test_a_connection_keeps_the_settings_that_it_opened_with():
    counts = BrokerMetrics()
    connection, _ = step(None, inputs.Connect(0, True), BrokerSettings(), counts)
    other = BrokerSettings.of({"profile": "literal"})
    for given in (inputs.Connect(1, True), inputs.Open(1, 1, "t")):
        connection, _ = step(connection, given, other, counts)

    connection, emitted = step(connection, inputs.Mark(1, 1, [Trip(0, 1, [[0, 1000]])]), other, counts)

    assert [brief(output) for output in emitted] == [told(1, 1, 10)]
