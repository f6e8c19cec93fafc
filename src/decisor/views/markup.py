"""HTML that is safe by construction: a text is escaped unless it is markup made here."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from html import escape
from importlib.resources import files

VOID = frozenset({"meta", "link", "input", "br"})


class Html(str):
    """A piece of markup. Only ``tag`` and ``join`` make it from texts, and they escape them."""

    __slots__ = ()


def tag(name: str, /, *inside: Html | str | int | None, **attributes: str | int | bool | None) -> Html:
    """Build an element. ``cls`` is class, an underscore is a hyphen; None and False leave an attribute out.

    >>> tag("td", "<b>", cls="n", data_label="a&b", hidden=True)
    '<td class="n" data-label="a&amp;b" hidden>&lt;b&gt;</td>'
    """
    pairs = ""
    for key, value in attributes.items():
        # 0 and '' are values of an attribute; only None and False leave it out.
        if value is None or value is False:
            continue
        word = "class" if key == "cls" else key if key in ("viewBox", "preserveAspectRatio") else key.replace("_", "-")
        pairs += f" {word}" if value is True else f' {word}="{escape(show_hidden(str(value)))}"'
    return Html(f"<{name}{pairs}>" if name in VOID else f"<{name}{pairs}>{join(*inside)}</{name}>")


def join(*parts: Html | str | int | None) -> Html:
    """Join parts one after the other; texts are escaped.

    >>> join("a<", tag("br"), None, 3)
    'a&lt;<br>3'
    """
    texts = (part if isinstance(part, Html) else escape(show_hidden(str(part))) for part in parts if part is not None)
    return Html("".join(texts))


HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])"
)
"""Marks that hide or reorder others, as in ``static/dom.js``; joiners stay between letters that need them."""


def show_hidden(text: str) -> str:
    r"""Return a text in which marks that hide or reorder others are seen.

    >>> show_hidden("a\u202eb")
    'a\\u202eb'
    """
    return HIDDEN.sub(lambda mark: f"\\u{ord(mark[0]):04x}", text)


def scroll_table_html(head: Html, body: Html, cls: str | None = None) -> Html:
    """Build a table in a panel of its own that scrolls sideways if it must."""
    inner = tag("table", tag("thead", tag("tr", head)), tag("tbody", body), cls=cls)
    return tag("div", inner, cls="panel scroll", tabindex=0)


def csp_hash(text: str) -> str:
    """Return the hash that names a script or a style in a content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def read_static(name: str) -> str:
    """Return a style sheet or script that pages of every kind share."""
    return files("decisor.views").joinpath("static", name).read_text("utf-8")


def json_block(text: str, id: str | None = None) -> Html:
    """Return JSON as a block of data. Nothing in it can end the block or begin another: < is written as an escape."""
    # U+2028 and U+2029 end a line of a script, but not of JSON.
    safe = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    # Half of a surrogate pair, which an LLM may write, fits in no file in UTF-8.
    safe = safe.encode("utf-8", "replace").decode()
    return tag("script", Html(safe), type="application/json", id=id)
