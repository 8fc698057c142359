"""Quotas of Kafka's users and client ids, through its admin API (clusters 3.1)."""

import math
import time
from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaConnectionError, NodeNotReadyError, UnknownBrokerIdError
from kafka.protocol.admin.client_quotas import AlterClientQuotasRequest, DescribeClientQuotasRequest

from headgate.cluster.kafka_admin import KafkaAdmin
from headgate.cluster.limits import InTheWayError
from headgate.conf.cluster import ClusterConf, Resource
from headgate.core.clusters.demand import SECOND_US
from headgate.core.clusters.pushes import Limit
from headgate.errors import ClusterError

_KEY: Final = "producer_byte_rate"
_KINDS: Final = {"user": "users", "client id": "clients"}
_USER, _CLIENT_ID = "user", "client-id"
_ENTITIES: Final = {"users": _USER, "clients": _CLIENT_ID}
_DEFAULT: Final = "<default>"
_EXACT, _OF_DEFAULT, _ANY = 0, 1, 2
_ASKED_EVERY_S: Final = 0.05
_AWAY: Final = (KafkaConnectionError, NodeNotReadyError, UnknownBrokerIdError)
_WINDOWS, _WINDOW_S = "quota.window.num", "quota.window.size.seconds"


class Entity(NamedTuple):
    """Whose quota it is; None: that part is not named. A name of None is the default of all that have none."""

    user: tuple[str | None] | None = None
    client_id: tuple[str | None] | None = None

    def __str__(self) -> str:
        parts = ((_USER, self.user), ("client id", self.client_id))
        return ", ".join(f"{part} {_DEFAULT if name[0] is None else name[0]}" for part, name in parts if name)


class KafkaLimits:
    """Paths are users/NAME/producer_byte_rate, and clients/NAME/..; <default> is for all others. Values are numbers.

    Raises ClusterError.
    """

    def __init__(self, conf: ClusterConf) -> None:
        self._admin, self._timeout_s = KafkaAdmin(conf), conf.settings.timeout_s

    def averaged_us(self) -> int:
        """As the brokers are started with."""
        node = next(iter(self._admin.nodes().values()))
        broker = ConfigResource(ConfigResourceType.BROKER, str(node), [_WINDOWS, _WINDOW_S])
        found = self._admin.ask(lambda client: client.describe_configs([broker], config_filter="all"))
        settings = {key: int(one["value"]) for key, one in found["broker"].get(str(node), {}).items()}
        if not settings:
            raise ClusterError(f"broker {node} does not tell {_WINDOWS}; give the user DescribeConfigs on the cluster")
        return settings[_WINDOWS] * settings[_WINDOW_S] * SECOND_US

    def paths(self, resource: Resource, _direction: str) -> Sequence[str]:
        """One: it holds on each broker. Raises InTheWayError where a quota of another kind is."""
        path = path_of(resource)
        other = _CLIENT_ID if resource.scope == _USER else _USER
        in_the_way = [entity for entity in self._quotas(other) if is_in_the_way(entity, resource)]
        if in_the_way:
            raise InTheWayError(
                f"a quota of {in_the_way[0]} is there, and Kafka goes by one of the two alone; remove it, or leave "
                f"{resource} out of cluster.toml"
            )
        return [path]

    def _quotas(self, entity: str) -> Sequence[Entity]:
        """Who has a quota of those with that part."""
        component = DescribeClientQuotasRequest.ComponentData(entity_type=entity, match_type=_ANY, match=None)
        answer = self._admin.send(DescribeClientQuotasRequest(components=[component], strict=False), None)
        found = []
        for entry in answer.entries or ():
            if any(one.key == _KEY for one in entry.values):
                names = {one.entity_type: (one.entity_name,) for one in entry.entity}
                found.append(Entity(names.get(_USER), names.get(_CLIENT_ID)))
        return found

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
        self._admin.send(AlterClientQuotasRequest(entries=[entry], validate_only=False), None)
        end_s = time.monotonic() + self._timeout_s
        for node in self._admin.nodes().values():
            while not self._knows(node, path, value):
                if time.monotonic() > end_s:
                    raise ClusterError(f"{path}: broker {node} does not know of its change in {self._timeout_s} s")
                time.sleep(_ASKED_EVERY_S)

    def _knows(self, node: int, path: str, value: str | None) -> bool:
        """Whether a broker does, or is away; not if it is late."""
        try:
            return self._read(path, node) == value
        except ClusterError as error:
            if error.status is not None:
                raise
            return isinstance(error.__cause__, _AWAY)

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


def path_of(resource: Resource) -> str:
    """Where its quota is."""
    return f"{_KINDS[resource.scope]}/{quote(resource.name, safe='')}/{_KEY}"


def is_in_the_way(entity: Entity, resource: Resource) -> bool:
    """Whether some connection is of both, and the quota of one puts an end to the other's.

    entity: with a client id if the resource is a user, with a user if it is a client id. Kafka takes the first that is
    there: of user and client id; the same with a default; of the user; of the default user with a client id; of the
    default user; of the client id. Source: Kafka's documentation, "Setting quotas"
    """
    part = entity.user if resource.scope == _USER else entity.client_id
    return part is None or part[0] in {None, resource.name}


def _entity(path: str) -> tuple[str, str | None]:
    """Kafka's words for it."""
    kind, name, _ = path.split("/")
    return _ENTITIES[kind], None if name == _DEFAULT else unquote(name)


def _text(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
