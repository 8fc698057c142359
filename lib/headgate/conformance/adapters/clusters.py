"""Kinds level, demand, push and bursts: what brokers want and get, and what is pushed (clusters 2, 3.1, 3.2)."""

from collections.abc import Mapping
from typing import Any

from headgate.core.clusters.demand import Look, demand
from headgate.core.clusters.level import Wanted, water_level
from headgate.core.clusters.pushes import Limit, Pushed, next_push, without_bursts


def level_of(config: Mapping[str, Any], inputs: Mapping[str, Any]) -> Any:  # noqa: ARG001  as of the next three
    """The level that demands with weights reach."""
    wanted = [Wanted(*one) for one in zip(inputs["demands"], inputs["weights"], strict=True)]
    return {"level": water_level(wanted, inputs["quota"])}


def demand_of(config: Mapping[str, Any], inputs: Mapping[str, Any]) -> Any:  # noqa: ARG001
    """What a broker wants, by its looks."""
    return {"demand": demand([Look(**look) for look in inputs["looks"]], inputs["averaged_us"])}


def push_of(config: Mapping[str, Any], inputs: Mapping[str, Any]) -> Any:  # noqa: ARG001
    """The limit that is pushed now, None: none."""
    made = [Pushed(one["at_us"], Limit(**one["limit"])) for one in inputs["pushes"]]
    level, target = Limit(**inputs["level"]), Limit(**inputs["target"])
    found = next_push(made, level, target, inputs["now_us"], is_wanted=inputs["is_wanted"])
    return {"limit": found and found._asdict()}


def quota_of(config: Mapping[str, Any], inputs: Mapping[str, Any]) -> Any:  # noqa: ARG001
    """What is left of a quota after the bursts of its pushes."""
    return {"quota": without_bursts(inputs["quota"], inputs["pushes"])}
