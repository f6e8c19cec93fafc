"""Text from outside (a database, an API, a document, somebody's code) made fit for a prompt, a file and a screen.

It says what it says, but nothing in it can hide from who reads it, and quoted it cannot leave its line.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Mapping

from decisor.types import Value

HALF = re.compile(r"[\ud800-\udfff]")
LINE_END = re.compile(r"[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
HIDDEN = re.compile(
    r"[\x00-\x08\x0e-\x1b\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\U000e0000-\U000e0fff]"
)
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
