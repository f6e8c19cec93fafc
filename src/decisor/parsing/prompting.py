"""How an LLM is asked for a reply, and asked again after a reply that could not be used.

A reply is asked for as labelled text, as a JSON object that fits a schema, or as a call of a function. A person may
set the temperature, and reword the templates and texts of a technique's modules; the wording in use is known to a run
and to all that runs inside it, and to nothing beside it: each of several runs at once has its own. After an unusable
reply the prompt gets the complaint and a form that is filled in, and the next reply is drawn anew. Why a reply could
not be used is told to a person in words of its own; the message for the model is for the model alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar, get_args

from decisor.errors import ParseError, SetupError
from decisor.types import Message, Sampling

Way = Literal["text", "json", "tools"]
T = TypeVar("T")
Calling = Literal["text", "json", "tools", "auto"]
"""What a person sets: one way, or ``auto``, which takes what the endpoint has."""
CALLINGS: tuple[Calling, ...] = get_args(Calling)
AUTO: tuple[Way, ...] = ("json", "tools")
"""In which order ``auto`` tries the ways; then text, which any LLM takes."""


@dataclass(eq=False)
class Ways:
    """The ways of asking that an endpoint refused or ignored, each with the reason.

    One for each LLM, so it is remembered across runs.
    """

    against: dict[Way, str] = field(default_factory=dict)

    def best(self) -> Way:
        """Return the first way of ``AUTO`` that the endpoint takes, or text.

        >>> ways = Ways({"json": "it refused response_format"})
        >>> ways.best()
        'tools'
        """
        return next((way for way in AUTO if way not in self.against), "text")


def ways_of(llm: object) -> Ways | None:
    """Return the ways of an LLM that can be held to a form; None for an LLM that is asked in text only."""
    ways: Ways | None = getattr(llm, "ways", None)
    return ways


def split_calling(settings: Mapping[str, T], default: Calling) -> tuple[Calling, dict[str, T]]:
    """Split settings into ``calling``, which every technique that asks an LLM has, and the rest.

    >>> split_calling({"calling": "json", "max_steps": "9"}, "text")
    ('json', {'max_steps': '9'})

    Raises:
        SetupError: there is no such way.
    """
    name = settings.get("calling", default)
    if name not in CALLINGS:
        raise SetupError(f"calling is one of {', '.join(CALLINGS)}, not {name!r}.")
    return name, {key: value for key, value in settings.items() if key != "calling"}


WORDS: ContextVar[Mapping[str, str]] = ContextVar("words", default={})  # noqa: B039


@dataclass(frozen=True, slots=True)
class Asking:
    """Settings of a person for every LLM call of a technique. None means as the technique has it."""

    temperature: float | None = None
    top_p: float | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    """Replacement of a technique's text, by that text."""
    seed: int | None = None
    """Of an attempt among several at the same question."""

    def of(self, sampling: Sampling) -> Sampling:
        """Return ``sampling`` with the temperature and top_p of a person.

        >>> Asking(temperature=0.7).of(Sampling(n=2)).temperature
        0.7
        """
        if self.temperature is not None:
            sampling = replace(sampling, temperature=self.temperature)
        if self.seed is not None and sampling.seed is None:
            sampling = replace(sampling, seed=self.seed)
        return sampling if self.top_p is None else replace(sampling, top_p=self.top_p)


USUAL = Asking()
"""As the technique has it."""


@contextmanager
def use_wording(words: Mapping[str, str]) -> Iterator[None]:
    """Replace texts of techniques within the block, by the texts of ``words``."""
    token = WORDS.set(words)
    try:
        yield
    finally:
        WORDS.reset(token)


def apply_wording(text: str) -> str:
    """Return the replacement of a text, or the text itself without one.

    >>> with use_wording({"Decide.": "Choose."}):
    ...     apply_wording("Decide."), apply_wording("Ask.")
    ('Choose.', 'Ask.')
    """
    words = WORDS.get()
    return words.get(text, text) if words else text  # a long text is not hashed for nothing


def apply_wording_to_parts(text: str) -> str:
    """Replace every text of the wording within a text that was put together from several."""
    for old, new in WORDS.get().items():
        text = text.replace(old, new)
    return text


