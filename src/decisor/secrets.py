"""Keys stay out of errors, traces and files."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from urllib.parse import quote

HIDDEN = "[hidden]"
SHAPES = re.compile(
    r"\b(?:sk-(?:proj-|ant-|or-v1-)?[\w-]{20,}|sk_live_\w{16,}|AIza[\w-]{30,}|gh[pousr]_\w{30,}|hf_\w{30,}|gsk_\w{20,}|AKIA[A-Z0-9]{16})\b"
)
HEADERS = re.compile(
    r"(?i)\b((?:proxy-)?authorization\W{1,4}(?:bearer|basic)?|bearer|(?:x-)?api[-_]key\W{1,4})\s+\S{6,}"
)


class Secret:
    """A key. Printing, tracing or formatting it shows nothing; only ``reveal`` gives it.

    >>> Secret("sk-1234")
    [hidden]
    """

    __slots__ = ("_forms", "_value")

    def __init__(self, value: str) -> None:
        self._value = value
        self._forms: tuple[str, ...] | None = None

    def reveal(self) -> str:
        return self._value

    def forms(self) -> tuple[str, ...]:
        """As it is, percent-encoded, and in base64. None of a short one: "ollama" and the like are passwords, but
        "none" or "x" would blank out ordinary words."""
        if self._forms is None:
            encoded = base64.b64encode(self._value.encode()).decode()
            forms = (self._value, quote(self._value, safe=""), encoded, encoded.rstrip("="))
            self._forms = forms if len(self._value) >= 6 else ()
        return self._forms

    def __repr__(self) -> str:
        return HIDDEN

    def __bool__(self) -> bool:
        return bool(self._value)


def redact_known(text: str, secrets: Iterable[Secret]) -> str:
    """``text`` without these secrets, as they are, percent-encoded, or in base64.

    >>> redact_known("no user with key hunter22", [Secret("hunter22")])
    'no user with key [hidden]'
    """
    for secret in secrets:
        for form in secret.forms():
            text = text.replace(form, HIDDEN)
    return text


def redact(text: str, secrets: Iterable[Secret] = ()) -> str:
    """As ``redact_known``, and what looks like a key though it is not ours. For errors, not for a model's words.

    >>> redact("Authorization: Bearer abcdefgh was refused")
    'Authorization: Bearer [hidden] was refused'
    >>> redact("sk-learn is a library")
    'sk-learn is a library'
    """
    text = SHAPES.sub(HIDDEN, redact_known(text, secrets))
    return HEADERS.sub(lambda match: f"{match[1]} {HIDDEN}", text)
