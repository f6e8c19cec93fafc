"""An OpenAPI 3 document as operations that can be called. Nothing is fetched: references lead within the document.

What cannot be called (a method not allowed, a body that is neither JSON nor a form, a reference that leads nowhere) is
left out, and ``Document.left_out`` says why.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from decisor.errors import SetupError
from decisor.tools.functions.json_schema import Misfit, Schema, deref

Place = Literal["path", "query", "header", "cookie", "body"]
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
FORMS = ("application/json", "application/x-www-form-urlencoded")
IGNORED_HEADERS = {"accept", "content-type", "authorization", "host", "cookie", "connection", "content-length",
                   "transfer-encoding"}  # fmt: skip
MAX_BYTES, LONGEST_NAME = 20 * 2**20, 64


@dataclass(frozen=True, slots=True)
class Parameter:
    """``name`` is the argument's, ``wire`` the one in the request. ``as_json``: its value is sent as JSON text."""

    name: str
    wire: str
    place: Place
    required: bool
    style: str
    explode: bool
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path. ``server`` has no slash at its end; ``schema`` is of the arguments. ``media``: of the
    body, '' where there is none. ``ways`` to be let in: names of security schemes."""

    name: str
    method: str
    server: str
    path: str
    about: str
    parameters: tuple[Parameter, ...]
    schema: Schema
    media: str = ""
    ways: tuple[tuple[str, ...], ...] = ()
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Document:
    """``schemes``: how keys are sent, by name. ``left_out``: operations that cannot be called, with why."""

    title: str
    operations: tuple[Operation, ...]
    root: Mapping[str, Any]
    schemes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


def read_document(path: Path, methods: Sequence[str] = ("get",), base_url: str = "") -> Document:
    """JSON or YAML. ``methods``: the ones that may be called. ``base_url`` takes the place of the document's servers.

    Raises:
        SetupError: it cannot be read, is no OpenAPI 3, or names no server to call.
    """
    root = parsed(path)
    version = str(root.get("openapi", ""))
    if not version.startswith("3."):
        what = "Swagger 2.0" if str(root.get("swagger", "")).startswith("2") else "no OpenAPI 3 document"
        raise SetupError(f"{path} is {what}. Give a document of OpenAPI 3.0 or 3.1 (it begins with openapi: 3...).")
    allowed = [method.lower() for method in methods]
    if unknown := [method for method in allowed if method not in METHODS]:
        raise SetupError(f"{unknown[0]} is no HTTP method; there is {', '.join(METHODS)}.")
    found, left_out = [], []
    for route, method, item, spec in operations(root):
        try:
            if method not in allowed:
                raise Misfit(f"{method.upper()} is not allowed: allow it with --allow-methods {method}")
            server = base_url.rstrip("/") or server_of(spec, item, root, path)
            found.append(operation(route, method, item, spec, root, server))
        except Misfit as misfit:
            left_out.append(f"{method.upper()} {route}: {misfit}")
    title = str(deref(root.get("info", {}), root).get("title", path.stem))
    schemes = deref(root.get("components", {}), root).get("securitySchemes", {})
    held = {name: deref(scheme, root) for name, scheme in schemes.items()}
    return Document(title, tuple(numbered(found)), root, held, tuple(left_out))


def parsed(path: Path) -> Mapping[str, Any]:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SetupError(f"{path} is over {MAX_BYTES >> 20} MB: name a smaller part of the API.")
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(
            f"Cannot read the OpenAPI document {path}: {getattr(error, 'strerror', '') or error}."
        ) from error
    try:
        value = json.loads(text)
    except ValueError as error:
        if path.suffix == ".json":
            raise SetupError(f"{path} is not JSON: {error}.") from error
        value = parsed_yaml(text, path)
    if not isinstance(value, dict):
        raise SetupError(f"{path} is no OpenAPI document: it holds no object.")
    return value


def parsed_yaml(text: str, path: Path) -> Any:
    try:
        import yaml
    except ImportError as error:
        raise SetupError(f"{path} is YAML: pip install 'decisor[openapi]', or convert it to JSON.") from error
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise SetupError(f"{path} is neither JSON nor YAML: {error}.") from error


def operations(root: Mapping[str, Any]) -> Iterator[tuple[str, str, Schema, Schema]]:
    """Path, method, what its path says for all methods, and what it says itself."""
    paths = root.get("paths") or {}
    for route, item in paths.items():
        item = deref(item, root)
        for method in METHODS:
            if isinstance(item.get(method), Mapping):
                yield str(route), method, item, item[method]


def server_of(spec: Schema, item: Schema, root: Mapping[str, Any], path: Path) -> str:
    """The first server of the operation, of its path or of the document, with its variables at their defaults."""
    servers = spec.get("servers") or item.get("servers") or root.get("servers") or [{"url": "/"}]
    url, variables = str(servers[0].get("url", "/")), servers[0].get("variables", {})
    for name, variable in variables.items():
        url = url.replace(f"{{{name}}}", str(variable.get("default", "")))
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        told = f"http://HOST{url.rstrip('/')}" if url.startswith("/") else "URL"
        raise SetupError(f"{path} names no server that can be called ({url}): give one with --base-url {told}.")
    return url.rstrip("/")


def operation(route: str, method: str, item: Schema, spec: Schema, root: Mapping[str, Any], server: str) -> Operation:
    """Raises Misfit where it cannot be called."""
    given: dict[tuple[str, str], Schema] = {}
    for one in (*item.get("parameters", ()), *spec.get("parameters", ())):
        one = deref(one, root)
        given[str(one.get("name")), str(one.get("in"))] = one
    taken: dict[str, tuple[Parameter, Schema]] = {}
    for (wire, place), one in given.items():
        if place == "header" and wire.lower() in IGNORED_HEADERS:
            continue
        if place == "cookie" and not one.get("required"):
            continue
        if place not in ("path", "query", "header"):
            raise Misfit(f"it needs {wire} in {place}, which is not supported")
        name = wire if wire not in taken else f"{place}_{wire}"
        taken[name] = parameter(name, one)
    media, body, must = body_of(spec, root)
    if media:
        name = "body" if "body" not in taken else "request_body"
        taken[name] = Parameter(name, "", "body", must, "", False), body
    missing = [wire for wire in re.findall(r"\{([^{}]+)\}", route) if (wire, "path") not in given]
    if missing:
        raise Misfit(f"its path names {missing[0]}, which it does not describe")
    schema = {
        "type": "object", "properties": {name: told for name, (_, told) in taken.items()},
        "required": [name for name, (one, _) in taken.items() if one.required], "additionalProperties": False,
    }  # fmt: skip
    about = " ".join(str(spec.get("summary") or spec.get("description") or item.get("summary") or "").split())
    return Operation(
        tool_name(spec.get("operationId") or f"{method}_{route}"), method, server, route, about,
        tuple(one for one, _ in taken.values()), schema, media,
        ways_of(spec, root), tuple(map(str, spec.get("tags", ()))),
    )  # fmt: skip


def parameter(name: str, given: Schema) -> tuple[Parameter, Schema]:
    place, content = given["in"], given.get("content") or {}
    style = given.get("style", "form" if place == "query" else "simple")
    schema = next(iter(content.values())).get("schema", {}) if content else given.get("schema", {})
    about = {"description": given["description"]} if given.get("description") else {}
    example = {"example": given["example"]} if "example" in given else {}
    told = {"allOf": [schema], **about, **example} if "$ref" in schema else {**schema, **about, **example}
    must = bool(given.get("required")) or place == "path"
    return Parameter(
        name, given["name"], place, must, style, given.get("explode", style == "form"), bool(content)
    ), told


def body_of(spec: Schema, root: Mapping[str, Any]) -> tuple[str, Schema, bool]:
    """The media type, the schema, and whether it is required. Raises Misfit where we cannot write such a body."""
    given = deref(spec.get("requestBody", {}), root)
    content = given.get("content") or {}
    if not content:
        return "", {}, False
    for media, told in content.items():
        plain = str(media).partition(";")[0].strip().lower()
        if plain in FORMS or plain.endswith("+json"):
            return plain, told.get("schema", {}), bool(given.get("required"))
    if given.get("required"):
        raise Misfit(f"its body is {', '.join(content)}; JSON and forms are supported")
    return "", {}, False


def ways_of(spec: Schema, root: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    """The ways to be let in, each the schemes that it needs together; () where none is needed."""
    ways = spec.get("security", root.get("security")) or []
    return () if any(not way for way in ways) else tuple(tuple(map(str, way)) for way in ways)


def tool_name(text: str) -> str:
    """
    >>> tool_name("get_/plants/{id}"), tool_name("listPlants")
    ('get_plants_id', 'listPlants')
    """
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[-LONGEST_NAME:].lstrip("_") or "operation"


def numbered(found: Sequence[Operation]) -> Iterator[Operation]:
    """With names that are given once."""
    seen: set[str] = set()
    for one in found:
        name, number = one.name, 2
        while name in seen:
            name, number = f"{one.name[: LONGEST_NAME - 4]}_{number}", number + 1
        seen.add(name)
        yield replace(one, name=name)
