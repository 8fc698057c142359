"""policies.json: rate policies of namespaces and topics, as Pulsar's admin API takes and returns them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headgate.conf.findings import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, Findings, nearest, shown
from headgate.conf.json_file import JsonFile, Path, read_json
from headgate.core.topic_names import full_name, is_namespace, without_partition

_OFF: Final = -1
# The keys of a whole policy dump are not as close as this to the names of its rate policies.
_TYPING_MISTAKE: Final = 0.75
_NOT_READ: Final = frozenset({"replicatorDispatchRateMap"})  # the one exception: rates by remote cluster
_REMEDY: Final = "correct it; 0 or below is off, and null instead of the object is no policy"


@dataclass(frozen=True, slots=True)
class PublishRate:
    """Publish rates per second; 0 is off. A policy of (0, 0) lifts the wider limit, it is not the absence of one."""

    messages_per_s: int = 0
    bytes_per_s: int = 0


@dataclass(frozen=True, slots=True)
class DispatchRate:
    """Dispatch rates per period of `period_s` seconds; 0 is off. A period below 1 counts as 1 (rate-limiters.md 1)."""

    messages_per_period: int = 0
    bytes_per_period: int = 0
    period_s: int = 1
    relative_to_publish_rate: bool = False


@dataclass(frozen=True, slots=True)
class SubscribeRate:
    """Subscribes of one consumer per period of `period_s` seconds; 0, or a period below 1, is off."""

    subscribes_per_period: int = 0
    period_s: int = 30


@dataclass(frozen=True, slots=True)
class RatePolicies:
    """The rate policies of one namespace or topic; None is no policy, so that the next wider scope decides."""

    publish: PublishRate | None = None
    dispatch: DispatchRate | None = None
    subscription_dispatch: DispatchRate | None = None
    replicator_dispatch: DispatchRate | None = None
    subscribe: SubscribeRate | None = None


@dataclass(frozen=True, slots=True)
class Policies:
    """Policies by namespace (`tenant/namespace`) and by full topic name, both without partitions; read-only."""

    namespaces: Mapping[str, RatePolicies] = field(default_factory=dict)
    topics: Mapping[str, RatePolicies] = field(default_factory=dict)


Rate = PublishRate | DispatchRate | SubscribeRate


def _publish(source: JsonFile, path: Path, table: Mapping[str, Any]) -> Rate:
    keys = ("publishThrottlingRateInMsg", "publishThrottlingRateInByte")
    source.closed(path, table, keys)
    return PublishRate(*(_rate(source, path, table, key) for key in keys))


def _dispatch(source: JsonFile, path: Path, table: Mapping[str, Any]) -> Rate:
    keys = ("dispatchThrottlingRateInMsg", "dispatchThrottlingRateInByte")
    source.closed(path, table, (*keys, "relativeToPublishRate", "ratePeriodInSecond"))
    relative = table.get("relativeToPublishRate")
    if not isinstance(relative, bool | None):
        source.mistake((*path, "relativeToPublishRate"), shown(relative), "true or false", "write it without quotes")
    messages, size = (_rate(source, path, table, key) for key in keys)
    return DispatchRate(messages, size, _period(source, path, table, 1), relative is True)


def _subscribe(source: JsonFile, path: Path, table: Mapping[str, Any]) -> Rate:
    rate = "subscribeThrottlingRatePerConsumer"
    source.closed(path, table, (rate, "ratePeriodInSecond"))
    return SubscribeRate(_rate(source, path, table, rate), _period(source, path, table, 30))


def _rate(source: JsonFile, path: Path, table: Mapping[str, Any], key: str) -> int:
    value = table.get(key)
    number = source.integer((*path, key), _OFF if value is None else value, INT64_MIN, INT64_MAX, _REMEDY)
    return max(0, number or 0)


def _period(source: JsonFile, path: Path, table: Mapping[str, Any], default: int) -> int:
    value = table.get("ratePeriodInSecond")
    remedy = f"correct it, or remove it for the default ({default})"
    number = source.integer(
        (*path, "ratePeriodInSecond"), default if value is None else value, INT32_MIN, INT32_MAX, remedy
    )
    return default if number is None else number


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of policy: its names, and the names under which Pulsar keeps it by cluster, empty where there is none."""

    read: Callable[[JsonFile, Path, Mapping[str, Any]], Rate]
    names: tuple[str, ...]
    may_be_empty: frozenset[str] = frozenset()
    fallback: str = ""  # a name that counts only where the others say nothing, as in Pulsar

    def every_name(self) -> tuple[str, ...]:
        return (*self.names, self.fallback) if self.fallback else self.names


