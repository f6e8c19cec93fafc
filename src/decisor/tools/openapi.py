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
from decisor.system.extras import missing_extra_error
from decisor.system.secrets import hide_password
from decisor.system.text import clean_text, fit_on_one_line
from decisor.tools.arguments import Schema, SchemaMisfit, follow_reference, get_mapping, get_sequence, list_strings
from decisor.types import Value

if TYPE_CHECKING:
    import yaml

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
FORM = "application/x-www-form-urlencoded"
IGNORED_HEADERS = (
    "accept",
    "content-type",
    "authorization",
    "host",
    "cookie",
    "connection",
    "content-length",
    "transfer-encoding",
)
LONGEST_NAME, LONGEST_URL, MOST_STEPS = 64, 2000, 3_000_000
MAX_BYTES, MOST_PARTS, DEEPEST, FETCH_SECONDS = 20 * 2**20, 1_000_000, 100, 15.0
DEEP = f"it is nested deeper than {DEEPEST}"
CONSTANTS = {"": None, "~": None, "null": None, "true": True, "false": False}
DECIMAL = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?")


class UnusableDocument(Exception):
    """A defect of a document. The text is for the person who named the file."""


@dataclass(frozen=True, slots=True)
class OperationParameter:
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
    """One method of one path of an API."""

    name: str
    method: str
    server: str
    """Address without a slash at its end."""
    path: str
    about: str
    parameters: tuple[OperationParameter, ...]
    schema: Schema
    """Of all arguments together."""
    media: str = ""
    """Media type of the body; '' means no body."""
    ways: tuple[tuple[str, ...], ...] = ()
    """Security schemes that let a call in: any of these tuples will do."""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class OpenApiDocument:
    """An OpenAPI document with the operations that can be called."""

    title: str
    operations: tuple[Operation, ...]
    root: Schema
    server: str = ""
    """The document's own server, which alone is sent keys; '' where it names none."""
    schemes: Mapping[str, Schema] = field(default_factory=dict)
    """How keys are sent, by the name of the security scheme."""
    left_out: tuple[str, ...] = ()
    """Operations that cannot be called, with why."""


def read_openapi(place: str | Path, methods: Sequence[str] = ("get",), base_url: str = "") -> OpenApiDocument:
    """Read an OpenAPI document from a file or fetch it from its address.

    Args:
        methods: the ones that may be called.
        base_url: takes the place of the document's servers.

    Raises:
        SetupError: it cannot be read, is no OpenAPI 3, or names no server to call.
    """
    if not str(place).startswith(("http://", "https://")):
        return build_openapi_document(
            parse_openapi_text(read_openapi_file(Path(place)), Path(place)), Path(place), methods, base_url
        )
    address = hide_password(str(place))
    root = parse_openapi_text(fetch_openapi(str(place)), Path(urlsplit(address).path or "document"))
    return build_openapi_document(root, Path(address), methods, base_url, address)


def read_openapi_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SetupError(f"Cannot read the OpenAPI document {path}: {error.strerror or error}.") from error


def fetch_openapi(url: str) -> bytes:
    """Fetch a document by one GET without keys. A redirect to another host is not followed."""
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class SameHost(HTTPRedirectHandler):
        def redirect_request(
            self, req: Request, fp: object, code: int, msg: str, headers: object, newurl: str
        ) -> Request:
            if urlsplit(newurl)[:2] != urlsplit(req.full_url)[:2]:
                raise URLError(f"it redirects to {hide_password(newurl)[:100]}")
            return Request(newurl, headers=dict(req.header_items()))

    place = hide_password(url)
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


def parse_openapi_text(data: bytes, path: Path) -> Schema:
    """Parse JSON or YAML. ``path``: name and ending, for errors."""
    if len(data) > MAX_BYTES:
        raise SetupError(f"{path} is over {MAX_BYTES >> 20} MB: name a smaller part of the API.")
    try:
        text = data.decode("utf-8")
        try:
            value = CountedCopy().copy(json.loads(text))
        except ValueError as error:
            if path.suffix == ".json":
                raise SetupError(f"{path} is not JSON: {error}.") from error
            value = parse_yaml(text, path)
    except UnicodeDecodeError as error:
        raise SetupError(f"Cannot read the OpenAPI document {path}: it is no text in UTF-8.") from error
    except (UnusableDocument, RecursionError) as error:
        raise SetupError(
            f"{path} cannot be used: {str(error) if isinstance(error, UnusableDocument) else DEEP}."
        ) from error
    if not isinstance(value, dict):
        raise SetupError(f"{path} is no OpenAPI document: it holds no object.")
    return value


