"""cluster.toml: a running cluster, how to reach it, and the quotas of its tenants. Frozen and closed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from headgate.conf.findings import INT32_MAX, INT64_MAX, Findings, shown
from headgate.conf.settings import Section
from headgate.conf.settings_file import TomlFile, read_toml
from headgate.core.topic_names import is_namespace, is_path_name, namespace_of, tenant_of
from headgate.errors import ConfError

_URL: Final = r"^https?://([^\s/?#@:\[\]]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/?$"
_HTTPS: Final = "https://"
PULSAR: Final = "pulsar"
KAFKA: Final = "kafka"
_SERVER: Final = r"([^\s,:\[\]]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}"
_SERVERS: Final = rf"^{_SERVER}(, *{_SERVER})*$"
_SASL, _TLS = "SASL_", "SSL"
_LOOKS_IN_HOLD: Final = 2


class Rate(NamedTuple):
    """What a quota counts: the traffic into topics or out of them, in messages or bytes."""

    direction: Literal["in", "out"]
    unit: Literal["messages", "bytes"]


RATES: Final = {
    "publishRateInMsgs": Rate("in", "messages"),
    "publishRateInBytes": Rate("in", "bytes"),
    "dispatchRateInMsgs": Rate("out", "messages"),
    "dispatchRateInBytes": Rate("out", "bytes"),
}
_SCOPES: Final[Mapping[str, tuple[Callable[[str], object], str]]] = {
    "tenant": (is_path_name, "a tenant's name: A-Z a-z 0-9 _ - = : ."),
    "namespace": (is_namespace, "tenant/namespace"),
}


def _with_valid_port(url: str) -> str:
    """Raises ValueError for a port above 65535."""
    _ = urlsplit(url).port
    return url


def _with_valid_ports(servers: str) -> str:
    """The same of each server."""
    for server in servers.split(","):
        _with_valid_port(f"//{server.strip()}")
    return servers


_NO_ZERO: Final = "to a broker 0 means no limit"
_Messages = Annotated[
    int | None, Field(ge=1, le=INT32_MAX, description=f"an integer from 1 to {INT32_MAX}; {_NO_ZERO}")
]
_Bytes = Annotated[int | None, Field(ge=1, le=INT64_MAX, description=f"an integer from 1 to {INT64_MAX}; {_NO_ZERO}")]
_FLOAT_MAX: Final = 2**53
"""Kafka has its quotas as floating-point numbers, of which those above are not all there."""
_ByteRate = Annotated[
    int | None, Field(ge=1, le=_FLOAT_MAX, description=f"an integer from 1 to {_FLOAT_MAX}; {_NO_ZERO}")
]
_Url = Annotated[str, Field(pattern=_URL), AfterValidator(_with_valid_port)]
_Name = Annotated[str | None, Field(min_length=1, description="a name")]


class ClusterSettings(Section):
    """[cluster]: how to reach the brokers, and how often to look. `load_cluster` requires the address of its kind."""

    kind: Annotated[Literal["pulsar", "kafka"], Field(description="pulsar or kafka")] = "pulsar"
    admin_url: Annotated[_Url | None, Field(description="http://HOST:PORT or https://HOST:PORT of any broker")] = None
    period_s: Annotated[int, Field(ge=1, le=3600, description="an integer from 1 to 3600")] = 5
    timeout_s: Annotated[int, Field(ge=1, le=10, description="an integer from 1 to 10")] = 5
    hold_s: Annotated[int, Field(ge=10, le=86_400, description="an integer from 10 to 86400")] = 300
    kept_hours: Annotated[int, Field(ge=0, le=87_600, description="an integer from 0 to 87600")] = 0
    token_file: Annotated[str | None, Field(min_length=1, description="the path of a file with a bearer token")] = None
    ca_file: Annotated[str | None, Field(min_length=1, description="the path of a PEM file of authorities")] = None
    bootstrap_servers: Annotated[
        Annotated[str, Field(pattern=_SERVERS), AfterValidator(_with_valid_ports)] | None,
        Field(description="HOST:PORT of some Kafka brokers, with commas between them"),
    ] = None
    security_protocol: Annotated[
        Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"],
        Field(description="PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"),
    ] = "PLAINTEXT"
    sasl_mechanism: Annotated[
        Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"], Field(description="PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
    ] = "PLAIN"
    sasl_username: Annotated[str | None, Field(min_length=1, description="a name")] = None
    sasl_password_file: Annotated[str | None, Field(min_length=1, description="the path of a file with it")] = None
    groups: Annotated[bool, Field(description="true: resources are the groups of --output; or false")] = False

    @property
    def servers(self) -> Sequence[str]:
        """HOST:PORT of Kafka brokers; none with Pulsar."""
        return [] if self.bootstrap_servers is None else [one.strip() for one in self.bootstrap_servers.split(",")]


_DEFAULTS: Final = ClusterSettings()


class ResourceSettings(Section):
    """[[resource]]: what shares a quota, and the quota, in the words of resource-groups.json."""

    tenant: _Name = None
    namespace: _Name = None
    publishRateInMsgs: _Messages = None  # noqa: N815  Pulsar's words
    publishRateInBytes: _Bytes = None  # noqa: N815
    dispatchRateInMsgs: _Messages = None  # noqa: N815
    dispatchRateInBytes: _Bytes = None  # noqa: N815


class ClientSettings(Section):
    """[[resource]] of a Kafka cluster, in the words of its quotas. Reads are not counted, so they have no quota."""

    user: _Name = None
    client_id: _Name = None
    topic_prefix: _Name = None
    producer_byte_rate: _ByteRate = None


class ClusterFile(Section):
    """The whole of cluster.toml, its resources as they are."""

    cluster: Annotated[ClusterSettings, Field(description="a table, [cluster]")] = ClusterSettings()
    resource: Annotated[
        list[dict[str, Any]], Field(default_factory=list, description="tables, each under [[resource]]")
    ]


@dataclass(frozen=True, slots=True)
class Resource:
    """What shares quotas: a tenant, a namespace, or what a subclass says.

    quotas: a second, from 1, for the whole cluster; at least one.
    """

    scope: str
    name: str
    quotas: Mapping[Rate, int]
    shares: ClassVar = "topics"
    """Among what its quota is shared out."""
    escapes: ClassVar = "a broker that ignores it, or somebody else who sets a higher one"
    """Why a limit may hold nothing back."""

    def __str__(self) -> str:
        return f"{self.scope} {self.name}"

    def in_words(self, direction: str) -> str:
        """With what is counted in that direction."""
        return f"{self} {'publish' if direction == 'in' else 'dispatch'}"

    def has(self, topic: str) -> bool:
        """Whether a topic is part of it."""
        return self.name == (tenant_of(topic) if self.scope == "tenant" else namespace_of(topic))

    def shared_by(self, topic: str, _broker: str) -> str:
        """What has a limit of its own for the topic on that broker."""
        return topic

    def tenants(self) -> Iterable[str]:
        """Those in which it has namespaces."""
        return [self.name.partition("/")[0]]

    def has_namespace(self, namespace: str) -> bool:
        """Whether topics of a namespace are part of it if nothing else is said of them."""
        return self.name == (namespace.partition("/")[0] if self.scope == "tenant" else namespace)

    def topics(self) -> Iterable[str]:
        """Those that are part of it whatever their namespace is, of those that `has` was asked for."""
        return ()

    def overlaps(self, other: "Resource") -> bool:
        """Whether they are the same, or one is the tenant of the other."""
        if self.scope == other.scope:
            return self.name == other.name
        return self.name.partition("/")[0] == other.name.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Client(Resource):
    """A user or a client id of Kafka, and the beginning of the names of its topics.

    Each broker holds it to the limit by itself, so the brokers share its quota.
    """

    topic_prefix: str
    shares: ClassVar = "brokers"
    escapes: ClassVar = "others write to its topics, or somebody else sets a higher one"

    def has(self, topic: str) -> bool:
        """Whether a topic is its own."""
        return topic.startswith(self.topic_prefix)

    def shared_by(self, _topic: str, broker: str) -> str:
        """The broker."""
        return broker

    def overlaps(self, other: Resource) -> bool:
        """Whether they are the same, or some topic could be both's."""
        if not isinstance(other, Client):
            return False
        is_same = (self.scope, self.name) == (other.scope, other.name)
        return is_same or other.has(self.topic_prefix) or self.has(other.topic_prefix)


