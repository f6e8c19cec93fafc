"""The request of a question: all that can be said with it as text or JSON.

``AskRequest`` is read and written by the command, Python, the page and its API, MCP, config files and the history, and
checked nowhere else. The line under a field is the help of its option and its description in the API. A new option is
a field here: of ``QuestionRequest`` if a client of the server may set it, of ``DataRequest`` if it says which data may
be read, else of ``AskRequest``. Its ``Flag`` is the option of the command, its ``Reuse`` says which later runs take it
over. Objects that no JSON holds go beside it, as ``Attachments``.

The history keeps a request, so that a run can be continued without naming everything again. Passwords, objects and
commands of MCP servers are left out, and noted as left out.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, is_dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypedDict

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    ValidationInfo,
    WrapValidator,
    model_validator,
)
from pydantic.fields import FieldInfo

from decisor.errors import SetupError
from decisor.history.recorder import Keeping
from decisor.llms.providers import LLMSpec, hide_llm_password
from decisor.runtime.budget import Limits
from decisor.runtime.run import Technique
from decisor.sandbox.engine import Policy
from decisor.semantics.readings import Interpreter, Readings
from decisor.session.sources import Names, Places, SourceForm, Sources, split_names
from decisor.session.user_tools import Tools, split_all_at_commas, starts_process
from decisor.system.secrets import hide_password
from decisor.system.settings import read_variable, with_current_names
from decisor.system.text import fit_on_one_line
from decisor.tools.row_values import RowValuePolicy
from decisor.trace.events import TraceEntry, Writing
from decisor.types import LLM, Action, Earlier, Question

Setting: TypeAlias = bool | int | float | str


@dataclass(frozen=True)
class Flag:
    """The option of a field on the command line."""

    metavar: str = ""
    """Word for its value; '' for a flag without one."""
    names: tuple[str, ...] = ()
    """Spellings; () for the field's own name, as --deny-tables."""
    key: str = ""
    """Its key in decisor.toml: the help leaves out such an option, which is rare."""


@dataclass(frozen=True)
class Reuse:
    """What later runs take over of a field."""

    following: bool = False
    """A question that follows in Python keeps it, as ``Result.ask`` asks one."""
    continued: bool = False
    """``--continue`` and ``resume`` keep it; of settings and limits, those that are not named now."""
    is_place: bool = False
    """Its texts are places: a relative one is the same in one folder alone."""
    of_tools: bool = False
    """It is said of the tools that are named with it, and of no others."""
    verified: bool = False
    """``verify`` takes it: it says which rows the cited queries read."""
    used: Callable[[UsedRequest], object] | None = None
    """Its value for the history; None means the request's own."""


