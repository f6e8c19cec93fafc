"""LM servers on this machine: Ollama on port 11434 and llama.cpp's on 8080, if they run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import urlsplit

from decisor.lms.endpoint import parse_address

LOOK_SECONDS = 0.5
MAX_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Server:
    """A local server: base URL, whether it answered as one, and the models it offers (for Ollama, newest first)."""

    name: str
    url: str
    running: bool = False
    models: tuple[str, ...] = ()


def servers(environ: Mapping[str, str]) -> Iterator[Server]:
    """Ollama, then llama.cpp. ``DECISOR_OLLAMA_PORT`` and ``DECISOR_LLAMACPP_PORT`` name other ports; 0: none."""
    yield look("Ollama", "/api/tags", "name", environ.get("DECISOR_OLLAMA_PORT", "11434"))
    yield look("llama.cpp", "/v1/models", "id", environ.get("DECISOR_LLAMACPP_PORT", "8080"))


def look(name: str, path: str, field: str, port: str) -> Server:
    """One request on the loopback interface, at most half a second."""
    url = f"http://127.0.0.1:{port}/v1"
    is_port = port.isascii() and port.isdigit() and 0 < int(port[:9]) < 2**16
    reply = get_json(f"http://127.0.0.1:{port}{path}") if is_port else None
    listed = reply.get("models" if field == "name" else "data") if isinstance(reply, Mapping) else None
    if not isinstance(listed, list):
        return Server(name, url)
    rows = [row for row in listed if isinstance(row, Mapping)]
    if field == "id" and not any(row.get("owned_by") == "llamacpp" for row in rows):
        return Server(name, url)  # port 8080 is popular: something else answers there
    names = (row.get(field) for row in rows)
    return Server(name, url, True, tuple(n for n in names if isinstance(n, str) and "embed" not in n.lower()))


def first_model(base_url: str) -> str:
    """The first model that an OpenAI-compatible endpoint lists to a caller without a key; '' where it lists none.

    Raises:
        SetupError: this is no address.
    """
    return next(iter(models_at(base_url)), "")


def models_at(base_url: str, key: str | None = None) -> tuple[str, ...]:
    """The models that an OpenAI-compatible endpoint lists; () where it lists none.

    Raises:
        SetupError: this is no address.
    """
    path = base_url.rstrip("/") if parse_address(base_url).path.strip("/") else f"{base_url.rstrip('/')}/v1"
    reply = get_json(f"{path}/models", {"Authorization": f"Bearer {key}"} if key else {})
    rows = reply.get("data") if isinstance(reply, Mapping) else None
    names = [row.get("id") for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
    return tuple(name for name in names if name and isinstance(name, str))


def get_json(url: str, headers: Mapping[str, str] = MappingProxyType({}), seconds: float = LOOK_SECONDS) -> object:
    """What a GET returns, or None where nothing sensible does. For an address that can be one."""
    import http.client

    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=seconds)
    try:
        connection.request("GET", parts.path, headers=dict(headers))
        response = connection.getresponse()
        return json.loads(response.read(MAX_BYTES)) if response.status == 200 else None
    except (OSError, http.client.HTTPException, ValueError, RecursionError):
        return None
    finally:
        connection.close()