@dataclass(frozen=True, slots=True)
class ClusterConf:
    """A cluster and its resources; no topic is part of two. folder: paths in the settings are relative to it.

    resources: empty if they are groups.
    """

    settings: ClusterSettings
    resources: Sequence[Resource]
    folder: Path

    @property
    def admin(self) -> str:
        """Where Pulsar's admin API is."""
        return f"{str(self.settings.admin_url).rstrip('/')}/admin/v2"

    def path(self, name: str) -> Path:
        """Where a file is that a setting names."""
        return self.folder / name


def load_cluster(path: str | Path) -> ClusterConf:
    """The conf in a cluster.toml. Raises ConfError with every mistake in it, and if it cannot be read."""
    file, findings = str(path), Findings()
    try:
        text = Path(path).read_text("utf-8")
    except OSError as error:
        raise ConfError([f"{file}: got {error.strerror}; allowed: a readable file; correct --cluster"]) from error
    except ValueError as error:
        raise ConfError([f"{file}: got {error}; allowed: TOML in UTF-8; correct the file"]) from error
    source = read_toml(text, file, findings)
    has_kind = _kind_of(source.table) in (PULSAR, KAFKA)  # else no key of a resource could be checked
    found = source.read(ClusterFile, source.table)
    if not findings.mistakes:  # else an address that is wrong would be missing as well
        if _is_of_other_kind(source, found.cluster):
            raise ConfError(findings.mistakes)
        _check_address(source, found.cluster)
        _check_times(source, found.cluster)
    resources = _resources(source, found.resource, found.cluster.kind) if has_kind else []
    if found.cluster.groups and found.resource:
        got, remedy = f"true, beside {source.place('resource[0]')}", "set it to false, or remove every [[resource]]"
        source.findings.mistake(source.place("cluster.groups"), got, "groups or [[resource]], not both", remedy)
    if findings.mistakes:
        raise ConfError(findings.mistakes)
    return ClusterConf(found.cluster, resources, Path(path).parent)