def parse_yaml(text: str, path: Path) -> Value:
    """Parse the first document of a YAML text with PyYAML. Tags build no objects."""
    try:
        import yaml
    except ImportError as error:
        raise missing_extra_error(
            f"{path} is YAML, and reading it needs pyyaml (or make it JSON)", "openapi"
        ) from error

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        yaml_implicit_resolvers = {None: [("plain", re.compile(""))]}  # noqa: RUF012

    try:
        depth = 0
        for event in yaml.parse(text, Loader):  # its C composer crashes the process on 200,000 brackets
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                raise UnusableDocument(DEEP)
        return CountedCopy().copy_node(next(yaml.compose_all(text, Loader), yaml.ScalarNode("plain", "")))
    except yaml.YAMLError as error:
        raise SetupError(f"{path} is neither JSON nor YAML: {fit_on_one_line(str(error), 300)}.") from error


@dataclass
class CountedCopy:
    """A copy of a value with a count of its parts. Repetitions by YAML aliases and merge keys count each time."""

    parts: int = 0

    def count(self, depth: int) -> None:
        self.parts += 1
        if depth > DEEPEST:
            raise UnusableDocument(DEEP)
        if self.parts > MOST_PARTS:
            raise UnusableDocument(f"it has more than {MOST_PARTS:,} parts, counting what its aliases repeat")

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
            return parse_yaml_scalar(clean_text(node.value)) if node.tag == "plain" else clean_text(node.value)
        if isinstance(node, SequenceNode):
            return [self.copy_node(item, depth + 1) for item in node.value]
        merged, own = dict[str, Value](), dict[str, Value]()
        for key, item in node.value:
            if not isinstance(key, ScalarNode):
                raise UnusableDocument("it has a key that is no text")
            value = self.copy_node(item, depth + 1)
            if (key.tag, key.value) != ("plain", "<<"):
                own[clean_text(key.value)] = value
                continue
            for source in value if isinstance(value, list) else [value]:
                if not isinstance(source, dict):
                    raise UnusableDocument("it has a merge key << that stands for no object")
                for name in source:
                    merged.setdefault(name, source[name])
        return {**merged, **own}


def parse_yaml_scalar(text: str) -> Value:
    """Parse a plain scalar as YAML 1.2 does, so that ``no`` and ``2024-01-01`` stay texts.

    >>> (parse_yaml_scalar("7"), parse_yaml_scalar("1e3"), parse_yaml_scalar("no"),
    ...     parse_yaml_scalar("~"), parse_yaml_scalar("True"))
    (7, 1000.0, 'no', None, True)
    """
    if text in (text.lower(), text.title(), text.upper()) and text.lower() in CONSTANTS:
        return CONSTANTS[text.lower()]
    if re.fullmatch(r"[-+]?\d{1,19}", text):
        return int(text)
    return float(text) if DECIMAL.fullmatch(text) else text


