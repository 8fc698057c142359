"""Kinds allocate and rounds: one allocation, and the feedback loop round by round (resource-groups 8, 9, 18)."""

from collections.abc import Iterator, Mapping
from typing import Any

from headgate.conformance.equality import json_equal
from headgate.conformance.oracles.allocation_tree import Node, allocate_tree
from headgate.conformance.oracles.quota_rounds.measures import Measures, measure
from headgate.conformance.oracles.quota_rounds.rounds import play
from headgate.conformance.oracles.quota_rounds.trace import (
    Crash,
    Event,
    Heal,
    MemberJoined,
    MemberLost,
    Partition,
    PlayedRound,
    QuotaSet,
    Round,
    RoundParameters,
    Trace,
)
from headgate.conformance.report import Mismatch
from headgate.conformance.vector_file import Vector, field_of
from headgate.core.quota.allocation.allocation import (
    Division,
    Profile,
    allocate,
    allocate_coupled,
    divide,
    named,
    pulsar_limit,
)
from headgate.core.quota.evaluation.step_parameters import Mode, StepParameters
from headgate.errors import ConformanceError, CoreError

METRICS_TOLERANCE = 1e-6
MISMATCHES_PER_VECTOR = 3
STEP_KEYS = {
    "overshootPercent": "overshoot_percent",
    "floorPercent": "floor_percent",
    "missingClaimPercent": "missing_claim_percent",
    "deadBandPercent": "dead_band_percent",
    "silentRounds": "silent_rounds",
}
DIVISIONS = {"divide_even": Division.EVEN, "divide_proportional": Division.PROPORTIONAL}


def allocation_of(config: Mapping[str, Any], inputs: Mapping[str, Any]) -> Any:
    """The JSON result of one call, {"error": code} where it is refused."""
    try:
        return _allocated(config, inputs)
    except CoreError as refused:
        return {"error": refused.code}


def _allocated(config: Mapping[str, Any], inputs: Mapping[str, Any]) -> Any:
    profile, quota = config.get("profile", Profile.MAX_MIN), inputs["Q"]
    rows = inputs.get("weight"), inputs.get("ids")
    if "tree" in inputs:
        leaves = allocate_tree(quota, _nodes(inputs["tree"]), DIVISIONS.get(profile, Division.MAX_MIN))
        return {"leaves": {"/".join(map(str, path)): limit for path, limit in leaves.items()}}
    if config.get("couple"):
        return {"limits": allocate_coupled(tuple(quota), tuple(inputs["demand"]), *rows)}
    if "own" in inputs:
        return {"limit": pulsar_limit(quota, inputs["own"], inputs["usage"])}
    values = inputs["demand"] if profile == Profile.MAX_MIN else inputs["usage"]
    if profile in DIVISIONS:
        return {"limits": divide(DIVISIONS[profile], quota, values, *rows)}
    return {"limits": allocate(profile, quota, values, *rows)}


def _nodes(children: list[Any]) -> tuple[Node, ...]:
    return tuple(
        Node(
            child["id"],
            child.get("weight", 1),
            child.get("demand"),
            _nodes(child["children"]) if "children" in child else None,
        )
        for child in children
    )


def played(config: Mapping[str, Any], inputs: Mapping[str, Any], rounds: list[Any]) -> tuple[Trace, list[PlayedRound]]:
    """The trace of a vector and what came of it."""
    trace = Trace(
        brokers=inputs["brokers"],
        quota=inputs["Q"],
        rounds=tuple(_rounds(rounds)),
        weights=_tuple(inputs.get("weight")),
        initial=_tuple(inputs.get("initial")),
        members=None if inputs.get("members") is None else frozenset(inputs["members"]),
        demand_visible=inputs.get("demandVisible", True),
    )
    step = StepParameters(
        profile=named(Profile, config.get("profile", Profile.MAX_MIN)),
        mode=named(Mode, config.get("mode", Mode.FAST)),
        **{STEP_KEYS[key]: value for key, value in config.items() if key in STEP_KEYS},
    )
    parameters = RoundParameters(step, config.get("staleness", 1), config.get("lingerRounds", 60))
    return trace, play(trace, parameters)


def replay_rounds(factory: Any, vector: Vector) -> list[Mismatch]:
    """Play the trace once and compare limits round by round, then metrics. Raises ConformanceError where malformed."""
    expected = field_of(vector, "expected", dict)
    config, inputs = field_of(vector, "config", dict), field_of(vector, "inputs", dict)
    rounds = field_of(vector, "rounds", list)
    try:
        trace, results = factory(config, inputs, rounds)
    except ConformanceError:
        raise
    except Exception as crash:  # noqa: BLE001  as above
        return [Mismatch("expected", "rounds", expected, {"crash": f"{type(crash).__name__}: {crash}"})]
    mismatches = [*_limit_mismatches(expected["limits"], results)]
    if "measure" in inputs:
        asked = inputs["measure"]
        weights = [trace.weight_of(broker) for broker in range(trace.brokers)]
        measures = measure(results, weights, asked["from"], asked["window"], asked["hold"])
        mismatches += _metric_mismatches(expected.get("metrics"), measures)
    return mismatches[:MISMATCHES_PER_VECTOR]


def _rounds(entries: list[Any]) -> Iterator[Round]:
    for entry in entries:
        events = tuple(map(_event, entry.get("events", ())))
        lost = frozenset((sender, receiver) for sender, receiver in entry.get("lost", ()))
        for repetition in range(entry.get("repeat", 1)):
            yield Round(entry["demand"], () if repetition else events, lost)


def _event(event: Mapping[str, Any]) -> Event:
    match event["op"]:
        case "quota":
            return QuotaSet(event["Q"])
        case "crash":
            return Crash(event["broker"])
        case "member_lost":
            return MemberLost(event["broker"])
        case "member_joined":
            return MemberJoined(event["broker"])
        case "partition":
            return Partition(tuple(frozenset(side) for side in event["sides"]))
        case "heal":
            return Heal()
        case op:
            raise ConformanceError(f"malformed vector: unknown event {op!r}")


def _limit_mismatches(expected: list[Any], results: list[PlayedRound]) -> Iterator[Mismatch]:
    if len(expected) != len(results):
        yield Mismatch("limits", "rounds", len(expected), len(results))
    for number, (wanted, result) in enumerate(zip(expected, results, strict=False)):
        if not json_equal(wanted, result.limits):
            yield Mismatch(f"limits[{number}]", "rounds", wanted, list(result.limits))


def _metric_mismatches(expected: Any, measures: Measures) -> Iterator[Mismatch]:
    got = {
        "roundsTo10": measures.rounds_to_10,
        "roundsTo1": measures.rounds_to_1,
        "worstOvershoot": measures.worst_overshoot,
        "utilisation": measures.utilisation,
        "usefulShare": measures.useful_share,
        "jainEnd": measures.jain_end,
        "jaggedness": measures.jaggedness,
    }
    if not isinstance(expected, dict) or expected.keys() != got.keys():
        yield Mismatch("metrics", "measure", expected, got)
        return
    for name, value in expected.items():
        if not _near(value, got[name]):
            yield Mismatch(f"metrics.{name}", "measure", value, got[name])


def _near(expected: float | None, got: float | None) -> bool:
    if expected is None or got is None:
        return expected is got
    return abs(expected - got) <= METRICS_TOLERANCE


def _tuple(values: list[Any] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple(values)
