"""Which LM, when the person names one, when the environment does, when a local server runs, or when nothing does.

    --lm "MODEL[@BASE_URL] timeout=900 ...", else DECISOR_LM
    else the first provider of ``providers`` that is set: OPENAI_API_KEY or OPENAI_BASE_URL, ANTHROPIC_API_KEY
    else a running Ollama (port 11434) or llama.cpp server (port 8080) on this machine
    else None

A key only ever goes to the host it belongs to: NAME_API_KEY to NAME_BASE_URL (the provider's own address where that is
not set), and DECISOR_LM_KEY to the BASE_URL that is named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from decisor.errors import SetupError
from decisor.lms.endpoint import parse_address
from decisor.lms.local import Server, models_at, servers
from decisor.lms.price_table import published_price
from decisor.lms.prices import FREE, Price, parse_price
from decisor.lms.providers import OPENAI, PROVIDERS, EndpointLM, Provider, host
from decisor.lms.spec import LMSpec, check, read_spec
from decisor.secrets import without_password

SPEC = re.compile(
    r"(?P<model>[^@\s].*?)(?:@(?P<url>https?://\S+|(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?(?:/\S*)?))?"
)
HOST = re.compile(r"@[\w-]+(\.[\w-]+)*\.[A-Za-z]{2,}(:\d+)?(/\S*)?$|@[\w.-]+:\d+(/\S*)?$")
"""An address without http://."""
OTHER = re.compile(r"@(?!https?://)[A-Za-z][A-Za-z+.-]*://")


MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class Place:
    """One place an LM was looked for. ``model`` is '' and ``note`` says why where there is none; ``chosen``: used."""

    place: str
    where: str = ""
    model: str = ""
    note: str = ""
    chosen: bool = False


def lm(
    spec: str | LMSpec | None, environ: Mapping[str, str], providers: Sequence[Provider] = PROVIDERS
) -> EndpointLM | None:
    """The LM to use, with what is set for it, or None where there is none. ``spec`` "none" asks for none. What it does
    not say is as in DECISOR_LM.

    Raises:
        SetupError: what was named cannot be used.
    """
    name, settings = spec_and_name(spec, environ)
    chosen = None if name.lower() == "none" else lm_named(name, environ, providers)
    if chosen is not None:
        chosen.settings = settings.settings
        chosen.price = settings.pricing or chosen.price
        if settings.timeout is not None:
            chosen.seconds = settings.timeout
    return chosen


def spec_and_name(spec: str | LMSpec | None, environ: Mapping[str, str]) -> tuple[str, LMSpec]:
    """MODEL[@URL], '' for any, and the settings. Raises SetupError where there is no such setting."""
    usual_name, usual = read_spec(environ.get("DECISOR_LM") or "")
    if isinstance(spec, LMSpec):
        check(spec)
        name, own = spec.name, spec
    else:
        name, own = read_spec(spec or "")
    return (name or usual_name, own.over(usual)) if name in ("", usual_name) else (name, own)


def lm_named(name: str, environ: Mapping[str, str], providers: Sequence[Provider]) -> EndpointLM | None:
    """The LM of MODEL[@URL]; of '' the first that is there. Raises SetupError where what was named cannot be used."""
    if name:
        return lm_by_name(name, environ, providers)
    if provider := next((one for one in providers if one.is_usual(environ)), None):
        return lm_of(provider, provider.default_model(environ), environ)
    running = next((server for server in servers(environ) if server.models), None)
    return None if running is None else lm_at(running, running.models[0], environ)


def lm_by_name(spec: str, environ: Mapping[str, str], providers: Sequence[Provider] = PROVIDERS) -> EndpointLM:
    """The LM of MODEL or MODEL@BASE_URL; of @BASE_URL the only one there.

    >>> lm_by_name("qwen3:8b@localhost:11434", {})
    OpenAICompatible('qwen3:8b' at localhost:11434)
    """
    model, url = parse_spec(spec)
    if not model:
        model = only_model(url, environ)
    if url:
        at_home = (one for one in providers if not one.is_open and host(url) == host(one.address(environ)))
        if provider := next(at_home, None):
            return provider.lm(model, url, provider.key(environ), price_of(environ, model, url))
        own_api = (one for one in providers if one.is_open and one.prefix and model.startswith(one.prefix))
        provider = next(own_api, OPENAI)
        return provider.lm(model, url, key_for(url, environ), price_of(environ, model, url))
    theirs = [one for one in providers if one.prefix and model.startswith(one.prefix)]
    anyones = [one for one in providers if not one.prefix]
    if provider := next((one for one in [*theirs, *anyones] if one.is_set(environ) or is_loopback(one.base_url)), None):
        return lm_of(provider, model, environ)
    for server in servers(environ):
        if model in server.models or f"{model}:latest" in server.models:
            return lm_at(server, model, environ)
    if HOST.search(spec):
        raise SetupError("The address of an LM begins with http:// or https://, as --lm MODEL@https://HOST/v1")
    keys = " or ".join(f"{one.variables}_API_KEY" for one in theirs or providers if theirs or one.model)
    name = without_password(model.rstrip("@"))
    raise SetupError(f"There is no endpoint for the LM {name!r}. Set {keys}, start Ollama if it has it, "
                     f"or name its address: --lm {name}@http://localhost:8000/v1")  # fmt: skip


