"""Read an OpenAPI 3 document as operations that can be called. It may be a stranger's.

It is JSON or YAML, of a file or an address that a person named, and is read within caps on bytes, depth and parts.
YAML builds nothing but texts, numbers, truth values, lists and objects. References lead within the document. What
cannot be called (a method not allowed, a body that is neither JSON nor a form, a reference that leads nowhere, a part
of a wrong type) is left out, and ``Document.left_out`` says why.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from decisor.errors import SetupError
from decisor.extras import lacks
from decisor.outside import clean_text, one_line
from decisor.secrets import without_password
from decisor.tools.functions.json_schema import Misfit, Schema, deref, mapping, sequence, texts
from decisor.types import Value

if TYPE_CHECKING:
    import yaml

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
FORM = "application/x-www-form-urlencoded"
IGNORED_HEADERS = ("accept", "content-type", "authorization", "host", "cookie", "connection", "content-length",
                   "transfer-encoding")  # fmt: skip
LONGEST_NAME, LONGEST_URL, MOST_STEPS = 64, 2000, 3_000_000
MAX_BYTES, MOST_PARTS, DEEPEST, FETCH_SECONDS = 20 * 2**20, 1_000_000, 100, 15.0
DEEP = f"it is nested deeper than {DEEPEST}"
CONSTANTS = {"": None, "~": None, "null": None, "true": True, "false": False}
DECIMAL = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?")


class Unusable(Exception):
    """The text is for the person who named the file."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of an operation and its place in the request."""

    name: str
    wire: str
    """Name in the request."""
    place: str
    """path, query, header or body."""
    required: bool
    style: str = ""
    explode: bool = False
    as_json: bool = False
    """Whether its value is sent as JSON text."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path."""

    name: str
    method: str
    server: str
    """Address without a slash at its end."""
    path: str
    about: str
    parameters: tuple[Parameter, ...]
    schema: Schema
    """Of all arguments together."""
    media: str = ""
    """Media type of the body; '' means no body."""
    ways: tuple[tuple[str, ...], ...] = ()
    """Security schemes that let a call in: any of these tuples will do."""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Document:
    """An OpenAPI document."""

    title: str
    operations: tuple[Operation, ...]
    root: Schema
    server: str = ""
    """The document's own server, which alone is sent keys; '' where it names none."""
    schemes: Mapping[str, Schema] = field(default_factory=dict)
    """How keys are sent, by the name of the security scheme."""
    left_out: tuple[str, ...] = ()
    """Operations that cannot be called, with why."""


def read_document(place: str | Path, methods: Sequence[str] = ("get",), base_url: str = "") -> Document:
    """Read a file, or fetch a document from its address.

    Args:
        methods: the ones that may be called.
        base_url: takes the place of the document's servers.

    Raises:
        SetupError: it cannot be read, is no OpenAPI 3, or names no server to call.
    """
    if not str(place).startswith(("http://", "https://")):
        return document_of(parse_text(read_file(Path(place)), Path(place)), Path(place), methods, base_url)
    address = without_password(str(place))
    root = parse_text(fetch(str(place)), Path(urlsplit(address).path or "document"))
    return document_of(root, Path(address), methods, base_url, address)


def read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SetupError(f"Cannot read the OpenAPI document {path}: {error.strerror or error}.") from error


def fetch(url: str) -> bytes:
    """Get a document: one GET without keys, which no redirect leads to another host."""
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class SameHost(HTTPRedirectHandler):
        def redirect_request(
            self, req: Request, fp: object, code: int, msg: str, headers: object, newurl: str
        ) -> Request:
            if urlsplit(newurl)[:2] != urlsplit(req.full_url)[:2]:
                raise URLError(f"it redirects to {without_password(newurl)[:100]}")
            return Request(newurl, headers=dict(req.header_items()))

    place = without_password(url)
    request = Request(url, headers={"User-Agent": "decisor", "Accept": "application/json, application/yaml, */*;q=0.5"})
    try:
        with build_opener(SameHost).open(request, timeout=FETCH_SECONDS) as reply:
            data: bytes = reply.read(MAX_BYTES + 1)
            return data
    except HTTPError as error:
        why = f"answered with status {error.code}"
    except (OSError, HTTPException, ValueError) as error:
        cause = error.reason if isinstance(error, URLError) else error
        why = f"cannot be fetched: {cause.strerror or cause if isinstance(cause, OSError) else cause}"
    raise SetupError(f"{place} {why}. Download it, and give the file.")


