"""A query as HTML with its keywords, strings, numbers and comments told apart."""

from __future__ import annotations

import re

from decisor.render.markup import Html, tag

KEYWORDS = (
    "select from where group by order having limit offset join left right inner outer full cross on using as and or "
    "not in is null like between exists case when then else end with recursive union all distinct asc desc over "
    "partition match optional return unwind call yield skip create filter within interval cast true false"
)
PIECES = re.compile(
    r"(?P<comment>--[^\n]*|/\*.*?\*/|//[^\n]*)|(?P<string>'(?:[^'\\]|''|\\.)*')|(?P<number>\b\d+(?:\.\d+)?\b)"
    rf"|(?P<word>\b(?:{'|'.join(KEYWORDS.split())})\b)",
    re.I | re.S,
)
MOST = 20_000
QUERY = re.compile(r"^\s*(?:--[^\n]*\s*)*(?:select|with|match|optional|unwind|call|return|explain)\b", re.I)


def query_html(text: str) -> Html:
    """In a ``pre``; what is no query, or very long, as it is.

    >>> query_html("SELECT 'a<b' -- x")
    '<pre class="sql" tabindex="0"><span class="word">SELECT</span> <span class="string">&#x27;a&lt;b&#x27;</span> \
<span class="comment">-- x</span></pre>'
    """
    if len(text) > MOST or not QUERY.match(text):
        return tag("pre", text, tabindex=0)
    parts: list[Html | str] = []
    end = 0
    for match in PIECES.finditer(text):
        parts += [text[end : match.start()], tag("span", match[0], cls=match.lastgroup)]
        end = match.end()
    return tag("pre", *parts, text[end:], cls="sql", tabindex=0)
