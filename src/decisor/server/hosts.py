"""Which names the server answers to: a page of somebody else, under a name that leads here, gets nothing."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

LOCAL = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True)
class Hosts:
    """``names``: with their port. ``proxied``: names that a proxy answers to, with any port, also over https.
    ``numbers``: any address in numbers is ours, with this port; 0 for none: nobody can have a name of that form."""

    names: frozenset[str]
    proxied: frozenset[str] = frozenset()
    numbers: int = 0

    def is_ours(self, host: str) -> bool:
        host = host.lower()
        name, _, port = host.rpartition(":")
        if host in self.names or host in self.proxied or (port.isdecimal() and name in self.proxied):
            return True
        return bool(self.numbers) and port == str(self.numbers) and is_address(name)

    def is_same(self, origin: str, host: str) -> bool:
        """Whether a page of ``origin`` is one of ours."""
        parts = urlsplit(origin)
        plain = f"{parts.scheme}://{parts.netloc}"
        if origin != plain or parts.netloc.lower() != host.lower():
            return False
        name = host.lower().rpartition(":")[0] or host.lower()
        is_proxied = host.lower() in self.proxied or name in self.proxied
        return parts.scheme == "http" or (parts.scheme == "https" and is_proxied)


def is_address(name: str) -> bool:
    """
    >>> is_address("192.168.1.7"), is_address("[fe80::1]"), is_address("2130706433"), is_address("evil.example")
    (True, True, False, False)
    """
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host.strip("[]")).is_loopback)


def hosts_of(host: str, port: int, others: Sequence[str] = ()) -> Hosts:
    """Of a server that listens on ``host``. ``others``: names that a person allows beside its own."""
    proxied = frozenset(name.lower() for name in others)
    local = frozenset(f"{name}:{port}" for name in LOCAL)
    if is_loopback(host):
        return Hosts(local, proxied)
    own = {f"{name.lower()}:{port}" for name in (host, socket.gethostname(), socket.getfqdn())}
    return Hosts(local | own, proxied, numbers=port)
