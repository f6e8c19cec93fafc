"""An OpenAPI 3 document as operations that can be called. Nothing is fetched: references lead within the document.

What cannot be called (a method not allowed, a body that is neither JSON nor a form, a reference that leads nowhere, a
part of a wrong type) is left out, and ``Document.left_out`` says why.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal
from urllib.parse import urljoin, urlsplit

from decisor.errors import SetupError
from decisor.outside import one_line
from decisor.secrets import without_password
from decisor.tools.functions.json_schema import Misfit, Schema, deref, mapping, sequence, texts
from decisor.tools.functions.openapi_file import read_file
from decisor.types import Value

Place = Literal["path", "query", "header", "body"]
PLACES: Mapping[Value, Place] = {"path": "path", "query": "query", "header": "header"}
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
FORMS = ("application/json", "application/x-www-form-urlencoded")
IGNORED_HEADERS = {"accept", "content-type", "authorization", "host", "cookie", "connection", "content-length",
                   "transfer-encoding"}  # fmt: skip
LONGEST_NAME, LONGEST_URL, MOST_STEPS = 64, 2000, 3_000_000


@dataclass(frozen=True, slots=True)
class Parameter:
    """``name`` is the argument's, ``wire`` the one in the request. ``as_json``: its value is sent as JSON text."""

    name: str
    wire: str
    place: Place
    required: bool
    style: str = ""
    explode: bool = False
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
    """``server``: the document's own, which alone is sent keys; '' where it names none. ``schemes``: how keys are sent,
    by name. ``left_out``: operations that cannot be called, with why."""

    title: str
    operations: tuple[Operation, ...]
    root: Schema
    server: str = ""
    schemes: Mapping[str, Schema] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


def read_document(path: Path, methods: Sequence[str] = ("get",), base_url: str = "") -> Document:
    """JSON or YAML. ``methods``: the ones that may be called. ``base_url`` takes the place of the document's servers.

    Raises:
        SetupError: it cannot be read, is no OpenAPI 3, or names no server to call.
    """
    return document_of(read_file(path), path, methods, base_url)


def document_of(
    root: Schema, path: Path, methods: Sequence[str] = ("get",), base_url: str = "", address: str = ""
) -> Document:
    """``path``: what errors call it. ``address``: where it was fetched, which its servers are relative to.

    Raises:
        SetupError: as ``read_document``.
    """
    if not str(root.get("openapi", "")).startswith("3."):
        what = "Swagger 2.0" if str(root.get("swagger", "")).startswith("2") else "no OpenAPI 3 document"
        raise SetupError(f"{path} is {what}. Give a document of OpenAPI 3.0 or 3.1 (it begins with openapi: 3...).")
    allowed = [method.lower() for method in methods]
    if unknown := [method for method in allowed if method not in METHODS]:
        raise SetupError(f"{unknown[0]} is no HTTP method; there is {', '.join(METHODS)}.")
    own = base_url.rstrip("/") or first_server(root)
    own = urljoin(address, own or "/").rstrip("/") if address and not base_url else own
    callable_ones, left_out, references = [], [], References(root)
    for route, method, item, spec in operations(root):
        try:
            if method not in allowed:
                raise Misfit(f"{method.upper()} is not allowed: allow it with --allow-methods {method}")
            server = own if base_url else joined_server(own, first_server(spec) or first_server(item))
            if not origin(server) and origin(own):
                raise Misfit(f"its server cannot be called: {one_line(server, 80)}")
            check_server(server, path)
            one = OperationReader(route, method, item, spec, root).operation(server)
            references.check(one.schema)
            callable_ones.append(one)
        except Misfit as misfit:
            left_out.append(f"{method.upper()} {one_line(route, 100)}: {misfit}")
    title = one_line(str(mapping(root.get("info")).get("title", path.stem)), 80)
    schemes = mapping(mapping(root.get("components")).get("securitySchemes"))
    return Document(
        title=title, operations=tuple(with_names_apart(callable_ones)), root=root, server=own,
        schemes=sound_schemes(schemes, root), left_out=tuple(left_out),
    )  # fmt: skip


