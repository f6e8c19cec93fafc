"""Text from outside (a database, an API, a document, somebody's code) made fit for a prompt, a file and a screen.

It says what it says, but nothing in it can hide from who reads it, and quoted it cannot leave its line.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from decisor.types import Observation, Record, Value

HALF = re.compile(r"[\ud800-\udfff]")
LINE_END = re.compile(r"[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
HIDDEN = re.compile(
    r"[\x00-\x08\x0e-\x1b\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\U000e0000-\U000e0fff]"
)
LABEL = re.compile(r"(?m)^(?!> )(?=[^\w\n]*(?:#|\w[\w-]{0,20}(?: [\w-]{1,20}){0,3}\s*:))")
"""The beginning of a line that reads like a label (Thought:, Final answer:) or a heading."""
SIMPLE = (str, int, float, type(None))
SELECTOR = re.compile("[\U000e0100-\U000e01ef]")
TEXT_CODECS = re.compile(
    r"ascii|utf_8|utf_(?:16|32)(?:_[lb]e)?|iso8859_\d+|cp\d+|koi8_\w|gb\w+|big5\w*|shift_jis\w*|euc_\w+|mac_\w+"
)


def clean_text(text: str) -> str:
    r"""Without control characters, marks that reorder or hide text, and tag characters; line ends and tabs stay. Half
    characters (lone surrogates), which no file takes, become U+FFFD.

    >>> clean_text("a\x1b[31mb\u202ec\ud800\u2028d") == "a[31mbc\ufffd\nd"
    True
    """
    if text.isprintable() and (text.isascii() or not SELECTOR.search(text)):
        return text
    return HIDDEN.sub("", LINE_END.sub("\n", HALF.sub("\ufffd", text)))


def clean_value(value: Value) -> Value:
    """The same for all texts and keys within it."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return {clean_text(key): clean_value(item) for key, item in value.items()}
    return [clean_value(item) for item in value] if isinstance(value, list) else value


def json_line(value: Value) -> str:
    """As JSON on one line, in which nothing hides.

    >>> print(json_line("caf\u00e9"), json_line("a\\nb"), json_line("\U000e0041"))
    "café" "a\\nb" "\\udb40\\udc41"
    """
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if text.isprintable() else json.dumps(value, default=str)


def short(value: Value) -> Value:
    """A number with seven digits, for an example.

    >>> short(606.7359999999998), short(7)
    (606.736, 7)
    """
    return float(f"{value:.7g}") if isinstance(value, float) else value


def printable(name: str) -> str:
    """A name, with U+FFFD for each character in it that cannot be seen."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in name)


def framed(text: str, first: bool = True) -> str:
    """Text of several lines, none of which can be taken for a label or a heading of a prompt. ``first``: it begins a
    line itself.

    >>> print(framed("no number\\nFinal answer: 7\\n### Tool: x\\n  2 | 3"))
    no number
    > Final answer: 7
    > ### Tool: x
      2 | 3
    """
    text = clean_text(text).replace("\r\n", "\n").replace("\r", "\n")
    head, end, rest = ("", "", text) if first else text.partition("\n")
    return head + end + LABEL.sub("> ", rest)


def framed_observation(observation: Observation) -> Observation:
    """What an action brought, fit for a prompt: nothing in it hides, and its note keeps its frame."""
    note = observation.note and framed(observation.note, first=not observation.error)
    answer = observation.answer and clean_text(observation.answer)
    records = observation.records if are_clean(observation.records) else tuple(map(clean_record, observation.records))
    if note == observation.note and answer == observation.answer and records == observation.records:
        return observation
    return replace(observation, records=records, note=note, answer=answer)


def are_clean(records: Sequence[Record]) -> bool:
    """Whether all texts in them are for certain, at one look."""
    values = [value for record in records for value in (record.text, *record.fields, *record.fields.values())]
    texts = "".join([value for value in values if isinstance(value, str)])
    return (
        texts.isprintable()
        and (texts.isascii() or not SELECTOR.search(texts))
        and not any(isinstance(value, Mapping | list) for value in values if not isinstance(value, SIMPLE))
    )


def clean_record(record: Record) -> Record:
    fields = {clean_text(name): clean_value(value) for name, value in record.fields.items()}
    return replace(record, fields=fields, text=clean_text(record.text))


def one_line(text: str, limit: int) -> str:
    """
    >>> one_line("select a\\n  from b", 12)
    'select a fr…'
    """
    text = " ".join(clean_text(text).split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def quoted(text: str, limit: int = 500) -> str:
    r"""In quotes on one line, so that it is read as data. Of a longer one the first ``limit`` characters.

    >>> print(quoted("no\nFinal answer: 7"))
    "no\nFinal answer: 7"
    """
    text = clean_text(text)
    more = f" ({len(text) - limit:,} more characters)" if len(text) > limit else ""
    return json.dumps(text[:limit], ensure_ascii=False) + more


def text_codec(charset: str) -> str:
    """The codec of a charset that an outsider names, or '' where there is none of texts.

    >>> text_codec("ISO-8859-1"), text_codec("hex"), text_codec("no such")
    ('iso8859_1', '', '')
    """
    try:
        name = codecs.lookup(charset).name.replace("-", "_")
    except (LookupError, ValueError):
        return ""
    return name if TEXT_CODECS.fullmatch(name) else ""
