"""Forgiving JSON: read what has exactly one reading, and say what was forgiven.

Forgiven: trailing commas, comments, raw line ends in texts, Python's literals, bare keys, a missing last bracket. Not
forgiven: an unfinished text, a key twice with different values, numbers that no database holds. Nothing is evaluated.
Linear in the length: one pass, and depth is checked before the first value is read.
"""

from __future__ import annotations

import re

from decisor.errors import ParseError
from decisor.replies.cleaning import NO_HELP
from decisor.replies.json_reader import Reader, check_depth
from decisor.types import Value

CODE = re.compile(r"[(){}<>|=]|^\s*[\w-]+\s*:|^!!|^\s*(?:select|with|match|return|call|explain)\b", re.I | re.M)
MAX_TRIES = 20


def read_one(text: str, repairs: list[str]) -> Value:
    """The one JSON value in a reply, with or without prose or a fence around it.

    >>> repairs = []
    >>> read_one('Here: ```json\\n{"a": 1,}\\n```', repairs), repairs
    ({'a': 1}, ['prose', 'strip_fence', 'trailing_comma'])

    Raises:
        ParseError: there is none (syntax, no_action, model_refusal, truncated), or there are several.
    """
    check_depth(text)
    start = opening(text)
    if start < 0:
        return read_bare(text)
    before = text[:start]
    if re.search(r"```|~~~", before):
        before = re.sub(r"(?:```+|~~~+)[\w+-]*", "", before)
        if before.strip():
            repairs.append("prose")
        repairs.append("strip_fence")
    elif before.strip():
        repairs.append("prose")
    value, end = read_somewhere(text, start, repairs)
    no_second(text, end)
    after = re.sub(r"```+|~~~+", "", text[end:]).strip()
    if after and "prose" not in repairs:
        repairs.append("prose")
    return value


def opening(text: str) -> int:
    """Where the value opens: a brace, or a square bracket that nothing but a fence comes before; -1 without one."""
    bracket = text.find("[")
    if bracket >= 0 and not re.sub(r"^(?:```+|~~~+)[\w+-]*", "", text[:bracket]).strip():
        return bracket
    return text.find("{")


def read_somewhere(text: str, start: int, repairs: list[str]) -> tuple[Value, int]:
    """The first bracket that opens a value: prose may hold brackets that do not."""
    first: ParseError | None = None
    for _ in range(MAX_TRIES):
        reader = Reader(text, start)
        try:
            value = reader.value()
        except ParseError as error:
            if error.reason != "syntax":
                raise
            first = first or error
            if (start := text.find("{", start + 1)) < 0:
                raise first from None
            continue
        if reader.repairs.count("close_brackets") > 1:
            raise ParseError("Your reply is cut off.", "truncated")
        repairs += [name for name in dict.fromkeys(reader.repairs) if name not in repairs]
        return value, reader.at
    raise first or ParseError("There is no JSON object in your reply.", "syntax")


def no_second(text: str, end: int) -> None:
    """No further object after the first: which one is meant cannot be known."""
    at = end
    for _ in range(MAX_TRIES):
        if (at := text.find("{", at)) < 0:
            return
        try:
            second = Reader(text, at).value()
        except ParseError:
            second = None
        if isinstance(second, dict) and second:
            raise ParseError("You wrote several objects. Write one.", "multiple_actions")
        at += 1


def read_bare(text: str) -> Value:
    """A reply without an object: a bare value, a refusal, prose, or another format."""
    reader = Reader(text, 0)
    try:
        value = reader.value()
        if not text[reader.at :].strip():
            return value
    except ParseError as error:
        if error.reason in ("number", "truncated"):
            raise
    if NO_HELP.search(text):
        raise ParseError("That is a refusal. Write an action.", "model_refusal")
    if CODE.search(text):
        raise ParseError("That is not JSON. Write one JSON object.", "syntax")
    raise ParseError("There is no action in your reply. Write one JSON object.", "no_action")
