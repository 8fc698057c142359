"""Whom the gate takes in: how many clients have joined, and how many are on their way there."""

import ipaddress
from collections.abc import Hashable
from enum import StrEnum

_IPV6_HOST_BITS = 64


class Refusal(StrEnum):
    """Why a connection is not taken in, by the setting that says so."""

    CONNECTIONS = "max_connections"
    HANDSHAKES = "max_handshakes"
    HANDSHAKES_PER_ADDRESS = "max_handshakes_per_address"


class Admission:
    """At most `connections` clients have joined. Apart from these at most `handshakes` connections are on their way,
    TLS and CONNECT included, and at most `handshakes_per_address` of one source.

    So whoever has not shown CONNECT, and the token where the gate has one, takes no place of a client that has.
    A source is an IPv4 address, or the /64 of an IPv6 address: that is what one customer of a network usually has.
    """

    __slots__ = ("_arriving", "_connections", "_handshakes", "_handshakes_per_address", "_joined")

    def __init__(self, *, connections: int, handshakes: int, handshakes_per_address: int) -> None:
        self._connections = connections
        self._handshakes = handshakes
        self._handshakes_per_address = handshakes_per_address
        self._arriving: dict[Hashable, str] = {}
        self._joined: set[Hashable] = set()

    def arrive(self, connection: Hashable, address: str) -> Refusal | None:
        """A connection was accepted: None, or why it is not taken in."""
        if len(self._joined) >= self._connections:
            return Refusal.CONNECTIONS
        source = source_of(address)
        if sum(one == source for one in self._arriving.values()) >= self._handshakes_per_address:
            return Refusal.HANDSHAKES_PER_ADDRESS
        if len(self._arriving) >= self._handshakes:
            return Refusal.HANDSHAKES
        self._arriving[connection] = source
        return None

    def join(self, connection: Hashable) -> Refusal | None:
        """One on its way has shown CONNECT: None, or why it goes no further."""
        if len(self._joined) >= self._connections:
            return Refusal.CONNECTIONS
        del self._arriving[connection]
        self._joined.add(connection)
        return None

    def leave(self, connection: Hashable) -> None:
        """It has ended; said twice it is as said once."""
        self._arriving.pop(connection, None)
        self._joined.discard(connection)


def source_of(address: str) -> str:
    """What limits by address go by: an IPv4 address, also one that is written as IPv6, or the /64 of another one."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return f"{ipaddress.IPv6Address(int(ip) >> _IPV6_HOST_BITS << _IPV6_HOST_BITS)}/{_IPV6_HOST_BITS}"
