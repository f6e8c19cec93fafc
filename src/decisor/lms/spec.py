"""Everything that is set for one LM, in one place: a text or an object."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

from decisor.calls.settings import LMSettings
from decisor.errors import SetupError
from decisor.lms.prices import Price, parse_price
from decisor.secrets import redact, without_password
from decisor.settings import build

SETTING = re.compile(r"[a-z_]+=\S*")
WITH_ADDRESS = re.compile(
    r"(?:(?!://)[^@\s])+@(?:https?://|(?:localhost|127\.0\.0\.1|\[::1\])(?![^\s:/]))[^@\s]*(?: [a-z_]+=[^@\s]*)*"
)
"""MODEL@URL with settings, and without a user in its address: no endpoint takes one."""


@dataclass(frozen=True, slots=True)
class LMSpec:
    """Which LM, and how it is called; the same as ``"MODEL@URL timeout=900 context=8192 max_tokens=800"``.

    ``model`` and ``url``: '' for what the environment says, or for the only model there. ``timeout``: seconds for one
    completion with all its retries. ``context``: tokens that a prompt and its reply may have together; else as the
    endpoint says it. ``max_tokens``: of a reply. ``temperature``: of calls for which a technique names none.
    ``price``: dollars per million tokens of prompt and reply, and of what was read from a cache.
    """

    model: str = ""
    url: str = ""
    timeout: float | None = None
    context: int | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    price: str | None = None

    @property
    def name(self) -> str:
        """MODEL or MODEL@URL."""
        return f"{self.model}@{self.url}" if self.url else self.model

    @property
    def settings(self) -> LMSettings:
        return LMSettings(self.timeout, self.context, self.max_tokens, self.temperature)

    @property
    def pricing(self) -> Price | None:
        """Raises SetupError where it is not two or three amounts."""
        return parse_price(self.price) if self.price else None

    def over(self, other: LMSpec) -> LMSpec:
        """With the settings of another for what this does not set; the LM is this one's where it names one."""
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        left = {name: getattr(other, name) for name, value in own.items() if value in (None, "")}
        if self.model or self.url:
            left |= {"model": self.model, "url": self.url}
        return LMSpec(**{**own, **left})


def lm_without_password(text: str) -> str:
    """An LM as a person named it, fit to be shown and kept: the tag of a model is no password.

    >>> lm_without_password("qwen3:8b@localhost:11434"), lm_without_password("mysql://me:secret@localhost:3306/shop")
    ('qwen3:8b@localhost:11434', 'mysql://me:[hidden]@localhost:3306/shop')
    """
    return redact(text) if WITH_ADDRESS.fullmatch(text) else without_password(text)


def read_spec(text: str) -> tuple[str, LMSpec]:
    """MODEL[@URL], and the settings after it.

    >>> read_spec("m@http://localhost:8000/v1 timeout=900 price=0.4,1.6")[1].timeout
    900.0

    Raises:
        SetupError: there is no such setting, or a value does not fit it.
    """
    words = text.split()
    at = len(words)
    while at and SETTING.fullmatch(words[at - 1]) and "@" not in words[at - 1].partition("=")[0]:
        at -= 1
    name, pairs = " ".join(words[:at]), [word.partition("=") for word in words[at:]]
    if not pairs:
        return name, LMSpec()
    settings = {key: value for key, _, value in pairs}
    if wrong := [key for key in ("model", "url") if key in settings]:
        raise SetupError(f"An LM is written MODEL@URL, so without {wrong[0]}=: {without_password(text)!r}.")
    spec: LMSpec = build(LMSpec, "An LM", settings)
    check(spec)
    return name, spec


def check(spec: LMSpec) -> None:
    """Raises SetupError where a setting can be none of an LM's."""
    for name in ("timeout", "context", "max_tokens"):
        if (value := getattr(spec, name)) is not None and value <= 0:
            raise SetupError(f"{name} of an LM is above 0, not {value:g}.")
    if spec.temperature is not None and not 0 <= spec.temperature <= 2:
        raise SetupError(f"temperature of an LM is from 0 to 2, not {spec.temperature:g}.")
    _ = spec.pricing
