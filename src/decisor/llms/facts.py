"""The facts that LLM servers report about themselves: models, context length, and calls at once.

llama.cpp's server, vLLM, LM Studio, Ollama, OpenRouter and others tell these at addresses of their own. Each is read
once, quickly; an endpoint that does not answer tells nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from urllib.parse import urlsplit, urlunsplit

from decisor.llms.endpoint import Endpoint, parse_address, reveal_text
from decisor.runtime.call import ContextLength
from decisor.system.tasks import map_concurrently
from decisor.types import LLM

LOOK_SECONDS, READ_SECONDS = 0.5, 3.0
MAX_BYTES = 2**20
CONTEXTS = ("max_model_len", "loaded_context_length", "context_length", "context_window", "max_context_length")
SILENT = ("api.openai.com", "api.anthropic.com")
"""Hosts that do not tell."""


def get_json(url: str, headers: Mapping[str, str] = MappingProxyType({}), seconds: float = LOOK_SECONDS) -> object:
    """Get a URL and parse its JSON; None if nothing sensible comes. The URL must be well formed."""
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


def list_rows(reply: object, key: str) -> list[Mapping[str, object]] | None:
    """Return the objects in the list under a key of a reply; None if there is no such list."""
    listed = reply.get(key) if isinstance(reply, Mapping) else None
    return [row for row in listed if isinstance(row, Mapping)] if isinstance(listed, list) else None


@dataclass(frozen=True, slots=True)
class LocalServer:
    """An LLM server of this machine."""

    name: str
    url: str
    """Its base URL."""
    running: bool = False
    """Whether it answered as such a server."""
    models: tuple[str, ...] = ()
    """Of Ollama the newest first."""


def look_for_servers(environ: Mapping[str, str]) -> Iterator[LocalServer]:
    """Look for Ollama, then for llama.cpp, on this machine.

    ``DECISOR_OLLAMA_PORT`` and ``DECISOR_LLAMACPP_PORT`` name other ports; 0 means none.
    """
    yield look_for_server("Ollama", "/api/tags", "name", environ.get("DECISOR_OLLAMA_PORT", "11434"))
    yield look_for_server("llama.cpp", "/v1/models", "id", environ.get("DECISOR_LLAMACPP_PORT", "8080"))


def look_for_server(name: str, path: str, field: str, port: str) -> LocalServer:
    """Ask a port of the loopback interface whether it is an LLM server, for at most half a second."""
    url = f"http://127.0.0.1:{port}/v1"
    is_port = port.isascii() and port.isdigit() and 0 < int(port[:9]) < 2**16
    reply = get_json(f"http://127.0.0.1:{port}{path}") if is_port else None
    rows = list_rows(reply, "models" if field == "name" else "data")
    # Port 8080 is popular: what answers there may be anything.
    if rows is None or (field == "id" and not any(row.get("owned_by") == "llamacpp" for row in rows)):
        return LocalServer(name, url)
    names = (row.get(field) for row in rows)
    return LocalServer(name, url, True, tuple(n for n in names if isinstance(n, str) and "embed" not in n.lower()))


def list_models_at(base_url: str, key: str | None = None) -> tuple[str, ...]:
    """Return the models that an OpenAI-compatible endpoint lists; () if it lists none.

    Raises:
        SetupError: this is no address.
    """
    base_url = base_url.rstrip("/").removesuffix("/responses")
    path = base_url if parse_address(base_url).path.strip("/") else f"{base_url}/v1"
    reply = get_json(f"{path}/models", {"Authorization": f"Bearer {key}"} if key else {})
    names = [row.get("id") for row in list_rows(reply, "data") or ()]
    return tuple(name for name in names if name and isinstance(name, str))


@dataclass(frozen=True, slots=True)
class EndpointFacts:
    """The facts that an endpoint tells about itself; 0 and '' for unknown ones."""

    context: int = 0
    """Tokens that prompt and reply may have together."""
    slots: int = 0
    """Calls at once."""
    at_work: int = 0
    """Slots that are taken."""
    server: str = ""
    """Software that runs there."""


def read_endpoint_facts(endpoint: Endpoint, model: str) -> EndpointFacts:
    """Read the facts of an endpoint and of a model there. Never raises for any state of the endpoint."""
    parts = urlsplit(endpoint.url)
    # http.client knows no proxy, and these hosts tell nothing.
    if endpoint.proxy is not None or parts.hostname in SILENT:
        return EndpointFacts()
    headers = {name: reveal_text(value) for name, value in endpoint.headers.items()}
    path = parts.path.removesuffix("/chat/completions").removesuffix("/messages")
    base = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
    root = base.removesuffix("/v1")
    # One list first: an endpoint that has none is asked nothing more.
    listed = get_json(f"{base}/models", headers, READ_SECONDS)
    if listed is None:
        return EndpointFacts()
    rows = list_rows(listed, "data") or []
    # A server of one model may list it by its path instead of the name that it is called by.
    mine = next((row for row in rows if row.get("id") == model), rows[0] if len(rows) == 1 else {})
    facts = EndpointFacts(first_number_field(mine, *CONTEXTS), server=str(mine.get("owned_by") or ""))
    if facts.server == "llamacpp":
        return read_llamacpp_facts(first_number_field(mine.get("meta"), "n_ctx"), root, headers)
    if facts.server == "library" or (not facts.context and parts.scheme != "https"):
        for path, key, server in (("/api/ps", "models", "Ollama"), ("/api/v0/models", "data", "LM Studio")):
            for row in list_rows(get_json(f"{root}{path}", headers, READ_SECONDS), key) or ():
                if model in (row.get("name"), row.get("model"), row.get("id")):
                    return replace(facts, context=first_number_field(row, *CONTEXTS), server=server)
    return facts


def read_llamacpp_facts(context: int, root: str, headers: Mapping[str, str]) -> EndpointFacts:
    """Read the context of a slot and the number of slots of a llama.cpp server. ``context``: of the model."""
    props = get_json(f"{root}/props", headers, READ_SECONDS)
    if not isinstance(props, Mapping):
        return EndpointFacts(context, server="llamacpp")
    slots = get_json(f"{root}/slots", headers, READ_SECONDS)
    rows = [row for row in slots if isinstance(row, Mapping)] if isinstance(slots, list) else []
    settings = props.get("default_generation_settings")
    return EndpointFacts(
        context=first_number_field(settings, "n_ctx") or first_number_field(props, "n_ctx") or context,
        slots=first_number_field(props, "total_slots") or len(rows),
        at_work=sum(row.get("is_processing") is True for row in rows),
        server="llamacpp",
    )


def first_number_field(row: object, *names: str) -> int:
    """Return the first of these fields that is a positive count; 0 without one."""
    values = [row.get(name) for name in names] if isinstance(row, Mapping) else []
    return next((value for value in values if type(value) is int and 0 < value < 2**31), 0)


KNOWN: dict[tuple[str, str], ContextLength] = {}
"""By address and model, for the process."""


def context_length_at(endpoint: Endpoint, model: str) -> ContextLength:
    """Return the context length of this model there, which is looked for when first needed."""
    return KNOWN.setdefault((endpoint.url, model), ContextLength(lambda: read_endpoint_facts(endpoint, model).context))


def endpoint_of(llm: LLM) -> Endpoint | None:
    endpoint = getattr(llm, "endpoint", None)
    return endpoint if isinstance(endpoint, Endpoint) else None


async def find_slots(llms: Sequence[LLM]) -> dict[str, int]:
    """Ask each endpoint how many calls it takes at once; return place -> slots, 0 if unknown."""
    endpoints = {endpoint.where: (endpoint, llm.name) for llm in llms if (endpoint := endpoint_of(llm)) is not None}

    async def look(place: str) -> int:
        return (await asyncio.to_thread(read_endpoint_facts, *endpoints[place])).slots

    return dict(zip(endpoints, await map_concurrently(look, endpoints), strict=True))
