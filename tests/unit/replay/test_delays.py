"""Delays of single publishes: they add up to what the form counts by topic and second."""

import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.replay.delays import TimedForm
from headgate.throttle.array_form import run_arrays
from headgate.throttle.form import Rules
from headgate.throttle.limits.changes import Attachment, Limit
from headgate.throttle.limits.effective_limits import EffectiveLimits
from headgate.throttle.state import DomainState
from headgate.throttle.step import advance
from unit.replay.scenes import SECOND_US, START_US, events, publish

arrivals = st.lists(
    st.tuples(st.integers(0, 4_000), st.sampled_from("xyz"), st.integers(1, 40), st.sampled_from("pqr")),
    min_size=1,
    max_size=80,
)


def changes(topic_rate, group_rate):
    return [
        Limit(0, 0, None, "default", "", topic_rate, 0),
        Limit(0, 1, None, "group", "gold", group_rate, None),
        Attachment(0, 2, None, "tenant", "acme", group_name="gold"),
    ]


def numbered(rows):
    rows = sorted(rows, key=lambda row: row["event_time_us"])
    return events([row | {"seq": number} for number, row in enumerate(rows)])


@settings(max_examples=examples(60))
@given(arrivals, st.integers(1, 40), st.integers(1, 60), st.integers(100, 3_000), st.lists(st.integers(0, 6_000)))
def test_delays_add_up_to_what_the_form_counts(found, topic_rate, group_rate, timeout_ms, cuts):
    table = numbered(publish(at / 1000, name=name, messages=n, producer=who) for at, name, n, who in found)
    rules = Rules(offered=True, send_timeout_ms=timeout_ms, slot_ms=50)
    domain = DomainState("a", in_force=EffectiveLimits.from_changes(changes(topic_rate, group_rate)))
    told = []
    form = TimedForm(run_arrays, lambda _domain, delays: told.append(delays))
    usage = []
    for cut_ms in sorted({*cuts, 8_000}):
        until_us = START_US + cut_ms * 1000
        due = pc.and_(
            pc.less_equal(table["event_time_us"], until_us),
            pc.greater(table["event_time_us"], max(domain.clock.high_us, 0)),
        )
        usage += advance(domain, {"events": table.filter(due)}, until_us, rules, form).of("topic_usage").to_pylist()
    usage += advance(domain, {}, START_US + 60 * SECOND_US, rules, form, finish=True).of("topic_usage").to_pylist()
    delays = [one for some in told for one in some.delay_ns.tolist()]
    assert sum(row["delayed_publishes"] for row in usage) == len(delays)
    assert sum(row["delay_ns"] for row in usage) == sum(delays)
    assert max((row["max_delay_ns"] for row in usage), default=0) == max(delays, default=0)