@dataclass(frozen=True)
class UsedRequest:
    """A request as a run used it, with its objects and the data that were opened. The history keeps it."""

    request: AskRequest
    attached: Attachments
    sources: Sources
    left_out: list[str] = field(default_factory=list)
    """Parts that are not kept, noted while the others are read."""

    def places(self, form: SourceForm) -> tuple[str, ...]:
        """Return the places of one form as a person names them."""
        texts: list[str] = []
        for source in self.sources.places:
            if source.form != form:
                continue
            if source.connection is not None:
                texts.append(source.name)
            elif self.sources.frames is not None and source.place == self.sources.frames.url:
                # A table that a program handed over is gone with the program.
                self.left_out.append(f"the table {source.name}")
            else:
                text = source.place if source.name == source.form else f"{source.name}={source.place}"
                texts += self.without_password(text)
        return tuple(texts)

    def tools(self) -> tuple[str, ...]:
        texts: list[str] = []
        for spec in self.sources.tools.specs:
            if starts_process(spec):  # a command is started where a person typed it, and nowhere else
                self.left_out.append(f"the MCP server {fit_on_one_line(hide_password(str(spec)), 100)}")
            elif isinstance(spec, str | PathLike):
                texts += self.without_password(fspath(spec))
            else:
                self.left_out.append(f"the tool {getattr(spec, 'name', getattr(spec, '__name__', spec))}")
        return tuple(texts)

    def definitions(self) -> tuple[str, ...]:
        return tuple(f"{name}={path}" if name else str(path) for name, path in self.sources.definitions)

    def rows(self) -> tuple[str, ...]:
        return tuple(f"{name}.{table}={condition}" for name, own in self.policies() for table, condition in own.rows)

    def mask(self) -> tuple[str, ...]:
        return tuple(f"{name}.{column}" for name, own in self.policies() for column in own.mask)

    def policies(self) -> list[tuple[str, Policy]]:
        """Return the rows and masks that a person named, by source; a connection has its rules in its file."""
        return [(source.name, source.policy) for source in self.sources.places if source.connection is None]

    def audit(self) -> str:
        return next((str(source.audit.path) for source in self.sources.places if source.audit), "")

    def max_scan(self) -> str:
        return self.request.max_scan or next((str(most) for own in self.sources.places for most in own.max_scans), "")

    def llm(self) -> str:
        # An LLM of the environment stays that of the run, whatever the environment says later.
        llm = self.attached.llm or self.request.llm or read_variable(os.environ, "DECISOR_LLM") or ""
        if isinstance(llm, LLMSpec):
            names = ("timeout", "context", "max_tokens", "temperature", "price")
            given = {name: value for name in names if (value := getattr(llm, name)) is not None}
            llm = " ".join([llm.name, *(f"{name}={value}" for name, value in given.items())])
        if isinstance(llm, str):
            return "".join(self.without_password(llm, is_llm=True))
        self.left_out.append(f"the LLM {getattr(llm, 'name', llm)}")
        return ""

    def technique(self) -> str:
        return name_of_technique(self.attached.technique) if self.attached.technique else self.request.technique

    def settings(self) -> dict[str, str]:
        texts = {}
        for name, value in {**self.request.settings, **self.attached.settings}.items():
            if not isinstance(value, Setting):
                self.left_out.append(f"the setting {name}")
            elif self.without_password(str(value), is_llm=name.endswith("_llm")):
                texts[name] = str(value)
        return texts

    def without_password(self, text: str, is_llm: bool = False) -> list[str]:
        """Return a text in a list, an empty one if it holds a password: the person names it again, or a variable."""
        safe = hide_llm_password(text) if is_llm else hide_password(text)
        if safe == text:
            return [text]
        self.left_out.append(safe)
        return []


def name_of_technique(technique: Technique) -> str:
    """Return the name of a technique in a trace. It is its name here, or its import path."""
    from decisor.techniques import TECHNIQUES

    kind = technique if hasattr(technique, "__qualname__") else type(technique)
    module = kind.__module__
    last = module.rpartition(".")[2]
    ours = module.startswith("decisor.techniques.") and last in TECHNIQUES
    return last if ours else f"{module}:{kind.__qualname__}"


def read_text(value: object, info: ValidationInfo) -> object:
    """Return a text; raise SetupError if it is not valid UTF-8: it has other bytes or half characters."""
    try:
        return value.encode().decode() if isinstance(value, str) else value
    except UnicodeEncodeError as error:
        raise SetupError(
            f"The {info.field_name} is not UTF-8 (character {error.start + 1}). Write it in a terminal that "
            "speaks UTF-8, or as a file: iconv -f LATIN1 -t UTF-8 FILE | decisor ask -"
        ) from error


QuestionText = Annotated[str, BeforeValidator(read_text)]
Texts = Annotated[tuple[str, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)]
TableNames = Annotated[tuple[str, ...], BeforeValidator(split_names)]
Parts = Annotated[
    tuple[str, ...], BeforeValidator(lambda value: split_all_at_commas([value] if isinstance(value, str) else value))
]
FilePath = Annotated[str, BeforeValidator(lambda value: fspath(value) if isinstance(value, PathLike) else value or "")]


