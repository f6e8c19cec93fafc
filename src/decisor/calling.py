"""Ways in which an LM is asked for a reply: labelled text, a JSON object that fits a schema, a call of a function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar, get_args

from decisor.errors import SetupError

Way = Literal["text", "json", "tools"]
T = TypeVar("T")
Calling = Literal["text", "json", "tools", "auto"]
"""What a person sets: one way, or ``auto``, which takes what the endpoint has."""
CALLINGS: tuple[Calling, ...] = get_args(Calling)
AUTO: tuple[Way, ...] = ("json", "tools")
"""In which order ``auto`` tries the ways; then text, which any LM takes."""


@dataclass(eq=False)
class Ways:
    """Which ways an endpoint has shown not to take, with why. One for each LM, so it is remembered across runs."""

    against: dict[Way, str] = field(default_factory=dict)

    def best(self) -> Way:
        """
        >>> ways = Ways({"json": "it refused response_format"})
        >>> ways.best()
        'tools'
        """
        return next((way for way in AUTO if way not in self.against), "text")


def ways_of(lm: object) -> Ways | None:
    """Of an LM that can be held to a form; None where it is asked in text only."""
    ways: Ways | None = getattr(lm, "ways", None)
    return ways


def split_calling(settings: Mapping[str, T], default: Calling) -> tuple[Calling, dict[str, T]]:
    """The setting ``calling``, which every technique that asks an LM has, and the other settings.

    >>> split_calling({"calling": "json", "max_steps": "9"}, "text")
    ('json', {'max_steps': '9'})

    Raises:
        SetupError: there is no such way.
    """
    name = settings.get("calling", default)
    if name not in CALLINGS:
        raise SetupError(f"calling is one of {', '.join(CALLINGS)}, not {name!r}.")
    return name, {key: value for key, value in settings.items() if key != "calling"}