def _check_times(source: TomlFile, settings: ClusterSettings) -> None:
    """Between two looks nothing is heard of a collector that is well."""
    if _LOOKS_IN_HOLD * settings.period_s > settings.hold_s:
        allowed = f"at most {settings.hold_s // _LOOKS_IN_HOLD}, half of hold_s"
        source.findings.mistake(source.place("cluster.period_s"), str(settings.period_s), allowed, "or raise hold_s")


def _kind_of(table: Mapping[str, Any]) -> object:
    """What the file says, whatever it is."""
    cluster = table.get("cluster")
    return cluster.get("kind", PULSAR) if isinstance(cluster, dict) else PULSAR


def _is_of_other_kind(source: TomlFile, settings: ClusterSettings) -> bool:
    """Whether only `kind` is wrong: all else would be a mistake as well."""
    own, other, kind = "admin_url", "bootstrap_servers", KAFKA
    if settings.kind == KAFKA:
        own, other, kind = other, own, PULSAR
    if getattr(settings, own) is not None or getattr(settings, other) is None:
        return False
    allowed = f'none with kind = "{settings.kind}"'
    source.findings.mistake(source.place(f"cluster.{other}"), "a value", allowed, f'write kind = "{kind}"')
    return True


def _check_address(source: TomlFile, settings: ClusterSettings) -> None:
    if settings.kind == KAFKA:
        _check_kafka(source, settings)
        return
    for key in ("bootstrap_servers", "security_protocol", "sasl_mechanism", "sasl_username", "sasl_password_file"):
        if getattr(settings, key) != getattr(_DEFAULTS, key):
            allowed, remedy = f'none with kind = "{settings.kind}"', f'write kind = "{KAFKA}", or remove it'
            source.findings.mistake(source.place(f"cluster.{key}"), "a value", allowed, remedy)
    if settings.admin_url is None:
        remedy = "write admin_url = .. under [cluster]"
        source.findings.mistake(source.place("cluster"), "no admin_url", "one", remedy)
    if settings.ca_file is not None and not str(settings.admin_url).startswith(_HTTPS):
        source.findings.mistake(source.place("cluster.ca_file"), "a file", f"one with {_HTTPS}", "change admin_url")


