"""Kafka's admin client, with what goes wrong in words."""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Lock
from typing import Any, Final, TypeVar
from weakref import finalize

from kafka.admin import KafkaAdminClient
from kafka.errors import (
    BrokerResponseError,
    KafkaConnectionError,
    KafkaError,
    NodeNotReadyError,
    RequestTimedOutError,
    SaslAuthenticationFailedError,
    UnknownError,
    for_code,
)
from kafka.protocol.metadata import MetadataRequest

from headgate.conf.cluster import ClusterConf
from headgate.errors import ClusterError

T = TypeVar("T")
_REFUSED: Final = 403
"""The status of an answer that says no, in the words of HTTP."""
_MS: Final = 1000
_AT_ONCE: Final = 64
"""Requests to a broker; the client refuses others, and does not let them wait."""
_FAILURES: Final = (KafkaError, OSError, RuntimeError, ValueError, LookupError, AttributeError)
"""The last ones are of a client whose connection broke off in the middle of an answer, or that cannot read it."""


class KafkaAdmin:
    """Connected at the first question, by one client for all threads; anew after a client broke or was refused.

    Raises ClusterError, whose status is None where there was no answer.
    """

    def __init__(self, conf: ClusterConf, where: str | None = None) -> None:
        """where: what is asked, in errors; None: the bootstrap servers."""
        self._conf, self._where = conf, where or conf.settings.bootstrap_servers
        self._client: KafkaAdminClient | None = None
        self._close: Callable[[], object] = int
        self._lock = Lock()
        logging.getLogger("kafka").setLevel(logging.CRITICAL)  # what it says is in the errors that it raises

    def ask(self, question: Callable[[Any], T]) -> T:
        """What comes of it. question: of the admin client."""
        client = None
        try:
            client = self._connected()
            return question(client)
        except _FAILURES as error:
            is_answer = isinstance(error, BrokerResponseError) and not isinstance(error, SaslAuthenticationFailedError)
            if client is not None and not is_answer and not isinstance(error, NodeNotReadyError):
                self._drop(client)  # of a broker that was away it keeps what it knew, also of a login that failed
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> ClusterError:
        what = "".join(f": {one}" for one in error.args[:1] if one)
        is_refused = isinstance(error, BrokerResponseError) and not error.retriable and type(error) is not UnknownError
        words = f"{self._where}: {type(error).__name__}{what}{self._remedy(error)}"
        return ClusterError(words, _REFUSED if is_refused else None)

    def send(self, request: Any, node: int | None) -> Any:
        """The answer to a message that the client has no method for. node: the broker to ask; None: any.

        Raises ClusterError as well for one that says an error, or an entry of which does.
        """
        return self.ask(lambda client: _checked(sent(client, request, node)))

    def nodes(self) -> Mapping[str, int]:
        """The brokers that are there: their ids by HOST:PORT, as clients reach them."""
        return {f"{one['host']}:{one['port']}": one["node_id"] for one in self._cluster()["brokers"]}

    def cluster_id(self) -> str:
        """The same from whichever broker."""
        return str(self._cluster()["cluster_id"])

    def _cluster(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.send(MetadataRequest(topics=[]), None).to_dict()
        return found

    def _connected(self) -> KafkaAdminClient:
        with self._lock:
            if self._client is None:
                client = _opened(self._conf, self._password())
                self._client, self._close = client, finalize(self, client.close)
            return self._client

    def _drop(self, client: KafkaAdminClient) -> None:
        with self._lock:
            if self._client is client:
                with suppress(*_FAILURES):
                    self._close()
                self._client = None

    def _remedy(self, error: Exception) -> str:
        name = type(error).__name__
        if "Authorization" in name:
            return (
                "; give its user Describe and DescribeConfigs on the cluster and topics, and AlterConfigs to set quotas"
            )
        if "Authentication" in name:
            return "; correct sasl_username, sasl_password_file or sasl_mechanism"
        if name == "IncompatibleBrokerVersion":
            return "; headgate needs Kafka 2.6 or later"
        if "TimedOut" in name:
            return "; see whether the broker, and the controller, are well"
        login = ", sasl_mechanism, sasl_username and its password" if self._conf.settings.sasl_username else ""
        return f"; see that a broker listens there, and to security_protocol{login}"

    def _password(self) -> str | None:
        if self._conf.settings.sasl_password_file is None:
            return None
        path = self._conf.path(self._conf.settings.sasl_password_file)
        try:
            return path.read_text("utf-8").strip()
        except (OSError, ValueError) as error:
            raise ClusterError(f"{path}: got {error}; allowed: a file with the password; correct it") from error


def sent(client: Any, request: Any, node: int | None) -> Any:
    """The answer to a message. node: the broker to ask; None: any, or the next one where that has gone."""
    if node is not None:
        return client._manager.run(client._manager.send, request, node)
    gone: KafkaError | None = None
    for broker in client._manager.cluster.brokers():
        try:
            return sent(client, request, broker.node_id)
        except (KafkaConnectionError, NodeNotReadyError, RequestTimedOutError) as error:
            gone = error
    raise gone or KafkaConnectionError("it names no broker")


def _checked(answer: Any) -> Any:
    for one in (answer, *(getattr(answer, "entries", None) or ())):
        if code := getattr(one, "error_code", 0):
            raise for_code(code)(getattr(one, "error_message", None) or "")
    return answer


def _opened(conf: ClusterConf, password: str | None) -> KafkaAdminClient:
    """By the first server that answers. The client itself asks only one of several, any, if that is off."""
    *others, last = servers = conf.settings.servers
    for server in others:
        with suppress(KafkaError):
            return _opened_by(server, conf, password, conf.settings.timeout_s * _MS // len(servers))
    return _opened_by(last, conf, password, conf.settings.timeout_s * _MS)


def _opened_by(server: str, conf: ClusterConf, password: str | None, bootstrap_ms: int) -> KafkaAdminClient:
    settings = conf.settings
    timeout_ms = settings.timeout_s * _MS
    client = KafkaAdminClient.__new__(KafkaAdminClient)
    try:
        client.__init__(
            bootstrap_servers=[server],
            client_id="headgate",
            request_timeout_ms=timeout_ms,
            bootstrap_timeout_ms=bootstrap_ms,
            max_in_flight_requests_per_connection=_AT_ONCE,
            security_protocol=settings.security_protocol,
            ssl_cafile=settings.ca_file and str(conf.path(settings.ca_file)),
            sasl_mechanism=settings.sasl_mechanism if settings.sasl_username else None,
            sasl_plain_username=settings.sasl_username,
            sasl_plain_password=password,
        )
    except BaseException:
        client._closed = False  # its thread runs already, and nothing else would end it
        with suppress(Exception):
            client.close()
        raise
    client._manager.config["socket_connection_setup_timeout_ms"] = timeout_ms  # it takes no such setting
    return client
