"""The providers of LLMs, and the settings of one LLM.

A provider is a line of ``PROVIDERS``, with its class by name. The class is called with ``model``, ``base_url``,
``key`` and ``price`` by name; its LLMs have an ``endpoint``. ``LLMSpec`` holds everything that is set for one LLM, as a
text or an object.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from importlib import import_module
from typing import Protocol, cast
from urllib.parse import urlsplit

from decisor.errors import SetupError
from decisor.llms.endpoint_llm import EndpointLLM
from decisor.llms.facts import list_models_at
from decisor.llms.prices import Price, parse_price
from decisor.runtime.call import LLMSettings
from decisor.system.secrets import hide_password, redact
from decisor.system.settings import build_from_settings, read_variable

SETTING = re.compile(r"[a-z_]+=\S*")
WITH_ADDRESS = re.compile(
    r"(?:(?!://)[^@\s])+@(?:https?://|(?:localhost|127\.0\.0\.1|\[::1\])(?![^\s:/]))[^@\s]*(?: [a-z_]+=[^@\s]*)*"
)
"""MODEL@URL with settings, and without a user in its address: no endpoint takes one."""


@dataclass(frozen=True, slots=True)
class LLMSpec:
    """An LLM with its settings; the same as ``"MODEL@URL timeout=900 context=8192 max_tokens=800"``.

    None means as the environment, the endpoint or a technique has it.
    """

    model: str = ""
    """'' means the one of the environment, or the only one at ``url``."""
    url: str = ""
    timeout: float | None = None
    """Seconds for one completion with all its retries."""
    context: int | None = None
    """Tokens that a prompt and its reply may have together."""
    max_tokens: int | None = None
    """Of a reply."""
    temperature: float | None = None
    """Of calls for which a technique names none."""
    price: str | None = None
    """Dollars per million tokens of prompt, of reply, and of what was read from a cache: ``0.4,1.6,0.1``."""

    @property
    def name(self) -> str:
        """MODEL or MODEL@URL."""
        return f"{self.model}@{self.url}" if self.url else self.model

    @property
    def settings(self) -> LLMSettings:
        return LLMSettings(self.timeout, self.context, self.max_tokens, self.temperature)

    @property
    def pricing(self) -> Price | None:
        """The price, or None. Raises SetupError if it is not two or three amounts."""
        return parse_price(self.price) if self.price else None

    def over(self, other: LLMSpec) -> LLMSpec:
        """Return this spec with its gaps filled from another. The LLM is this one's if it names one."""
        gaps = [field.name for field in fields(self) if getattr(self, field.name) in (None, "")]
        filled = replace(self, **{name: getattr(other, name) for name in gaps})
        # Never a model of one spec at the address of another.
        return replace(filled, model=self.model, url=self.url) if self.model or self.url else filled


def hide_llm_password(text: str) -> str:
    """Hide the password of an LLM's name, so that it can be shown and kept. The tag of a model is no password.

    >>> hide_llm_password("qwen3:8b@localhost:11434"), hide_llm_password("mysql://me:secret@localhost:3306/shop")
    ('qwen3:8b@localhost:11434', 'mysql://me:[hidden]@localhost:3306/shop')
    """
    return redact(text) if WITH_ADDRESS.fullmatch(text) else hide_password(text)


def read_spec(text: str) -> tuple[str, LLMSpec]:
    """Read MODEL[@URL], and the settings after it.

    >>> read_spec("m@http://localhost:8000/v1 timeout=900 price=0.4,1.6")[1].timeout
    900.0

    Raises:
        SetupError: there is no such setting, or a value does not fit it.
    """
    words = text.split()
    at = len(words)
    # From the end: names of models may hold blanks, settings none.
    while at and SETTING.fullmatch(words[at - 1]) and "@" not in words[at - 1].partition("=")[0]:
        at -= 1
    name, pairs = " ".join(words[:at]), [word.partition("=") for word in words[at:]]
    if not pairs:
        return name, LLMSpec()
    settings = {key: value for key, _, value in pairs}
    if wrong := [key for key in ("model", "url") if key in settings]:
        raise SetupError(f"An LLM is written MODEL@URL, so without {wrong[0]}=: {hide_password(text)!r}.")
    spec: LLMSpec = build_from_settings(LLMSpec, "An LLM", settings)
    check_spec(spec)
    return name, spec


def check_spec(spec: LLMSpec) -> None:
    """Check the settings of an LLM; raise SetupError for an impossible value."""
    for name in ("timeout", "context", "max_tokens"):
        if (value := getattr(spec, name)) is not None and value <= 0:
            raise SetupError(f"{name} of an LLM is above 0, not {value:g}.")
    if spec.temperature is not None and not 0 <= spec.temperature <= 2:
        raise SetupError(f"temperature of an LLM is from 0 to 2, not {spec.temperature:g}.")
    _ = spec.pricing


