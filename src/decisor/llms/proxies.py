"""The proxy that the environment names for a host: HTTPS_PROXY or HTTP_PROXY, else ALL_PROXY; none by NO_PROXY."""

from __future__ import annotations

from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from urllib.parse import SplitResult, unquote, urlsplit

from decisor.errors import SetupError
from decisor.system.secrets import Secret, redact

PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Proxy:
    """A proxy of the environment."""

    url: str
    """Without the user."""
    place: str
    user: Secret | None = None
    """Value of its Proxy-Authorization header; None if its address has no user."""

    def headers(self) -> dict[str, str]:
        return {"Proxy-Authorization": self.user.reveal()} if self.user else {}


def find_proxy(target: SplitResult) -> Proxy | None:
    """Find the proxy for an address; None without one. This machine itself is never reached through a proxy.

    Raises:
        SetupError: it is of a kind that cannot be used.
    """
    from urllib.request import getproxies, proxy_bypass

    proxies, host = getproxies(), target.hostname or ""
    if is_loopback_address(host) or proxy_bypass(target.netloc) or is_in_networks(host, proxies.get("no", "")):
        return None
    address = proxies.get(target.scheme) or proxies.get("all")
    return parse_proxy(address, host) if address else None


def parse_proxy(address: str, host: str) -> Proxy:
    """Parse the address of a proxy.

    >>> parse_proxy("proxy.example.com:3128", "llm.example.com")
    Proxy(url='http://proxy.example.com:3128', place='proxy.example.com:3128', user=None)

    Raises:
        SetupError: it is no address of an HTTP proxy.
    """
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        port = parts.port or PORTS.get(parts.scheme, 0)
    except ValueError:
        parts, port = urlsplit(""), 0
    if parts.scheme not in PORTS or not parts.hostname or not port:
        raise SetupError(
            f"The proxy {redact(drop_user(address))!r} of the environment is no http:// or https:// "
            f"proxy with a port. Correct it, or name {host} in NO_PROXY."
        )
    place = f"[{parts.hostname}]:{port}" if ":" in parts.hostname else f"{parts.hostname}:{port}"
    if parts.username is None:
        return Proxy(f"{parts.scheme}://{place}", place)
    user = b64encode(f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()).decode()
    return Proxy(f"{parts.scheme}://{place}", place, Secret(f"Basic {user}"))


def is_in_networks(host: str, no_proxy: str) -> bool:
    """Return whether NO_PROXY names a network that an address is in. Python does not look for these.

    >>> is_in_networks("10.1.2.3", "example.com, 10.0.0.0/8"), is_in_networks("10.1.2.3", "10.1.2.4")
    (True, False)
    """
    for name in no_proxy.split(","):
        with suppress(ValueError):
            if ip_address(host) in ip_network(name.strip(), strict=False):
                return True
    return False


def is_loopback_address(host: str) -> bool:
    """Return whether a host is this machine.

    >>> is_loopback_address("localhost"), is_loopback_address("127.0.0.1"), is_loopback_address("localhost.example.com")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def drop_user(address: str) -> str:
    """Drop the user and password of an address.

    >>> drop_user("socks5://me:word@127.0.0.1:1080")
    'socks5://127.0.0.1:1080'
    """
    scheme, there, rest = address.rpartition("://")
    return f"{scheme}{there}{rest.rpartition('@')[2]}"
