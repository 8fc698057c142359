"""Checks that need more than one conf file, or what the conf is used for."""

from collections.abc import Iterable, Mapping

from headgate.conf.broker import BROKER_KEYS
from headgate.conf.conf import Conf
from headgate.conf.findings import Findings, Place
from headgate.conf.json_file import dotted
from headgate.conf.limits import group_attachments
from headgate.conf.policies import RatePolicies
from headgate.errors import ConfError

_BROKER_WIDE = (
    "brokerPublisherThrottlingMaxMessageRate",
    "brokerPublisherThrottlingMaxByteRate",
    "dispatchThrottlingRateInMsg",
    "dispatchThrottlingRateInByte",
)
_ONLY_LOADED = ("headgateDispatchReserveThenSettle",)
"""Beginnings of the keys of limits that are off by default, and that are enforced nowhere."""


def check_state_key(conf: Conf, files: Mapping[str, str], findings: Findings) -> None:
    """Refuse state_key = "topic" where topics share a limiter: a key of its own per topic would divide it.

    Limits of groups count whether or not anything is attached to them, and attachments whether or not their group has a
    limit: either may change.
    """
    shared = [*_broker_wide_limits(conf), *_group_limits(conf), *_attachments(conf)]
    if conf.settings.operator.state_key == "topic" and shared:
        findings.mistake(
            Place(files["headgate.toml"], "operator.state_key"),
            f"'topic' with limits and groups that topics share: {', '.join(shared)}",
            "auto",
            'write state_key = "auto", or remove them',
        )


def _broker_wide_limits(conf: Conf) -> Iterable[str]:
    for name in _BROKER_WIDE:
        if rate := getattr(conf.broker, BROKER_KEYS[name].field):
            yield f"{name}={rate}"


def _group_limits(conf: Conf) -> Iterable[str]:
    for name, group in sorted(conf.resource_groups.groups.items()):
        rates = (
            group.publish_messages_per_s,
            group.publish_bytes_per_s,
            group.dispatch_messages_per_s,
            group.dispatch_bytes_per_s,
        )
        if any(rate is not None for rate in rates):
            yield dotted(("resourcegroups", name))


def _attachments(conf: Conf) -> Iterable[str]:
    yield from (dotted((f"{row.scope}s", row.name)) for row in group_attachments(conf))


def check_classic_periods(conf: Conf, files: Mapping[str, str], findings: Findings) -> None:
    """Refuse dispatch periods below 1 s with the classic limiter, which has no such window (rate-limiters.md 7)."""
    if conf.broker.dispatch_implementation != "classic":
        return
    for place, policies in _policies(conf):
        for rate in (policies.dispatch, policies.subscription_dispatch, policies.replicator_dispatch):
            if rate is not None and rate.period_s < 1:
                findings.mistake(
                    Place(files["policies.json"], dotted(place)),
                    f"ratePeriodInSecond {rate.period_s}",
                    "from 1 with the classic dispatch limiter",
                    "correct it, or select the token bucket with dispatchRateLimiterFactoryClassName",
                )


def _policies(conf: Conf) -> Iterable[tuple[tuple[str, str], RatePolicies]]:
    """Of every namespace, then of every topic: scope and name, and its policies."""
    for scope, by_name in (("namespaces", conf.policies.namespaces), ("topics", conf.policies.topics)):
        yield from (((scope, name), policies) for name, policies in by_name.items())


def warn_of_limits_that_only_load(conf: Conf, files: Mapping[str, str], findings: Findings) -> None:
    """Warn of limits that are set, read and checked, and that no job enforces: their settings would go unnoticed."""
    only_loaded = {name: key.field for name, key in BROKER_KEYS.items() if name.startswith(_ONLY_LOADED)}
    keys = [name for name, field in only_loaded.items() if getattr(conf.broker, field) > 0]
    if keys:
        findings.warnings.append(f"{files['broker.conf']}: read, but not enforced yet: {', '.join(keys)}")


def check_streaming(conf: Conf) -> None:
    """Return if a streaming job can run with this conf; a job calls it before it builds its query.

    Raises ConfError for headgateClockPolicy=leap_tolerant: a job's rows are in the order of their event time, in
    which a step back of the source's clock no longer shows (rate-limiters.md 3.2).
    """
    if conf.broker.clock_policy == "high_water":
        return
    findings = Findings()
    findings.mistake(
        Place("broker.conf", "headgateClockPolicy"),
        f"{conf.broker.clock_policy} in a streaming job, which orders rows by event time",
        "high_water",
        "write headgateClockPolicy=high_water, or remove the line",
    )
    raise ConfError(findings.mistakes)
