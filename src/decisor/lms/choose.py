"""Which LM, when the person names one, when the environment does, when a local server runs, or when nothing does.

    --lm MODEL[@BASE_URL], else DECISOR_LM
    else the endpoint of OPENAI_API_KEY or OPENAI_BASE_URL
    else ANTHROPIC_API_KEY
    else a running Ollama (port 11434) or llama.cpp server (port 8080) on this machine
    else None

A key only ever goes to the host it belongs to: OPENAI_API_KEY to OPENAI_BASE_URL (api.openai.com where that is not
set), ANTHROPIC_API_KEY to ANTHROPIC_BASE_URL (api.anthropic.com), and DECISOR_LM_KEY to the BASE_URL that is named.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from decisor.errors import Error, SetupError
from decisor.lms.anthropic import ANTHROPIC, Anthropic
from decisor.lms.local import Server, first_model, servers
from decisor.lms.openai_compatible import OPENAI, OpenAICompatible
from decisor.lms.prices import Price, parse_price
from decisor.types import LM, Message, Sampling

OPENAI_MODEL = "gpt-4.1-mini"
ANTHROPIC_MODEL = "claude-sonnet-4-5"
SPEC = re.compile(
    r"(?P<model>[^@\s].*?)(?:@(?P<url>https?://\S+|(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?(?:/\S*)?))?"
)
PROBE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Place:
    """One place an LM was looked for. ``model`` is '' and ``note`` says why where there is none; ``chosen``: used."""

    place: str
    where: str = ""
    model: str = ""
    note: str = ""
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class Probe:
    """What one small call gave: the reply, or ``error``."""

    ok: bool
    seconds: float
    text: str = ""
    error: str = ""


def lm(spec: str | None, environ: Mapping[str, str]) -> LM | None:
    """The LM to use, or None where there is none. ``spec`` "none" asks for none.

    Raises:
        SetupError: what was named cannot be used.
    """
    spec = (spec or environ.get("DECISOR_LM") or "").strip()
    if spec.lower() == "none":
        return None
    if spec:
        return named(spec, environ)
    if environ.get("OPENAI_API_KEY") or environ.get("OPENAI_BASE_URL"):
        return openai(environ)
    if environ.get("ANTHROPIC_API_KEY"):
        return anthropic(environ.get("ANTHROPIC_MODEL") or ANTHROPIC_MODEL, environ)
    running = next((server for server in servers(environ) if server.models), None)
    return None if running is None else at(running, environ)


def lm_with_price(text: str, environ: Mapping[str, str]) -> LM | None:
    """The LM of "MODEL@URL price=0.4,1.6", dollars per million prompt and completion tokens; None for none."""
    spec, _, price = text.partition(" price=")
    made: Any = lm(spec or None, environ)
    if made is not None and price:
        made.price = parse_price(price)
    found: LM | None = made
    return found


def named(spec: str, environ: Mapping[str, str]) -> LM:
    """The LM of MODEL or MODEL@BASE_URL.

    >>> named("qwen3:8b@localhost:11434", {})
    OpenAICompatible('qwen3:8b' at localhost:11434)
    """
    model, url = parse_spec(spec)
    price = price_of(environ)
    if url:
        if host(url) == host(environ.get("ANTHROPIC_BASE_URL") or ANTHROPIC):
            return anthropic(model, environ, url)
        return OpenAICompatible(model, url, key_for(url, environ), price=price)
    if model.startswith("claude") and environ.get("ANTHROPIC_API_KEY"):
        return anthropic(model, environ)
    if environ.get("OPENAI_API_KEY") or environ.get("OPENAI_BASE_URL"):
        base_url = environ.get("OPENAI_BASE_URL") or OPENAI
        return OpenAICompatible(model, base_url, key_for(base_url, environ), price=price)
    for server in servers(environ):
        if model in server.models or f"{model}:latest" in server.models:
            return OpenAICompatible(model, server.url, price=price or free(server, model))
    raise SetupError(f"There is no endpoint for the LM {model!r}. Set OPENAI_API_KEY or ANTHROPIC_API_KEY, or name its "
                     f"address: --lm {model.rstrip('@')}@http://localhost:8000/v1")  # fmt: skip


def parse_spec(spec: str) -> tuple[str, str]:
    """Model and base URL ('' where none is named).

    >>> parse_spec("org/m@v2@https://lm.example.com/v1"), parse_spec("gpt-4.1")
    (('org/m@v2', 'https://lm.example.com/v1'), ('gpt-4.1', ''))

    Raises:
        SetupError: no model is named.
    """
    parts = SPEC.fullmatch(spec)
    if parts is None or spec.startswith(("http://", "https://")):
        raise SetupError(
            f"--lm takes MODEL or MODEL@BASE_URL, such as qwen3:8b@http://localhost:11434/v1, not {spec!r}."
        )
    url = parts["url"] or ""
    return parts["model"], url if not url or "://" in url else f"http://{url}"


def openai(environ: Mapping[str, str]) -> LM:
    base_url = environ.get("OPENAI_BASE_URL") or OPENAI
    model = environ.get("OPENAI_MODEL") or (OPENAI_MODEL if host(base_url) == host(OPENAI) else first_model(base_url))
    if not model:
        raise SetupError(f"Which LM at {host(base_url)}? Name it: --lm MODEL or DECISOR_LM.")
    return OpenAICompatible(model, base_url, key_for(base_url, environ), price=price_of(environ))


def anthropic(model: str, environ: Mapping[str, str], url: str = "") -> LM:
    key = environ.get("ANTHROPIC_API_KEY")
    if not key:
        raise SetupError(f"The LM {model} needs a key: set ANTHROPIC_API_KEY.")
    return Anthropic(model, key, url or environ.get("ANTHROPIC_BASE_URL") or ANTHROPIC, price=price_of(environ))


def at(server: Server, environ: Mapping[str, str]) -> LM:
    model = server.models[0]
    return OpenAICompatible(model, server.url, price=price_of(environ) or free(server, model))


def places_of_lms(environ: Mapping[str, str], spec: str | None = None) -> tuple[Place, ...]:
    """Every place that ``lm`` looks at, in its order, with what is there; one is ``chosen`` at most. For doctor."""
    rows: list[Place] = []
    looked = (
        ("--lm or DECISOR_LM", bool((spec or environ.get("DECISOR_LM") or "").strip()), "not set"),
        ("OPENAI_API_KEY or OPENAI_BASE_URL", bool(environ.get("OPENAI_API_KEY") or environ.get("OPENAI_BASE_URL")),
         "not set"),
        ("ANTHROPIC_API_KEY", bool(environ.get("ANTHROPIC_API_KEY")), "not set"),
    )  # fmt: skip
    taken = False
    for place, there, missing in looked:
        if not there or taken:
            rows.append(Place(place, note="set, not needed" if there else missing))
            continue
        taken = True
        rows.append(_place(place, spec, environ))
    for server in servers(environ):
        model = server.models[0] if server.models else ""
        note = "" if model else "runs, but has no model" if server.running else "not running"
        rows.append(Place(server.name, host(server.url), model, note, bool(model) and not taken))
        taken = taken or bool(model)
    return tuple(rows)


def _place(place: str, spec: str | None, environ: Mapping[str, str]) -> Place:
    try:
        chosen = lm(spec, environ)
    except SetupError as error:
        return Place(place, note=str(error))
    if isinstance(chosen, OpenAICompatible | Anthropic):
        return Place(place, chosen.endpoint.where, chosen.name, chosen=True)
    return Place(place, note="no LM asked for", chosen=True)


async def probe(lm: LM, seconds: float = PROBE_SECONDS) -> Probe:
    """One small call, to see that key, name and address work. Never raises for what the endpoint does."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(seconds):
            reply = await lm.complete([Message("user", "Answer with the one word: ready")], Sampling(max_tokens=200))
    except TimeoutError:
        return Probe(False, time.monotonic() - began, error=f"No reply within {seconds:g} s.")
    except Error as error:
        return Probe(False, time.monotonic() - began, error=str(error))
    return Probe(True, time.monotonic() - began, reply.text.strip())


def key_for(url: str, environ: Mapping[str, str]) -> str | None:
    """The key that belongs to this host; None where none does."""
    if host(url) == host(environ.get("OPENAI_BASE_URL") or OPENAI):
        return environ.get("OPENAI_API_KEY") or environ.get("DECISOR_LM_KEY")
    return environ.get("DECISOR_LM_KEY")


def host(url: str) -> str:
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2].lower()


def price_of(environ: Mapping[str, str]) -> Price | None:
    text = environ.get("DECISOR_PRICE")
    return parse_price(text) if text else None


def free(server: Server, model: str) -> Price | None:
    """A model that runs on this machine costs no dollars; Ollama's cloud models do not run on it."""
    return None if "cloud" in model else Price(0.0, 0.0)
