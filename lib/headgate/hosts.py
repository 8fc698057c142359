"""Hosts that services listen on, who comes there, and how many files may be open."""

import asyncio
import ipaddress
import resource
import socket
from collections.abc import Callable
from typing import Any, NoReturn

from headgate.errors import EndpointError

ACCEPTS_A_TURN = 32
BREATH_S = 0.1
_BACKLOG = 4096


def is_loopback(host: str) -> bool:
    """Whether no other machine can reach what listens there. Raises EndpointError for a host that is not known."""
    return all(ipaddress.ip_address(address[0]).is_loopback for _, address in addresses(host, 0))


def addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, tuple[Any, ...]]]:
    """Families and addresses of a host. Raises EndpointError for one that is not known."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise EndpointError(
            f"--host: {host} is no address of this machine: {why}; allowed: an address, such as 127.0.0.1, or a name "
            "that has one; correct it"
        ) from error
    return [(family, address) for family, _, _, _, address in found]


def listening(
    host: str,
    port: int,
    option: str = "--host and --port",
    buffer_bytes: int | None = None,
    *,
    is_ipv6_alone: bool = False,
) -> socket.socket:
    """A socket that listens there, on any free port where `port` is 0, and does not block.
    Raises EndpointError if none can.

    option: where the place was given. buffer_bytes: what the system keeps for a client in each direction.
    is_ipv6_alone: an address of IPv6 takes no clients of IPv4 in; otherwise :: does, unless the system forbids it.
    """
    family, address = addresses(host, port)[0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if buffer_bytes is not None:
            for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):
                listener.setsockopt(socket.SOL_SOCKET, buffer, buffer_bytes)
        if is_ipv6_alone and family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise EndpointError(
            f"{option}: nothing can listen on {host} port {port}: {error.strerror or error}; allowed is an address "
            "of this machine with a port that is free: give another one, or end what uses it"
        ) from error
    return listener


def allow_files(wanted: int) -> int:
    """See to it that so many files and sockets can be open, or as many as the system allows. How many can be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and allowed > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed


async def take_in(listener: socket.socket, came: Callable[[socket.socket, str], None]) -> NoReturn:
    """Call `came` with each client and its address, until this is cancelled: ACCEPTS_A_TURN of them before those that
    are there have their turn, and none for BREATH_S while no descriptor is left. The listener does not block.
    """
    while True:
        try:
            for _ in range(ACCEPTS_A_TURN):
                client, address = await asyncio.get_running_loop().sock_accept(listener)
                came(client, address[0])
            await asyncio.sleep(0)
        except OSError:  # no descriptor is left, or the client has gone again
            await asyncio.sleep(BREATH_S)