def build_openapi_document(
    root: Schema, path: Path, methods: Sequence[str], base_url: str, address: str = ""
) -> OpenApiDocument:
    """Build a document from its content.

    ``address``: origin of a fetched document, to which its servers are relative.
    """
    if not str(root.get("openapi", "")).startswith("3."):
        kind = "Swagger 2.0" if str(root.get("swagger", "")).startswith("2") else "no OpenAPI 3 document"
        raise SetupError(f"{path} is {kind}. Give a document of OpenAPI 3.0 or 3.1 (it begins with openapi: 3...).")
    allowed = [method.lower() for method in methods]
    if unknown := [method for method in allowed if method not in METHODS]:
        raise SetupError(f"{unknown[0]} is no HTTP method; there is {', '.join(METHODS)}.")
    server = base_url.rstrip("/") or find_first_server(root)
    if address and not base_url:
        server = urljoin(address, server or "/").rstrip("/")
    reader, operations, left_out = OperationReader(root, server), list[Operation](), list[str]()
    for route, method, item, spec in iterate_operations(root):
        try:
            if method not in allowed:
                raise SchemaMisfit(f"{method.upper()} is not allowed: allow it with --allow-methods {method}")
            at = server if base_url else reader.operation_server(find_first_server(spec) or find_first_server(item))
            if not parse_origin(at):
                base = f"http://HOST{at}" if at.startswith("/") or not at else "URL"
                raise SetupError(
                    f"{path} names no server that can be called ({hide_password(at) or '/'}): "
                    f"give one with --base-url {base}."
                )
            operations.append(reader.read(route, method, at, item, spec))
        except SchemaMisfit as misfit:
            left_out.append(f"{method.upper()} {fit_on_one_line(route, 100)}: {misfit}")
    schemes = get_mapping(get_mapping(root.get("components")).get("securitySchemes"))
    return OpenApiDocument(
        title=fit_on_one_line(str(get_mapping(root.get("info")).get("title", path.stem)), 80),
        root=root,
        server=server,
        operations=tuple(name_operations(operations)),
        left_out=tuple(left_out),
        schemes={name: follow_or_empty(scheme, root) for name, scheme in schemes.items()},
    )


def iterate_operations(root: Schema) -> Iterator[tuple[str, str, Schema, Schema]]:
    """Yield path, method, description of the path and description of the method."""
    for route, value in get_mapping(root.get("paths")).items():
        item = follow_or_empty(value, root)
        if not item and "$ref" in get_mapping(value):  # it leads nowhere: left out with the reason
            item = {"get": {"parameters": [value]}}
        for method in METHODS:
            if isinstance(spec := item.get(method), Mapping):
                yield route, method, item, spec


def follow_or_empty(value: Value, root: Schema) -> Schema:
    try:
        return follow_reference(value, root)
    except SchemaMisfit:
        return {}


def find_first_server(place: Schema) -> str:
    """Return the first server of an operation, a path or a document, or an empty text.

    Its variables have their defaults.
    """
    server = get_mapping((*get_sequence(place.get("servers")), None)[0])
    url = str(server.get("url", ""))
    for name, variable in get_mapping(server.get("variables")).items():
        url = url[:LONGEST_URL].replace(f"{{{name}}}", str(get_mapping(variable).get("default", ""))[:LONGEST_URL])
    return url[:LONGEST_URL].rstrip("/")


