"""Why replies could not be used, in words for a person. What a model is told about it is for the model alone."""

from __future__ import annotations

from decisor.calling import Calling
from decisor.errors import ParseError

REASONS = {
    "both": "it held an answer and an action",
    "content_filter": "the endpoint's filter held it back",
    "control": "it held characters that no query may hold",
    "copied": "it copied the form instead of filling it in",
    "duplicate_key": "it said the same thing twice, differently",
    "empty": "it was empty",
    "limits": "it was too large",
    "missing_field": "a part of its form was missing",
    "model_refusal": "the LM refused",
    "multiple_actions": "it held several actions",
    "no_action": "it held no action",
    "no_citation": "the answer cited no record",
    "no_evidence": "it answered before anything was known",
    "objection": "a claim of the answer did not stand on its rows",
    "not_compared": "the answer was compared with nothing",
    "refusal": "the LM refused",
    "repeated": "the LM made the same query three times",
    "truncated": "it was cut off",
    "unknown_source": "it cited what was never shown",
    "unknown_tool": "it named a tool that does not exist",
    "wrong_form": "its answer had not the form of one",
}


def in_words(reason: str) -> str:
    """
    >>> in_words("empty"), in_words("shape")
    ('it was empty', 'it did not fit the form')
    """
    return REASONS.get(reason, "it did not fit the form")


def for_people(error: Exception) -> str:
    """An error as a person reads it: a complaint about a reply in words of its own."""
    if not isinstance(error, ParseError):
        return str(error)
    if error.reason == "repeated":
        return "The LM made the same query three times."
    return f"The LM's reply could not be used: {in_words(error.reason)}."


def unread_line(unread: int, replies: int, calling: Calling = "text") -> str:
    """What to say at the end of a run in which replies were asked for so; '' where enough could be read.

    >>> unread_line(13, 13)
    '13 of 13 replies could not be read; try a larger model or calling=json.'
    >>> unread_line(1, 13)
    ''
    """
    if unread < 2 or unread * 3 < replies:
        return ""
    hint = "try a larger model or calling=json" if calling == "text" else "try a larger model"
    return f"{unread} of {replies} replies could not be read; {hint}."
