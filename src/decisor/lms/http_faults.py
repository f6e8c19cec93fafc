"""From a fault of the connection to an LMError: is it worth another try, and what can the person do?

A reply that aiohttp cannot parse is to it a status 400 of its own making: here it is a broken reply, worth another try.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field

import aiohttp

from decisor.errors import LMError
from decisor.lms.proxies import Proxy
from decisor.lms.retry import Again
from decisor.types import Usage

PASSING_OF_PROXY = {408, 429, 500, 502, 503, 504}


@dataclass(frozen=True, slots=True)
class Target:
    """``where``: the place, as people are told it. ``max_bytes``: of a body, as it is sent and unpacked.
    ``connections``: at once; 0: half of the files that this process may have open."""

    url: str
    where: str
    headers: Mapping[str, str] = field(repr=False)
    proxy: Proxy | None
    max_bytes: int
    connect_seconds: float
    connections: int


def fault_of_transport(error: Exception, target: Target, cost: Usage) -> LMError:
    """``cost``: of a request that may have been worked on."""
    where = target.where
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return Again(f"{where} cannot be reached (no connection within {target.connect_seconds:g} s).",
                     "connection")  # fmt: skip
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return unsafe(where, error.certificate_error)
    if isinstance(error, aiohttp.ClientConnectorError):
        at_proxy = isinstance(error, aiohttp.ClientProxyConnectionError)
        return unreachable(where, error.os_error, target.proxy if at_proxy else None)
    if isinstance(error, aiohttp.InvalidURL | UnicodeError):
        return LMError(f"{where} is no address that can be reached.", "connection", True)
    if isinstance(error, aiohttp.ClientResponseError):
        return Again(f"{where} broke off: what it sent is no HTTP reply.", "connection", used=cost)
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return Again(f"{where} broke off: no reply came.", "connection", used=cost)
    if isinstance(error, aiohttp.ClientPayloadError):
        return Again(f"{where} broke off: its reply is not whole.", "connection", used=cost)
    return Again(f"{where} broke off ({type(error).__name__}).", "connection", used=cost)


def refusal_of_proxy(status: int, words: str, proxy: Proxy, where: str) -> LMError:
    complaint = f"{where} is not reached: the proxy {proxy.place} answered {status}{f' {words}' if words else ''}."
    if status in PASSING_OF_PROXY:
        return Again(complaint, "connection")
    advice = " It wants a user: http://USER:PASSWORD@HOST:PORT." if status in (401, 407) else ""
    return LMError(f"{complaint}{advice} Correct the proxy of the environment, or name the host in NO_PROXY.",
                   "connection", True)  # fmt: skip


def unreachable(where: str, error: Exception, proxy: Proxy | None) -> LMError:
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return Again(f"{where} cannot be reached (it ended the connection before it was safe).", "connection")
    if isinstance(error, ssl.SSLError):
        return unsafe(where, error)
    number = error.errno if isinstance(error, OSError) else None
    reason = os.strerror(number) if number and number > 0 else getattr(error, "strerror", None)
    through = f"the proxy {proxy.place}: " if proxy else ""
    return Again(f"{where} cannot be reached ({through}{reason or 'no connection'}).", "connection",
                 nobody=isinstance(error, ConnectionRefusedError | socket.gaierror))  # fmt: skip


def unsafe(where: str, error: Exception) -> LMError:
    """TLS does not vouch for the other side."""
    reason = getattr(error, "verify_message", "") or getattr(error, "reason", "") or type(error).__name__
    return LMError(f"{where}: no safe connection ({reason}).", "connection", True)
