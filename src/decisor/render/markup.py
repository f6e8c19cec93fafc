"""HTML that is safe by construction: a text is escaped unless it is markup made here."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from html import escape
from importlib.resources import files

VOID = frozenset({"meta", "link", "input", "br"})


class Html(str):
    """Markup. Only ``tag`` and ``join`` make it from texts, and they escape them."""

    __slots__ = ()


def tag(name: str, /, *inside: Html | str | int | None, **attributes: str | int | bool | None) -> Html:
    """An element. ``cls`` is class, a line under is a hyphen; None and False leave an attribute out.

    >>> tag("td", "<b>", cls="n", data_label="a&b", hidden=True)
    '<td class="n" data-label="a&amp;b" hidden>&lt;b&gt;</td>'
    """
    pairs = ""
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        word = "class" if key == "cls" else key if key in ("viewBox", "preserveAspectRatio") else key.replace("_", "-")
        pairs += f" {word}" if value is True else f' {word}="{escape(str(value))}"'
    return Html(f"<{name}{pairs}>" if name in VOID else f"<{name}{pairs}>{join(*inside)}</{name}>")


def join(*parts: Html | str | int | None) -> Html:
    """Parts one after the other; texts are escaped.

    >>> join("a<", tag("br"), None, 3)
    'a&lt;<br>3'
    """
    return Html("".join(part if isinstance(part, Html) else escape(str(part)) for part in parts if part is not None))


def table(head: Html, body: Html, cls: str | None = None) -> Html:
    """A table in a panel of its own that scrolls sideways where it must."""
    inner = tag("table", tag("thead", tag("tr", head)), tag("tbody", body), cls=cls)
    return tag("div", inner, cls="panel scroll", tabindex=0)


def hashed(text: str) -> str:
    """A script or a style as a content security policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def colours() -> str:
    """The colours of every page, light and dark, as variables of ``:root``."""
    return files("decisor.render").joinpath("colours.css").read_text("utf-8")


@cache
def chart_style() -> str:
    """How the chart of an answer looks on every page."""
    return files("decisor.render").joinpath("chart.css").read_text("utf-8")