class RequestPart(BaseModel):
    """Fields of a request; unknown names are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class LimitsRequest(RequestPart):
    """Upper bounds for one run."""

    calls: Annotated[int, Field(ge=1, le=10**9)] | None = None
    """Maximum number of LLM calls."""
    tokens: Annotated[int, Field(ge=1, le=10**12)] | None = None
    """Maximum number of tokens."""
    dollars: Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)] | None = None
    """Maximum cost in dollars; needs a price for the LLM."""
    seconds: Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)] | None = None
    """Maximum duration in seconds."""
    actions: Annotated[int, Field(ge=1, le=10**9)] | None = None
    """Maximum number of queries and other actions."""


def read_limits(value: object, read: Callable[[object], LimitsRequest]) -> Limits:
    if isinstance(value, Limits):
        return value
    if not isinstance(value, Mapping):
        raise ValueError("should be limits, such as decisor.Limits(calls=20, seconds=60)")
    return Limits(**read(value).model_dump())


if TYPE_CHECKING:
    LimitsValue = Limits
else:
    LimitsValue = Annotated[LimitsRequest, WrapValidator(read_limits), PlainSerializer(dataclasses.asdict)]


class RunRequest(RequestPart):
    """Fields that a client of the server may set for any run, new or continued."""

    @model_validator(mode="before")
    @classmethod
    def rename(cls, values: Any) -> Any:
        """Take ``lm`` and ``critic_lm`` for their present names."""
        if not isinstance(values, Mapping):
            return values
        named = with_current_names(values)
        settings = named.get("settings")
        return named | ({"settings": with_current_names(settings)} if isinstance(settings, Mapping) else {})

    llm: Annotated[str, Flag("MODEL[@URL]"), Reuse(following=True, continued=True, used=UsedRequest.llm)] = ""
    """LLM, or none; @URL for a server's only model. With settings, in quotes: "MODEL@URL timeout=900 context=8192
    max_tokens=800 temperature=0.1 price=0.4,1.6"."""
    limits: Annotated[LimitsValue, Flag(), Reuse(following=True, continued=True)] = Field(default_factory=Limits)
    """Upper bounds; None means no limit."""


class QuestionRequest(RunRequest):
    """Fields that a client of the server may set for a question."""

    question: QuestionText = ""
    """The decision to make, in words."""
    rules: QuestionText = ""
    """Rules to decide by, in words."""
    goal: Annotated[QuestionText, Flag("TEXT")] = ""
    """Goal, such as: the lowest yearly cost."""
    technique: Annotated[
        str, Flag("NAME", ("--technique", "-t")), Reuse(following=True, continued=True, used=UsedRequest.technique)
    ] = ""
    """Reasoning loop (default: agent; without an LLM: exact); see decisor techniques."""
    settings: Annotated[
        dict[str, Setting],
        Flag("NAME=VALUE", ("--option", "-o")),
        Reuse(following=True, continued=True, used=UsedRequest.settings),
    ] = Field(default_factory=dict)
    """Setting of the technique, name=value. Repeatable."""


