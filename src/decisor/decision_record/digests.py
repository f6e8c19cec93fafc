"""Digests: SHA-256 over canonical JSON (keys sorted, no blanks, UTF-8), in hexadecimal.

Rows are compared with those that the same query brings another day, so their digests do without what differs from
session to session: a token of a masked column counts as ``masked``, and a decimal number has 12 digits.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from decisor.encoding import finite
from decisor.tools.databases.sandbox.policy import TOKEN
from decisor.types import Record

MASKED = "masked"


def canonical(value: object) -> str:
    """
    >>> canonical({"b": (1, 2.5), "a": None})
    '{"a":null,"b":[1,2.5]}'
    """
    return json.dumps(finite(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest_of(value: object) -> str:
    return hashlib.sha256(canonical(value).encode("utf-8", "replace")).hexdigest()


def part_digests(content: Mapping[str, object]) -> dict[str, str]:
    """Of each part of a content, as JSON has it."""
    return {name: digest_of(part) for name, part in content.items()}


def row_digest(fields: Mapping[str, object], text: str = "", has_same_tokens: bool = False) -> str:
    """Return the digest of a row. ``has_same_tokens``: of one key, so that another token is another value.

    >>> row_digest({"rent": 0.1 + 0.2}) == row_digest({"rent": 0.3})
    True
    """
    cells = {name: comparable(value) for name, value in fields.items()}
    words = canonical([cells, text])
    return hashlib.sha256(
        (words if has_same_tokens else TOKEN.sub(MASKED, words)).encode("utf-8", "replace")
    ).hexdigest()


def rows_digest(records: Sequence[Record]) -> str:
    """Of all rows of a query, in any order."""
    return digest_of(sorted(row_digest(one.fields, one.text) for one in records))


def comparable(value: object) -> object:
    if isinstance(value, float):
        return f"{value:.12g}"
    if isinstance(value, Mapping):
        return {key: comparable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [comparable(item) for item in value]
    return value