def parse_text(data: bytes, path: Path) -> Schema:
    """Parse JSON or YAML. ``path``: what errors call it, and its ending."""
    if len(data) > MAX_BYTES:
        raise SetupError(f"{path} is over {MAX_BYTES >> 20} MB: name a smaller part of the API.")
    try:
        text = data.decode("utf-8")
        try:
            value = PlainCopy().copy(json.loads(text))
        except ValueError as error:
            if path.suffix == ".json":
                raise SetupError(f"{path} is not JSON: {error}.") from error
            value = parse_yaml(text, path)
    except UnicodeDecodeError as error:
        raise SetupError(f"Cannot read the OpenAPI document {path}: it is no text in UTF-8.") from error
    except (Unusable, RecursionError) as error:
        raise SetupError(f"{path} cannot be used: {str(error) if isinstance(error, Unusable) else DEEP}.") from error
    if not isinstance(value, dict):
        raise SetupError(f"{path} is no OpenAPI document: it holds no object.")
    return value


def parse_yaml(text: str, path: Path) -> Value:
    """Parse the first document of YAML with PyYAML. Tags build nothing."""
    try:
        import yaml
    except ImportError as error:
        raise lacks(f"{path} is YAML, and reading it needs pyyaml (or make it JSON)", "openapi") from error

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        yaml_implicit_resolvers = {None: [("plain", re.compile(""))]}  # noqa: RUF012

    try:
        depth = 0
        for event in yaml.parse(text, Loader):  # its C composer crashes the process on 200,000 brackets
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                raise Unusable(DEEP)
        return PlainCopy().copy_node(next(yaml.compose_all(text, Loader), yaml.ScalarNode("plain", "")))
    except yaml.YAMLError as error:
        raise SetupError(f"{path} is neither JSON nor YAML: {one_line(str(error), 300)}.") from error


@dataclass
class PlainCopy:
    """A copy of a value, counted part by part: what YAML's aliases and merge keys repeat counts each time."""

    parts: int = 0

    def count(self, depth: int) -> None:
        self.parts += 1
        if depth > DEEPEST:
            raise Unusable(DEEP)
        if self.parts > MOST_PARTS:
            raise Unusable(f"it has more than {MOST_PARTS:,} parts, counting what its aliases repeat")

    def copy(self, value: Value, depth: int = 0) -> Value:
        self.count(depth)
        if isinstance(value, str):
            return clean_text(value)
        if isinstance(value, dict):
            return {clean_text(key): self.copy(item, depth + 1) for key, item in value.items()}
        return [self.copy(item, depth + 1) for item in value] if isinstance(value, list) else value

    def copy_node(self, node: yaml.Node, depth: int = 0) -> Value:
        from yaml import ScalarNode, SequenceNode

        self.count(depth)
        if isinstance(node, ScalarNode):
            return parse_scalar(clean_text(node.value)) if node.tag == "plain" else clean_text(node.value)
        if isinstance(node, SequenceNode):
            return [self.copy_node(item, depth + 1) for item in node.value]
        merged, own = dict[str, Value](), dict[str, Value]()
        for key, item in node.value:
            if not isinstance(key, ScalarNode):
                raise Unusable("it has a key that is no text")
            value = self.copy_node(item, depth + 1)
            if (key.tag, key.value) != ("plain", "<<"):
                own[clean_text(key.value)] = value
                continue
            for source in value if isinstance(value, list) else [value]:
                if not isinstance(source, dict):
                    raise Unusable("it has a merge key << that stands for no object")
                for name in source:
                    merged.setdefault(name, source[name])
        return {**merged, **own}


def parse_scalar(text: str) -> Value:
    """Parse a plain scalar as YAML 1.2 does, so that ``no`` and ``2024-01-01`` stay texts.

    >>> parse_scalar("7"), parse_scalar("1e3"), parse_scalar("no"), parse_scalar("~"), parse_scalar("True")
    (7, 1000.0, 'no', None, True)
    """
    if text in (text.lower(), text.title(), text.upper()) and text.lower() in CONSTANTS:
        return CONSTANTS[text.lower()]
    if re.fullmatch(r"[-+]?\d{1,19}", text):
        return int(text)
    return float(text) if DECIMAL.fullmatch(text) else text