def sound_schemes(schemes: Schema, root: Schema) -> dict[str, Schema]:
    """Without those that lead nowhere."""
    whole = {}
    for name, scheme in schemes.items():
        try:
            whole[name] = deref(scheme, root)
        except Misfit:
            continue
    return whole


def operations(root: Schema) -> Iterator[tuple[str, str, Schema, Schema]]:
    """Path, method, what its path says for all methods, and what it says itself."""
    for route, value in mapping(root.get("paths")).items():
        try:
            item = deref(value, root)
        except Misfit:
            item = {"get": {"parameters": [value]}}  # left out with the reason
        for method in METHODS:
            if isinstance(spec := item.get(method), Mapping):
                yield route, method, item, spec


def first_server(place: Schema) -> str:
    """The first server that an operation, a path or a document names, with its variables at their defaults, or ''."""
    server = mapping((*sequence(place.get("servers")), None)[0])
    url = str(server.get("url", ""))
    for name, variable in mapping(server.get("variables")).items():
        url = url[:LONGEST_URL].replace(f"{{{name}}}", str(mapping(variable).get("default", ""))[:LONGEST_URL])
    return url[:LONGEST_URL].rstrip("/")


def joined_server(own: str, other: str) -> str:
    """``other``, which may lead from the document's own server. Raises Misfit where it is no address."""
    try:
        return urljoin(f"{own}/", other).rstrip("/")
    except ValueError as error:
        raise Misfit(f"its server is no address: {one_line(other, 80)}") from error


def check_server(url: str, path: Path) -> None:
    if not origin(url):
        base = f"http://HOST{url}" if url.startswith("/") or not url else "URL"
        place = without_password(url) or "/"
        raise SetupError(f"{path} names no server that can be called ({place}): give one with --base-url {base}.")


def origin(url: str) -> tuple[str, str, int] | None:
    """Scheme, host and port of an HTTP address; None of anything else.

    >>> origin("https://API.example/v1"), origin("file:///etc")
    (('https', 'api.example', 443), None)
    """
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    except ValueError:
        return None
    return (
        (parts.scheme, parts.hostname, port) if port and parts.scheme in ("http", "https") and parts.hostname else None
    )


