"""Kinds resolve_group and admin: attachments, and the admin API without HTTP (resource-groups 2, 3, 4, 18)."""

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from headgate.core.quota.admin.api import AdminParameters, Presence, decide
from headgate.core.quota.admin.request import ABSENT, Request, Response
from headgate.core.quota.attachments import Attachments, effective_limits, resolve
from headgate.core.quota.config_tables import ConfigTables
from headgate.core.quota.groups import RatePair, TrafficClass
from headgate.core.quota.settings import MinusOne
from headgate.core.topic_names import topic_of

ADMIN_TOKEN = "admin"  # noqa: S105  of no service
TOPIC_PATHS = ("/admin/v2/persistent/", "/admin/v2/non-persistent/")


def resolve_group(_: Mapping[str, Any], inputs: Mapping[str, Any]) -> Any:
    """The group of one topic, and what limits it if any limits are given."""
    topic = topic_of(inputs["topic"])
    if topic is None:
        return {"error": "bad_topic"}
    given = inputs["attachments"]
    attachments = Attachments(*(given.get(name) or {} for name in ("tenants", "namespaces", "topics")))
    found = resolve(topic, attachments, inputs["groups"], replication=inputs.get("replication", False))
    result: dict[str, Any] = {"group": found.group, "scope": found.scope, "dangling": found.dangling}
    if "topicLimits" in inputs or "groupLimits" in inputs:
        of_groups = {name: _by_class(limits) for name, limits in inputs.get("groupLimits", {}).items()}
        limits = effective_limits(found, _by_class(inputs.get("topicLimits", {})), of_groups)
        result["limits"] = {traffic_class.name.lower(): pair for traffic_class, pair in limits.items()}
    return result


def _by_class(limits: Mapping[str, Any]) -> dict[TrafficClass, RatePair]:
    return {TrafficClass[name.upper()]: tuple(pair) for name, pair in limits.items() if pair is not None}


def admin(config: Mapping[str, Any], inputs: Mapping[str, Any]) -> Any:
    """The responses to successive requests; what each changes is written before the next one."""
    parameters = AdminParameters(frozenset({ADMIN_TOKEN}), MinusOne(config.get("updateMinusOne", MinusOne.UNSET)))
    presence = Presence(frozenset(inputs.get("tenants", ())), frozenset(inputs.get("namespaces", ())))
    tables, responses = ConfigTables(), []
    for given in inputs["requests"]:
        decision = decide(request_of(given), tables, presence, parameters)
        if decision.change is not None:
            tables = tables.written(decision.change.row)
        responses.append(_shown(decision.response))
    return {"responses": responses}


def request_of(given: Mapping[str, Any]) -> Request:
    """The request that a vector's entry stands for."""
    text = given.get("rawBody", "")
    if "body" in given:
        text = given["body"] or "" if given["path"].startswith(TOPIC_PATHS) else json.dumps(given["body"])
    return Request(given["method"], given["path"], given.get("token", ADMIN_TOKEN), text, parsed(text))


def parsed(text: str) -> object:
    """`text` as JSON, ABSENT where it is none; NaN and infinity are none."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return ABSENT


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _shown(response: Response) -> dict[str, Any]:
    if response.status != 200:
        return {"status": response.status}
    return {"status": 200, "body": response.json if response.text is None else response.text}
