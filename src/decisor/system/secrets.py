"""Keys and passwords stay out of errors, logs, traces and files: messages of failures pass ``redact``, a place
that a person named ``hide_password``."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from functools import cached_property, lru_cache
from typing import TypeVar
from urllib.parse import quote, quote_plus, unquote

from decisor.types import Observation, Record

T = TypeVar("T")
PEM = "-----BEGIN"
EVIDENCE = (Observation, Record)
PLAIN = (int, float, type(None))
HIDDEN = "[hidden]"
SHORTEST = 6
SHAPES = re.compile(
    r"\b(?:sk-(?:proj-|ant-|or-v1-|svcacct-|admin-)?[\w-]{20,}|[rsp]k_(?:live|test)_\w{16,}|AIza[\w-]{30,}|ya29\.[\w-]{20,}"
    r"|GOCSPX-[\w-]{20,}|gh[pousr]_\w{30,}|github_pat_\w{20,}|glpat-[\w-]{20,}|hf_\w{30,}|gsk_\w{20,}|xai-\w{20,}|npm_\w{30,}"
    r"|pypi-[\w-]{30,}|dop_v1_\w{30,}|(?:AKIA|ASIA)[A-Z0-9]{16}|xox[a-z](?:\.xox[a-z])?-[\w-]{10,}|xapp-[\w-]{10,}"
    r"|SG\.[\w-]{16,100}\.[\w-]{16,}|eyJ[\w-]{5,999}\.[\w-]{5,}(?:\.[\w-]*){0,3})"
    r"|-----BEGIN[ A-Z]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END[ A-Z]*-----|\Z)"
    r"|(?<=hooks\.slack\.com/services/)[\w/-]+"
)
SCHEME = r"[A-Za-z][A-Za-z0-9+.-]{1,30}(?::/{1,3}|//)"
IN_URL = re.compile(rf"({SCHEME}[^\s:/@\"'<>]{{0,100}}:)(?!\d+(?:[/?,#]|\Z))[^\s\"'<>]{{0,300}}(?=@)")
NAME = (
    r"(?:[\w-]*(?:password|passwd|passphrase|secret|credentials?)|(?:\b|[\w-]*[_-])(?:pwd?|pass|jwt|auth[_-]?token)"
    r"|[\w-]*(?:api|access|account|private|secret|signing|encryption|subscription|shared)[_-]?key(?:[_-]?id)?"
    r"|[\w-]*[A-Za-z0-9][_-]?(?<!\s)token)"
)
VALUE = (
    r"(?:\\*\"(?:[^\"\\]|\\.)*\\*\"|'(?:[^'\\]|\\.)*'|\{[^{}\s]{1,300}\}"
    r"|(?!(?i:yes|no|true|false|null|none|unset|empty|required|missing|wrong|invalid)\b)[^\s,;&\"'(){}\[\]<>|]+)"
)
NAMED = re.compile(rf"(?i)((?<![\w-]){NAME}(?:\\*[\"'])?\s*(?:=>|[=:])\s*){VALUE}")
OPTION = re.compile(rf"(?i)((?<![\w-])--?{NAME}[\"']?,?\s+){VALUE}")
TOKEN = re.compile(
    r"(?i)((?:(?<=[?&])(?:key|code)=|(?<![\w-])(?:[\"']token[\"']\s*:\s*|token=|--token[= ]|sig(?:nature)?=)))" + VALUE
)
COMMAND = re.compile(
    r"(?i)(\b(?:mysql|mariadb)\w*\b[^\n|;]{0,200}?\s-p)[^\s-]\S*"
    r"|(\bcurl\b[^\n|;]{0,200}?\s(?:-u|--user)[ =]\S{0,100}?:)\S+"
)
COOKIE = re.compile(r"(?i)(\b(?:set-)?cookie2?[\"']?\s*[:=]\s*[\"']?)[^\s=;]+=[^\r\n\"']+")
HEADER = re.compile(
    r"(?i)(\b(?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?(?:[a-z]+\s+)?|\bbearer\s+(?=\S*[\d_.=-]))[^\s\"',;]{4,}"
)
CELL = re.compile(
    r"(?i)(invalid input syntax for (?:type )?[\w ]+: |incorrect [\w ]+ value: |could not convert string )"
    r"(?:\"[^\"]{0,9999}\"|'[^']{0,9999}')"
)
"""Errors of engines that quote a value of the data."""
SIGNS = re.findall(
    r"[^|]+",
    "@|pass|secret|credential|pw|jwt|token|key|code=|sig=|signature=|cookie|bearer|authorization|mysql|"
    "mariadb|curl|invalid input syntax|incorrect|could not convert|sk-|k_live_|k_test_|aiza|ya29.|gocspx-|"
    "ghp_|gho_|ghu_|ghs_|ghr_|github_pat_|glpat-|hf_|gsk_|xai-|npm_|pypi-|dop_v1_|akia|asia|xox|xapp-|sg.|eyj|"
    "-----begin|hooks.slack",
)
"""Text without any of these fits none of the patterns: they are looked for first, for most text has none."""
SIGN = re.compile(
    "|".join(
        f"{re.escape(first)}(?:{'|'.join(re.escape(sign[1:]) for sign in SIGNS if sign[0] == first)})"
        for first in sorted({sign[0] for sign in SIGNS})
    )
)
"""By their first letters, which is the quickest."""
START = re.compile(r"(?:.*?[=@])??[A-Za-z][\w+.-]*(?::?/{1,3}|:(?=[^:]*:))", re.S)
"""Of a place with a user: all before that, however it is typed."""


class Secret:
    """A key. Printing, tracing or formatting it shows nothing; only ``reveal`` gives it.

    >>> Secret("sk-1234")
    [hidden]
    """

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    @cached_property
    def forms(self) -> re.Pattern[str] | None:
        """Pattern of the key as it is, percent-encoded, and in base64, also within a longer text.

        None for a short key: "ollama" and the like are passwords, but "none" or "x" would blank out ordinary words.
        """
        if len(self._value) < SHORTEST:
            return None
        value = self._value.encode()
        plain = {self._value, quote(self._value, safe=""), quote(self._value), quote_plus(self._value)}
        cores = {base64.b64encode(b"\0" * at + value)[-(-at * 4 // 3) : (at + len(value)) // 3 * 4] for at in range(3)}
        encoded = {re.escape(core.decode()) for core in cores | {core.translate(URL_SAFE) for core in cores}}
        words = [rf"[A-Za-z0-9+/_-]*(?:{'|'.join(sorted(encoded))})[A-Za-z0-9+/_=-]*"]
        return re.compile("|".join([*sorted(map(re.escape, plain), key=len, reverse=True), *words]))

    def __repr__(self) -> str:
        return HIDDEN

    def __bool__(self) -> bool:
        return bool(self._value)


URL_SAFE = bytes.maketrans(b"+/", b"-_")


def redact_known(text: str, secrets: Iterable[Secret]) -> str:
    """Hide these secrets in a text, as they are, percent-encoded, or in base64.

    >>> redact_known("no user with key hunter22", [Secret("hunter22")])
    'no user with key [hidden]'
    """
    for secret in secrets:
        if (forms := secret.forms) is not None:
            text = forms.sub(HIDDEN, text)
    return text


def may_hold_secrets(text: str) -> bool:
    """Return whether a text may contain secrets. Quick, for it is asked of all that a model writes."""
    return SIGN.search(text.lower()) is not None


def redact(text: str, secrets: Iterable[Secret] = ()) -> str:
    """Hide known secrets, and any text that looks like a key or a password.

    For errors and names, not for a model's words or for data.

    >>> redact("Authorization: Bearer abcdefgh was refused")
    'Authorization: Bearer [hidden] was refused'
    >>> redact("cannot reach postgresql://me:pa@ss@host/db?sslpassword=x")
    'cannot reach postgresql://me:[hidden]@host/db?sslpassword=[hidden]'
    >>> redact("sk-learn is a library, (using password: YES), the token count is 512")
    'sk-learn is a library, (using password: YES), the token count is 512'
    """
    text = redact_known(text, secrets)
    if not may_hold_secrets(text):
        return text
    # Keys by their shape first, then by what stands before them: a key in a URL is both.
    text = SHAPES.sub(HIDDEN, text)
    text = IN_URL.sub(rf"\1{HIDDEN}", text)
    for pattern in (COOKIE, HEADER, CELL, NAMED, OPTION, TOKEN, COMMAND):
        text = pattern.sub(lambda match: f"{match[1] or match[match.lastindex or 1]}{HIDDEN}", text)
    return text


redact_line = lru_cache(maxsize=4096)(redact)
"""Lines of a trace come again and again."""


def redact_text(text: str) -> str:
    """Hide secrets in a text; return the same object if there are none.

    >>> redact_text("SELECT 1\\nATTACH 'postgresql://me:hunter22@host/shop'")
    "SELECT 1\\nATTACH 'postgresql://me:[hidden]@host/shop'"
    """
    if not may_hold_secrets(text):
        return text
    # A private key goes over several lines, so the text must be read whole.
    if PEM in text:
        return redact(text)
    lines = text.split("\n")
    # Line by line, since the cache knows most lines of a trace.
    hidden = [redact_line(line) for line in lines]
    return text if hidden == lines else "\n".join(hidden)


def redact_event(value: T) -> T:
    """Hide secrets in an event, or a part of one; return the same object if there are none.

    Observations and records stay.
    """
    if isinstance(value, str):
        return redact_text(value)  # type: ignore[return-value]
    if isinstance(value, tuple):
        parts = tuple(map(redact_event, value))
        same = all(new is old for new, old in zip(parts, value, strict=True))
        return value if same else parts  # type: ignore[return-value]
    if not is_dataclass(value) or isinstance(value, (type, *EVIDENCE)):
        return value
    changes = {}
    for field in fields(value):
        name, old = field.name, getattr(value, field.name)
        if not isinstance(old, PLAIN) and (new := redact_event(old)) is not old:
            changes[name] = new
    return replace(value, **changes) if changes else value


def hide_password(place: str) -> str:
    """Hide the password of a place that a person named, also a mistyped one.

    >>> hide_password("mysql//me:secret@host"), hide_password("postgresql:/me:p%40w@h/db?password=x")
    ('mysql//me:[hidden]@host', 'postgresql:/me:[hidden]@h/db?password=[hidden]')
    >>> hide_password("me:secret@host"), hide_password("rents=postgresql://me@host:5432/shop")
    ('me:[hidden]@host', 'rents=postgresql://me@host:5432/shop')
    """
    before, password, after = _around_password(place)
    return redact(f"{before}{HIDDEN}{after}" if password else place)


def find_url_secrets(url: str) -> tuple[Secret, ...]:
    """Return the password of a database's URL, if it is no ordinary word of that URL.

    A driver's message about a failure is shown without it.
    """
    before, password, after = _around_password(url)
    rest = f"{before} {after}".lower()
    return tuple(Secret(word) for word in sorted({password, unquote(password)}) if word.lower() not in rest)


def _around_password(place: str) -> tuple[str, str, str]:
    """Split a place into the text before its password, the password, and the text after it.

    The last @ ends it; '' without a password.
    """
    # The last @: a password may hold others.
    head, at, _ = place.rpartition("@")
    start = START.match(head)
    begin = start.end() if start else 0
    colon = head.find(":", begin)
    if not at or colon < 0:
        return place, "", ""
    return place[: colon + 1], head[colon + 1 :], place[len(head) :]
