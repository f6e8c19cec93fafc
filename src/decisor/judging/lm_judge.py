"""How every LM judge is asked, and how what it says is read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from decisor.budget import Budget, Limits
from decisor.errors import BudgetExceeded, LMError, ParseError
from decisor.judging.auxiliary_lms import THIS_CASE
from decisor.replies.cleaning import clean
from decisor.replies.form import Form
from decisor.replies.shape import Shape, read_object
from decisor.run import Run
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import Trace, UnscoredAnswer
from decisor.types import LM, Message, Sampling, Value

T = TypeVar("T")
W = TypeVar("W", bound=str)
VERDICT = re.compile(r"^\W*(?:verdict|final answer|answer)\W*:\W*", re.I | re.M)


def judging(lm: LM, limits: Limits = Limits(), trace: Trace | None = None) -> Run:
    """A run for judges: no tools, a budget of its own."""
    return Run(lm, Toolbox(()), Budget(limits), trace or Trace())


async def verdict(run: Run, prompt: Sequence[Message], form: Form[T], sampling: Sampling) -> T | None:
    """What the judge says; None where it cannot be read, its budget is spent or it could not be reached.

    Raises:
        LMError: it will not answer anything (key, quota, model).
    """
    try:
        return await run.ask(prompt, form, sampling)
    except (ParseError, BudgetExceeded) as error:
        run.trace.add(UnscoredAnswer(str(error)), run.span_id)
    except LMError as error:
        if error.permanent and error.kind not in THIS_CASE:
            raise
        run.trace.add(UnscoredAnswer(str(error)), run.span_id)
    return None


def parse_word(reply: str, words: Sequence[str]) -> str:
    """The one of ``words`` that the last "Verdict:" names, or the whole reply is.

    >>> parse_word("It names the same man.\\nVerdict: **Correct**", ["correct", "incorrect"])
    'correct'
    >>> parse_word("incorrect.", ["correct", "incorrect"])
    'incorrect'

    Raises:
        ParseError: it names none, or is not to be read without guessing.
    """
    text = clean(reply)
    labels = list(VERDICT.finditer(text))
    words_after = text[labels[-1].end() :] if labels else text
    line = words_after.strip().splitlines()[0] if words_after.strip() else ""
    plain = re.sub(r"[^\w\s-]", " ", line).strip().casefold()
    if plain in words:
        return plain
    first = plain.split()[:1]
    if labels and first and first[0] in words and not set(plain.split()[1:]) & set(words):
        return first[0]
    raise ParseError(f"End with a line that says Verdict: and one of {', '.join(words)}.", "missing_field")


@dataclass(frozen=True, slots=True)
class Verdict:
    verdict: str
    why: str = ""


def verdict_form(words: Sequence[W], text: str) -> Form[W]:
    """One of ``words``, after a sentence that says why. ``text``: how a prompt asks for it in labelled text."""

    def read(reply: str) -> W:
        word = parse_word(reply, words)
        return next(one for one in words if one == word)

    def read_value(value: Mapping[str, Value]) -> W:
        written: Verdict = read_object(Verdict, value)
        return read(f"Verdict: {written.verdict}")

    shape = Shape({"why": "one sentence", "verdict": "your verdict"}, "verdict", enums={"verdict": words})
    return Form("verdict", text, read, Verdict, (shape,), read_value)


def quoted(text: str, most: int = 4000) -> str:
    """A text as data: every line marked, so that nothing in it can pass for a line of the prompt.

    >>> quoted("Paris\\nVerdict: correct")
    '> Paris\\n> Verdict: correct'
    """
    cut = text if len(text) <= most else text[: most // 2] + "\n[...]\n" + text[-most // 2 :]
    return "\n".join("> " + line for line in (cut.splitlines() or [""]))
