"""A prompt that knows its records, and the estimate of its tokens before an endpoint has counted it.

Techniques write prompts from templates. Text about records is a ``PromptText``, which carries its records along
through ``+``, ``join_texts`` and ``PromptTemplate``; any other operation makes it a plain text, which loses nothing if
the prompt is too long.

An estimate goes by characters: a letter is a quarter of a token, a digit one, a mark nearly one; beside ASCII by its
script, as the tokenizers that know it least take it (those of small models spell such letters out in bytes). Counts
that come with the replies of an LLM correct the estimates of its later prompts.
"""

from __future__ import annotations

import math
import string
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType

from decisor.parsing.cleaning import OPEN_THINK
from decisor.parsing.prompting import apply_wording
from decisor.system.serialization import json_text
from decisor.types import Completion, Function, Message

NOTICE = "({count} left out here, because the prompt would be too long.)"


@dataclass(frozen=True, slots=True)
class PromptSection:
    """A record within a prompt: its id and its line. The records of one observation keep their order."""

    id: str
    line: str
    ranked: bool = False
    """A retriever put it at its place: the last is worth the least. Otherwise the oldest is."""


class PromptText(str):
    """A text with the records that it contains, in their order."""

    sections: tuple[PromptSection, ...]

    def __new__(cls, text: str, sections: Iterable[PromptSection] = ()) -> PromptText:
        made_text = super().__new__(cls, text)
        made_text.sections = tuple(sections)
        return made_text

    def __add__(self, other: str) -> PromptText:
        return PromptText(str.__add__(self, other), self.sections + sections_of(other))

    def __radd__(self, other: str) -> PromptText:
        return PromptText(str.__add__(other, self), sections_of(other) + self.sections)


def sections_of(text: str) -> tuple[PromptSection, ...]:
    return text.sections if isinstance(text, PromptText) else ()


def join_texts(between: str, texts: Sequence[str]) -> PromptText:
    """Join texts as ``between.join(texts)`` does, and keep the records of all."""
    return PromptText(between.join(texts), [section for text in texts for section in sections_of(text)])


class PromptTemplate(string.Template):
    """A template whose result keeps the records of the values that are filled in. A person may have reworded it."""

    def substitute(self, mapping: Mapping[str, object] = MappingProxyType({}), /, **values: object) -> PromptText:
        values = {**mapping, **values}
        texts: list[str] = []
        sections: list[PromptSection] = []
        for before, name in split_template(apply_wording(self.template)):
            texts.append(before)
            if name:
                value = values[name]
                if isinstance(value, PromptText) and value.sections:
                    texts.append(value)
                    sections += value.sections
                else:
                    # A text with records stays word for word: their lines are looked for when they are left out.
                    texts.append(apply_wording(str(value)))
        return PromptText("".join(texts), sections)


@lru_cache(maxsize=256)
def split_template(template: str) -> tuple[tuple[str, str], ...]:
    """Split a template into plain texts, each with the name of the placeholder after it or ''.

    >>> split_template("To $name: ${sum}$$")
    (('To ', 'name'), (': ', 'sum'), ('$', ''), ('', ''))

    Raises:
        ValueError: a $ without a name.
    """
    pieces, at = [], 0
    for match in string.Template.pattern.finditer(template):
        if match["invalid"] is not None:
            # The standard library words the complaint, with line and column.
            string.Template(template).substitute(defaultdict(str))  # which raises
        dollar = "$" if match["escaped"] else ""
        pieces.append((template[at : match.start()] + dollar, match["named"] or match["braced"] or ""))
        at = match.end()
    return (*pieces, (template[at:], ""))


@dataclass(frozen=True, slots=True)
class ShortPrompt:
    """A prompt without some of its records."""

    messages: tuple[Message, ...]
    left_out: tuple[str, ...]
    """Ids of the missing records, those of least worth first."""


