"""The choice of the LLM to use, and tests of an LLM by small calls.

    --llm "MODEL[@BASE_URL] timeout=900 ...", else DECISOR_LLM
    else the first provider of ``providers`` that is set: OPENAI_API_KEY or OPENAI_BASE_URL, ANTHROPIC_API_KEY
    else a running Ollama (port 11434) or llama.cpp server (port 8080) on this machine
    else None

A key only ever goes to the host it belongs to: NAME_API_KEY to NAME_BASE_URL (the provider's own address where that is
not set), and DECISOR_LLM_KEY to the BASE_URL that is named.

``probe_llm`` tests whether an LLM answers; ``measure_llm`` measures its speed, its calls at once, and the settings that
it heeds.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal, cast
from urllib.parse import urlsplit

from decisor.errors import Error, LLMError, SetupError
from decisor.llms.endpoint import parse_address
from decisor.llms.endpoint_llm import EndpointLLM
from decisor.llms.facts import (
    EndpointFacts,
    LocalServer,
    endpoint_of,
    list_models_at,
    look_for_servers,
    read_endpoint_facts,
)
from decisor.llms.prices import FREE, Price, parse_price, published_price
from decisor.llms.providers import OPENAI, PROVIDERS, LLMSpec, Provider, check_spec, host_of_url, read_spec
from decisor.llms.proxies import is_loopback_address
from decisor.runtime.call import llm_settings_of
from decisor.runtime.prompt import estimate_tokens
from decisor.system.extras import find_plugins
from decisor.system.secrets import hide_password
from decisor.system.settings import read_variable
from decisor.types import LLM, Function, Message, Sampling

SPEC = re.compile(
    r"(?P<model>[^@\s].*?)(?:@(?P<url>https?://\S+|(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?(?:/\S*)?))?"
)
HOST = re.compile(r"@[\w-]+(\.[\w-]+)*\.[A-Za-z]{2,}(:\d+)?(/\S*)?$|@[\w.-]+:\d+(/\S*)?$")
"""An address without http://."""
OTHER = re.compile(r"@(?!https?://)[A-Za-z][A-Za-z+.-]*://")


MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class LLMPlace:
    """A place where an LLM was looked for."""

    place: str
    where: str = ""
    model: str = ""
    """'' if there is none there."""
    note: str = ""
    """Why there is none, or why it is not used."""
    chosen: bool = False
    """Whether its LLM is used."""


def choose_llm(
    spec: str | LLMSpec | None, environ: Mapping[str, str], providers: Sequence[Provider] = PROVIDERS
) -> EndpointLLM | None:
    """Return the LLM to use, with its settings, or None if there is none.

    ``spec`` "none" asks for none. Settings that it leaves open are as in DECISOR_LLM.

    Raises:
        SetupError: the named LLM cannot be used.
    """
    name, settings = read_name_and_spec(spec, environ)
    if name.lower() == "none":
        return None
    chosen = None
    # In the order of the file's docstring: what was named, a provider that is set, a server of this machine.
    if name:
        chosen = open_llm_by_name(name, environ, providers)
    elif provider := next((provider for provider in providers if provider.is_usual(environ)), None):
        chosen = llm_of(provider, provider.default_model(environ), environ)
    elif server := next((server for server in look_for_servers(environ) if server.models), None):
        chosen = llm_at(server, server.models[0], environ)
    if chosen is not None:
        chosen.settings = settings.settings
        chosen.price = settings.pricing or chosen.price
        if settings.timeout is not None:
            chosen.seconds = settings.timeout
    return chosen


def read_name_and_spec(spec: str | LLMSpec | None, environ: Mapping[str, str]) -> tuple[str, LLMSpec]:
    """Return MODEL[@URL], or '' for any, and the settings; raise SetupError for an unknown setting."""
    usual_name, usual = read_spec(read_variable(environ, "DECISOR_LLM") or "")
    if isinstance(spec, LLMSpec):
        check_spec(spec)
        name, own = spec.name, spec
    else:
        name, own = read_spec(spec or "")
    return (name or usual_name, own.over(usual)) if name in ("", usual_name) else (name, own)


