"""Random configurations and inputs of a connection, with numbers near those that matter."""

from collections import Counter

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from headgate.core.protocol import inputs
from headgate.core.protocol.inputs import CloseProducer, Open, Publish, Receipt, Trip
from unit.core.protocol.broker import WAIT, refilled_in
from unit.core.protocol.broker_oracle import Oracle

thorough = settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
PRODUCERS, STRANGER = (1, 2, 3), 4
START = 1000

KEYS = st.fixed_dictionaries(
    {
        WAIT: st.sampled_from((30, 60, 30, 60, 1, 0)),
        "pause_mode": st.sampled_from(("bucket_refill", "bucket_refill", "second_boundary")),
        "phase_ms": st.sampled_from((0, 100)),
        "freeze_deadlines": st.booleans(),
        "violation_policy": st.sampled_from(("pause", "pause", "off")),
        "violation_slack_ms": st.sampled_from((0, 10)),
        "idle_extension_ms": st.sampled_from((5, 40)),
        "extension_step_ms": st.sampled_from((1, 30)),
        "hard_floor_pause_ms": st.sampled_from((0, 0, 0, 80)),
    }
)

producers = st.sampled_from(PRODUCERS)
limiters = st.sampled_from((0, 1))
conditions = st.sampled_from((2, 3, 4, 5, 6))
next_mostly = st.sampled_from((1, 1, 1, 1, 0, -1, 2))
this_mostly = st.sampled_from((0, 0, 0, 0, -1, 1))
balances = st.integers(0, 90).map(refilled_in) | st.tuples(st.integers(-40, 20), st.sampled_from((10, 100, 1000))).map(
    lambda one: [[0, 10**6], [*one]]
)
trips = st.lists(st.tuples(limiters, next_mostly, balances), min_size=1, max_size=2, unique_by=lambda one: one[0])


def _after_gap(kind, *fields):
    """(ms since the input before, kind of input, its other fields); numbers are told by their distance."""
    return st.tuples(st.sampled_from((0, 0, 0, 1, 3, 10, 10, 29, 60, -20)), st.just(kind), st.tuples(*fields))


MARKS = _after_gap(inputs.Mark, producers, trips, st.booleans())
UNMARKS = _after_gap(inputs.Unmark, producers, limiters, this_mostly)
QUOTES = _after_gap(inputs.Quote, producers, limiters, balances)
RECEIPTS = _after_gap(Receipt, st.sampled_from((0, 0, 0, 0, 1, 1, 2, 3, 4, -1)))
PUBLISHES = _after_gap(Publish, st.sampled_from((*PRODUCERS, *PRODUCERS, STRANGER)))
SETS = _after_gap(inputs.ConditionSet, conditions, next_mostly, st.sampled_from((None, 1, STRANGER)))
CLEARS = _after_gap(inputs.ConditionClear, conditions, this_mostly)
_ALL = (*[MARKS] * 5, *[RECEIPTS] * 6, *[UNMARKS] * 3, *[PUBLISHES] * 2, *[CLEARS] * 3, QUOTES, SETS)
WITHOUT_CLOSES = st.lists(st.integers(0, len(_ALL) - 1).flatmap(_ALL.__getitem__), min_size=20, max_size=60)
TRACES = st.lists(
    st.integers(0, len(_ALL)).flatmap((*_ALL, _after_gap(CloseProducer, producers)).__getitem__),
    min_size=20,
    max_size=60,
)


def made(trace, keys):
    """The inputs of a trace: at the sums of their gaps, with ordinals and ids counted from the youngest ones."""
    oracle, youngest, at, events = Oracle(keys, supports=True, at=START), Counter(), START, []
    for id_ in PRODUCERS:
        oracle.perform(Open(START, id_, f"t{id_}"))
    for gap, kind, fields in trace:
        at = max(START, at + gap)
        events.append(kind(at, *_counted(kind, fields, youngest, oracle.issued)))
        oracle.perform(events[-1])
    return events


def on_time(trace, keys):
    """The same inputs in the order of their times."""
    return sorted(made(trace, keys), key=lambda one: one.at_ms)


def _counted(kind, fields, youngest, issued):
    if kind is Receipt:
        return (max(0, issued - fields[0]),)
    if kind is inputs.Mark:
        producer, told, trigger = fields
        return producer, [Trip(code, _number(youngest, (producer, code), step), of) for code, step, of in told], trigger
    if kind is inputs.Unmark:
        producer, code, step = fields
        return producer, code, _number(youngest, (producer, code), step)
    if kind in (inputs.ConditionSet, inputs.ConditionClear):
        code, step, *others = fields
        return code, _number(youngest, code, step), *others
    return fields


def _number(youngest, key, step):
    """An ordinal at least 1; a later one is the youngest from here on."""
    number = max(1, youngest[key] + step)
    youngest[key] = max(youngest[key], number)
    return number