def parse_origin(url: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port of an HTTP address; None for anything else.

    >>> parse_origin("https://API.example/v1"), parse_origin("file:///etc")
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
    """The state while the operations of a document are read.

    Methods raise SchemaMisfit if an operation cannot be called.
    """

    root: Schema
    server: str
    steps: int = 0
    """Parts of schemas that were looked at, over all operations."""

    def operation_server(self, url: str) -> str:
        try:
            joined = urljoin(f"{self.server}/", url).rstrip("/")
        except ValueError:
            joined = ""
        if parse_origin(self.server) and not parse_origin(joined):
            raise SchemaMisfit(f"its server cannot be called: {fit_on_one_line(url, 80)}")
        return joined

    def read(self, route: str, method: str, server: str, item: Schema, spec: Schema) -> Operation:
        if not route.startswith("/"):
            raise SchemaMisfit("its path does not begin with /")
        parameters, schemas = self.parameters(item, spec)
        media, body, must = self.body(spec)
        if media:
            name = "body" if "body" not in schemas else "request_body"
            parameters.append(OperationParameter(name, "", "body", must))
            schemas[name] = body
        described = {parameter.wire for parameter in parameters if parameter.place == "path"}
        if missing := [wire for wire in re.findall(r"\{([^{}]+)\}", route) if wire not in described]:
            raise SchemaMisfit(f"its path names {fit_on_one_line(missing[0], 80)}, which it does not describe")
        required: list[Value] = [parameter.name for parameter in parameters if parameter.required]
        schema: Schema = {"type": "object", "properties": schemas, "required": required, "additionalProperties": False}
        self.follow_references(schema)
        about = [place.get(key) for place in (spec, item) for key in ("description", "summary")]
        security = [get_mapping(way) for way in get_sequence(spec.get("security", self.root.get("security")))]
        return Operation(
            name=build_tool_name(str(spec.get("operationId") or f"{method}_{route}")),
            method=method,
            server=server,
            path=route,
            about=fit_on_one_line(str(next(filter(None, about), "")), 400),
            parameters=tuple(parameters),
            schema=schema,
            media=media,
            tags=list_strings(spec.get("tags")),
            ways=tuple(tuple(way) for way in security) if all(security) else (),
        )

    def parameters(self, item: Schema, spec: Schema) -> tuple[list[OperationParameter], dict[str, Value]]:
        specs: dict[tuple[str, str], Schema] = {}
        for value in (*get_sequence(item.get("parameters")), *get_sequence(spec.get("parameters"))):
            about = follow_reference(value, self.root)
            specs[str(about.get("name", "")), str(about.get("in"))] = about
        parameters, schemas = [], dict[str, Value]()
        for (wire, place), about in specs.items():
            must = bool(about.get("required")) or place == "path"
            if (place == "header" and wire.lower() in IGNORED_HEADERS) or (place == "cookie" and not must):
                continue
            if place not in ("path", "query", "header") or not wire:
                raise SchemaMisfit(
                    f"it needs {fit_on_one_line(wire, 80)} in {fit_on_one_line(place, 80)}, which is not supported"
                )
            style = str(about.get("style", "form" if place == "query" else "simple"))
            if style not in ("form", "simple", "deepObject"):
                raise SchemaMisfit(
                    f"it needs {fit_on_one_line(wire, 80)} in the style {fit_on_one_line(style, 80)}, "
                    "which is not supported"
                )
            explode, content = bool(about.get("explode", style == "form")), get_mapping(about.get("content"))
            name = wire if wire not in schemas else f"{place}_{wire}"
            parameters.append(OperationParameter(name, wire, place, must, style, explode, bool(content)))
            schema = get_mapping(next(iter(content.values()), about)).get("schema")
            schemas[name] = {
                **get_mapping(schema),
                **{key: about[key] for key in ("description", "example") if about.get(key)},
            }
        return parameters, schemas

    def body(self, spec: Schema) -> tuple[str, Value, bool]:
        """Return media type, schema and necessity of the body."""
        request = follow_reference(spec.get("requestBody"), self.root)
        content, must = get_mapping(request.get("content")), bool(request.get("required"))
        for name, about in content.items():
            media = name.partition(";")[0].strip().lower()
            if media == FORM or re.fullmatch(r"application/([\w.-]+\+)?json", media, re.ASCII):
                return media, get_mapping(about).get("schema"), must
        if content and must:
            raise SchemaMisfit(f"its body is {fit_on_one_line(', '.join(content), 200)}; JSON and forms are supported")
        return "", {}, False

    def follow_references(self, schema: Value) -> None:
        """Raise SchemaMisfit if a reference within the schema leads nowhere or outside."""
        waiting, names = [schema], set[str]()
        while waiting and self.steps < MOST_STEPS:
            self.steps += 1
            part = waiting.pop()
            waiting += part if isinstance(part, list) else get_mapping(part).values()
            name = get_mapping(part).get("$ref")
            if isinstance(name, str) and name not in names:
                names.add(name)
                waiting.append(follow_reference(part, self.root))


def build_tool_name(text: str) -> str:
    """Convert a text to a short tool name of letters, digits and underscores.

    >>> build_tool_name("get_/plants/{id}"), build_tool_name("listPlants")
    ('get_plants_id', 'listPlants')
    """
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[-LONGEST_NAME:].lstrip("_") or "operation"


def name_operations(operations: Sequence[Operation]) -> Iterator[Operation]:
    """Yield the operations with unique names."""
    names: set[str] = set()
    last: dict[str, int] = {}
    for operation in operations:
        name = operation.name
        while name in names:
            last[operation.name] = last.get(operation.name, 1) + 1
            name = f"{operation.name[: LONGEST_NAME - 8]}_{last[operation.name]}"
        names.add(name)
        yield replace(operation, name=name)