def open_llm_by_name(spec: str, environ: Mapping[str, str], providers: Sequence[Provider] = PROVIDERS) -> EndpointLLM:
    """Return the LLM of MODEL or MODEL@BASE_URL; of @BASE_URL the only one there.

    >>> open_llm_by_name("qwen3:8b@localhost:11434", {})
    OpenAICompatible('qwen3:8b' at localhost:11434)
    """
    model, url = parse_spec(spec)
    if not model:
        model = find_only_model(url, environ)
    if added := find_added_provider(model, providers):
        url, home = url or added.address(environ), added.address(environ)
        is_theirs = host_of_url(url) == host_of_url(home)
        key = added.key(environ) if is_theirs else key_for_url(url, environ)
        return added.llm(model, url, key, price_of_model(environ, model, url))
    if url:
        price = price_of_model(environ, model, url)
        for provider in providers:
            # A key goes to its own host only, so an address of another host is no such provider's.
            if not provider.is_open and host_of_url(url) == host_of_url(provider.address(environ)):
                return provider.llm(model, url, provider.key(environ), price)
        speakers = (one for one in providers if one.is_open and one.prefix and model.startswith(one.prefix))
        return next(speakers, OPENAI).llm(model, url, key_for_url(url, environ), price)
    # Without an address the name decides: a provider whose models begin so, then any that is set, then this machine.
    theirs = [provider for provider in providers if provider.prefix and model.startswith(provider.prefix)]
    for provider in [*theirs, *(provider for provider in providers if not provider.prefix)]:
        if provider.is_set(environ) or is_loopback_url(provider.base_url):
            return llm_of(provider, model, environ)
    for server in look_for_servers(environ):
        if model in server.models or f"{model}:latest" in server.models:
            return llm_at(server, model, environ)
    if HOST.search(spec):
        raise SetupError("The address of an LLM begins with http:// or https://, as --llm MODEL@https://HOST/v1")
    keys = " or ".join(f"{provider.variables}_API_KEY" for provider in theirs or providers if theirs or provider.model)
    name = hide_password(model.rstrip("@"))
    raise SetupError(
        f"There is no endpoint for the LLM {name!r}. Set {keys}, start Ollama if it has it, "
        f"or name its address: --llm {name}@http://localhost:8000/v1"
    )


def find_added_provider(model: str, providers: Sequence[Provider]) -> Provider | None:
    """Return the provider that an installed package adds for NAME/MODEL; None if there is none, or it is ours."""
    name, slash, _ = model.partition("/")
    if not slash or any(provider.prefix == f"{name}/" for provider in providers) or name not in find_plugins("llms"):
        return None
    provider: Provider = find_plugins("llms")[name].load()
    return replace(provider, prefix=f"{name}/")


def find_only_model(url: str, environ: Mapping[str, str]) -> str:
    """Return the only model of an endpoint; raise SetupError if it lists none, or several."""
    models = list_models_at(url, key_for_url(url, environ))
    if len(models) == 1:
        return models[0]
    more = f" and {len(models) - MOST_NAMED} more" if len(models) > MOST_NAMED else ""
    listed = f"has {', '.join(models[:MOST_NAMED])}{more}: name one of them" if models else "lists no models: name one"
    raise SetupError(f"{host_of_url(url)} {listed}, as --llm MODEL@{url}")


def parse_spec(spec: str) -> tuple[str, str]:
    """Parse model and base URL; '' for a part that is not named.

    >>> parse_spec("org/m@v2@https://llm.example.com/v1"), parse_spec("gpt-4.1")
    (('org/m@v2', 'https://llm.example.com/v1'), ('gpt-4.1', ''))

    Raises:
        SetupError: no model is named, or the address is none.
    """
    # @URL alone names no model, which the pattern wants: a dash stands in for it.
    parts = SPEC.fullmatch(spec) or SPEC.fullmatch(f"-{spec}" if spec.startswith("@") else "")
    if parts is None or spec.startswith(("http://", "https://")) or OTHER.search(spec):
        raise SetupError(
            "--llm takes MODEL or MODEL@BASE_URL, such as qwen3:8b@http://localhost:11434/v1, "
            f"not {hide_password(spec)!r}."
        )
    url = parts["url"] or ""
    if url:
        url = parse_address(url if "://" in url else f"http://{url}").geturl()
    return "" if spec.startswith("@") else parts["model"], url