class DataRequest(RequestPart):
    """Which data and tools may be asked, and what of them may be read. None of it is a client's to say."""

    db: Annotated[
        Texts, Flag("URL"), Reuse(continued=True, is_place=True, verified=True, used=lambda used: used.places("sql"))
    ] = ()
    """Database (sqlite:///shop.db), files (sales.csv, 'data/*.parquet'), connection; NAME=URL names it. Repeatable."""
    graph: Annotated[
        Texts, Flag("URL"), Reuse(continued=True, is_place=True, verified=True, used=lambda used: used.places("cypher"))
    ] = ()
    """Graph, such as bolt://localhost; NAME=URL names it. Repeatable."""
    docs: Annotated[
        Texts,
        Flag("INDEX|FOLDER"),
        Reuse(continued=True, is_place=True, verified=True, used=lambda used: used.places("passages")),
    ] = ()
    """Documents: an index, a folder, postgresql://HOST/DATABASE/TABLE or your retriever as module:Class; NAME=PLACE
    names them. Repeatable."""
    model: Annotated[
        FilePath,
        Flag("FILE"),
        Reuse(continued=True, is_place=True, verified=True, used=lambda used: str(used.sources.model or "")),
    ] = ""
    """A decision model: a TOML file, or module:function."""
    definitions: Annotated[
        Texts, Flag("[NAME=]FILE"), Reuse(continued=True, is_place=True, used=UsedRequest.definitions)
    ] = ()
    """Definitions of words (see decisor definitions); NAME= names their database. Repeatable."""
    tables: Annotated[TableNames, Flag("NAME,..."), Reuse(continued=True, used=lambda used: used.sources.tables)] = ()
    """Tables (labels, types) that may be read, and no others; NAME.TABLE for one source."""
    deny_tables: Annotated[
        TableNames, Flag("NAME,..."), Reuse(continued=True, used=lambda used: used.sources.deny_tables)
    ] = ()
    """Tables (labels, types) that may not be read or seen."""
    rows: Annotated[Texts, Flag("TABLE=CONDITION"), Reuse(continued=True, verified=True, used=UsedRequest.rows)] = ()
    """Condition for the rows of a table (or NAME.documents) that may be read. Repeatable."""
    mask: Annotated[
        TableNames, Flag("TABLE.COLUMN,..."), Reuse(continued=True, verified=True, used=UsedRequest.mask)
    ] = ()
    """Columns whose values the LLM sees only as tokens. Repeatable."""
    audit: Annotated[FilePath, Flag("FILE"), Reuse(continued=True, is_place=True, used=UsedRequest.audit)] = ""
    """Log file for queries: time, reader, query, rows."""
    tools: Annotated[
        Texts, Flag("SPEC"), Reuse(continued=True, is_place=True, of_tools=True, used=UsedRequest.tools)
    ] = ()
    """Tools: module:function, OpenAPI as FILE or FILE#OPERATION, mcp:COMMAND or mcp:URL. Repeatable."""
    methods: Annotated[
        Parts,
        Flag("METHOD,...", ("--allow-methods",), "tools.methods"),
        Reuse(continued=True, of_tools=True, used=lambda used: tuple(used.sources.tools.methods)),
    ] = ()
    """HTTP methods besides GET allowed for --tools, such as post,put."""
    base_url: Annotated[
        str,
        Flag("URL", key="tools.base_url"),
        Reuse(continued=True, of_tools=True, used=lambda used: used.sources.tools.base_url),
    ] = ""
    """Base address of the APIs of --tools."""
    auth: Annotated[
        Texts,
        Flag("[SCHEME=]VARIABLE", key="tools.auth"),
        Reuse(continued=True, of_tools=True, used=lambda used: tuple(used.sources.tools.auth)),
    ] = ()
    """Environment variable with the key for --tools; mcp=NAME for MCP servers. Repeatable."""
    row_values: Annotated[
        RowValuePolicy,
        Flag("ask|allow|refuse", key="tools.row_values"),
        Reuse(continued=True, of_tools=True, used=lambda used: used.sources.tools.row_values),
    ] = "ask"
    """Whether tools may get row values: ask (a person), allow or refuse."""
    max_scan: Annotated[
        str,
        BeforeValidator(lambda value: str(value) if isinstance(value, int) else value),
        Flag("ROWS|BYTES"),
        Reuse(following=True, continued=True, used=UsedRequest.max_scan),
    ] = ""
    """Maximum rows (5M) or bytes (2GB) read by one SQL query, as its engine estimates."""


class AskRequest(QuestionRequest, DataRequest):
    """One question with its data, technique, LLM, limits and outputs."""

    reveal: Annotated[bool, Flag()] = False
    """Show the values of masked columns in the result."""
    readings: Annotated[Readings, Flag("auto|always|off", key="readings"), Reuse(following=True)] = "auto"
    """Whether the LLM looks for ambiguous words; auto: if rules suspect some."""
    trace: Annotated[FilePath, Flag("FILE")] = ""
    """Write the events of the run to this file."""
    history: Annotated[bool, Reuse(following=True)] = False
    """Whether the run is kept, as decisor history lists it."""
    folder: Annotated[str, Reuse(used=lambda used: str(Path.cwd()))] = ""
    """Folder that relative paths are relative to, in a request of the history."""
    # The last field: it is read when the others have noted what they leave out.
    left_out: Annotated[tuple[str, ...], Reuse(used=lambda used: tuple(used.left_out))] = ()
    """Parts that the history could not keep: a password, an object."""

    @property
    def given(self) -> dict[str, Any]:
        """The fields that were set to something."""
        return {name: value for name in self.model_fields_set if (value := getattr(self, name))}

    @property
    def names_data(self) -> bool:
        return bool(self.db or self.graph or self.docs or self.tools)

    def without_tools(self, *kept: str) -> AskRequest:
        """Return the request without tools and their settings, except the fields of ``kept``."""
        fields = {name: info.default for name, info in AskRequest.model_fields.items() if REUSE[name].of_tools}
        return self.model_copy(update={name: value for name, value in fields.items() if name not in kept})

    def with_settings(self, value_of_key: Mapping[str, object]) -> AskRequest:
        """Return the request with the settings that its fields have a key of, where it names none."""
        fields = {
            name: value_of_key[flag.key]
            for name, info in AskRequest.model_fields.items()
            if (flag := find_flag(info)) and flag.key in value_of_key and name not in self.given
        }
        used = {name: value for name, value in fields.items() if self.tools or not REUSE[name].of_tools}
        return read_request(self.given | used) if used else self


