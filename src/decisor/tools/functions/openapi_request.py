"""The HTTP request that an operation's arguments make, in the styles of OpenAPI 3."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from decisor.errors import ToolError
from decisor.tools.functions.openapi import Operation, Parameter
from decisor.types import Value

SEPARATORS = {"spaceDelimited": "%20", "pipeDelimited": "|"}


@dataclass(frozen=True)
class Request:
    """``url`` is percent-encoded."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None


def build(
    operation: Operation, arguments: Mapping[str, Value], keys: Mapping[str, str], key_query: Sequence[tuple[str, str]]
) -> Request:
    """``keys``: headers that let the call in; ``key_query``: query parameters that do.

    Raises:
        ToolError: an argument cannot be sent.
    """
    path, query, body = operation.path, list[tuple[str, str]](), None
    headers = {"User-Agent": "decisor", "Accept": "application/json, */*;q=0.5"}
    for one in operation.parameters:
        if one.name not in arguments or arguments[one.name] is None:
            continue
        value = json.dumps(arguments[one.name]) if one.as_json else arguments[one.name]
        if one.place == "path":
            path = path.replace(f"{{{one.wire}}}", in_path(one, value))
        elif one.place == "query":
            query += in_query(one, value)
        elif one.place == "header":
            headers[one.wire] = in_header(one, value)
        else:
            body = encode_body(operation.media, value)
            headers["Content-Type"] = operation.media
    ending = "&".join(f"{quote(name, safe='[]')}={text}" for name, text in query)
    ending = "&".join(part for part in (ending, urlencode(key_query)) if part)
    return Request(
        operation.method.upper(), f"{operation.server}{path}{'?' if ending else ''}{ending}", {**headers, **keys}, body
    )


def in_path(one: Parameter, value: Value) -> str:
    """Styles simple, label and matrix; percent-encoded, so that a value stays one segment."""
    text = join_values(value, ",", one.explode)
    if not text or text in (".", "..") or text.lower().replace("%2e", ".") in (".", ".."):
        raise ToolError(f"{one.name} cannot be {text!r}: it is a part of the path.")
    return {"label": ".", "matrix": f";{one.wire}="}.get(one.style, "") + text


def in_query(one: Parameter, value: Value) -> list[tuple[str, str]]:
    """Styles form, spaceDelimited, pipeDelimited and deepObject."""
    if isinstance(value, Mapping):
        if one.style == "deepObject":
            return [(f"{one.wire}[{name}]", quote(plain(item), safe="")) for name, item in value.items()]
        if one.explode:
            return [(str(name), quote(plain(item), safe="")) for name, item in value.items()]
    if isinstance(value, list) and one.explode:
        return [(one.wire, quote(plain(item), safe="")) for item in value]
    return [(one.wire, join_values(value, SEPARATORS.get(one.style, ","), False))]


def in_header(one: Parameter, value: Value) -> str:
    text = ",".join(plain(item) for item in value) if isinstance(value, list) else plain(value)
    if any(ord(char) < 32 or ord(char) > 126 for char in text):
        raise ToolError(f"{one.name} cannot hold line ends or characters beyond ASCII: it is sent as a header.")
    return text


def join_values(value: Value, separator: str, explode: bool) -> str:
    """
    >>> join_values(["a b", 2], ",", False), join_values({"x": 1}, ",", True), join_values("../etc", ",", False)
    ('a%20b,2', 'x=1', '..%2Fetc')
    """
    if isinstance(value, Mapping):
        between = "=" if explode else ","
        return separator.join(
            f"{quote(str(n), safe='')}{between}{quote(plain(item), safe='')}" for n, item in value.items()
        )
    return separator.join(quote(plain(item), safe="") for item in (value if isinstance(value, list) else [value]))


def plain(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, Mapping | list) else "" if value is None else str(value)


def encode_body(media: str, value: Value) -> bytes:
    if media != "application/x-www-form-urlencoded":
        return json.dumps(value, ensure_ascii=False).encode()
    pairs = value.items() if isinstance(value, Mapping) else []
    return urlencode([(name, plain(item)) for name, item in pairs]).encode()
