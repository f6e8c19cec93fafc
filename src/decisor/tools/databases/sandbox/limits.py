"""``LIMIT 5 % 2`` as sqlglot can read it: it takes a sign % in a limit for one of per cent."""

from __future__ import annotations

from collections.abc import Sequence

import sqlglot
from sqlglot import Token, TokenType

ENDS = (TokenType.OFFSET, TokenType.COMMA, TokenType.SEMICOLON, TokenType.FETCH, TokenType.FOR)
OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
SHUT = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)


def bracket_limits(text: str, dialect: str) -> str:
    """Put brackets around each limit with a remainder. A sign at the end of one is for per cent (DuckDB), and stays.

    >>> bracket_limits("SELECT 1 LIMIT 5 % 2 OFFSET 1", "sqlite")
    'SELECT 1 LIMIT (5 % 2) OFFSET 1'
    >>> bracket_limits("SELECT a % 2 FROM t LIMIT 5 %", "duckdb")
    'SELECT a % 2 FROM t LIMIT 5 %'
    """
    tokens = sqlglot.tokenize(text, dialect=dialect)
    places: list[tuple[int, str]] = []
    for at, token in enumerate(tokens):
        limit = limit_of(tokens, at + 1) if token.token_type == TokenType.LIMIT else ()
        if any(one.token_type == TokenType.MOD for one in limit[:-1]):
            places += [(limit[0].start, "("), (limit[-1].end + 1, ")")]
    for place, bracket in sorted(places, reverse=True):
        text = text[:place] + bracket + text[place:]
    return text


def limit_of(tokens: Sequence[Token], at: int) -> Sequence[Token]:
    """The tokens of the expression that begins there."""
    depth = 0
    for end in range(at, len(tokens)):
        kind = tokens[end].token_type
        depth += (kind in OPEN) - (kind in SHUT)
        if depth < 0 or (not depth and kind in ENDS):
            return tokens[at:end]
    return tokens[at:]