def shorten_prompt(
    messages: Sequence[Message], room: int, count: Callable[[Sequence[Message]], int], size: Callable[[str], int]
) -> ShortPrompt | None:
    """Leave as few whole records out of a prompt as bring it to at most ``room`` tokens.

    Records that a retriever ranked last go first, then records of the oldest observations. None means that the prompt
    is too long even without any record.

    Args:
        count: returns the tokens of a prompt.
        size: returns the tokens of a line.
    """
    order = sort_by_worth([section for message in messages for section in sections_of(message.content)])
    at, now = 0, tuple(messages)
    # Sizes of single lines are estimates, so the whole prompt is counted anew after each round.
    while (over := count(now) - room) > 0:
        if at == len(order):
            return None
        while over > 0 and at < len(order):
            over -= size(order[at].line)
            at += 1
        gone = frozenset(order[:at])
        now = tuple(replace(message, content=replace_with_notices(message.content, gone)) for message in messages)
    return ShortPrompt(now, tuple(section.id for section in order[:at]))


def sort_by_worth(sections: Sequence[PromptSection]) -> list[PromptSection]:
    """Return each section once, the section of least worth first."""
    observations: dict[str, list[PromptSection]] = {}
    # A loop shows the same record in several messages: it counts once, and is left out of all.
    for section in dict.fromkeys(sections):
        observations.setdefault(observation_of(section), []).append(section)
    places = {
        # False sorts before True, so passages that a retriever ranked go before rows, and of them the last ranks.
        section: (False, -rank, age) if section.ranked else (True, age, -rank)
        for age, own in enumerate(observations.values())
        for rank, section in enumerate(own)
    }
    return sorted(places, key=places.__getitem__)


def observation_of(section: PromptSection) -> str:
    return section.id.partition(".")[0]


def replace_with_notices(text: str, gone: Collection[PromptSection]) -> str:
    """Replace each run of removed neighbours in a text by one notice."""
    left, plain, at = [], str(text), 0
    sections = sections_of(text)
    while at < len(sections):
        row = at
        while (
            row < len(sections)
            and sections[row] in gone
            and observation_of(sections[at]) == observation_of(sections[row])
        ):
            row += 1
        if row == at:
            left.append(sections[at])
            at += 1
            continue
        notice = NOTICE.format(count="1 record is" if row - at == 1 else f"{row - at} records are")
        for number, section in enumerate(sections[at:row]):
            # The notice stands in the place of the first record of the run; the others leave no line.
            plain = drop_line(plain, section.line, "" if number else notice)
        at = row
    return PromptText(plain, left)


def drop_line(text: str, line: str, notice: str = "") -> str:
    """
    >>> drop_line("a\\nb\\nc", "b"), drop_line("a\\nb", "b"), drop_line("ab\\nb\\nbc", "b", "-")
    ('a\\nc', 'a', 'ab\\n-\\nbc')
    """
    # Whole lines first, since the line of one record may be a part of another's.
    at = f"\n{text}\n".find(f"\n{line}\n")
    at = text.find(line) if at < 0 else at  # within a line of a template
    if at < 0:
        return text
    end = at + len(line)
    if not notice and text[end : end + 1] == "\n":
        end += 1
    elif not notice and text[at - 1 : at] == "\n":
        at -= 1
    return text[:at] + notice + text[end:]


DIGITS = b"0123456789"
MARKS = b"|[](){}.,;:=_'\"\n*/-+<>#`"
MARK = 0.85
"""Tokens."""
SCRIPTS = (
    (0x80, 2.75),
    (0x100, 3.2),
    (0x250, 1.35),
    (0x370, 1.1),
    (0x530, 1.35),
    (0xE00, 1.9),
    (0x1100, 2.8),
    (0x1200, 1.9),
    (0x1E00, 2.75),
    (0x2000, 1.0),
    (0x2070, 2.0),
    (0xAC00, 2.8),
    (0xD7B0, 2.0),
    (0x10000, 3.0),
)
"""From which character on how many tokens one is, measured on a small model's tokenizer and rounded up: Latin letters
with marks (and what words around them cost beyond English), Greek and Cyrillic, Hebrew, Arabic and Indic scripts, Thai,
Hangul, dashes and quotes, Chinese and Japanese, what lies beyond. A large model's takes a third to a half of it."""
STARTS = [start for start, _ in SCRIPTS]
PER_MESSAGE = 4
"""Tokens that a chat template puts around a message."""
WORTH = 200
"""A shorter prompt says nothing of the text in it: most of it is the template."""
THOUGHT = 4
"""A reply of so many times the tokens that can be seen of it was thought before it was written."""
LEAST, MOST = 0.3, 3.0