REASONS = {
    "both": "it held an answer and an action",
    "content_filter": "the endpoint's filter held it back",
    "control": "it held characters that no query may hold",
    "copied": "it copied the form instead of filling it in",
    "duplicate_key": "it said the same thing twice, differently",
    "empty": "it was empty",
    "limits": "it was too large",
    "missing_field": "a part of its form was missing",
    "model_refusal": "the LLM refused",
    "multiple_actions": "it held several actions",
    "no_action": "it held no action",
    "no_citation": "the answer cited no record",
    "no_evidence": "it answered before anything was known",
    "objection": "a claim of the answer did not stand on its rows",
    "not_compared": "the answer was compared with nothing",
    "refusal": "the LLM refused",
    "repeated": "the LLM made the same query three times",
    "truncated": "it was cut off",
    "unknown_source": "it cited what was never shown",
    "unknown_tool": "it named a tool that does not exist",
    "wrong_form": "its answer had not the form of one",
}


ENDINGS = {
    "repeated": "The LLM made the same query three times.",
    "unreadable": "Three replies of the LLM in a row could not be used: try a larger model.",
}
"""Reasons that end a run, as sentences."""


def explain_reason(reason: str) -> str:
    """Return the words for a person about the reason of a ParseError.

    >>> explain_reason("empty"), explain_reason("shape")
    ('it was empty', 'it did not fit the form')
    """
    return REASONS.get(reason, "it did not fit the form")


def explain_error(error: Exception) -> str:
    """Return the message of an error for a person. Complaints about a reply are for the LLM and are reworded."""
    if not isinstance(error, ParseError):
        return str(error)
    if error.reason in ENDINGS:
        return ENDINGS[error.reason]
    return f"The LLM's reply could not be used: {explain_reason(error.reason)}."


def warn_of_unread_replies(unread: int, replies: int, calling: Calling = "text") -> str:
    """Return a warning for the end of a run with many unreadable replies.

    Empty if fewer than 2, or fewer than a third, were unreadable.

    >>> warn_of_unread_replies(13, 13)
    '13 of 13 replies could not be read; try a larger model or calling=json.'
    >>> warn_of_unread_replies(1, 13)
    ''
    """
    if unread < 2 or unread * 3 < replies:
        return ""
    hint = "try a larger model or calling=json" if calling == "text" else "try a larger model"
    return f"{unread} of {replies} replies could not be read; {hint}."


HEADING = "\n\n# Your last reply could not be used"
SHOWN = 160
WARMER, WARMEST = 0.4, 1.0


def append_complaint(prompt: Sequence[Message], reply: str, complaint: ParseError, example: str) -> list[Message]:
    """Append to a prompt the complaint about the last reply, its beginning and a form filled in.

    Earlier bad replies are left out, and the beginning of the prompt stays unchanged.
    """
    parts = [HEADING, str(complaint)]
    if beginning := shorten_reply(reply):
        parts.append(f"It began: {beginning}")
    if example:
        parts.append(f"Reply again in this form, with values of your own:\n{example}")
    else:
        parts.append("Reply again, in the form asked for.")
    # Appended to the last message, so that the prefix that an endpoint has cached still fits.
    last = prompt[-1]
    return [*prompt[:-1], replace(last, content=last.content + "\n".join(parts) + "\n")]


def shorten_reply(reply: str) -> str:
    """Shorten a reply to a quotation that identifies it but is too short to copy.

    >>> shorten_reply("I would\\nlook."), len(shorten_reply("a " * 500)) < 200
    ('"I would look."', True)
    """
    plain = " ".join(reply.split())
    if not plain:
        return ""
    return f'"{plain}"' if len(plain) <= SHOWN else f'"{plain[:SHOWN].rstrip()}" [...]'


def vary_sampling(sampling: Sampling, attempt: int) -> Sampling:
    """Return the sampling for a further attempt: warmer each time and with another seed.

    At the same temperature the LLM would most likely give the same reply again. Attempt 0 is unchanged.

    >>> vary_sampling(Sampling(), 1).temperature, vary_sampling(Sampling(temperature=1.0, seed=7), 2).seed
    (0.4, 9)
    """
    if not attempt:
        return sampling
    temperature = max(sampling.temperature, min(WARMER * attempt, WARMEST))
    return replace(sampling, temperature=temperature, seed=(sampling.seed or 0) + attempt)