def list_llm_places(
    environ: Mapping[str, str], spec: str | None = None, providers: Sequence[Provider] = PROVIDERS
) -> tuple[LLMPlace, ...]:
    """List every place that ``choose_llm`` looks at, in its order, for doctor. At most one is ``chosen``."""
    named = bool(read_name_and_spec(spec, environ)[0])
    candidates = [("--llm or DECISOR_LLM", named)]
    candidates += [(" or ".join(provider.names()), provider.is_usual(environ)) for provider in providers]
    rows: list[LLMPlace] = []
    is_settled = False
    for name, is_set in candidates:
        if is_set and not is_settled:
            rows.append(_place(name, spec, environ, providers))
        else:
            rows.append(LLMPlace(name, note="set, not needed" if is_set else "not set"))
        is_settled = is_settled or is_set
    for server in look_for_servers(environ):
        model = server.models[0] if server.models else ""
        note = "" if model else "runs, but has no model" if server.running else "not running"
        rows.append(LLMPlace(server.name, host_of_url(server.url), model, note, bool(model) and not is_settled))
        is_settled = is_settled or bool(model)
    return tuple(rows)


def _place(name: str, spec: str | None, environ: Mapping[str, str], providers: Sequence[Provider]) -> LLMPlace:
    try:
        chosen = choose_llm(spec, environ, providers)
    except SetupError as error:
        return LLMPlace(name, note=str(error))
    if chosen is None:
        return LLMPlace(name, note="no LLM asked for", chosen=True)
    return LLMPlace(name, chosen.endpoint.where, chosen.name, chosen=True)


def llm_of(provider: Provider, model: str, environ: Mapping[str, str]) -> EndpointLLM:
    url = provider.address(environ)
    return provider.llm(model, url, provider.key(environ), price_of_model(environ, model, url))


def llm_at(server: LocalServer, model: str, environ: Mapping[str, str]) -> EndpointLLM:
    return OPENAI.llm(model, server.url, None, price_of_model(environ, model, server.url))


def key_for_url(url: str, environ: Mapping[str, str]) -> str | None:
    """Return the key that belongs to this host; None if none does."""
    return (
        OPENAI.key(environ)
        if host_of_url(url) == host_of_url(OPENAI.address(environ))
        else read_variable(environ, "DECISOR_LLM_KEY")
    )


def price_of_model(environ: Mapping[str, str], model: str = "", url: str = "") -> Price | None:
    """Return the price of a model:

    ``DECISOR_PRICE``, else its published price at this host. None if unknown. A model that runs on this machine costs
    no dollars; Ollama's cloud models do not run on it.
    """
    if text := environ.get("DECISOR_PRICE"):
        return parse_price(text)
    # Ollama's cloud models are called at localhost and billed elsewhere.
    at_home = is_loopback_url(url) and "cloud" not in model
    return published_price(model, host_of_url(url), environ) or (FREE if at_home else None)


def is_loopback_url(url: str) -> bool:
    """Return whether a URL leads to this machine.

    >>> is_loopback_url("http://localhost:8000/v1"), is_loopback_url("http://127.1.2.3"), is_loopback_url("https://llm.example.com")
    (True, True, False)
    """
    return is_loopback_address(urlsplit(url).hostname or "")


PROBE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Probe:
    """The result of one small call: the reply, or ``error`` and its ``kind``."""

    ok: bool
    seconds: float
    text: str = ""
    error: str = ""
    kind: str = ""


async def probe_llm(llm: LLM, seconds: float = PROBE_SECONDS) -> Probe:
    """Make one small call, to see that key, name and address work. Never raises for any behaviour of the endpoint."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(seconds):
            reply = await llm.complete([Message("user", "Answer with the one word: ready")], Sampling(max_tokens=200))
    except TimeoutError:
        return Probe(False, time.monotonic() - began, error=f"No reply within {seconds:g} s.", kind="timeout")
    except Error as error:
        return Probe(False, time.monotonic() - began, error=str(error), kind=getattr(error, "kind", ""))
    return Probe(True, time.monotonic() - began, reply.text.strip())


Heeds = Literal["yes", "ignored", "refused"]
TELL = [Message("user", "Tell a long story of a ship and the harbours that it comes to.")]
ASK = [Message("user", "Name a city. Reply with its name.")]
SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
SHORT, LONG = 8, 48
"""Tokens of the replies that are asked for."""
EACH_SECONDS = 60.0
DROPPED = {
    "seed": "seed",
    "max_tokens": "max_tokens",
    "stop": "stop",
    "n": "n",
    "logprobs": "logprobs",
    "streaming": "stream",
    "response_format": "response_format",
    "tools": "tools",
}
"""What is tried, and what it is called among what an LLM's endpoint refused."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The measured speed, limits and heeded settings of one LLM; 0 for unknown numbers."""

    probe: Probe
    speed: float = 0.0
    """Tokens a second while it writes."""
    context: int = 0
    """Tokens of prompt and reply together."""
    slots: int = 0
    """Calls at once."""
    busy: bool = False
    """Whether it has too much to do, and is to be asked later."""
    heeds: Mapping[str, Heeds] = field(default_factory=dict)
    """Whether it heeds a setting, by its name."""

    @property
    def seconds(self) -> float:
        return self.probe.seconds