REUSE = {
    name: next((mark for mark in info.metadata if isinstance(mark, Reuse)), Reuse())
    for name, info in AskRequest.model_fields.items()
}
"""What later runs take over, by field."""


def spell_option(name: str) -> str:
    """Return the option of a field, as a person types it.

    >>> spell_option("deny_tables"), spell_option("settings"), spell_option("calls")
    ('--deny-tables', '--option', '--calls')
    """
    info = AskRequest.model_fields.get(name)
    flag = find_flag(info) if info else None
    return flag.names[0] if flag and flag.names else f"--{name.replace('_', '-')}"


def find_flag(info: FieldInfo) -> Flag | None:
    """Return the option of a field; None if the command has none."""
    return next((mark for mark in info.metadata if isinstance(mark, Flag)), None)


def read_request(values: Mapping[str, object], spell: Callable[[str], str] = str) -> AskRequest:
    """Check the values of a request.

    Args:
        spell: Function from the name of a field to how it is written where the values come from.

    Raises:
        SetupError: an option is unknown, or a value does not fit.
    """
    try:
        return AskRequest.model_validate(dict(values))
    except ValidationError as error:
        fault = error.errors()[0]
        name = str(fault["loc"][0])
        if fault["type"] == "extra_forbidden" and len(fault["loc"]) == 1:
            raise SetupError(unknown_option_message(name)) from error
        at = spell(str(fault["loc"][1]) if name == "limits" and len(fault["loc"]) > 1 else name)
        raise SetupError(
            f"{at} {fault['msg'].removeprefix('Input ').removeprefix('Value error, ')}, not {fault['input']!r:.100}."
        ) from error


def read_kept_request(values: Mapping[str, object]) -> AskRequest:
    """Read a request of the history, as this or an earlier Decisor wrote it."""
    values = with_current_names(values)
    return read_request({name: value for name, value in values.items() if value and name in AskRequest.model_fields})


def write_kept_request(request: AskRequest, attached: Attachments, sources: Sources) -> dict[str, object]:
    """Return a request as the history keeps it: JSON, without the words of the question, which stand beside it.

    sources: the data that were opened.
    """
    run = UsedRequest(request, attached, sources)
    used = {name: reuse.used(run) for name, reuse in REUSE.items() if reuse.used is not None}
    return request.model_copy(update=used).model_dump(mode="json", exclude={"question", "rules", "goal"})


@dataclass(frozen=True)
class Attachments:
    """Objects that a program hands over with a request, and that no JSON holds."""

    llm: LLM | LLMSpec | None = None
    """An LLM in place of the request's."""
    technique: Technique | None = None
    """A technique in place of the request's."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """Settings that are objects, such as the LLM of a part."""
    on_event: Callable[[TraceEntry], None] | None = None
    """Hears each entry of the trace as it happens."""
    on_text: Callable[[Writing], None] | None = None
    """Hears an LLM's reply again and again while it is written."""
    approve: Callable[[Action], Awaitable[str]] | None = None
    """Awaited before each action on the data: '' lets it be done, any other text is why not."""
    reader: Interpreter | None = None
    """Awaited with an ``OpenReading``; says which meaning is meant, or ''."""
    keeping: Keeping | None = None
    """Where the run is kept, and whose it is. None means the person's history if the request says so."""
    earlier: Earlier | None = None
    """The decision that the question goes on from."""
    output_type: type | None = None
    """A pydantic model or dataclass that the LLM fills in from the decision."""


class Options(TypedDict, total=False):
    """The keyword arguments of a question on opened data; ``decisor.ask`` tells each."""

    rules: str
    goal: str
    llm: LLM | LLMSpec | str | None
    technique: Technique | str
    settings: Mapping[str, Any]
    limits: Limits
    on_event: Callable[[TraceEntry], None]
    on_text: Callable[[Writing], None]
    trace: str | PathLike[str] | None
    approve: Callable[[Action], Awaitable[str]]
    history: bool | Keeping
    max_scan: str | int
    readings: Readings
    reader: Interpreter | None
    output_type: type | None


