"""Kafka's admin client, with what goes wrong in words."""

import logging
import ssl
from collections.abc import Callable
from threading import Lock
from typing import Any, Final, TypeVar
from weakref import finalize

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from headgate.conf.cluster import ClusterConf
from headgate.errors import ClusterError

T = TypeVar("T")
_MS: Final = 1000


class KafkaAdmin:
    """Connected at the first question, by one client for all threads, and again by itself. Raises ClusterError."""

    def __init__(self, conf: ClusterConf) -> None:
        self._conf = conf
        self._client: KafkaAdminClient | None = None
        self._lock = Lock()
        logging.getLogger("kafka").setLevel(logging.CRITICAL)  # what it says is in the errors that it raises

    def ask(self, question: Callable[[Any], T]) -> T:
        """What comes of it. question: of the admin client."""
        try:
            return question(self._connected())
        except (KafkaError, OSError, ssl.SSLError) as error:
            servers = self._conf.settings.bootstrap_servers
            raise ClusterError(f"{servers}: {type(error).__name__}: {error}{_remedy(error)}") from error

    def send(self, request: Any) -> Any:
        """The answer to a message that the client has no method for."""
        return self.ask(lambda client: client._manager.run(client._manager.send, request))

    def _connected(self) -> KafkaAdminClient:
        with self._lock:
            if self._client is None:
                settings = self._conf.settings
                timeout_ms = settings.timeout_s * _MS
                self._client = KafkaAdminClient(
                    bootstrap_servers=str(settings.bootstrap_servers).split(","),
                    client_id="headgate",
                    request_timeout_ms=timeout_ms,
                    bootstrap_timeout_ms=timeout_ms,
                    security_protocol=settings.security_protocol,
                    ssl_cafile=settings.ca_file and str(self._conf.path(settings.ca_file)),
                    sasl_mechanism=settings.sasl_mechanism if settings.sasl_username else None,
                    sasl_plain_username=settings.sasl_username,
                    sasl_plain_password=self._password(),
                )
                finalize(self, self._client.close)
            return self._client

    def _password(self) -> str | None:
        if self._conf.settings.sasl_password_file is None:
            return None
        path = self._conf.path(self._conf.settings.sasl_password_file)
        try:
            return path.read_text("utf-8").strip()
        except (OSError, ValueError) as error:
            raise ClusterError(f"{path}: got {error}; allowed: a file with the password; correct it") from error


def _remedy(error: Exception) -> str:
    name = type(error).__name__
    if "Authorization" in name:
        return "; give its user Describe and DescribeConfigs on the cluster and topics, and AlterConfigs to set quotas"
    if "Authentication" in name:
        return "; correct sasl_username, sasl_password_file or sasl_mechanism"
    return "; see that a broker listens there, and to security_protocol"