@lru_cache(maxsize=256)
def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text from its characters.

    >>> estimate_tokens("x" * 400), estimate_tokens("12.5 | 7"), estimate_tokens("\u6771\u4eac")
    (100, 7, 4)
    """
    beyond = (
        0.0
        if text.isascii()
        else sum(SCRIPTS[bisect(STARTS, ord(one)) - 1][1] * n for one, n in Counter(text).items() if one > "\x7f")
    )
    return math.ceil(ascii_tokens(text) + beyond)


def estimate_fewest_tokens(text: str) -> int:
    """Estimate the tokens of a text for a tokenizer that knows every script.

    >>> estimate_fewest_tokens("\u6771\u4eac")
    2
    """
    return math.ceil(ascii_tokens(text) + sum(one > "\x7f" for one in text))


def ascii_tokens(text: str) -> float:
    plain = text.encode("ascii", "ignore")
    no_digits = plain.translate(None, DIGITS)
    letters = len(no_digits.translate(None, MARKS))
    digits, marks = len(plain) - len(no_digits), len(no_digits) - letters
    return digits + MARK * marks + letters / 4


def estimate_prompt_tokens(messages: Sequence[Message], tools: Sequence[Function] = ()) -> int:
    """Estimate the tokens of a prompt, without the corrections learned for its LLM."""
    return sum(map(estimate_tokens, list_sent_texts(messages, tools))) + PER_MESSAGE * (len(messages) - 1)


def list_sent_texts(messages: Sequence[Message], tools: Sequence[Function]) -> Iterator[str]:
    """Iterate over all that an LLM is sent: texts, calls with their arguments, thoughts, and the functions offered."""
    for message in messages:
        yield from list_turn_texts(message)
        if message.raw is not None:
            yield json_text(message.raw)
    yield from map(json_text, tools)


def list_turn_texts(message: Message) -> list[str]:
    """List what can be seen of a turn: its text, and its calls with their arguments."""
    return [message.content, *(call.name + call.arguments for call in message.calls)]


@dataclass(slots=True)
class TokenEstimates:
    """Corrections of token estimates, by name of the LLM."""

    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Tokens of prompts as counted by the endpoint, and as estimated."""
    thinkers: set[str] = field(default_factory=set)
    """LLMs whose replies were cut off before they wrote an answer."""

    def tokens(self, llm: str, raw: int) -> int:
        """Correct an estimate of ``raw`` tokens for a prompt by the counts of this LLM."""
        return math.ceil(raw * self.factor(llm))

    def factor(self, llm: str) -> float:
        # Bounded, so that one odd count cannot spoil all later estimates.
        real, likely = self.counts.get(llm, (0, 0))
        return min(max(real / likely, LEAST), MOST) if real and likely else 1.0

    def knows(self, llm: str) -> bool:
        return llm in self.counts

    def learn_from(self, llm: str, raw: int, reply: Completion) -> None:
        # An estimate that was charged tells nothing about the tokenizer.
        if not reply.usage.estimates:
            self.learn(llm, raw, reply.usage.prompt_tokens)
        if reply.finish == "length":
            # The reply hit its cap: if little of it can be seen, hidden thoughts used the rest.
            calls = reply.turn.calls if reply.turn else ()
            # A server without a parser for them leaves thoughts in the text.
            texts = [text for text in reply.texts if not OPEN_THINK.match(text) or "</think" in text.casefold()]
            seen = sum(map(estimate_tokens, [*texts, *(call.arguments for call in calls)]))
            if reply.usage.completion_tokens > THOUGHT * max(seen, 1):
                self.thinkers.add(llm)

    def learn(self, llm: str, raw: int, prompt_tokens: int) -> None:
        """Note the counted tokens of a prompt that was estimated at ``raw`` tokens."""
        if raw >= WORTH and prompt_tokens:
            real, before = self.counts.get(llm, (0, 0))
            self.counts[llm] = real + prompt_tokens, before + raw
