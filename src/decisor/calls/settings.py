"""What holds for every call of one LM, as a person sets it."""

from __future__ import annotations

from dataclasses import dataclass

from decisor.types import LM


@dataclass(frozen=True, slots=True)
class LMSettings:
    """``timeout``: seconds for one completion with all its retries. ``context``: tokens that prompt and reply may have
    together. ``max_tokens``: of a reply. ``temperature``: of calls for which a technique names none."""

    timeout: float | None = None
    context: int | None = None
    max_tokens: int | None = None
    temperature: float | None = None


NONE = LMSettings()


def settings_of(lm: LM) -> LMSettings:
    """Of the LM, or of the one that it wraps."""
    at: object = lm
    while at is not None:
        settings = getattr(at, "settings", None)
        if isinstance(settings, LMSettings):
            return settings
        at = getattr(at, "lm", None)
    return NONE