def only_model(url: str, environ: Mapping[str, str]) -> str:
    """Raises SetupError where an endpoint lists none, or several."""
    models = models_at(url, key_for(url, environ))
    if len(models) == 1:
        return models[0]
    more = f" and {len(models) - MOST_NAMED} more" if len(models) > MOST_NAMED else ""
    some = ", ".join(models[:MOST_NAMED]) + more
    there = f"has {some}: name one of them" if models else "lists no models: name one"
    raise SetupError(f"{host(url)} {there}, as --lm MODEL@{url}")


def parse_spec(spec: str) -> tuple[str, str]:
    """Model and base URL ('' where none is named).

    >>> parse_spec("org/m@v2@https://lm.example.com/v1"), parse_spec("gpt-4.1")
    (('org/m@v2', 'https://lm.example.com/v1'), ('gpt-4.1', ''))

    Raises:
        SetupError: no model is named, or the address is none.
    """
    parts = SPEC.fullmatch(spec) or SPEC.fullmatch(f"-{spec}" if spec.startswith("@") else "")
    if parts is None or spec.startswith(("http://", "https://")) or OTHER.search(spec):
        raise SetupError(
            "--lm takes MODEL or MODEL@BASE_URL, such as qwen3:8b@http://localhost:11434/v1, "
            f"not {without_password(spec)!r}."
        )
    url = parts["url"] or ""
    if url:
        url = parse_address(url if "://" in url else f"http://{url}").geturl()
    return "" if spec.startswith("@") else parts["model"], url


def places_of_lms(
    environ: Mapping[str, str], spec: str | None = None, providers: Sequence[Provider] = PROVIDERS
) -> tuple[Place, ...]:
    """Every place that ``lm`` looks at, in its order, with what is there; one is ``chosen`` at most. For doctor."""
    named = bool(spec_and_name(spec, environ)[0])
    candidates = [("--lm or DECISOR_LM", named)]
    candidates += [(" or ".join(provider.names()), provider.is_usual(environ)) for provider in providers]
    rows: list[Place] = []
    is_settled = False
    for name, is_set in candidates:
        if is_set and not is_settled:
            rows.append(_place(name, spec, environ, providers))
        else:
            rows.append(Place(name, note="set, not needed" if is_set else "not set"))
        is_settled = is_settled or is_set
    for server in servers(environ):
        model = server.models[0] if server.models else ""
        note = "" if model else "runs, but has no model" if server.running else "not running"
        rows.append(Place(server.name, host(server.url), model, note, bool(model) and not is_settled))
        is_settled = is_settled or bool(model)
    return tuple(rows)


def _place(name: str, spec: str | None, environ: Mapping[str, str], providers: Sequence[Provider]) -> Place:
    try:
        chosen = lm(spec, environ, providers)
    except SetupError as error:
        return Place(name, note=str(error))
    if chosen is None:
        return Place(name, note="no LM asked for", chosen=True)
    return Place(name, chosen.endpoint.where, chosen.name, chosen=True)


def lm_of(provider: Provider, model: str, environ: Mapping[str, str]) -> EndpointLM:
    url = provider.address(environ)
    return provider.lm(model, url, provider.key(environ), price_of(environ, model, url))


def lm_at(server: Server, model: str, environ: Mapping[str, str]) -> EndpointLM:
    return OPENAI.lm(model, server.url, None, price_of(environ, model, server.url))


def key_for(url: str, environ: Mapping[str, str]) -> str | None:
    """The key that belongs to this host; None where none does."""
    return OPENAI.key(environ) if host(url) == host(OPENAI.address(environ)) else environ.get("DECISOR_LM_KEY")


def price_of(environ: Mapping[str, str], model: str = "", url: str = "") -> Price | None:
    """``DECISOR_PRICE``, else the published price of the model at this host; None where there is none. A model that
    runs on this machine costs no dollars; Ollama's cloud models do not run on it."""
    if text := environ.get("DECISOR_PRICE"):
        return parse_price(text)
    at_home = is_loopback(url) and "cloud" not in model
    return published_price(model, host(url), environ) or (FREE if at_home else None)


def is_loopback(url: str) -> bool:
    """
    >>> is_loopback("http://localhost:8000/v1"), is_loopback("http://127.1.2.3"), is_loopback("https://lm.example.com")
    (True, True, False)
    """
    name = urlsplit(url).hostname or ""
    return name in ("localhost", "::1") or (name.startswith("127.") and name.replace(".", "").isdigit())