def _check_kafka(source: TomlFile, settings: ClusterSettings) -> None:
    """What is of Pulsar alone has no meaning here; a password goes with a name."""

    def mistake(key: str, got: str, allowed: str, remedy: str) -> None:
        source.findings.mistake(source.place(f"cluster.{key}" if key else "cluster"), got, allowed, remedy)

    if settings.bootstrap_servers is None:
        mistake("", "no bootstrap_servers", "some", "write bootstrap_servers = .. under [cluster]")
    for key in ("admin_url", "token_file", "groups"):
        if getattr(settings, key):
            mistake(key, "a value", 'none with kind = "kafka"', 'remove it, or write kind = "pulsar"')
    if settings.ca_file is not None and not settings.security_protocol.endswith(_TLS):
        mistake("ca_file", "a file", "one with SSL or SASL_SSL", "change security_protocol")
    if settings.sasl_mechanism != _DEFAULTS.sasl_mechanism and not settings.security_protocol.startswith(_SASL):
        mistake("sasl_mechanism", "a value", "none without SASL", "change sasl_mechanism or security_protocol")
    for key in ("sasl_username", "sasl_password_file"):
        has, wants = getattr(settings, key) is not None, settings.security_protocol.startswith(_SASL)
        if has != wants:
            allowed = f"one with {settings.security_protocol}" if wants else "none without SASL"
            mistake(key, "a value" if has else "none", allowed, f"change {key} or security_protocol")


def _resources(source: TomlFile, tables: Sequence[dict[str, Any]], kind: str) -> list[Resource]:
    """Every resource has a scope, a name and a quota, and none is part of another."""
    of_kind: type[ResourceSettings | ClientSettings] = ClientSettings if kind == KAFKA else ResourceSettings
    found: dict[str, Resource] = {}
    for number, table in enumerate(tables):
        key = f"resource[{number}]"
        before = len(source.findings.mistakes)
        settings = source.read(of_kind, table, f"{key}.")
        # What several keys must be together is looked at where each of them was read.
        if len(source.findings.mistakes) > before or (resource := _resource(source, key, settings)) is None:
            continue
        for other in found.values():
            got, remedy = f"{resource}, beside {other}", "remove one of them"
            if resource.overlaps(other):
                source.findings.mistake(source.place(key), got, "one resource for each topic", remedy)
            elif isinstance(resource, Client) and resource.scope != other.scope:
                allowed = "users or client ids, as a user's quota precedes those of its client ids"
                source.findings.mistake(source.place(key), got, allowed, remedy)
        found[str(resource)] = resource
    return list(found.values())


def _resource(source: TomlFile, key: str, settings: ResourceSettings | ClientSettings) -> Resource | None:
    """The resource of a table; None, with a mistake, if it has not one name."""
    if isinstance(settings, ClientSettings):
        return _client(source, key, settings)
    quotas = {rate: quota for word, rate in RATES.items() if (quota := getattr(settings, word)) is not None}
    if not quotas:
        source.findings.mistake(source.place(key), "no quota", f"one or more of {', '.join(RATES)}", "write one")
    names = {scope: name for scope in _SCOPES if (name := getattr(settings, scope))}
    if len(names) != 1:
        got = ", ".join(names) or "no name"
        source.findings.mistake(source.place(key), got, f"one of {', '.join(_SCOPES)}", "name one of them")
        return None
    ((scope, name),) = names.items()
    is_name, allowed = _SCOPES[scope]
    if not is_name(name):
        source.findings.mistake(source.place(f"{key}.{scope}"), shown(name), allowed, "correct the name")
    return Resource(scope, name, quotas)


def _client(source: TomlFile, key: str, settings: ClientSettings) -> Client | None:
    """The same for Kafka: one of user and client_id, its topics and its quota."""
    names = {scope: name for scope in ("user", "client_id") if (name := getattr(settings, scope))}
    if len(names) != 1:
        got = " and ".join(names) or "no name"
        source.findings.mistake(source.place(key), got, "one of user, client_id", "name one of them")
        return None
    for missing in ("topic_prefix", "producer_byte_rate"):
        if getattr(settings, missing) is None:
            source.findings.mistake(source.place(key), f"no {missing}", "one", f"write {missing} = ..")
    if settings.topic_prefix is None or settings.producer_byte_rate is None:
        return None
    ((scope, name),) = names.items()
    quotas = {Rate("in", "bytes"): settings.producer_byte_rate}
    return Client(scope.replace("_", " "), name, quotas, settings.topic_prefix)
