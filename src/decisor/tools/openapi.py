"""Read an OpenAPI 3 document as operations that can be called. It may be a stranger's.

It is JSON or YAML, of a file or an address that a person named, and is read within caps on bytes, depth and parts.
YAML builds nothing but texts, numbers, truth values, lists and objects. References lead within the document. What
cannot be called (a method not allowed, a body that is neither JSON nor a form, a reference that leads nowhere, a part
of a wrong type) is left out, and ``OpenApiDocument.left_out`` says why.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from decisor.errors import SetupError
from decisor.system.extras import require_package
from decisor.system.secrets import hide_password
from decisor.system.text import clean_text, fit_on_one_line
from decisor.tools.arguments import Schema, SchemaMisfit, follow_reference, get_mapping, get_sequence, list_strings
from decisor.types import Value

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
FORM = "application/x-www-form-urlencoded"
# OpenAPI 3 says to ignore Accept, Content-Type and Authorization as parameters; the others would break the request.
IGNORED_HEADERS = {"accept", "content-type", "authorization", "host", "cookie", "connection"} | {
    "content-length",
    "transfer-encoding",
}
LONGEST_NAME, LONGEST_URL, MOST_STEPS = 64, 2000, 3_000_000
MAX_BYTES, MOST_PARTS, DEEPEST, FETCH_SECONDS = 20 * 2**20, 1_000_000, 100, 15.0
YAML_VALUES = {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?(?:0|[1-9]\d{0,18})",
    "float": r"[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d{1,3})?",
}
"""The plain scalars of YAML 1.2 that are no texts (core schema): ``no`` and ``2024-01-01`` stay texts."""


class UnusableDocument(Exception):
    """A defect of a document. The text is for the person who named it."""


@dataclass(frozen=True, slots=True)
class OperationParameter:
    """A parameter of an operation and its place in the request."""

    wire: str
    """Name in the request."""
    place: str
    """path, query or header."""
    required: bool
    style: str
    """form, simple or deepObject."""
    explode: bool
    as_json: bool
    """Whether its value is sent as JSON text."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path of an API."""

    name: str
    method: str
    path: str
    about: str
    parameters: Mapping[str, OperationParameter]
    """By the name of their argument."""
    schema: Schema
    """Of all arguments together."""
    body: str = ""
    """Name of the argument that is the body."""
    media: str = ""
    """Media type of the body; '' means no body."""
    ways: tuple[tuple[str, ...], ...] = ()
    """Security schemes that let a call in: any of these tuples will do."""
    tags: tuple[str, ...] = ()
    server: str = ""
    """Address without a slash at its end."""


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
    label = hide_password(str(place))
    if label.startswith(("http://", "https://")):
        root = parse_openapi_text(fetch_openapi(str(place)), label)
        return build_openapi_document(root, label, methods, base_url, label)
    try:
        with Path(place).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SetupError(f"Cannot read the OpenAPI document {label}: {error.strerror or error}.") from error
    return build_openapi_document(parse_openapi_text(data, label), label, methods, base_url)


def fetch_openapi(url: str) -> bytes:
    """Fetch a document by one GET without keys. A redirect to another host is not followed."""
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class SameHost(HTTPRedirectHandler):
        def redirect_request(
            self, req: Request, fp: object, code: int, msg: str, headers: object, newurl: str
        ) -> Request:
            # urllib follows any redirect, also from a public address to one within this network.
            if urlsplit(newurl)[:2] != urlsplit(req.full_url)[:2]:
                raise URLError(f"it redirects to {hide_password(newurl)[:100]}")
            return Request(newurl, headers=dict(req.header_items()))

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
    raise SetupError(f"{hide_password(url)} {why}. Download it, and give the file.")


def parse_openapi_text(data: bytes, label: str) -> Schema:
    """Parse JSON or YAML. ``label``: name with its ending, for errors."""
    if len(data) > MAX_BYTES:
        raise SetupError(f"{label} is over {MAX_BYTES >> 20} MB: name a smaller part of the API.")
    try:
        text = data.decode("utf-8")
        try:
            value = json.loads(text)
        except ValueError as error:
            # Its fault as JSON is of more help than what YAML says of the same text.
            if label.endswith(".json"):
                raise SetupError(f"{label} is not JSON: {error}.") from error
            with require_package(f"pyyaml, since {label} is YAML (or make it JSON)", "openapi"):
                value = parse_yaml(text)
        # Last: aliases of YAML make a few bytes stand for millions of parts, which only a copy can count.
        value = CleanCopy().copy(value)
    except UnicodeDecodeError as error:
        raise SetupError(f"Cannot read the OpenAPI document {label}: it is no text in UTF-8.") from error
    except RecursionError as error:
        raise SetupError(f"{label} cannot be used: it is nested deeper than {DEEPEST}.") from error
    except UnusableDocument as error:
        raise SetupError(f"{label} cannot be used: {error}.") from error
    if not isinstance(value, dict):
        raise SetupError(f"{label} is no OpenAPI document: it holds no object.")
    return value


