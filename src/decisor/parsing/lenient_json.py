"""Lenient JSON: read a text that has exactly one reading.

Accepted are trailing commas, comments, raw line ends in texts, Python's literals, bare keys and a missing last
bracket. Refused are an unfinished text, a key twice with different values, and numbers that no database holds. Nothing
is evaluated. The reader is linear in the length: one pass, and the depth is checked before the first value is read.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from decisor.errors import ParseError
from decisor.parsing.cleaning import MAX_DEPTH, NO_HELP
from decisor.types import Value

BLANK = re.compile(r"(?:[ \t\r\n\u00a0\u200b\u2060\ufeff]|//[^\n]*|\#[^\n]*|/\*.*?\*/)*", re.S)
NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])")
WORD = re.compile(r"-?[A-Za-z_]\w*")
CHUNK = re.compile(r"[^\"'\u201d\\\n\r\t]+")
WORDS: dict[str, Value] = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
QUOTES = {'"': '"', "'": "'", "\u201c": "\u201d"}
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'"}

CUT_OFF = "Your reply is cut off. Write less; what takes a very long query may be asked in two."


def check_depth(text: str) -> None:
    # The reader recurses, so a reply of brackets alone could otherwise exhaust the stack.
    depth = 0
    for bracket in re.finditer(r"[\[({\])}]", text):
        depth += 1 if bracket.group() in "[({" else -1
        if depth > MAX_DEPTH:
            raise ParseError(f"Your reply is nested deeper than {MAX_DEPTH}.", "limits")


@dataclass(slots=True)
class JsonReader:
    """One pass over ``text`` from position ``at``. The caller has checked the depth (``check_depth``)."""

    text: str
    at: int
    depth: int = 0
    forgotten: int = 0
    """Number of closing brackets that were missing at the end."""

    def value(self) -> Value:
        head = self.peek()
        if head == "{":
            return self.mapping()
        if head == "[":
            return self.sequence()
        if head in QUOTES:
            return self.string()
        if number := NUMBER.match(self.text, self.at):
            self.at = number.end()
            return read_json_number(number.group())
        word = WORD.match(self.text, self.at)
        if word and word.group() in WORDS and not self.text.startswith("(", word.end()):
            self.at = word.end()
            return WORDS[word.group()]
        # Python's json would accept these, and a comparison with NaN is always false.
        if word and word.group().lstrip("-") in ("NaN", "Infinity", "nan", "inf"):
            raise ParseError(f"{word.group()} is not a number that can be used.", "number")
        raise ParseError(f"Your JSON cannot be read at character {self.at + 1}.", "syntax")

    def peek(self) -> str:
        """Return the next character that is not blank. Empty at the end, where only closing brackets may be missing."""
        blank = BLANK.match(self.text, self.at)
        assert blank
        self.at = blank.end()
        return self.text[self.at : self.at + 1]

    def mapping(self) -> dict[str, Value]:
        self.at += 1
        members: dict[str, Value] = {}
        while not self.closes("}"):
            key = self.key()
            if self.peek() != ":":
                raise self.wrong()
            self.at += 1
            if not self.peek():
                raise self.wrong()
            value = self.value()
            if key in members and members[key] != value:
                raise ParseError(f"The key {key[:60]!r} comes twice, with different values.", "duplicate_key")
            members[key] = value
            self.comma("}")
        return members

    def sequence(self) -> list[Value]:
        self.at += 1
        items: list[Value] = []
        while not self.closes("]"):
            items.append(self.value())
            self.comma("]")
        return items

    def key(self) -> str:
        if self.peek() in QUOTES:
            return self.string()
        if word := WORD.match(self.text, self.at):
            self.at = word.end()
            return word.group()
        raise self.wrong()

    def closes(self, bracket: str) -> bool:
        head = self.peek()
        if head == bracket:
            self.at += 1
            return True
        # A missing bracket at the end is closed, but not after a comma or an opening bracket: there a value is missing
        # too.
        if not head or self.text.startswith(("```", "~~~"), self.at):
            if self.text[: self.at].rstrip().endswith((",", "{", "[")):
                raise ParseError(CUT_OFF, "truncated")
            self.forgotten += 1
            return True
        return False

    def comma(self, bracket: str) -> None:
        head = self.peek()
        if head == ",":
            comma = self.at
            self.at += 1
            if self.peek() == ",":
                self.at = comma
                raise self.wrong()
        elif head not in (bracket, "") and not self.text.startswith(("```", "~~~"), self.at):
            raise self.wrong()

    def wrong(self) -> ParseError:
        if not self.peek():
            return ParseError(CUT_OFF, "truncated")
        return ParseError(f"Your JSON cannot be read at character {self.at + 1}.", "syntax")

    def string(self) -> str:
        quote = self.text[self.at]
        end = QUOTES[quote]
        self.at += 1
        parts: list[str] = []
        while (head := self.text[self.at : self.at + 1]) != end:
            if not head:
                raise ParseError(CUT_OFF, "truncated")
            if head == "\\":
                parts.append(self.escape())
                continue
            chunk = CHUNK.match(self.text, self.at)
            self.at = chunk.end() if chunk else self.at + 1
            parts.append(chunk.group() if chunk else head)
        self.at += 1
        text = "".join(parts)
        if re.search(r"[\ud800-\udbff][\udc00-\udfff]", text):
            # Two escapes may encode one character. A lone surrogate stays, for the caller to judge.
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        return text

    def escape(self) -> str:
        kind = self.text[self.at + 1 : self.at + 2]
        if kind in ESCAPES and kind:
            self.at += 2
            return ESCAPES[kind]
        code = self.text[self.at + 2 : self.at + 6]
        if kind == "u" and re.fullmatch(r"[0-9a-fA-F]{4}", code):
            self.at += 6
            return chr(int(code, 16))
        if not kind or (kind == "u" and self.at + 6 > len(self.text)):
            raise ParseError(CUT_OFF, "truncated")
        raise ParseError(f"Your JSON has an unknown escape at character {self.at + 1}.", "syntax")


def read_json_number(text: str) -> int | float:
    if re.fullmatch(r"[-+]?\d+", text):
        # int() of a very long text takes quadratic time, so the length is looked at first.
        if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
            raise ParseError("A whole number is beyond 64 bits.", "number")
        return int(text)
    if not math.isfinite(value := float(text)):
        raise ParseError(f"{text[:20]} is not a number that can be used.", "number")
    return value


CODE = re.compile(r"[(){}<>|=]|^\s*[\w-]+\s*:|^!!|^\s*(?:select|with|match|return|call|explain)\b", re.I | re.M)
MAX_TRIES = 20


def read_json_value(text: str) -> Value:
    """Read the one JSON value in a reply, with or without prose or a fence around it.

    >>> read_json_value('Here: ```json\\n{"a": 1,}\\n```')
    {'a': 1}

    Raises:
        ParseError: there is none (syntax, no_action, model_refusal, truncated), or there are several.
    """
    check_depth(text)
    # A square bracket opens the value only if nothing but a fence comes before it: prose has brackets, too.
    start = text.find("[")
    if start < 0 or re.sub(r"^(?:```+|~~~+)[\w+-]*", "", text[:start]).strip():
        start = text.find("{")
    if start < 0:
        return read_unbracketed(text)
    value, end = read_first_value(text, start)
    refuse_second_object(text, end)
    return value


def read_first_value(text: str, start: int) -> tuple[Value, int]:
    """Read the value at the first bracket that opens one, and return it with its end. Brackets in prose are skipped."""
    first: ParseError | None = None
    for _ in range(MAX_TRIES):
        reader = JsonReader(text, start)
        try:
            value = reader.value()
        except ParseError as error:
            if error.reason != "syntax":
                raise
            first = first or error
            if (start := text.find("{", start + 1)) < 0:
                raise first from None
            continue
        # One bracket is forgotten; several mean that the reply hit its length limit.
        if reader.forgotten > 1:
            raise ParseError(CUT_OFF, "truncated")
        return value, reader.at
    raise first or ParseError("There is no JSON object in your reply.", "syntax")


def refuse_second_object(text: str, end: int) -> None:
    """Raise ParseError if another object follows the first; the reply would be ambiguous."""
    at = end
    for _ in range(MAX_TRIES):
        if (at := text.find("{", at)) < 0:
            return
        try:
            second = JsonReader(text, at).value()
        except ParseError:
            second = None
        if isinstance(second, dict) and second:
            raise ParseError("You wrote several objects. Write one.", "multiple_actions")
        at += 1


def read_unbracketed(text: str) -> Value:
    """Read a reply without an object.

    A bare value is returned; a refusal, prose or another format raises ParseError.
    """
    reader = JsonReader(text, 0)
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
