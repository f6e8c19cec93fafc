"""What an endpoint tells of itself: its models, how long a context they have, how many calls it takes at once.

llama.cpp's server, vLLM, LM Studio, Ollama, OpenRouter and others say it at addresses of their own; each is read once,
quickly, and what does not answer tells nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit, urlunsplit

from decisor.calls.context import ContextLength
from decisor.lms.endpoint import Endpoint, plain
from decisor.lms.local import get_json

CONTEXTS = ("max_model_len", "loaded_context_length", "context_length", "context_window", "max_context_length")
SECONDS = 3.0
SILENT = ("api.openai.com", "api.anthropic.com")
"""Hosts that do not tell."""


@dataclass(frozen=True, slots=True)
class Facts:
    """0 and '' for what is not known. ``models``: by name; ``slots``: calls at once, of which ``at_work`` are
    taken; ``server``: what runs there."""

    models: tuple[str, ...] = ()
    context: int = 0
    slots: int = 0
    at_work: int = 0
    server: str = ""


def facts_of(url: str, model: str, headers: Mapping[str, str]) -> Facts:
    """Of the endpoint whose chat completions are at ``url``. Never raises for what is there."""
    parts = urlsplit(url)
    if parts.hostname in SILENT:
        return Facts()
    path = parts.path.removesuffix("/chat/completions").removesuffix("/messages")
    base = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
    root = base.removesuffix("/v1")
    listed = get_json(f"{base}/models", headers, SECONDS)
    if listed is None:
        return Facts()
    rows = list(rows_of(listed, "data"))
    names = tuple(str(row["id"]) for row in rows if isinstance(row.get("id"), str))
    mine = next((row for row in rows if row.get("id") == model), rows[0] if len(rows) == 1 else {})
    facts = Facts(names, number_of(mine, *CONTEXTS), server=str(mine.get("owned_by") or ""))
    if facts.server == "llamacpp":
        return with_props(replace(facts, context=number_of(mine.get("meta"), "n_ctx")), root, headers)
    if facts.server == "library" or (not facts.context and parts.scheme != "https"):
        return with_local_server(facts, root, model, headers)
    return facts


def with_props(facts: Facts, root: str, headers: Mapping[str, str]) -> Facts:
    """llama.cpp: the context of a slot, and how many there are."""
    props = get_json(f"{root}/props", headers, SECONDS)
    if not isinstance(props, Mapping):
        return facts
    context = number_of(props.get("default_generation_settings"), "n_ctx") or number_of(props, "n_ctx")
    listed = get_json(f"{root}/slots", headers, SECONDS)
    rows = [row for row in listed if isinstance(row, Mapping)] if isinstance(listed, list) else []
    at_work = sum(row.get("is_processing") is True for row in rows)
    return replace(
        facts, context=context or facts.context, slots=number_of(props, "total_slots") or len(rows), at_work=at_work
    )


def with_local_server(facts: Facts, root: str, model: str, headers: Mapping[str, str]) -> Facts:
    """Ollama (the models that are loaded) or LM Studio."""
    for path, key, server in (("/api/ps", "models", "Ollama"), ("/api/v0/models", "data", "LM Studio")):
        for row in rows_of(get_json(f"{root}{path}", headers, SECONDS), key):
            if model in (row.get("name"), row.get("model"), row.get("id")):
                return replace(facts, context=number_of(row, *CONTEXTS), server=server)
    return facts


def rows_of(reply: object, key: str) -> Iterator[Mapping[str, object]]:
    listed = reply.get(key) if isinstance(reply, Mapping) else None
    for row in listed if isinstance(listed, list) else ():
        if isinstance(row, Mapping):
            yield row


def number_of(row: object, *names: str) -> int:
    """The first of these fields that is a count."""
    values = [row.get(name) for name in names] if isinstance(row, Mapping) else []
    return next((value for value in values if type(value) is int and 0 < value < 2**31), 0)


KNOWN: dict[tuple[str, str], ContextLength] = {}
"""By address and model, for the process."""


def context_at(endpoint: Endpoint, model: str) -> ContextLength:
    """The one of this model there; it is looked for when it is first needed."""
    return KNOWN.setdefault((endpoint.url, model), ContextLength(lambda: facts_at(endpoint, model).context))


def facts_at(endpoint: Endpoint, model: str) -> Facts:
    """Nothing where it is only reached through a proxy."""
    if endpoint.proxy is not None:
        return Facts()
    return facts_of(endpoint.url, model, {name: plain(value) for name, value in endpoint.headers.items()})
