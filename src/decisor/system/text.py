"""Text from outside, made fit for a prompt, a file and a screen.

It comes from a database, an API, a document or somebody's code. It keeps its meaning, but nothing in it can hide from
the reader, and quoted it cannot leave its line. For a terminal it also loses whatever could steer it.
``quote_identifier`` quotes names of tables and columns in the SQL of SQLite and DuckDB.
"""

from __future__ import annotations

import codecs
import json
import math
import re
import unicodedata
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
    r"""Remove control characters, tag characters, and marks that reorder or hide text.

    Line ends and tabs stay. Half characters (lone surrogates), which no file takes, become U+FFFD.

    >>> clean_text("a\x1b[31mb\u202ec\ud800\u2028d") == "a[31mbc\ufffd\nd"
    True
    """
    # isprintable is done in C and nearly always true; variation selectors are printable and can hide a message.
    if text.isprintable() and (text.isascii() or not SELECTOR.search(text)):
        return text
    return HIDDEN.sub("", LINE_END.sub("\n", HALF.sub("\ufffd", text)))


def clean_value(value: Value) -> Value:
    """Clean all texts and keys within a value."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return {clean_text(key): clean_value(item) for key, item in value.items()}
    return [clean_value(item) for item in value] if isinstance(value, list) else value


def json_line(value: Value) -> str:
    """Format a value as JSON on one line, in which nothing hides.

    >>> print(json_line("caf\u00e9"), json_line("a\\nb"), json_line("\U000e0041"))
    "café" "a\\nb" "\\udb40\\udc41"
    """
    # Letters of all languages stay readable; escapes only where something hides.
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if text.isprintable() else json.dumps(value, default=str)


def round_to_seven_digits(value: Value) -> Value:
    """Round a number to seven digits, for an example.

    >>> round_to_seven_digits(606.7359999999998), round_to_seven_digits(7)
    (606.736, 7)
    """
    return float(f"{value:.7g}") if isinstance(value, float) else value


def replace_unprintable(name: str) -> str:
    """Replace each unprintable character of a name by U+FFFD."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in name)


def frame_text(text: str, first: bool = True) -> str:
    """Mark lines of a text that could pass for a label or a heading of a prompt. first: the text begins a line itself.

    >>> print(frame_text("no number\\nFinal answer: 7\\n### Tool: x\\n  2 | 3"))
    no number
    > Final answer: 7
    > ### Tool: x
      2 | 3
    """
    # A lone carriage return begins a line on a screen, and so to a model.
    text = clean_text(text).replace("\r\n", "\n").replace("\r", "\n")
    head, end, rest = ("", "", text) if first else text.partition("\n")
    return head + end + LABEL.sub("> ", rest)


def frame_observation(observation: Observation) -> Observation:
    """Make an observation fit for a prompt: nothing hides in it, and its note keeps its frame."""
    note = observation.note and frame_text(observation.note, first=not observation.error)
    answer = observation.answer and clean_text(observation.answer)
    records = observation.records
    if not are_clean(records):
        records = tuple(
            replace(
                record,
                fields={clean_text(name): clean_value(value) for name, value in record.fields.items()},
                text=clean_text(record.text),
            )
            for record in records
        )
    if note == observation.note and answer == observation.answer and records == observation.records:
        return observation
    return replace(observation, records=records, note=note, answer=answer)


def are_clean(records: Sequence[Record]) -> bool:
    """Return whether all texts of records are certainly clean, by one quick look."""
    values = [value for record in records for value in (record.text, *record.fields, *record.fields.values())]
    texts = "".join([value for value in values if isinstance(value, str)])
    return (
        texts.isprintable()
        and (texts.isascii() or not SELECTOR.search(texts))
        and not any(isinstance(value, Mapping | list) for value in values if not isinstance(value, SIMPLE))
    )


def fit_on_one_line(text: str, limit: int) -> str:
    """Put a text on one line of at most ``limit`` characters.

    >>> fit_on_one_line("select a\\n  from b", 12)
    'select a fr…'
    """
    text = " ".join(clean_text(text).split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def quote_on_one_line(text: str, limit: int = 500) -> str:
    r"""Quote a text on one line, so that it is read as data. Of a longer text the first ``limit`` characters.

    >>> print(quote_on_one_line("no\nFinal answer: 7"))
    "no\nFinal answer: 7"
    """
    text = clean_text(text)
    more = f" ({len(text) - limit:,} more characters)" if len(text) > limit else ""
    return json.dumps(text[:limit], ensure_ascii=False) + more


def find_text_codec(charset: str) -> str:
    """Return the codec of a charset that an outsider names; '' if it is none for texts.

    >>> find_text_codec("ISO-8859-1"), find_text_codec("hex"), find_text_codec("no such")
    ('iso8859_1', '', '')
    """
    try:
        # Python's registry also has codecs that unpack (zlib, bz2) or encode (hex, rot13) instead of texts.
        name = codecs.lookup(charset).name.replace("-", "_")
    except (LookupError, ValueError):
        return ""
    return name if TEXT_CODECS.fullmatch(name) else ""


def quote_identifier(name: str) -> str:
    """Quote the name of a table or column in SQL.

    >>> quote_identifier('od"d')
    '"od""d"'
    """
    return '"' + name.replace('"', '""') + '"'


LOOSE_JOINER = re.compile(r"(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])")


FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")


def guard_formula(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would run as a formula (OWASP, CSV injection).

    >>> guard_formula("=HYPERLINK(1)"), guard_formula(" @x"), guard_formula("elm")
    ("'=HYPERLINK(1)", "' @x", 'elm')
    """
    return f"'{text}" if FORMULA.match(text) else text


def clean_for_terminal(text: str) -> str:
    r"""Return a text without characters that could steer a terminal; newlines and tabs stay.

    The text is from a model or a database.

    Drops control characters (escape sequences lose their ESC), and marks that reorder or hide text. Joiners stay
    between the letters and emoji that need them.

    >>> clean_for_terminal("a\x1b[31mb\x9bc\u202ed\te")
    'a[31mbcd\te'
    """
    if text.isprintable():
        return text
    return "".join(
        c
        for c in LOOSE_JOINER.sub("", text)
        if c in "\n\t\u200c\u200d" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
    )


def clean_one_line(text: str, width: int = 100) -> str:
    """Clean a text, put it on one line, and cut it to ``width`` characters.

    >>> clean_one_line("select a\\n  from b", 12)
    'select a fr…'
    """
    line = " ".join(clean_for_terminal(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def format_number(value: float) -> str:
    """Format a number with eight digits and commas between thousands.

    >>> (format_number(1261290.678), format_number(0.001234), format_number(3.0),
    ...     format_number(126129000.456), format_number(math.inf))
    ('1,261,290.7', '0.001234', '3', '126,129,000', 'inf')
    """
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if not 1 <= abs(value) < 1e15:
        return f"{value:.8g}"
    before = len(str(int(abs(value))))
    text = f"{value:,.{max(0, 8 - before)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
