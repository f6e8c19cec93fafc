"""How a person has an LM asked beside what a technique says: at which temperature, and in which words.

The words are templates and texts of a technique's modules. Those in use are known to a run and to all that runs inside
it, and to nothing beside it: each of several runs at once has its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from decisor.types import Sampling

WORDS: ContextVar[Mapping[str, str]] = ContextVar("words", default={})  # noqa: B039


@dataclass(frozen=True, slots=True)
class Asking:
    """``temperature`` and ``top_p`` of every call, as the technique has them where None. ``words``: what stands in the
    place of a text of the technique, by that text."""

    temperature: float | None = None
    top_p: float | None = None
    words: Mapping[str, str] = field(default_factory=dict)

    def of(self, sampling: Sampling) -> Sampling:
        """
        >>> Asking(temperature=0.7).of(Sampling(n=2)).temperature
        0.7
        """
        if self.temperature is not None:
            sampling = replace(sampling, temperature=self.temperature)
        return sampling if self.top_p is None else replace(sampling, top_p=self.top_p)


USUAL = Asking()
"""As the technique has it."""


@contextmanager
def in_words(words: Mapping[str, str]) -> Iterator[None]:
    """Within it ``worded`` says these."""
    token = WORDS.set(words)
    try:
        yield
    finally:
        WORDS.reset(token)


def worded(text: str) -> str:
    """What stands in the place of a text, the text itself where nothing does.

    >>> with in_words({"Decide.": "Choose."}):
    ...     worded("Decide."), worded("Ask.")
    ('Choose.', 'Ask.')
    """
    words = WORDS.get()
    return words.get(text, text) if words else text  # a long text is not hashed for nothing


def parts_worded(text: str) -> str:
    """The same for a text that was put together from several."""
    for old, new in WORDS.get().items():
        text = text.replace(old, new)
    return text