class DataOptions(TypedDict, total=False):
    """The keyword arguments that name data in Python, as ``decisor.ask`` tells them."""

    db: Places
    graph: Places
    docs: Places
    tools: Tools
    model: str | PathLike[str] | None
    tables: Names
    deny_tables: Names
    definitions: Places
    rows: Mapping[str, str] | None
    mask: Names
    reveal: bool
    audit: str | PathLike[str] | None
    who: str


FUNCTIONS = {
    "on_event": "a function",
    "on_text": "a function",
    "approve": "an async function",
    "reader": "an async function",
}


def read_options(question: str | Question, options: Mapping[str, object]) -> tuple[AskRequest, Attachments]:
    """Split the keyword arguments of Python into a request and the objects beside it.

    Raises:
        SetupError: an option is unknown, or a value does not fit.
    """
    options = with_current_names(options)
    if unknown := [name for name in options if name not in Options.__annotations__]:
        raise SetupError(unknown_option_message(unknown[0]))
    objects: dict[str, Any] = {}
    values = {name: value for name, value in options.items() if value is not None}
    for name, form in FUNCTIONS.items():
        objects[name] = values.pop(name, None)
        if objects[name] is not None and not callable(objects[name]):
            raise SetupError(f"{name} takes {form}, not {objects[name]!r:.100}.")
    objects["output_type"] = kind = values.pop("output_type", None)
    if kind is not None and not (isinstance(kind, type) and (issubclass(kind, BaseModel) or is_dataclass(kind))):
        raise SetupError(f"output_type takes a pydantic model or a dataclass, not {kind!r:.100}.")
    llm, technique, settings = (values.get(name) for name in ("llm", "technique", "settings"))
    if not isinstance(llm, str | None):
        if not (isinstance(llm, LLMSpec) or (hasattr(llm, "name") and hasattr(llm, "complete"))):
            form = '"MODEL[@URL]", LLMSpec(...), "none", or an object with name and complete'
            raise SetupError(f"llm takes {form}, not {llm!r:.100}.")
        objects["llm"] = values.pop("llm")
    if not isinstance(technique, str) and callable(technique):
        objects["technique"] = values.pop("technique")
    if isinstance(settings, Mapping):
        settings = with_current_names(settings)
        values["settings"] = {name: value for name, value in settings.items() if isinstance(value, Setting)}
        objects["settings"] = {name: value for name, value in settings.items() if not isinstance(value, Setting)}
    if isinstance(options.get("history"), Keeping):
        values["history"], objects["keeping"] = True, options["history"]
    if isinstance(question, Question):
        objects["earlier"] = question.earlier
        values = {"rules": question.rules, "goal": question.goal, **{key: one for key, one in values.items() if one}}
        question = question.text
    return read_request({**values, "question": question}), Attachments(**objects)


def spell_arguments(message: str) -> str:
    """Return a message with arguments of Python in place of options of the command. Commands in it stay.

    >>> spell_arguments("Name one with --llm MODEL, or fewer --calls. See: decisor doctor --llm none")
    'Name one with llm="MODEL", or fewer limits=Limits(calls=...). See: decisor doctor --llm none'
    """
    arguments = {spell_option(name): f"limits=Limits({name}=...)" for name in LimitsRequest.model_fields}
    arguments |= {spell_option(name): f"{name}=" for name in (*Options.__annotations__, *DataOptions.__annotations__)}

    def spell(match: re.Match[str]) -> str:
        option, value = match["option"], match["value"] or ""
        if option not in arguments:
            return match[0]
        argument = arguments[option]
        return f'{argument}"{value}"' if value and argument.endswith("=") else f"{argument}{value and f' {value}'}"

    return re.sub(
        r"decisor [a-z][^.;,]*|(?P<option>--[a-z-]+)(?: (?P<value>[A-Z]\S*?)(?=[.,;:)]*(?:\s|$)))?", spell, message
    )


def unknown_option_message(name: str) -> str:
    """Return the complaint about an unknown option, with the one that was likely meant."""
    near = difflib.get_close_matches(name, {*Options.__annotations__, *DataOptions.__annotations__} - {name}, 1)
    return f"There is no option {name}." + (
        f" Did you mean {near[0]}?"
        if near
        else f" Options: {', '.join([*DataOptions.__annotations__, *Options.__annotations__])}."
    )