async def measure_llm(llm: LLM) -> Measurement:
    """Measure an LLM by a few tiny calls. Never raises for any behaviour of the endpoint."""
    first = await probe_llm(llm)
    endpoint = endpoint_of(llm)
    facts = EndpointFacts() if endpoint is None else await asyncio.to_thread(read_endpoint_facts, endpoint, llm.name)
    context = llm_settings_of(llm).context or facts.context
    is_busy = bool(facts.slots) and facts.at_work >= facts.slots
    if not first.ok:
        return Measurement(first, context=context, slots=facts.slots, busy=is_busy or first.kind == "rate")
    began = time.monotonic()
    speed = 0.0
    with suppress(Error, TimeoutError):
        async with asyncio.timeout(EACH_SECONDS):
            story = await llm.complete(TELL, Sampling(max_tokens=LONG))
        speed = story.usage.completion_tokens / (time.monotonic() - began)
    heeds = {
        name: verdict for name, look in LOOKS.items() if (verdict := await measure_setting(llm, name, look)) is not None
    }
    return Measurement(first, speed, context, facts.slots, is_busy, heeds)


async def measure_setting(llm: LLM, name: str, look: Callable[[LLM], Awaitable[bool]]) -> Heeds | None:
    """Test whether an LLM heeds, ignores or refuses a setting; None if the call itself failed."""
    try:
        async with asyncio.timeout(EACH_SECONDS):
            seen = await look(llm)
    except LLMError as error:
        return "refused" if error.kind == "request" else None
    except (Error, TimeoutError):
        return None
    dropped: set[str] = getattr(llm, "dropped", set())
    if DROPPED[name] in dropped and not (name == "max_tokens" and seen):
        return "refused"
    return "yes" if seen else "ignored"


async def caps(llm: LLM) -> bool:
    reply = await llm.complete(TELL, Sampling(max_tokens=SHORT))
    return reply.usage.completion_tokens <= SHORT


async def stops_at_words(llm: LLM) -> bool:
    """Return whether the endpoint stops at stop words.

    Our side cuts at them too, so the count of tokens shows who stopped.
    """
    # A story without an "e" in its first words is hardly possible, so an endpoint that heeds the stop ends at once.
    reply = await llm.complete(TELL, Sampling(stop=("e",), max_tokens=LONG))
    return reply.usage.completion_tokens <= estimate_tokens(reply.text) + SHORT


async def repeats(llm: LLM) -> bool:
    ask = Sampling(temperature=1.0, seed=7, max_tokens=LONG // 2)
    return (await llm.complete(TELL, ask)).text == (await llm.complete(TELL, ask)).text


async def gives_several(llm: LLM) -> bool:
    return len((await llm.complete(TELL, Sampling(temperature=1.0, n=2, max_tokens=SHORT))).texts) == 2


async def gives_logprobs(llm: LLM) -> bool:
    return bool((await llm.complete(TELL, Sampling(logprobs=2, max_tokens=SHORT))).logprobs)


async def streams(llm: LLM) -> bool:
    stream = getattr(llm, "stream", None)
    texts: list[str] = []
    if stream is not None:
        await stream(TELL, Sampling(max_tokens=LONG), texts.append)
    return len(set(texts)) > 2


async def fits_schema(llm: LLM) -> bool:
    reply = await llm.complete(ASK, Sampling(schema=SCHEMA, max_tokens=2 * LONG))
    return isinstance(parse_json_mapping(reply.text).get("city"), str)


async def calls_tools(llm: LLM) -> bool:
    function = Function("answer", "Give the city.", SCHEMA)
    reply = await llm.complete(ASK, Sampling(functions=(function,), max_tokens=2 * LONG))
    return parse_json_mapping(reply.text).get("name") == "answer"


def parse_json_mapping(text: str) -> Mapping[str, object]:
    with suppress(ValueError, RecursionError):
        if isinstance(value := json.loads(text), dict):
            return cast(Mapping[str, object], value)
    return {}


LOOKS: Mapping[str, Callable[[LLM], Awaitable[bool]]] = {
    "max_tokens": caps,
    "stop": stops_at_words,
    "seed": repeats,
    "n": gives_several,
    "logprobs": gives_logprobs,
    "streaming": streams,
    "response_format": fits_schema,
    "tools": calls_tools,
}
