"""Where the gate listens, whom it lets in, and what a client may take of it."""
# ruff: noqa: RUF009  the calls in the class declare its fields

import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from headgate.core.settings_keys import Setting, integer
from headgate.errors import ConfError
from headgate.hosts import is_loopback

MAX_TOKEN_BYTES = 4096


def _path(key: str) -> Any:
    def read(value: object) -> object:
        if not isinstance(value, str | Path) or not str(value):
            raise ValueError(value)
        return Path(value)

    return field(default=None, metadata={"setting": Setting(key, "the path of a file", read, "none")})


def _host(key: str, default: str) -> Any:
    def read(value: object) -> object:
        if not isinstance(value, str) or not value.strip():
            raise ValueError(value)
        return value

    return field(default=default, metadata={"setting": Setting(key, "an address or a name", read, default)})


@dataclass(frozen=True, slots=True)
class GateSettings:
    """What `of` accepts is complete: TLS and a token are there wherever another machine can reach the gate.

    port: 0 is any that is free. max_frame_bytes: the largest total size of a frame. handshake_timeout_ms: from when a
    connection is made until its CONNECT is there, TLS included. idle_timeout_ms: without a whole frame; a PING is sent
    at half of it. max_connections, max_handshakes, max_handshakes_per_address: see Admission. write_buffer_bytes: what
    may wait for a client that does not read.
    """

    host: str = _host("--host", "127.0.0.1")
    port: int = integer("--port", 6653, 0, 65_535)
    tls_cert: Path | None = _path("--tls-cert")
    tls_key: Path | None = _path("--tls-key")
    token_file: Path | None = _path("--token-file")
    max_frame_bytes: int = integer("--max-frame-bytes", 16_384, 256, 5_253_120)
    handshake_timeout_ms: int = integer("--handshake-timeout-ms", 3_000, 1, 600_000)
    idle_timeout_ms: int = integer("--idle-timeout-ms", 60_000, 2, 86_400_000)
    max_connections: int = integer("--max-connections", 2_000, 1, 100_000)
    max_handshakes: int = integer("--max-handshakes", 250, 1, 100_000)
    max_handshakes_per_address: int = integer("--max-handshakes-per-address", 50, 1, 100_000)
    write_buffer_bytes: int = integer("--write-buffer-bytes", 65_536, 256, 2**24)

    @classmethod
    def of(cls, values: Mapping[str, object]) -> Self:
        """Settings from values by option; None is the default.

        Raises ConfError with every value that is not allowed, and for what a gate that others can reach lacks;
        EndpointError for a host that is no address.
        """
        given = {key: value for key, value in values.items() if value is not None}
        settings = {one.metadata["setting"].key: (one.name, one.metadata["setting"]) for one in fields(cls)}
        read, mistakes = {}, []
        for key, value in given.items():
            name, setting = settings[key]
            try:
                read[name] = setting.read(value)
            except ValueError:
                mistakes.append(str(setting.mistake(value)))
        if not mistakes:
            made = cls(**read)
            mistakes += made._missing()
        if mistakes:
            raise ConfError(mistakes)
        return made

    def _missing(self) -> Iterator[str]:
        if (self.tls_cert is None) != (self.tls_key is None):
            yield "--tls-cert and --tls-key: got one of them; allowed: both or none; give the other one, too"
        if not is_loopback(self.host):
            lacking = {"--tls-cert and --tls-key": self.tls_cert, "--token-file": self.token_file}
            for option, path in lacking.items():
                if path is None:
                    yield (
                        f"{option}: got none with --host {self.host}, which other machines can reach; allowed without "
                        "are loopback addresses, such as 127.0.0.1; give it, or another --host"
                    )

    def token(self) -> bytes | None:
        """What clients have to show; None: nothing. Raises ConfError for a file that has no token or cannot be read."""
        if self.token_file is None:
            return None
        try:
            token = self.token_file.read_bytes().strip()
        except OSError as error:
            raise ConfError(
                [f"--token-file: {self.token_file} cannot be read: {error.strerror}; correct it"]
            ) from error
        if not 0 < len(token) <= MAX_TOKEN_BYTES:
            got = f"--token-file: {self.token_file} has a token of {len(token)} bytes"
            raise ConfError([f"{got}; allowed: 1 to {MAX_TOKEN_BYTES}; write one into it"])
        return token

    def tls(self) -> ssl.SSLContext | None:
        """How bytes are hidden; None: they are not. Raises ConfError for files that are no certificate and key."""
        if self.tls_cert is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self.tls_cert, self.tls_key)
        except (ssl.SSLError, OSError) as error:
            why = getattr(error, "reason", None) or error.strerror or str(error)
            got = f"--tls-cert and --tls-key: {self.tls_cert} and {self.tls_key} cannot be used: {why}"
            allowed = "a certificate and its key without a passphrase, both PEM"
            raise ConfError([f"{got}; allowed: {allowed}; correct them"]) from error
        return context