def document_of(root: Schema, path: Path, methods: Sequence[str], base_url: str, address: str = "") -> Document:
    """Make a document of its content. ``address``: where it was fetched, which its servers are relative to."""
    if not str(root.get("openapi", "")).startswith("3."):
        kind = "Swagger 2.0" if str(root.get("swagger", "")).startswith("2") else "no OpenAPI 3 document"
        raise SetupError(f"{path} is {kind}. Give a document of OpenAPI 3.0 or 3.1 (it begins with openapi: 3...).")
    allowed = [method.lower() for method in methods]
    if unknown := [method for method in allowed if method not in METHODS]:
        raise SetupError(f"{unknown[0]} is no HTTP method; there is {', '.join(METHODS)}.")
    server = base_url.rstrip("/") or first_server(root)
    if address and not base_url:
        server = urljoin(address, server or "/").rstrip("/")
    reader, operations, left_out = OperationReader(root, server), list[Operation](), list[str]()
    for route, method, item, spec in described_operations(root):
        try:
            if method not in allowed:
                raise Misfit(f"{method.upper()} is not allowed: allow it with --allow-methods {method}")
            at = server if base_url else reader.operation_server(first_server(spec) or first_server(item))
            if not origin(at):
                base = f"http://HOST{at}" if at.startswith("/") or not at else "URL"
                raise SetupError(f"{path} names no server that can be called ({without_password(at) or '/'}): "
                                 f"give one with --base-url {base}.")  # fmt: skip
            operations.append(reader.read(route, method, at, item, spec))
        except Misfit as misfit:
            left_out.append(f"{method.upper()} {one_line(route, 100)}: {misfit}")
    schemes = mapping(mapping(root.get("components")).get("securitySchemes"))
    return Document(
        title=one_line(str(mapping(root.get("info")).get("title", path.stem)), 80), root=root, server=server,
        operations=tuple(name_operations(operations)), left_out=tuple(left_out),
        schemes={name: deref_or_empty(scheme, root) for name, scheme in schemes.items()},
    )  # fmt: skip


def described_operations(root: Schema) -> Iterator[tuple[str, str, Schema, Schema]]:
    """Yield path, method, the description of the path and that of the method."""
    for route, value in mapping(root.get("paths")).items():
        item = deref_or_empty(value, root)
        if not item and "$ref" in mapping(value):  # it leads nowhere: left out with the reason
            item = {"get": {"parameters": [value]}}
        for method in METHODS:
            if isinstance(spec := item.get(method), Mapping):
                yield route, method, item, spec


def deref_or_empty(value: Value, root: Schema) -> Schema:
    try:
        return deref(value, root)
    except Misfit:
        return {}


def first_server(place: Schema) -> str:
    """Return the first server of an operation, a path or a document, with its variables at their defaults, or ''."""
    server = mapping((*sequence(place.get("servers")), None)[0])
    url = str(server.get("url", ""))
    for name, variable in mapping(server.get("variables")).items():
        url = url[:LONGEST_URL].replace(f"{{{name}}}", str(mapping(variable).get("default", ""))[:LONGEST_URL])
    return url[:LONGEST_URL].rstrip("/")


