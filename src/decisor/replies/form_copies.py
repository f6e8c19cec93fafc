"""Whether a value that was read is the text of the form that it was asked for in."""

from __future__ import annotations

import re
from typing import Any

from decisor.errors import ParseError
from decisor.replies.form import Form
from decisor.replies.labelled import LabelledReply
from decisor.replies.moves import Move
from decisor.types import Decision

LEAST = 10
"""Letters that a text of the form must have to count as copied."""


def refuse_form_text(value: object, form: Form[Any]) -> None:
    """
    Raises:
        ParseError: what the value asks for or answers stands in the form (copied).
    """
    for text in texts_of(value):
        plain = letters(text)
        own_numbers = set(re.findall(r"\d+", text)) - set(re.findall(r"\d+", text_of_form(form)))
        if len(plain) >= LEAST and plain in letters(text_of_form(form)) and not own_numbers:
            raise ParseError("You copied the text of the form. Write your own in its place.", "copied")


def texts_of(value: object) -> tuple[str, ...]:
    """None of a plain text: a word that a form offers for choice is no copy."""
    match value:
        case LabelledReply(call=call, answer=answer):
            return (call.input if call else "", answer or "")
        case Move(action=action, answer=answer):
            return (action.input if action else "", answer or "")
        case Decision(answer=answer):
            return (answer,)
    return ()


def text_of_form(form: Form[Any]) -> str:
    return " ".join([form.text, *(words for shape in form.shapes for words in shape.says.values())])


def letters(text: str) -> str:
    """
    >>> letters("The name, or id")
    'thenameorid'
    """
    return re.sub(r"[\W\d_]+", "", text.casefold())
