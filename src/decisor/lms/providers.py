"""Every provider of LMs: a line here, and the file that it names.

A provider's class is called with ``model``, ``base_url``, ``key`` and ``price`` by name; its LMs have an ``endpoint``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast
from urllib.parse import urlsplit

from decisor.calls.settings import LMSettings
from decisor.errors import SetupError
from decisor.lms.endpoint import Endpoint
from decisor.lms.local import first_model
from decisor.lms.prices import Price
from decisor.types import LM


class EndpointLM(LM, Protocol):
    """An LM behind one endpoint."""

    price: Price | None
    seconds: float
    settings: LMSettings

    @property
    def endpoint(self) -> Endpoint: ...


class LMClass(Protocol):
    def __call__(self, model: str, *, base_url: str, key: str | None, price: Price | None) -> EndpointLM: ...


@dataclass(frozen=True, slots=True)
class Provider:
    """``variables``: how NAME_API_KEY, NAME_BASE_URL and NAME_MODEL begin. ``prefix``: of models that are this
    provider's; '' takes any, and one that ends with a slash is no part of their names. ``is_open``: others speak its
    API too, some without a key, so a base URL alone will do, and elsewhere than at ``base_url`` the model is the first
    that is listed there."""

    variables: str
    lm_class: str
    base_url: str
    model: str
    prefix: str = ""
    is_open: bool = False

    def names(self) -> tuple[str, ...]:
        """The variables of which one must be set for the provider to be used."""
        key = f"{self.variables}_API_KEY"
        return (key, f"{self.variables}_BASE_URL") if self.is_open else (key,)

    def is_set(self, environ: Mapping[str, str]) -> bool:
        return any(environ.get(name) for name in self.names())

    def is_usual(self, environ: Mapping[str, str]) -> bool:
        """Whether it is used where no model is named: a model of its is known then."""
        return bool(self.model or environ.get(f"{self.variables}_MODEL")) and self.is_set(environ)

    def name_of(self, model: str) -> str:
        """
        >>> Provider("A", "m:a", "", "", "a/").name_of("a/b/c")
        'b/c'
        """
        return model.removeprefix(self.prefix) if self.prefix.endswith("/") else model

    def address(self, environ: Mapping[str, str]) -> str:
        return environ.get(f"{self.variables}_BASE_URL") or self.base_url

    def key(self, environ: Mapping[str, str]) -> str | None:
        """The one that goes to ``address``."""
        key = environ.get(f"{self.variables}_API_KEY")
        return key or (environ.get("DECISOR_LM_KEY") if self.is_open else None)

    def default_model(self, environ: Mapping[str, str]) -> str:
        """Raises SetupError where there is none."""
        url = self.address(environ)
        elsewhere = self.is_open and host(url) != host(self.base_url)
        model = environ.get(f"{self.variables}_MODEL") or (first_model(url) if elsewhere else self.model)
        if not model:
            raise SetupError(f"Which LM at {host(url)}? Name it: --lm MODEL or DECISOR_LM.")
        return model

    def lm(self, model: str, url: str, key: str | None, price: Price | None) -> EndpointLM:
        """Raises SetupError where it needs a key, or cannot be reached so."""
        if not key and not self.is_open:
            raise SetupError(f"The LM {model} needs a key: set {self.variables}_API_KEY.")
        if not url:
            raise SetupError(f"The LM {model} needs an address: set {self.variables}_BASE_URL.")
        module, _, name = self.lm_class.partition(":")
        lm_class = cast(LMClass, getattr(import_module(module), name))
        return lm_class(self.name_of(model), base_url=url, key=key, price=price)


OPENAI = Provider("OPENAI", "decisor.lms.openai_compatible:OpenAICompatible", "https://api.openai.com/v1",
                  "gpt-4.1-mini", is_open=True)  # fmt: skip
PROVIDERS = (
    OPENAI,
    Provider(
        "ANTHROPIC", "decisor.lms.anthropic:Anthropic", "https://api.anthropic.com", "claude-sonnet-4-5", "claude"
    ),
    Provider("OPENROUTER", "decisor.lms.openai_compatible:OpenAICompatible", "https://openrouter.ai/api/v1", "",
             "openrouter/"),
    Provider("VLLM", "decisor.lms.adapters:vllm", "http://localhost:8000/v1", "", "vllm/", is_open=True),
    Provider("OLLAMA", "decisor.lms.adapters:ollama", "http://localhost:11434/v1", "", "ollama/", is_open=True),
)  # fmt: skip


def host(url: str) -> str:
    """With its port; '' where this is no address."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2].lower()
    except ValueError:
        return ""
