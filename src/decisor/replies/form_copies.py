"""Whether a value that was read is the text of the form that it was asked for in."""

from __future__ import annotations

import re
from functools import lru_cache

from decisor.errors import ParseError
from decisor.replies.form import Form
from decisor.replies.labelled import LabelledReply
from decisor.replies.moves import Move
from decisor.replies.plan_graph import PlanGraph
from decisor.types import Decision

NO_LETTERS = re.compile(r"[\W\d_]+")
LEAST = 10
"""Letters that a text of the form must have to count as copied."""


def refuse_form_text(value: object, form: Form[object]) -> None:
    """
    Raises:
        ParseError: what the value asks for or answers stands in the form (copied); of a plan, all of its parts.
    """
    copies = [is_form_text(text, form) for text in texts_of(value)]
    if (all(copies) and len(copies) > 1) if isinstance(value, PlanGraph) else any(copies):
        raise ParseError("You copied the text of the form. Write your own in its place.", "copied")


def is_form_text(text: str, form: Form[object]) -> bool:
    plain = letters(text)
    if len(plain) < LEAST:
        return False
    own = text_of_form(form)
    return plain in letters_of_form(own) and not numbers(text) - numbers(own)


def texts_of(value: object) -> tuple[str, ...]:
    """None of a plain text: a word that a form offers for choice is no copy."""
    match value:
        case LabelledReply(call=call, answer=answer):
            return (call.input if call else "", answer or "")
        case Move(action=action, answer=answer):
            return (action.input if action else "", answer or "")
        case Decision(answer=answer):
            return (answer,)
        case PlanGraph(parts=parts):
            return tuple(part.query for part in parts)
    return ()


def answer_of(value: object) -> str:
    """The final answer that a reply gives, '' where it gives none."""
    match value:
        case LabelledReply(answer=answer) | Move(answer=answer) | Decision(answer=answer):
            return answer or ""
    return ""


def text_of_form(form: Form[object]) -> str:
    return " ".join([form.text, *(words for shape in form.shapes for words in shape.says.values())])


def letters(text: str) -> str:
    """
    >>> letters("The name, or id")
    'thenameorid'
    """
    return NO_LETTERS.sub("", text.casefold())


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+", text))


letters_of_form = lru_cache(maxsize=64)(letters)