def parse_yaml(text: str) -> Value:
    """Parse the first document of a YAML text. Raise UnusableDocument if it is no YAML, deep, or has tags.

    >>> parse_yaml("[7, 1e3, no, ~, True, 2024-01-01, 007]")
    [7, 1000.0, 'no', None, True, '2024-01-01', '007']
    """
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        # PyYAML reads YAML 1.1, where no is false and 12:30 is 750: only YAML 1.2's scalars are resolved.
        yaml_implicit_resolvers = {  # noqa: RUF012
            None: [(f"tag:yaml.org,2002:{name}", re.compile(rf"(?:{form})\Z")) for name, form in YAML_VALUES.items()]
        }

    try:
        depth = 0
        for event in yaml.parse(text, Loader):  # its C composer crashes the process on 200,000 brackets
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                raise UnusableDocument(f"it is nested deeper than {DEEPEST}")
            # OpenAPI 3 allows no tag that JSON has not, and each other one is a constructor of PyYAML.
            if (tag := getattr(event, "tag", None)) not in (None, "!", "tag:yaml.org,2002:str"):
                raise UnusableDocument(f"it has the tag {fit_on_one_line(tag, 100)}")
        value: Value = next(yaml.load_all(text, Loader), None)
        return value
    except yaml.YAMLError as error:
        raise UnusableDocument(f"it is neither JSON nor YAML: {fit_on_one_line(str(error), 300)}") from error


@dataclass
class CleanCopy:
    """A copy of a value without hidden characters, and a count of its parts; what aliases repeat counts each time."""

    parts: int = 0

    def copy(self, value: Value, depth: int = 0) -> Value:
        self.parts += 1
        if depth > DEEPEST:
            raise UnusableDocument(f"it is nested deeper than {DEEPEST}")
        if self.parts > MOST_PARTS:
            raise UnusableDocument(f"it has more than {MOST_PARTS:,} parts, counting what its aliases repeat")
        if isinstance(value, str):
            return clean_text(value)
        if isinstance(value, list):
            return [self.copy(item, depth + 1) for item in value]
        if not isinstance(value, dict):
            return value
        copied: dict[str, Value] = {}
        # YAML's merge key: the mapping's own keys go before those of what it names, and these in their order.
        merged = value.get("<<", [])
        for source in reversed(merged if isinstance(merged, list) else [merged]):
            copied |= get_mapping(self.copy(source, depth + 1))
        return copied | {clean_text(str(key)): self.copy(item, depth + 1) for key, item in value.items() if key != "<<"}


def build_openapi_document(
    root: Schema, label: str, methods: Sequence[str], base_url: str, address: str = ""
) -> OpenApiDocument:
    """Build a document from its content.

    ``address``: origin of a fetched document, to which its servers are relative.
    """
    if not str(root.get("openapi", "")).startswith("3."):
        kind = "Swagger 2.0" if str(root.get("swagger", "")).startswith("2") else "no OpenAPI 3 document"
        raise SetupError(f"{label} is {kind}. Give a document of OpenAPI 3.0 or 3.1 (it begins with openapi: 3...).")
    allowed = [method.lower() for method in methods]
    if unknown := [method for method in allowed if method not in METHODS]:
        raise SetupError(f"{unknown[0]} is no HTTP method; there is {', '.join(METHODS)}.")
    server = base_url.rstrip("/") or find_first_server(root)
    if address and not base_url:
        # OpenAPI 3, Server Object: a relative URL is relative to where the document is served.
        server = urljoin(address, server or "/").rstrip("/")
    reader, operations, left_out = OperationReader(root), list[Operation](), list[str]()
    for route, value in get_mapping(root.get("paths")).items():
        item = follow_or_empty(value, root)
        if not item and "$ref" in get_mapping(value):  # it leads nowhere: left out with the reason
            item = {"get": {"parameters": [value]}}
        for method in METHODS:
            if not isinstance(spec := item.get(method), Mapping):
                continue
            try:
                if method not in allowed:
                    raise SchemaMisfit(f"{method.upper()} is not allowed: allow it with --allow-methods {method}")
                at = server if base_url else join_server(server, find_first_server(spec) or find_first_server(item))
                if not parse_origin(at):
                    base = f"http://HOST{at}" if at.startswith("/") or not at else "URL"
                    raise SetupError(
                        f"{label} names no server that can be called ({hide_password(at) or '/'}): "
                        f"give one with --base-url {base}."
                    )
                operations.append(replace(reader.read(route, method, item, spec), server=at))
            except SchemaMisfit as misfit:
                left_out.append(fit_on_one_line(f"{method.upper()} {fit_on_one_line(route, 100)}: {misfit}", 400))
    schemes = get_mapping(get_mapping(root.get("components")).get("securitySchemes"))
    return OpenApiDocument(
        title=fit_on_one_line(str(get_mapping(root.get("info")).get("title", Path(label).stem)), 80),
        root=root,
        server=server,
        operations=tuple(name_operations(operations)),
        left_out=tuple(left_out),
        schemes={name: follow_or_empty(scheme, root) for name, scheme in schemes.items()},
    )


