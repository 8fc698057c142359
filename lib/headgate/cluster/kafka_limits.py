"""Quotas of Kafka's users and client ids, through its admin API (clusters 3.1)."""

import math
import time
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote, unquote

from kafka.errors import for_code
from kafka.protocol.admin.client_quotas import AlterClientQuotasRequest, DescribeClientQuotasRequest

from headgate.cluster.kafka_admin import REFUSED, KafkaAdmin
from headgate.conf.cluster import ClusterConf, Resource
from headgate.core.clusters.pushes import Limit
from headgate.errors import ClusterError

_KEY: Final = "producer_byte_rate"
_KINDS: Final = {"user": "users", "client id": "clients"}
_ENTITIES: Final = {"users": "user", "clients": "client-id"}
_DEFAULT: Final = "<default>"
_EXACT, _OF_DEFAULT = 0, 1
_ASKED_EVERY_S: Final = 0.05


class KafkaLimits:
    """Paths are users/NAME/producer_byte_rate, and clients/NAME/..; <default> is for all others. Values are numbers.

    Raises ClusterError.
    """

    def __init__(self, conf: ClusterConf) -> None:
        self._admin, self._timeout_s = KafkaAdmin(conf), conf.settings.timeout_s

    def paths(self, resource: Resource, _direction: str) -> Sequence[str]:
        """One: it holds on each broker."""
        return [f"{_KINDS[resource.scope]}/{quote(resource.name, safe='')}/{_KEY}"]

    def own_path(self, _topic: str, _direction: str) -> str | None:
        """Topics have no quotas."""
        return None

    def read(self, path: str) -> str | None:
        """Of that user or client id alone."""
        return self._read(path, None)

    def _read(self, path: str, node: int | None) -> str | None:
        """As a broker knows it; None: as any does."""
        entity, name = _entity(path)
        match_type = _OF_DEFAULT if name is None else _EXACT
        component = DescribeClientQuotasRequest.ComponentData(entity_type=entity, match_type=match_type, match=name)
        answer = self._admin.send(DescribeClientQuotasRequest(components=[component], strict=True), node)
        _check(path, answer)
        for entry in answer.entries or ():
            for one in entry.values:
                if one.key == _KEY:
                    return _text(one.value)
        return None

    def write(self, path: str, value: str | None) -> None:
        """It ends once all brokers that answer know it, as any may be asked what is there.

        Each holds the user by itself; one that is away learns it before it serves again.
        """
        entity, name = _entity(path)
        entry = AlterClientQuotasRequest.EntryData(
            entity=[AlterClientQuotasRequest.EntryData.EntityData(entity_type=entity, entity_name=name)],
            ops=[
                AlterClientQuotasRequest.EntryData.OpData(
                    key=_KEY, value=0.0 if value is None else float(value), remove=value is None
                )
            ],
        )
        for one in self._admin.send(AlterClientQuotasRequest(entries=[entry], validate_only=False), None).entries:
            _check(path, one)
        end_s = time.monotonic() + self._timeout_s
        for node in self._admin.nodes().values():
            while not self._knows(node, path, value):
                if time.monotonic() > end_s:
                    raise ClusterError(f"{path}: broker {node} does not know of its change in {self._timeout_s} s")
                time.sleep(_ASKED_EVERY_S)

    def _knows(self, node: int, path: str, value: str | None) -> bool:
        """Whether a broker does, or is away."""
        try:
            return self._read(path, node) == value
        except ClusterError as error:
            if error.status is None:
                return True
            raise

    def limit(self, path: str, value: str) -> Limit:  # noqa: ARG002  as the protocol has it
        """A second, rounded up."""
        return Limit(bytes=max(math.ceil(float(value)), 1))

    def wider_path(self, path: str) -> str | None:
        """The default of all users, or of all client ids."""
        kind, name, key = path.split("/")
        return None if name == _DEFAULT else f"{kind}/{_DEFAULT}/{key}"

    def lowered(self, path: str, value: str | None, wider: str | None, limit: Limit) -> str | None:  # noqa: ARG002
        """Its own quota replaces the default."""
        own = wider if value is None else value
        return value if limit.bytes is None or (own is not None and float(own) <= limit.bytes) else str(limit.bytes)


def _entity(path: str) -> tuple[str, str | None]:
    """Kafka's words for it."""
    kind, name, _ = path.split("/")
    return _ENTITIES[kind], None if name == _DEFAULT else unquote(name)


def _check(path: str, answer: Any) -> None:
    """Raise ClusterError where it says that it failed."""
    if answer.error_code:
        error = for_code(answer.error_code)
        raise ClusterError(
            f"{path}: {error.__name__}: {answer.error_message or 'refused'}; give the user DescribeConfigs and "
            "AlterConfigs on the cluster",
            REFUSED,
        )


def _text(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