@dataclass(frozen=True)
class OperationReader:
    """One operation while it is read. Each method raises Misfit where it cannot be called."""

    route: str
    method: str
    item: Schema
    spec: Schema
    root: Schema

    def operation(self, server: str) -> Operation:
        if not self.route.startswith("/"):
            raise Misfit("its path does not begin with /")
        parameters, schemas = self.parameters()
        media, body, must = self.body()
        if media:
            name = "body" if "body" not in schemas else "request_body"
            parameters.append(Parameter(name, "", "body", must))
            schemas[name] = body
        wires = {one.wire for one in parameters if one.place == "path"}
        if missing := [wire for wire in re.findall(r"\{([^{}]+)\}", self.route) if wire not in wires]:
            raise Misfit(f"its path names {one_line(missing[0], 80)}, which it does not describe")
        schema: Schema = {
            "type": "object", "properties": schemas,
            "required": [one.name for one in parameters if one.required], "additionalProperties": False,
        }  # fmt: skip
        about = next((one for one in (self.spec.get("description"), self.spec.get("summary"),
                                      self.item.get("description"), self.item.get("summary")) if one), "")  # fmt: skip
        return Operation(
            name=tool_name(str(self.spec.get("operationId") or f"{self.method}_{self.route}")), method=self.method,
            server=server, path=self.route, about=one_line(str(about), 400), parameters=tuple(parameters),
            schema=schema, media=media, ways=self.ways(), tags=texts(self.spec.get("tags")),
        )  # fmt: skip

    def parameters(self) -> tuple[list[Parameter], dict[str, Value]]:
        specs: dict[tuple[str, Value], Schema] = {}
        for value in (*sequence(self.item.get("parameters")), *sequence(self.spec.get("parameters"))):
            spec = deref(value, self.root)
            specs[str(spec.get("name", "")), str(spec.get("in"))] = spec
        parameters, schemas = [], dict[str, Value]()
        for (wire, where), spec in specs.items():
            ignored = where == "header" and wire.lower() in IGNORED_HEADERS
            if ignored or (where == "cookie" and not spec.get("required")):
                continue
            if (place := PLACES.get(where)) is None or not wire:
                raise Misfit(f"it needs {one_line(wire, 80)} in {one_line(str(where), 80)}, which is not supported")
            name = wire if wire not in schemas else f"{place}_{wire}"
            parameters.append(parameter(name, wire, place, spec))
            schemas[name] = parameter_schema(spec)
        return parameters, schemas

    def body(self) -> tuple[str, Value, bool]:
        """The media type, the schema, and whether it is required."""
        spec = deref(self.spec.get("requestBody"), self.root)
        content, must = mapping(spec.get("content")), bool(spec.get("required"))
        for media, about in content.items():
            plain = media.partition(";")[0].strip().lower()
            if plain in FORMS or re.fullmatch(r"[\w.+/-]+\+json", plain, re.ASCII):
                return plain, mapping(about).get("schema"), must
        if content and must:
            raise Misfit(f"its body is {one_line(', '.join(content), 200)}; JSON and forms are supported")
        return "", {}, False

    def ways(self) -> tuple[tuple[str, ...], ...]:
        """The ways to be let in, each the schemes that it needs together; () where none is needed."""
        ways = [mapping(way) for way in sequence(self.spec.get("security", self.root.get("security")))]
        return () if not all(ways) else tuple(tuple(way) for way in ways)


def parameter(name: str, wire: str, place: Place, spec: Schema) -> Parameter:
    style = str(spec.get("style", "form" if place == "query" else "simple"))
    return Parameter(
        name=name, wire=wire, place=place, required=bool(spec.get("required")) or place == "path", style=style,
        explode=bool(spec.get("explode", style == "form")), as_json=bool(mapping(spec.get("content"))),
    )  # fmt: skip


def parameter_schema(spec: Schema) -> Schema:
    """With the description and the example that the parameter has beside its schema."""
    content = mapping(spec.get("content"))
    schema = mapping(next(iter(content.values()), None)).get("schema") if content else spec.get("schema")
    about = {key: spec[key] for key in ("description", "example") if spec.get(key)}
    return {**mapping(schema), **about}


@dataclass
class References:
    """All that schemas refer to, followed once for each operation, and not for ever."""

    root: Schema
    steps: int = 0

    def check(self, schema: Value) -> None:
        """Raises Misfit where a reference leads nowhere, or outside."""
        waiting, names = [schema], set[str]()
        while waiting and self.steps < MOST_STEPS:
            self.steps += 1
            one = waiting.pop()
            if isinstance(one, list):
                waiting += one
            elif isinstance(one, Mapping):
                waiting += one.values()
                name = one.get("$ref")
                if isinstance(name, str) and name not in names:
                    names.add(name)
                    waiting.append(deref(one, self.root))


def tool_name(text: str) -> str:
    """
    >>> tool_name("get_/plants/{id}"), tool_name("listPlants")
    ('get_plants_id', 'listPlants')
    """
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[-LONGEST_NAME:].lstrip("_") or "operation"


def with_names_apart(operations: Sequence[Operation]) -> Iterator[Operation]:
    """With names that no two have."""
    names: set[str] = set()
    last: dict[str, int] = {}
    for one in operations:
        name = one.name
        while name in names:
            last[one.name] = last.get(one.name, 1) + 1
            name = f"{one.name[: LONGEST_NAME - 8]}_{last[one.name]}"
        names.add(name)
        yield replace(one, name=name)