class LLMClass(Protocol):
    def __call__(self, model: str, *, base_url: str, key: str | None, price: Price | None) -> EndpointLLM: ...


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider of LLMs and the environment variables that set it up."""

    variables: str
    """The beginning of NAME_API_KEY, NAME_BASE_URL and NAME_MODEL."""
    llm_class: str
    """``module:class``."""
    base_url: str
    model: str
    """The usual one; '' for none."""
    prefix: str = ""
    """Of models that are this provider's; '' takes any. One that ends with a slash is no part of their names."""
    is_open: bool = False
    """Others speak its API too, some without a key: a base URL alone will do, and elsewhere than at ``base_url`` the
    model is the first that is listed there."""

    def names(self) -> tuple[str, ...]:
        """Return the variables of which one must be set for the provider to be used."""
        key = f"{self.variables}_API_KEY"
        return (key, f"{self.variables}_BASE_URL") if self.is_open else (key,)

    def is_set(self, environ: Mapping[str, str]) -> bool:
        return any(environ.get(name) for name in self.names())

    def is_usual(self, environ: Mapping[str, str]) -> bool:
        """Return whether the provider is used if no model is named: it is set and a model is known."""
        return bool(self.model or environ.get(f"{self.variables}_MODEL")) and self.is_set(environ)

    def name_of(self, model: str) -> str:
        """Return the name of a model without a prefix that ends with a slash.

        >>> Provider("A", "m:a", "", "", "a/").name_of("a/b/c")
        'b/c'
        """
        return model.removeprefix(self.prefix) if self.prefix.endswith("/") else model

    def address(self, environ: Mapping[str, str]) -> str:
        return environ.get(f"{self.variables}_BASE_URL") or self.base_url

    def key(self, environ: Mapping[str, str]) -> str | None:
        """Return the key that goes to ``address``; None without one."""
        # DECISOR_LLM_KEY is for endpoints that speak OpenAI's API, never for a provider of its own.
        key = environ.get(f"{self.variables}_API_KEY")
        return key or (read_variable(environ, "DECISOR_LLM_KEY") if self.is_open else None)

    def default_model(self, environ: Mapping[str, str]) -> str:
        """Return the model to use if none is named; raise SetupError if there is none."""
        url = self.address(environ)
        elsewhere = self.is_open and host_of_url(url) != host_of_url(self.base_url)
        model = environ.get(f"{self.variables}_MODEL") or (
            next(iter(list_models_at(url)), "") if elsewhere else self.model
        )
        if not model:
            raise SetupError(f"Which LLM at {host_of_url(url)}? Name it: --llm MODEL or DECISOR_LLM.")
        return model

    def llm(self, model: str, url: str, key: str | None, price: Price | None) -> EndpointLLM:
        """Open an LLM; raise SetupError if it needs a key or an address."""
        if not key and not self.is_open:
            raise SetupError(f"The LLM {model} needs a key: set {self.variables}_API_KEY.")
        if not url:
            raise SetupError(f"The LLM {model} needs an address: set {self.variables}_BASE_URL.")
        is_responses = url.rstrip("/").endswith("/responses")
        module, _, name = (RESPONSES if is_responses else self.llm_class).partition(":")
        llm_class = cast(LLMClass, getattr(import_module(module), name))
        return llm_class(self.name_of(model), base_url=url, key=key, price=price)


RESPONSES = "decisor.llms.openai_compatible:responses"
"""For an address that ends in /responses, whoever speaks that API there."""
OPENAI = Provider(
    "OPENAI",
    "decisor.llms.openai_compatible:OpenAICompatible",
    "https://api.openai.com/v1",
    "gpt-4.1-mini",
    is_open=True,
)
PROVIDERS = (
    OPENAI,
    Provider(
        "ANTHROPIC", "decisor.llms.anthropic:Anthropic", "https://api.anthropic.com", "claude-sonnet-4-5", "claude"
    ),
    Provider(
        "OPENROUTER",
        "decisor.llms.openai_compatible:OpenAICompatible",
        "https://openrouter.ai/api/v1",
        "",
        "openrouter/",
    ),
    Provider(
        "VLLM", "decisor.llms.openai_compatible:OpenAICompatible", "http://localhost:8000/v1", "", "vllm/", is_open=True
    ),
    Provider(
        "OLLAMA", "decisor.llms.openai_compatible:ollama", "http://localhost:11434/v1", "", "ollama/", is_open=True
    ),
)


def host_of_url(url: str) -> str:
    """Return the host of a URL with its port; '' if it is no address."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2].lower()
    except ValueError:
        return ""