def follow_or_empty(value: Value, root: Schema) -> Schema:
    try:
        return follow_reference(value, root)
    except SchemaMisfit:
        return {}


def find_first_server(part: Schema) -> str:
    """Return the first server of an operation, a path or a document, or an empty text.

    Its variables have their defaults.
    """
    server = get_mapping((*get_sequence(part.get("servers")), None)[0])
    url = str(server.get("url", ""))
    for name, variable in get_mapping(server.get("variables")).items():
        url = url[:LONGEST_URL].replace(f"{{{name}}}", str(get_mapping(variable).get("default", ""))[:LONGEST_URL])
    return url[:LONGEST_URL].rstrip("/")


def join_server(server: str, url: str) -> str:
    """Return the server of an operation, which may be relative to the document's."""
    try:
        joined = urljoin(f"{server}/", url).rstrip("/")
    except ValueError:
        joined = ""
    if parse_origin(server) and not parse_origin(joined):
        raise SchemaMisfit(f"its server cannot be called: {url}")
    return joined


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
    steps: int = 0
    """Parts of schemas that were looked at, over all operations."""

    def read(self, route: str, method: str, item: Schema, spec: Schema) -> Operation:
        if not route.startswith("/"):
            raise SchemaMisfit("its path does not begin with /")
        parameters, schemas = self.parameters(item, spec)
        required: list[Value] = [name for name, parameter in parameters.items() if parameter.required]
        media, schema, must = self.body(spec)
        body = "" if not media else "body" if "body" not in schemas else "request_body"
        if body:
            schemas[body] = schema
            required += [body] if must else []
        described = {parameter.wire for parameter in parameters.values() if parameter.place == "path"}
        if missing := [wire for wire in re.findall(r"\{([^{}]+)\}", route) if wire not in described]:
            raise SchemaMisfit(f"its path names {missing[0]}, which it does not describe")
        arguments: Schema = {
            "type": "object",
            "properties": schemas,
            "required": required,
            "additionalProperties": False,
        }
        # At reading time, so that an operation that cannot be described is left out with the reason.
        self.follow_references(arguments)
        about = [part.get(key) for part in (spec, item) for key in ("description", "summary")]
        security = [get_mapping(way) for way in get_sequence(spec.get("security", self.root.get("security")))]
        return Operation(
            name=build_tool_name(str(spec.get("operationId") or f"{method}_{route}")),
            method=method,
            path=route,
            about=fit_on_one_line(str(next(filter(None, about), "")), 400),
            parameters=parameters,
            schema=arguments,
            body=body,
            media=media,
            tags=list_strings(spec.get("tags")),
            # An empty requirement means that a call without a key is let in.
            ways=tuple(tuple(way) for way in security) if all(security) else (),
        )

    def parameters(self, item: Schema, spec: Schema) -> tuple[dict[str, OperationParameter], dict[str, Value]]:
        """Read the parameters and their schemas, by the names of their arguments."""
        specs: dict[tuple[str, str], Schema] = {}
        # Those of the method come last and replace those of the path with the same name and place.
        for value in (*get_sequence(item.get("parameters")), *get_sequence(spec.get("parameters"))):
            about = follow_reference(value, self.root)
            specs[str(about.get("name", "")), str(about.get("in"))] = about
        parameters, schemas = dict[str, OperationParameter](), dict[str, Value]()
        for (wire, place), about in specs.items():
            # OpenAPI 3: a parameter of a path is always required.
            must = bool(about.get("required")) or place == "path"
            if (place == "header" and wire.lower() in IGNORED_HEADERS) or (place == "cookie" and not must):
                continue
            style = str(about.get("style", "form" if place == "query" else "simple"))
            if place not in ("path", "query", "header") or not wire or style not in ("form", "simple", "deepObject"):
                raise SchemaMisfit(f"it needs {wire} in {place} in the style {style}, which is not supported")
            explode, content = bool(about.get("explode", style == "form")), get_mapping(about.get("content"))
            name = wire if wire not in schemas else f"{place}_{wire}"
            parameters[name] = OperationParameter(wire, place, must, style, explode, bool(content))
            beside = {key: about[key] for key in ("description", "example") if about.get(key)}
            schemas[name] = {**get_mapping(get_mapping(next(iter(content.values()), about)).get("schema")), **beside}
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
            raise SchemaMisfit(f"its body is {', '.join(content)}; JSON and forms are supported")
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
    last: dict[str, int] = {}  # counted on, or a document of equal names would take quadratic time
    for operation in operations:
        name = operation.name
        while name in names:
            last[operation.name] = last.get(operation.name, 1) + 1
            name = f"{operation.name[: LONGEST_NAME - 8]}_{last[operation.name]}"
        names.add(name)
        yield replace(operation, name=name)
