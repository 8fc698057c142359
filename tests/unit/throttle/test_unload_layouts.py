"""Where the limiter of a broker's unloads lies does not show in the results (`operator.state_key`)."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.throttle.form import Rules
from headgate.throttle.routing import Routing
from unit.throttle.domains import limit, unload_limit
from unit.throttle.drawn import quick, traffic
from unit.throttle.keyed_jobs import Batch, Job, Tick, batch_ends, written_by
from unit.throttle.rows import BROKER, SECOND_US, unload

LAYOUTS = {
    "slots": Routing(slots=5),
    "whole brokers": Routing(slots=5, whole_brokers=True),
    "topics": Routing(by_topic=True),
}
unloads = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from([BROKER, "broker-2"]), st.sampled_from([0, 400, 3000])), max_size=20
).map(
    lambda drawn: [
        unload(at * SECOND_US // 2, seq=100 + seq, broker=broker, duration_ms=ms)
        for seq, (at, broker, ms) in enumerate(sorted(drawn))
    ]
)
unload_limits = st.lists(
    st.builds(
        lambda limit, at_s, broker: unload_limit(*limit, at_us=at_s * SECOND_US + 1, broker=broker),
        st.sampled_from([(0, 500), (3, 2000), (None, None)]),
        st.integers(1, 6),
        st.sampled_from([BROKER, "broker-2"]),
    ),
    max_size=3,
).map(lambda changes: [replace(change, seq=seq) for seq, change in enumerate(changes)])


@pytest.mark.parametrize("routing", LAYOUTS.values(), ids=LAYOUTS)
@quick
@given(traffic(), unloads, unload_limits, batch_ends)
def test_unloads_run_alike_wherever_their_brokers_limiter_lies(routing, publishes, rows, later, places):
    """With limits of conf files and such that come while the job runs, for one broker."""
    rows = sorted([*publishes, *rows], key=lambda row: (row["event_time_us"], row["seq"]))
    conf = [limit("default", messages=3), unload_limit(1, 900, seq=1)]
    rules = Rules(whole_brokers=routing.whole_brokers)
    expected = written_by(Routing(slots=1, whole_brokers=True), rows, conf, rules, [], later)

    assert expected == written_by(routing, rows, conf, rules, places, later)


@pytest.mark.parametrize("routing", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("tick", [Tick(15 * SECOND_US, BROKER), Tick(9 * SECOND_US, finish=True)], ids=["tick", "end"])
def test_time_reaches_unloads_that_are_held_back(routing, tick):
    job = Job(routing, Rules(hold_back_ms=5_000))
    job.batch(Batch([unload(at * SECOND_US, seq=at) for at in (0, 3, 9)]))
    early = [row["seq"] for row in job.written[3]]
    job.batch(Batch([], ticks=[tick]))

    assert ([0, 3], [0, 3, 9]) == (early, [row["seq"] for row in job.written[3]])
