"""A conf folder with the recommended limits in place: a copy of the one of now, with a comment a limit that says why.

Comments are keys that begin with //: JSON has no others. headgate skips them and Pulsar's admin API ignores unknown
keys, so that every object can be used as it is.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from headgate.conf import Conf
from headgate.core.quota.groups import RatePair
from headgate.core.topic_names import full_name, tenant_of
from headgate.errors import InputError
from headgate.tryout.recommend import Recommended

_TOPIC_KEYS = ("publishThrottlingRateInMsg", "publishThrottlingRateInByte")
_GROUP_KEYS = ("publishRateInMsgs", "publishRateInBytes")
_OTHER_NAME = "publishMaxMessageRate"

Reasons = Mapping[str, tuple[str, str]]
"""By name, why a limit is as it is, in messages and in bytes."""


def write_folder(folder: str, target: Path, conf: Conf, recommended: Recommended, reasons: Reasons) -> None:
    """Copy the conf folder and put the limits in place. target: a new or empty folder. Raises InputError."""
    try:
        shutil.copytree(folder, target, dirs_exist_ok=True)
        if recommended.topics:
            _edit(target / "policies.json", lambda content: _with_topics(content, recommended, reasons))
        if recommended.tenants:
            _edit(target / "resource-groups.json", lambda content: _with_tenants(content, conf, recommended, reasons))
    except (OSError, shutil.Error) as error:
        raise InputError(f"--recommend: {target} cannot be written: {error}; give another folder") from error


def _edit(file: Path, change: Callable[[dict[str, Any]], None]) -> None:
    text = file.read_text(encoding="utf-8-sig") if file.is_file() else ""
    content: dict[str, Any] = json.loads(text) if text.strip() else {}
    change(content)
    file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _with_topics(content: dict[str, Any], recommended: Recommended, reasons: Reasons) -> None:
    topics = content.setdefault("topics", {})
    written = {full_name(name): name for name in topics}
    for topic, rates in recommended.topics.items():
        policies = topics.setdefault(written.get(topic, topic), {})
        policies.pop(_OTHER_NAME, None)
        policies["publishRate"] = _with_comments(_TOPIC_KEYS, rates, reasons.get(topic))


def _with_tenants(content: dict[str, Any], conf: Conf, recommended: Recommended, reasons: Reasons) -> None:
    groups, tenants = content.setdefault("resourcegroups", {}), content.setdefault("tenants", {})
    own = recommended.own
    for tenant, rates in recommended.tenants.items():
        before = conf.resource_groups.tenants.get(tenant)
        dispatch = {key: rate for key, rate in groups.get(before, {}).items() if key not in _GROUP_KEYS}
        groups[own[tenant]] = _with_comments(_GROUP_KEYS, rates, reasons.get(tenant)) | dispatch
        if before == own[tenant]:
            continue
        tenants.pop(tenant, None)  # so that it comes behind its comment
        was = "" if before is None else f"; it was in {before}, whose dispatch rates it keeps, whole"
        tenants[f"// {tenant}"] = f"a group of its own: the quota is for its traffic alone{was}"
        tenants[tenant] = own[tenant]
    _detach(content.get("namespaces", {}), lambda name: name.split("/")[0] in own)
    _detach(content.get("topics", {}), lambda name: tenant_of(full_name(name) or "") in own)


def _detach(attached: dict[str, str], is_of_tenant: Callable[[str], bool]) -> None:
    """The group of its tenant has all of a tenant's traffic."""
    for name in [name for name in attached if not name.startswith("//") and is_of_tenant(name)]:
        del attached[name]
        attached[f"// {name}"] = "detached: the group of its tenant has all of its traffic"


def _with_comments(keys: tuple[str, str], rates: RatePair, reasons: tuple[str, str] | None) -> dict[str, Any]:
    written: dict[str, Any] = {}
    for place, (key, rate) in enumerate(zip(keys, rates, strict=True)):
        if reasons is not None:
            written[f"// {key}"] = reasons[place]
        written[key] = -1 if rate is None else rate
    return written
