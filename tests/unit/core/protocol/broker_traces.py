"""Random configurations and inputs of a connection, with numbers near those that matter."""

from collections import Counter
from random import Random

from hypothesis import settings
from hypothesis import strategies as st

from examples import examples
from headgate.core.protocol.broker import inputs
from headgate.core.protocol.broker.inputs import CloseProducer, Open, Publish, Receipt, Trip
from unit.core.protocol.broker import WAIT, refilled_in
from unit.core.protocol.broker_oracle import Oracle

thorough = settings(max_examples=examples(100))
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
        "doubling_extensions": st.booleans(),
        "hard_floor_pause_ms": st.sampled_from((0, 0, 0, 80)),
    }
)

GAPS_MS = (0, 0, 0, 1, 3, 10, 10, 20, 29, -20)
NEXT_MOSTLY = (1, 1, 1, 1, 1, 0, -1, 2)
THIS_MOSTLY = (0, 0, 0, 0, 0, -1, 1)
CONDITIONS = (2, 3, 4, 5, 6)


def _mark(draw):
    codes = draw.sample((0, 1), draw.choice((1, 1, 2)))
    trips = [(code, draw.choice(NEXT_MOSTLY), _balances(draw)) for code in codes]
    return draw.choice(PRODUCERS), trips, draw.random() < 0.8


def _balances(draw):
    if draw.random() < 0.8:
        return refilled_in(draw.choice((0, 10, 40, 79, 80, 81, draw.randint(0, 90))))
    return [[0, 10**6], [draw.randint(-40, 20), draw.choice((10, 100, 1000))]]


_FIELDS = {
    inputs.Mark: _mark,
    inputs.Unmark: lambda draw: (draw.choice(PRODUCERS), draw.choice((0, 1)), draw.choice(THIS_MOSTLY)),
    inputs.Quote: lambda draw: (draw.choice(PRODUCERS), draw.choice((0, 1)), _balances(draw)),
    Receipt: lambda draw: (draw.choice((0, 0, 0, 1, 1, 2, 3, 4, -1)),),
    Publish: lambda draw: (draw.choice((*PRODUCERS, *PRODUCERS, STRANGER)),),
    inputs.ConditionSet: lambda draw: (draw.choice(CONDITIONS), draw.choice(NEXT_MOSTLY), draw.choice((None, 1, 4))),
    inputs.ConditionClear: lambda draw: (draw.choice(CONDITIONS), draw.choice(THIS_MOSTLY)),
    CloseProducer: lambda draw: (draw.choice(PRODUCERS),),
}
LIMITERS = {inputs.Mark: 10, inputs.Unmark: 6, inputs.Quote: 3}
WITHOUT_CLOSES = LIMITERS | {Receipt: 12, Publish: 5, inputs.ConditionSet: 2, inputs.ConditionClear: 8}
ALL = {kind: 8 * weight for kind, weight in WITHOUT_CLOSES.items()} | {CloseProducer: 1}


def traces(weights=ALL, longest=150):
    """Lists of (ms since the input before, kind, its other fields), where numbers are told by their distance.

    Drawn from a seed, far faster than value by value; a failing one is shortened at its end.
    """
    kinds, weighed = tuple(weights), tuple(weights.values())

    def drawn(seed, length):
        draw = Random(seed)
        chosen = (draw.choices(kinds, weighed)[0] for _ in range(length))
        return [(draw.choice(GAPS_MS), kind, _FIELDS[kind](draw)) for kind in chosen]

    return st.builds(drawn, st.integers(0, 2**32), st.integers(1, longest))


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
