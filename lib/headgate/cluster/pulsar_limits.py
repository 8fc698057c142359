"""Rates of Pulsar's namespaces and topics, through its admin API (clusters 3.1)."""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final
from urllib.parse import quote

from headgate.cluster.http import Http
from headgate.conf.cluster import ClusterConf, Resource
from headgate.conf.findings import shown
from headgate.core.clusters.pushes import Limit
from headgate.errors import ClusterError

_RATES: Final = {"in": "publishRate", "out": "dispatchRate"}
_KEYS: Final = {
    "publishRate": {
        "publishThrottlingRateInMsg": "maxPublishRatePerTopicInMessages",
        "publishThrottlingRateInByte": "maxPublishRatePerTopicInBytes",
    },
    "dispatchRate": {
        "dispatchThrottlingRateInMsg": "dispatchThrottlingRatePerTopicInMsg",
        "dispatchThrottlingRateInByte": "dispatchThrottlingRatePerTopicInByte",
    },
}
"""Of a policy's messages and bytes, with the keys of broker.conf that hold without one."""
_NAMESPACES: Final = "namespaces"
_PERIOD: Final = "ratePeriodInSecond"
_RELATIVE: Final = "relativeToPublishRate"
_GONE: Final = 404


class PulsarLimits:
    """Paths are those of the admin API: namespaces/T/N/publishRate. Values are its JSON. Raises ClusterError."""

    def __init__(self, conf: ClusterConf) -> None:
        self._http = Http(conf)
        self._admin = conf.admin

    def averaged_us(self) -> int:
        """Each topic has a bucket of a second."""
        return 0

    def paths(self, resource: Resource, direction: str) -> Sequence[str]:
        """One for each namespace. A group may be attached to what is not there."""
        found = [name for tenant in resource.tenants() for name in self._namespaces(tenant, resource)]
        namespaces = [name for name in found if resource.has_namespace(name)]
        if resource.scope == "namespace" and not namespaces:
            raise ClusterError(f"{resource}: is not there; allowed: {', '.join(found) or 'none'}; correct cluster.toml")
        return [f"namespaces/{quote(namespace)}/{_RATES[direction]}" for namespace in namespaces]

    def _namespaces(self, tenant: str, resource: Resource) -> Sequence[str]:
        try:
            return self._http.get(f"{self._admin}/namespaces/{quote(tenant)}") or []
        except ClusterError as error:
            if error.status != _GONE:
                raise
            if resource.scope == "group":
                return []
            tenants = ", ".join(self._http.get(f"{self._admin}/tenants"))
            raise ClusterError(f"tenant {tenant}: is not there; allowed: {tenants}; correct cluster.toml") from error

    def own_path(self, topic: str, direction: str) -> str:
        """persistent/T/N/TOPIC/publishRate."""
        scheme, _, name = topic.partition("://")
        tenant, namespace, local = name.split("/", 2)
        return f"{scheme}/{quote(tenant)}/{quote(namespace)}/{quote(local, safe='')}/{_RATES[direction]}"

    def read(self, path: str) -> str | None:
        """None as well where the namespace or topic is gone."""
        try:
            found = self._http.get(f"{self._admin}/{path}")
        except ClusterError as error:
            if error.status == _GONE:
                return None
            raise
        if found is None:
            return None
        rate = path.rpartition("/")[2]
        if not isinstance(found, dict) or not all(
            isinstance(found.get(key, -1), int) for key in (*_KEYS[rate], _PERIOD)
        ):
            raise ClusterError(f"{path}: got {shown(found)}; allowed: rates, as a Pulsar broker has them")
        return _text(path, found)

    def write(self, path: str, value: str | None) -> None:
        """Nothing is to be removed where the namespace or topic is gone."""
        url = f"{self._admin}/{path}"
        if value is not None:
            self._http.send("POST", url, json.loads(value))
            return
        try:
            self._http.send("DELETE", url)
        except ClusterError as error:
            if error.status != _GONE:
                raise

    def limit(self, path: str, value: str) -> Limit:
        """A second, rounded up."""
        rate, rates = path.rpartition("/")[2], json.loads(value)
        period_s = rates.get(_PERIOD, 1)
        caps = (rates[key] for key in _KEYS[rate])
        return Limit(*(-(-cap // period_s) if cap > 0 else None for cap in caps))

    def wider_path(self, path: str) -> str | None:
        """Of a topic, its namespace's."""
        scheme, *parts = path.split("/")
        return None if scheme == _NAMESPACES else "/".join((_NAMESPACES, *parts[:2], parts[-1]))

    def lowered(self, path: str, value: str | None, wider: str | None, limit: Limit) -> str | None:
        """A policy replaces a wider one, or broker.conf, in both units.

        A dispatch rate that follows the publish rate says no number: it is left alone.
        """
        rate = path.rpartition("/")[2]
        policy = wider if value is None else value
        own: dict[str, Any] = self._of_brokers[rate] if policy is None else json.loads(policy)
        if own.get(_RELATIVE):
            raise ClusterError(f"{path} is relative to the publish rate; remove {_RELATIVE}, or leave dispatches out")
        period_s = own.get(_PERIOD, 1)
        before = {key: own.get(key, -1) for key in _KEYS[rate]}
        after = dict(before)
        for key, cap in zip(_KEYS[rate], limit, strict=True):
            if cap is not None and not 0 < before[key] <= cap * period_s:
                after[key] = cap * period_s
        return value if after == before else _text(path, own | after)

    @cached_property
    def _of_brokers(self) -> Mapping[str, dict[str, Any]]:
        """What holds for a topic without any policy, by the conf of the broker that is asked first."""
        url = f"{self._admin}/brokers/configuration/runtime"
        conf = self._http.get(url)
        try:
            return {
                rate: {key: int(conf.get(name, 0)) or -1 for key, name in keys.items()} for rate, keys in _KEYS.items()
            }
        except (AttributeError, TypeError, ValueError) as error:
            raise ClusterError(f"{url}: got {error}; allowed: the settings of a broker; correct admin_url") from error


def _text(path: str, rates: Mapping[str, Any]) -> str:
    """With all keys that a broker answers with, so that what was set is known again."""
    whole = {"in": {}, "out": {_RELATIVE: False, _PERIOD: 1}}["in" if path.endswith(_RATES["in"]) else "out"]
    return json.dumps(whole | dict(rates), sort_keys=True)