_KINDS: Final[Mapping[str, _Kind]] = {
    "publish": _Kind(_publish, ("publishRate", "publishMaxMessageRate"), frozenset({"publishMaxMessageRate"})),
    "dispatch": _Kind(
        _dispatch,
        ("dispatchRate", "topicDispatchRate"),
        frozenset({"topicDispatchRate", "clusterDispatchRate"}),
        fallback="clusterDispatchRate",
    ),
    "subscription_dispatch": _Kind(_dispatch, ("subscriptionDispatchRate",), frozenset({"subscriptionDispatchRate"})),
    "replicator_dispatch": _Kind(_dispatch, ("replicatorDispatchRate",), frozenset({"replicatorDispatchRate"})),
    "subscribe": _Kind(_subscribe, ("subscribeRate", "clusterSubscribeRate"), frozenset({"clusterSubscribeRate"})),
}
_NAMES: Final = frozenset(name for kind in _KINDS.values() for name in kind.every_name())


def read_policies(text: str, file: str, findings: Findings) -> Policies:
    """Return the policies in a policies.json; what is wrong goes to `findings`.

    Beside the names of the admin API's single policies, those of a whole namespace dump are read
    (`publishMaxMessageRate`, `topicDispatchRate`, `clusterDispatchRate`, `clusterSubscribeRate`), plain or keyed by
    cluster. A dump's other keys are ignored with one warning.
    """
    source, table = read_json(text, file, ("namespaces", "topics"), findings)
    namespaces: dict[str, RatePolicies] = {}
    topics: dict[str, RatePolicies] = {}
    ignored: set[str] = set()

    def read_namespace(name: str, value: Any) -> None:
        if is_namespace(name):
            namespaces[name] = _policies(source, ("namespaces", name), value, ignored)
        else:
            source.mistake(("namespaces", name), "this name", "tenant/namespace", "correct the name")

    def read_topic(name: str, value: Any) -> None:
        if (topic := topic_key(source, ("topics", name), topics)) is not None:
            topics[topic] = _policies(source, ("topics", name), value, ignored)

    source.section(table, "namespaces", read_namespace)
    source.section(table, "topics", read_topic)
    if ignored:
        findings.warnings.append(f"{file}: ignored, as they are not rate policies: {', '.join(sorted(ignored))}")
    return Policies(namespaces, topics)


def topic_key(source: JsonFile, path: Path, seen: Mapping[str, object]) -> str | None:
    """Return the full name of the topic at the end of a path, which `seen` does not have yet; None with a mistake."""
    name = path[-1]
    topic = full_name(name)
    if topic is None:
        allowed = "persistent://tenant/namespace/topic, non-persistent://..., or tenant/namespace/topic"
        source.mistake(path, "this name", allowed, "correct the name")
    elif without_partition(topic) != topic:
        remedy = f"write {without_partition(topic)}"
        source.mistake(path, "a partition", "the topic, whose partitions all share its settings", remedy)
    elif topic in seen:
        source.mistake(path, f"{topic} again", "one entry a topic", "delete one of the two")
    else:
        return topic
    return None


def _policies(source: JsonFile, path: Path, value: object, ignored: set[str]) -> RatePolicies:
    table = source.table(path, value) or {}
    for name in [name for name in table if name not in _NAMES]:
        near = None if name in _NOT_READ else nearest(name, _NAMES, _TYPING_MISTAKE)
        if near is None:
            ignored.add(name)
        else:
            source.mistake((*path, name), "an unknown key", ", ".join(sorted(_NAMES)), f"did you mean {near}?")
    rates: dict[str, Any] = {}
    for column, kind in _KINDS.items():
        found = {name: _policy(source, (*path, name), table[name], kind) for name in kind.every_name() if name in table}
        said = [name for name in kind.names if found.get(name) is not None]
        if len({found[name] for name in said}) > 1:
            source.mistake(
                (*path, said[-1]), "another rate than its other name", f"that of {said[0]}", "delete one of the two"
            )
        rates[column] = found[said[0]] if said else found.get(kind.fallback)
    return RatePolicies(**rates)


def _policy(source: JsonFile, path: Path, value: object, kind: _Kind) -> Rate | None:
    """Return a policy given plainly, or keyed by cluster with one rate for all of them; null is no policy."""
    if value is None:
        return None
    table = source.table(path, value)
    if table is None:
        return None
    if not table:
        if path[-1] not in kind.may_be_empty:
            source.mistake(path, "an empty object", "an object with rates, or null", "write null for no policy")
        return None
    if not any(isinstance(rate, dict) for rate in table.values()):
        return kind.read(source, path, table)
    by_cluster = {
        cluster: kind.read(source, (*path, cluster), source.table((*path, cluster), rate) or {})
        for cluster, rate in table.items()
        if rate is not None
    }
    if len(set(by_cluster.values())) > 1:
        clusters = ", ".join(by_cluster)
        source.mistake(path, f"different rates for clusters {clusters}", "one cluster", "keep the one to be modelled")
    return next(iter(by_cluster.values()), None)
