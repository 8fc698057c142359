"""Random objects of every kind and operations on them, in the form of vectors without expectations."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from examples import examples
from headgate.conformance.registry import RATE_LIMITERS
from headgate.core.publish.throttle_tracker import ThrottleType
from headgate.errors import CoreError

SECOND = 1_000_000_000
CREATED = 100 * SECOND
quick = settings(max_examples=examples(15), suppress_health_check=list(HealthCheck))

steps = st.one_of(
    st.sampled_from([0, 0, 1, 15_999_999, 16_000_000, 16_000_001]),
    st.integers(0, 50_000_000),
    st.integers(0, 50_000_000),
    st.integers(0, 500_000_000),
    st.sampled_from([SECOND, SECOND + 1, -1, -20_000_000, -2 * SECOND, 3 * SECOND]),
)
small = st.integers(0, 40)
connections = st.sampled_from(["c0", "c1"])


def weighted(*strategies):
    """One of `strategies`, each as often as it is given; st.one_of counts equal ones once."""
    return st.sampled_from(strategies).flatmap(lambda strategy: strategy)


def op(name, **arguments):
    return st.fixed_dictionaries({"op": st.just(name), **arguments})


def traces(config, *operations, start=CREATED, step=steps):
    """Pairs of a config and operations at cumulated steps of time."""

    def timed(drawn):
        parameters, moves = drawn
        at_ns, ops = start, []
        for move, operation in moves:
            at_ns += move
            ops.append({**operation, "at_ns": at_ns})
        return parameters, ops

    moves = st.lists(st.tuples(step, weighted(*operations)), min_size=20, max_size=30)
    return st.tuples(config, moves).map(timed)


def run(kind, trace, between=lambda core: core):
    """The results of a trace on a fresh object of `kind`; `between` replaces the object after each operation."""
    config, ops = trace
    core = RATE_LIMITERS[kind].build(config)
    results = []
    for operation in ops:
        results.append(perform(kind, core, operation))
        core = between(core)
    return results


def perform(kind, core, operation):
    arguments = {name: value for name, value in operation.items() if name not in {"op", "at_ns"}}
    try:
        result = RATE_LIMITERS[kind].operations(core).perform(operation["op"], operation["at_ns"], arguments)
    except CoreError as refused:
        return {"error": refused.code}
    return list(result) if isinstance(result, tuple) else result


rates = st.one_of(st.sampled_from([1, 3, 7, 10, 997, 1000, 333_333, 10**9, 3 * 10**9]), st.integers(1, 10**6))
periods = st.sampled_from([SECOND, 30 * SECOND, SECOND // 3, 1000, 7])
resolutions = st.sampled_from([16_000_000, 16_000_000, 0, 1, 1_000_000])
amounts = st.one_of(small, st.integers(0, 3_000), st.just(10**6))


@st.composite
def bucket_configs(draw, profile="g3", bounded=True, dynamic=True):
    config = {
        "rate": draw(rates),
        "period_ns": draw(periods),
        "resolution_ns": draw(resolutions),
        "created_ns": CREATED,
    }
    if profile == "g3" and bounded and draw(st.booleans()):
        config["max_debt"] = draw(st.sampled_from([0, 5, 1000]))
    if profile == "g3" and dynamic and draw(st.booleans()):
        return {**config, "dynamic": True}
    if draw(st.booleans()):
        config["capacity"] = draw(st.sampled_from([1, 50, 200, 100_000]))
    if draw(st.booleans()):
        config["initial"] = draw(amounts)
    return config if profile == "g3" else {**config, "profile": profile}


bucket_ops = (
    op("consume", n=amounts),
    op("consume_check", n=amounts),
    op("balance"),
    op("contains"),
    op("pause", need=st.none() | amounts),
)
bucket_traces = traces(
    bucket_configs(),
    *bucket_ops,
    op("consume", n=st.just(-1)),
    op("refund", n=amounts),
    op("refill_due"),
    op("set_rate", rate=rates, period_ns=st.none() | periods),
)
pip322_traces = traces(bucket_configs(profile="pip322"), *bucket_ops)

clock_traces = st.one_of(
    traces(st.just({"policy": "high_water"}), op("observe")),
    traces(st.just({"policy": "leap_tolerant", "interval_ns": SECOND // 2}), op("update", waited=st.booleans())),
)

LIMITERS = ("t0", "t1", "b", "g")
SCOPES = {"t0": "topic", "t1": "topic", "b": "broker", "g": "group"}
limits = st.sampled_from([0, 1, 3, 10, 45])
byte_limits = st.sampled_from([0, 100, 4_000])


@st.composite
def publish_configs(draw, quantum=True):
    config = {
        "created_ns": CREATED,
        "max_debt_ms": draw(st.sampled_from([None, None, 0, 500])),
        "limiters": [
            {
                "name": name,
                "scope": scope,
                "messages": draw(limits),
                "bytes": draw(byte_limits),
                "on_rate_change": draw(st.sampled_from(["replace", "reprice"])),
            }
            for name, scope in SCOPES.items()
        ],
        "producers": [
            {"name": f"p{number}", "connection": f"c{number % 2}", "limiters": [f"t{number // 2}", "b", "g"]}
            for number in range(4)
        ],
    }
    return {**config, "release_quantum": draw(st.sampled_from([None, 1, 2]))} if quantum else config


producers = st.sampled_from(["p0", "p1", "p2", "p3"])
limiters = st.sampled_from(LIMITERS)
publish_op = op("publish", producer=producers, messages=small, bytes=st.integers(0, 3_000))
update_op = op("update", limiter=limiters, messages=limits, bytes=byte_limits)
publish_ops = (
    *[publish_op] * 6,
    update_op,
    op("releases"),
    op("advance"),
    op("attach", producer=producers, limiter=limiters),
    op("detach", producer=producers, limiter=limiters),
)
publish_traces = traces(
    publish_configs(),
    *publish_ops,
    op("drain", limiter=limiters),
    op("balance", limiter=limiters),
    op("pause", limiter=limiters),
    op("next_drain", limiter=limiters),
    op("queue", limiter=limiters),
    op("marks", connection=connections),
    op("auto_read", connection=connections),
    op("metrics", connection=connections),
    op("close_connection", connection=connections),
)

types = st.sampled_from([*ThrottleType, "NoSuchType"])
tracker_traces = traces(
    st.fixed_dictionaries({"active": st.booleans()}),
    *[op("mark", type=types)] * 4,
    *[op("unmark", type=types)] * 4,
    op("counts"),
    op("metrics"),
    op("close"),
)

dispatch_limits = st.sampled_from([0, -1, 1, 10, 50])
dispatch_levels = st.sampled_from(["broker", "topic", "group"])
wishes = {"messages": st.integers(-1, 60), "bytes": st.integers(-1, 6_000)}
averages = st.one_of(st.floats(-5, 100), st.sampled_from([float("nan"), float("inf"), 1e300]))


@st.composite
def dispatch_configs(draw, reserve=None):
    levels = [
        {
            "name": name,
            "messages": draw(dispatch_limits),
            "bytes": draw(byte_limits),
            "period_s": draw(st.sampled_from([1, 2])),
            "relative": draw(st.booleans()),
            "implementation": draw(st.sampled_from(["token_bucket", "classic"])),
        }
        for name in ("broker", "topic")
    ]
    return {
        "created_ns": CREATED,
        "levels": [*levels, {"name": "group", "messages": draw(dispatch_limits), "bytes": draw(byte_limits)}],
        "reserve": draw(st.booleans()) if reserve is None else reserve,
        "on_batch": draw(st.booleans()),
        "throttle_non_backlog": draw(st.booleans()),
        "max_debt_ms": draw(st.sampled_from([None, 500])),
    }


update_level_op = op(
    "update",
    level=dispatch_levels,
    messages=dispatch_limits,
    bytes=byte_limits,
    period_s=st.sampled_from([1, 1, 2, 0]),
    relative=st.booleans(),
)
dispatch_ops = (
    op("available", level=dispatch_levels),
    op("may_dispatch", caught_up=st.booleans()),
    op("read_limits", **wishes, caught_up=st.booleans()),
    *[op("dispatched", **wishes, entries=st.none() | small)] * 3,
    op("reserve", **wishes),
    op("publish_rate", level=dispatch_levels, messages=averages, bytes=averages),
    update_level_op,
    op("try_acquire", level=dispatch_levels, **wishes),
)
dispatch_traces = traces(
    dispatch_configs(),
    *dispatch_ops,
    op("effective", level=dispatch_levels),
    op("settle", granted=st.just([10, 1000]), **wishes),
    op("advance"),
)

window_traces = traces(
    st.fixed_dictionaries(
        {
            "permits": st.integers(1, 20),
            "period_ns": st.sampled_from([SECOND, SECOND // 7]),
            "created_ns": st.just(CREATED),
            "dispatch_mode": st.booleans(),
            "permit_updater": st.sampled_from([None, 0, 5, 30]),
        }
    ),
    op("try", n=st.integers(-1, 30)),
    *[op("try", n=st.integers(0, 8))] * 12,
    *[op("available")] * 3,
    op("available"),
    op("next_renewal"),
    op("renewals"),
    op("set_rate", permits=st.integers(0, 20), period_ns=st.sampled_from([SECOND, 3 * SECOND])),
    op("set_updater", permits=st.sampled_from([None, -1, 3, 40])),
    *[op("closed")] * 4,
    op("close"),
)

subscribe_key = {
    "host": st.sampled_from(["10.0.0.1", "10.0.0.2"]),
    "consumer": st.just("c"),
    "id": st.integers(0, 1),
}
subscribe_rates = st.sampled_from([0, 1, 2, 5])
subscribe_periods = st.sampled_from([0, 1, 3])
subscribe_traces = traces(
    st.fixed_dictionaries({"rate": subscribe_rates, "period_s": subscribe_periods, "created_ns": st.just(CREATED)}),
    *[op("attempt", **subscribe_key)] * 4,
    op("available", **subscribe_key),
    op("update", rate=subscribe_rates, period_s=subscribe_periods),
    op("buckets"),
)

unload_configs = st.fixed_dictionaries(
    {
        "created_ns": st.just(CREATED),
        "maxConcurrentUnload": st.sampled_from([-1, 0, 1, 3, 7]),
        "namespaceBundleUnloadingTimeoutMs": st.sampled_from([1, 100, 60_000]),
    }
)
durations = st.one_of(st.just(0), st.integers(0, SECOND), st.just(120 * SECOND))
unload_traces = traces(unload_configs, op("unload", duration_ns=durations))

sizes = st.sampled_from([0, 1, 300_000, 600_000])
condition_configs = st.fixed_dictionaries(
    {
        "created_ns": st.just(CREATED),
        "connections": st.just({"c0": 0, "c1": 0, "c2": 1}),
        "maxPendingPublishRequestsPerConnection": st.sampled_from([0, 1, 2, 5]),
        "maxMessagePublishBufferSizeInMB": st.sampled_from([-1, 1]),
        "numIOThreads": st.just(2),
        "pulsarChannelPauseReceivingRequestsIfUnwritable": st.booleans(),
        "pulsarChannelPauseReceivingCooldownMs": st.sampled_from([0, 1000]),
        "pulsarChannelPauseReceivingCooldownRateLimitPermits": st.just(2),
        "pulsarChannelPauseReceivingCooldownRateLimitPeriodMs": st.just(40),
    }
)
condition_ops = (
    *[op("start", connection=connections, bytes=sizes)] * 3,
    *[op("finish", connection=connections, bytes=sizes)] * 3,
    op("writable", connection=connections, value=st.booleans()),
    *[op("command", connection=connections, command=st.sampled_from(["SEND", "SEND", "PING"]))] * 4,
)
condition_traces = traces(
    condition_configs,
    *condition_ops,
    op("join", connection=st.just("late"), thread=st.just(0)),
    op("close", connection=connections),
    op("throttled", connection=connections),
    op("auto_read", connection=connections),
)

ALL_TRACES = {
    "token_bucket": bucket_traces,
    "clock": clock_traces,
    "publish_limiter": publish_traces,
    "throttle_tracker": tracker_traces,
    "dispatch_limiter": dispatch_traces,
    "classic_window": window_traces,
    "subscribe_limiter": subscribe_traces,
    "unload_limiter": unload_traces,
    "connection_conditions": condition_traces,
}