def origin(url: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port of an HTTP address; None for anything else.

    >>> origin("https://API.example/v1"), origin("file:///etc")
    (('https', 'api.example', 443), None)
    """
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    except ValueError:
        return None
    is_web = port and parts.scheme in ("http", "https")
    return (parts.scheme, parts.hostname, port) if is_web and parts.hostname else None


@dataclass
class OperationReader:
    """The operations of a document while they are read. Methods raise Misfit where one cannot be called."""

    root: Schema
    server: str
    steps: int = 0
    """Parts of schemas that were looked at, over all operations."""

    def operation_server(self, url: str) -> str:
        try:
            joined = urljoin(f"{self.server}/", url).rstrip("/")
        except ValueError:
            joined = ""
        if origin(self.server) and not origin(joined):
            raise Misfit(f"its server cannot be called: {one_line(url, 80)}")
        return joined

    def read(self, route: str, method: str, server: str, item: Schema, spec: Schema) -> Operation:
        if not route.startswith("/"):
            raise Misfit("its path does not begin with /")
        parameters, schemas = self.parameters(item, spec)
        media, body, must = self.body(spec)
        if media:
            name = "body" if "body" not in schemas else "request_body"
            parameters.append(Parameter(name, "", "body", must))
            schemas[name] = body
        described = {parameter.wire for parameter in parameters if parameter.place == "path"}
        if missing := [wire for wire in re.findall(r"\{([^{}]+)\}", route) if wire not in described]:
            raise Misfit(f"its path names {one_line(missing[0], 80)}, which it does not describe")
        required: list[Value] = [parameter.name for parameter in parameters if parameter.required]
        schema: Schema = {"type": "object", "properties": schemas, "required": required, "additionalProperties": False}
        self.follow_references(schema)
        about = [place.get(key) for place in (spec, item) for key in ("description", "summary")]
        security = [mapping(way) for way in sequence(spec.get("security", self.root.get("security")))]
        return Operation(
            name=tool_name(str(spec.get("operationId") or f"{method}_{route}")), method=method, server=server,
            path=route, about=one_line(str(next(filter(None, about), "")), 400), parameters=tuple(parameters),
            schema=schema, media=media, tags=texts(spec.get("tags")),
            ways=tuple(tuple(way) for way in security) if all(security) else (),
        )  # fmt: skip

    def parameters(self, item: Schema, spec: Schema) -> tuple[list[Parameter], dict[str, Value]]:
        specs: dict[tuple[str, str], Schema] = {}
        for value in (*sequence(item.get("parameters")), *sequence(spec.get("parameters"))):
            about = deref(value, self.root)
            specs[str(about.get("name", "")), str(about.get("in"))] = about
        parameters, schemas = [], dict[str, Value]()
        for (wire, place), about in specs.items():
            must = bool(about.get("required")) or place == "path"
            if (place == "header" and wire.lower() in IGNORED_HEADERS) or (place == "cookie" and not must):
                continue
            if place not in ("path", "query", "header") or not wire:
                raise Misfit(f"it needs {one_line(wire, 80)} in {one_line(place, 80)}, which is not supported")
            style = str(about.get("style", "form" if place == "query" else "simple"))
            if style not in ("form", "simple", "deepObject"):
                raise Misfit(
                    f"it needs {one_line(wire, 80)} in the style {one_line(style, 80)}, which is not supported"
                )
            explode, content = bool(about.get("explode", style == "form")), mapping(about.get("content"))
            name = wire if wire not in schemas else f"{place}_{wire}"
            parameters.append(Parameter(name, wire, place, must, style, explode, bool(content)))
            schema = mapping(next(iter(content.values()), about)).get("schema")
            schemas[name] = {
                **mapping(schema),
                **{key: about[key] for key in ("description", "example") if about.get(key)},
            }
        return parameters, schemas

    def body(self, spec: Schema) -> tuple[str, Value, bool]:
        """Return the media type, the schema, and whether it is required."""
        request = deref(spec.get("requestBody"), self.root)
        content, must = mapping(request.get("content")), bool(request.get("required"))
        for name, about in content.items():
            media = name.partition(";")[0].strip().lower()
            if media == FORM or re.fullmatch(r"application/([\w.-]+\+)?json", media, re.ASCII):
                return media, mapping(about).get("schema"), must
        if content and must:
            raise Misfit(f"its body is {one_line(', '.join(content), 200)}; JSON and forms are supported")
        return "", {}, False

    def follow_references(self, schema: Value) -> None:
        """Raise Misfit if a reference within the schema leads nowhere, or outside."""
        waiting, names = [schema], set[str]()
        while waiting and self.steps < MOST_STEPS:
            self.steps += 1
            part = waiting.pop()
            waiting += part if isinstance(part, list) else mapping(part).values()
            name = mapping(part).get("$ref")
            if isinstance(name, str) and name not in names:
                names.add(name)
                waiting.append(deref(part, self.root))


def tool_name(text: str) -> str:
    """Make a plain short name.

    >>> tool_name("get_/plants/{id}"), tool_name("listPlants")
    ('get_plants_id', 'listPlants')
    """
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[-LONGEST_NAME:].lstrip("_") or "operation"


def name_operations(operations: Sequence[Operation]) -> Iterator[Operation]:
    """Yield the operations with names that no two have."""
    names: set[str] = set()
    last: dict[str, int] = {}
    for operation in operations:
        name = operation.name
        while name in names:
            last[operation.name] = last.get(operation.name, 1) + 1
            name = f"{operation.name[: LONGEST_NAME - 8]}_{last[operation.name]}"
        names.add(name)
        yield replace(operation, name=name)
