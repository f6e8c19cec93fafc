"""A statement without its comments: sqlglot takes ``GROUP BY`` for one word, which no comment may stand in."""

from __future__ import annotations

import re

MARKS = re.compile(r"--|/\*|#|//")


def without_comments(text: str, dialect: str) -> str:
    """Each comment becomes a space, as sqlglot's tokens have it. A text that has no tokens stays: its parse complains.

    >>> without_comments("SELECT 'a -- b' /* c */ FROM t ORDER /**/ BY 1 -- d", "sqlite")
    "SELECT 'a -- b' FROM t ORDER BY 1"
    """
    if not MARKS.search(text):
        return text
    import sqlglot
    from sqlglot import TokenType
    from sqlglot.errors import SqlglotError

    try:
        tokens = sqlglot.tokenize(text, dialect=dialect)
    except SqlglotError:
        return text
    parts: list[str] = []
    end = 0
    for token in tokens:
        between = text[end : token.start]
        parts += [" " if between.strip() else between, text[token.start : token.end + 1]]
        end = token.end + 1
        if token.token_type == TokenType.COMMAND:  # what follows it is one token to sqlglot, with its comments
            rest = text[end:]
            parts += [rest[: len(rest) - len(rest.lstrip())] or " ", without_comments(rest, dialect)]
            break
    return "".join(parts).strip()
