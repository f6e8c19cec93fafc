"""Set up a run: one technique, one LLM, tools, one budget, one trace with its listeners.

The technique and its LLM are chosen from the names that a person gave, or by default. Each LLM is opened once and
closed with the data. ``decide_by_technique`` is the one place where a limit or unreadable replies end a run with a
decision that says so. The techniques and their settings are also listed here for people, with the fitness of a measured
LLM for each.

The trace has the provenance of the run: data read, reader, definitions and decision model. A reader who may not know
where the data lie gets no places and no conditions.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import MISSING, Field, dataclass, field, is_dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from decisor.errors import BudgetExceeded, Error, ModelMistake, OutageError, ParseError, SetupError
from decisor.llms.choose import Measurement
from decisor.llms.prices import FREE, Price
from decisor.llms.providers import LLMSpec, read_spec
from decisor.parsing.cleaning import clean_reply
from decisor.parsing.figures import check_figures, collect_record_numbers, iterate_numbers
from decisor.parsing.lenient_json import read_json_value
from decisor.parsing.prompting import USUAL, Asking, Calling, explain_error, split_calling, use_wording, ways_of
from decisor.runtime.budget import Budget
from decisor.runtime.run import Run, Technique
from decisor.session.sources import Source, Sources
from decisor.system.extras import note_faults
from decisor.system.secrets import hide_password, redact
from decisor.system.settings import build_from_settings, drop_none_type, is_settable_by_text, setting_fields
from decisor.system.storage import open_private
from decisor.system.wording import format_count
from decisor.techniques import TECHNIQUES, asks_llm, find_technique_class
from decisor.techniques.shared.observations import show_records
from decisor.techniques.shared.prompts_file import split_asking_settings
from decisor.tools.row_values import RowValues
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import (
    Conclusion,
    DataSource,
    Note,
    Provenance,
    RowPolicy,
    RunUsage,
    Trace,
    TraceEntry,
    UsedFile,
    Writers,
    add_pitfalls,
)
from decisor.trace.file import TraceFile
from decisor.trace.telemetry import open_telemetry
from decisor.types import LLM, Completion, Decision, Message, Question, Record, Sampling, Tool, Usage
from decisor.version import __version__

if TYPE_CHECKING:
    from decisor.decision_models.tool import ModelTool
    from decisor.session.request import AskRequest, Attachments


Fit = Literal["enough", "tight", "unknown", "not"]
LONG_PROMPTS, SHORT_PROMPTS = 8_192, 2_048
"""Tokens of context for a technique whose prompt holds the steps so far, and for one that reads little."""
LEAST_SHARE = 4
"""With less than this part of these tokens (one in four) not even the tools and the question have room."""
SHORT = ("vanilla", "rag", "single_rag", "self_ask")
WANT_TOKENS = ("self_rag", "rq_rag")
"""These read the log-probabilities of control tokens that only fine-tuned weights know."""
CALLS, REPLY_TOKENS = 8, 250
"""LLM calls of an ordinary question of plan_rag, and tokens of each reply."""


@dataclass(frozen=True, slots=True)
class Fitness:
    """The fitness of an LLM for a technique."""

    technique: str
    fit: Fit
    why: str = ""
    """Missing part; '' if nothing is missing."""


def rate_techniques(measurement: Measurement) -> list[Fitness]:
    """Return the fitness of an LLM for every technique that asks one."""
    return [rate_technique(name, measurement) for name in TECHNIQUES if asks_llm(find_technique_class(name))]


def rate_technique(technique: str, measurement: Measurement) -> Fitness:
    context = measurement.context
    if technique in WANT_TOKENS:
        if measurement.heeds.get("logprobs") != "yes":
            return Fitness(technique, "not", "it gives no log-probabilities")
        return Fitness(technique, "unknown", "it needs weights that were fine-tuned for it")
    need = SHORT_PROMPTS if technique in SHORT else LONG_PROMPTS
    if not context:
        return Fitness(technique, "unknown", "it does not tell its context: say context=TOKENS with --llm")
    if context >= need:
        return Fitness(technique, "enough")
    if context * LEAST_SHARE >= need:
        return Fitness(technique, "tight", "records will be left out of long prompts")
    return Fitness(technique, "not", f"its prompts want {need:,} tokens of context")


def estimate_question_seconds(measurement: Measurement) -> float:
    """Estimate the seconds of a question with plan_rag, 0 if the LLM's speed is unknown."""
    return CALLS * (measurement.seconds + REPLY_TOKENS / measurement.speed) if measurement.speed else 0.0


@dataclass(eq=False)
class LLMs:
    """The LLMs of a session, each opened once. An LLM that is given as an object is used unchanged, and left open."""

    by_spec: dict[str, LLM] = field(default_factory=dict)
    """LLMs opened here."""
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    wrap: Callable[[LLM], LLM] | None = None
    """Puts something before each LLM that is opened here, such as who pays."""

    async def get(self, llm: LLM | LLMSpec | str | None) -> LLM | None:
        """Return the LLM that is named or given, else the environment's (``DECISOR_LLM`` and so on).

        None means that there is none.

        Raises:
            SetupError: the named LLM or technique cannot be used.
        """
        if isinstance(llm, LLMSpec):
            return await self.open(repr(llm), llm, dict(os.environ))
        if llm is not None and not isinstance(llm, str):
            return llm
        return await self.open(llm or "", llm or "", dict(os.environ))

    async def part(self, setting: str, llm: LLM | str) -> LLM:
        """Return the LLM of a part of a technique, by MODEL[@URL] with its settings. DECISOR_PRICE is not its price.

        Raises:
            SetupError: it names no LLM.
        """
        if not isinstance(llm, str):
            return llm
        is_name = bool(read_spec(llm)[0])
        opened = await self.open(f"part {llm}", llm, {**os.environ, "DECISOR_PRICE": ""}) if is_name else None
        if opened is None:
            raise SetupError(f"{setting} takes MODEL or MODEL@URL, not {hide_password(llm)!r}.")
        return opened

    async def open(self, key: str, spec: str | LLMSpec, environ: dict[str, str]) -> LLM | None:
        from decisor.llms import choose

        # One lock for all names: two questions at once must not open one LLM twice.
        async with self.opening:
            if key not in self.by_spec:
                llm = await asyncio.to_thread(
                    choose.choose_llm, spec, environ
                )  # it may look for servers on this machine
                if llm is None:
                    return None
                self.by_spec[key] = llm
        return self.wrap(self.by_spec[key]) if self.wrap else self.by_spec[key]

    async def close(self) -> None:
        from decisor.llms.shared import close_llm

        while self.by_spec:
            await close_llm(self.by_spec.popitem()[1])


@dataclass(frozen=True, slots=True)
class TechniqueSetting:
    """A setting of a technique."""

    name: str
    default: object
    type: str
    harmless: bool = False
    """Whether its value names nothing outside: it is a number, a truth value or one of ``choices``."""
    choices: tuple[str, ...] = ()
    part: bool = False
    """Whether it is the LLM of a part."""


@dataclass(frozen=True, slots=True)
class TechniqueRow:
    """A technique with its settings."""

    name: str
    about: str
    """First paragraph of its module's docstring."""
    settings: tuple[TechniqueSetting, ...]


def list_technique_rows() -> Sequence[TechniqueRow]:
    return [build_technique_row(name, find_technique_class(name)) for name in TECHNIQUES]


def build_technique_row(name: str, kind: type, about: str = "") -> TechniqueRow:
    """Build the row of a technique or benchmark. Settings that only Python can set are left out.

    about: its description; by default the first paragraph of its module's docstring.
    """
    from decisor.techniques.shared.judge import list_llm_parts

    about = about or (inspect.getdoc(inspect.getmodule(kind)) or "").split("\n\n")[0].replace("\n", " ")
    hints = get_type_hints(kind)
    own = [
        build_technique_setting(setting, hints[setting.name])
        for setting in setting_fields(kind).values()
        if is_settable_by_text(hints[setting.name])
    ]
    parts = [TechniqueSetting(f"{part}_llm", None, "MODEL[@URL]", part=True) for part in list_llm_parts(kind)]
    return TechniqueRow(name, about, (*own, *parts))


def build_technique_setting(field: Field[object], hint: object) -> TechniqueSetting:
    from decisor.techniques.replay.recorded_run import is_harmless_type

    default = "..." if field.default is MISSING else field.default
    kind = drop_none_type(hint)
    choices = tuple(map(str, get_args(kind))) if get_origin(kind) is Literal else ()
    return TechniqueSetting(field.name, default, type_name(field.type), is_harmless_type(hint), choices)


def type_name(kind: object) -> str:
    """Return the name of a type for people.

    >>> type_name("int | None"), type_name(bool)
    ('int | None', 'bool')
    """
    return kind.__name__ if isinstance(kind, type) else str(kind).removeprefix("typing.")


NAME_ONE = "name one with --llm MODEL[@URL], or set DECISOR_LLM, OPENAI_API_KEY or ANTHROPIC_API_KEY"


@dataclass(frozen=True)
class NoLLM:
    """A placeholder for the LLM of a run that asks none."""

    name: str = ""
    price: Price = FREE

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        raise SetupError(f"There is no LLM: {NAME_ONE}.")


def cost_line(usage: Usage) -> str:
    """Format calls, tokens and cost as one line.

    >>> cost_line(Usage(2, 1_000, 200, 0.0125, estimates=1)), cost_line(Usage(1, 10, 5, None))
    ('2 LLM calls, 1,200 tokens, $0.0125, in part estimated', '1 LLM call, 15 tokens, price unknown')
    """
    cost = "price unknown" if usage.dollars is None else f"${usage.dollars:.4f}"
    guess = ", in part estimated" if usage.estimates else ""
    return f"{format_count(usage.calls, 'LLM call')}, {usage.tokens:,} tokens, {cost}{guess}"


async def decide_by_technique(technique: Technique, question: Question, run: Run) -> Decision:
    """Run a technique; return its decision and record it as the last event of the run.

    If a limit, unreadable replies or an unreachable database ended it, the decision has no answer and says so.

    Raises:
        SetupError: the technique lacks something (a tool, an LLM).
        LLMError: the endpoint failed for good.
    """
    try:
        with use_wording(run.asking.words), note_faults(lambda text: run.trace.add(Note(text), run.span_id)):
            decision = await technique(question, run)
    except BudgetExceeded as error:
        decision = Decision("", reasons=(str(error),), stopped="budget")
    except ModelMistake as error:
        decision = Decision("", reasons=(explain_error(error),), stopped="failed")
    except OutageError as error:
        decision = Decision(
            "", reasons=(f"{error} The run stopped there; ask again when it is back.",), stopped="failed"
        )
    # A technique may have recorded its conclusion itself.
    if not any(isinstance(entry.event, Conclusion) and entry.span == run.span_id for entry in run.trace.entries):
        run.trace.add(Conclusion(decision), run.span_id)
    return add_pitfalls(decision, run.trace.entries)


FILL = """Fill in a JSON object from a decision and the records that it rests on. Copy values as the records have them.
Take nothing from elsewhere. Reply with the object alone.

JSON schema: {schema}

Decision: {answer}
{reasons}

Records:
{records}

JSON object:"""


async def fill_output(kind: type, decision: Decision, records: Sequence[Record], run: Run) -> Any:
    """Have the LLM fill in an object of a type; each of its figures must stand in a record, or follow from some.

    Return None if there is no answer, or the LLM does not manage it; a note in the trace then says why.
    """
    if not decision.answer:
        return None
    from pydantic import TypeAdapter, ValidationError

    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    ranking = [option.outcome for option in decision.ranking.options] if decision.ranking else []
    sources = [*((record.id, collect_record_numbers(record)) for record in records), ("ranking", ranking)]
    words = "\n".join([decision.answer, *decision.reasons])

    def read(reply: str) -> Any:
        value = read_json_value(clean_reply(reply))
        try:
            filled = adapter.validate_json(json.dumps(value))
        except ValidationError as error:
            fault = error.errors()[0]
            raise ParseError(f"{'.'.join(map(str, fault['loc'])) or 'The object'}: {fault['msg']}.", "shape") from error
        numbers = " ; ".join(map(repr, iterate_numbers(value)))
        # A figure may be computed from others, which the decision tells.
        figures = check_figures(f"{words}\n{numbers}", sources)
        known = {number for figure in figures if figure.support for number in iterate_numbers(figure.text)}
        if missing := [number for number in iterate_numbers(value) if number not in known]:
            raise ParseError(
                f"{missing[0]:g} stands in no record of the decision: copy the value of a record.", "figure"
            )
        return filled

    prompt = FILL.format(
        schema=json.dumps(adapter.json_schema()),
        answer=decision.answer,
        reasons="\n".join(decision.reasons),
        records="\n".join(show_records(records)[0]),
    )
    try:
        with run.span("output") as inner:
            return await inner.ask(prompt, read, final=True)
    except (ParseError, BudgetExceeded) as error:
        run.trace.add(Note(f"The output_type is not filled in: {error}"))
        return None


AGENT, PLAN_RAG, EXACT = "agent", "plan_rag", "exact"
NO_TOOL_CALLS = "{llm} takes no tool calls: plan_rag decides in place of agent."
TEXTS = (str, int, float, bool, type(None))


@dataclass(frozen=True)
class Choice:
    """The technique that decides, with its LLM and settings."""

    name: str
    technique: Technique
    llm: LLM | None
    settings: Mapping[str, str]
    """Settings as the trace holds them."""
    by_name: bool = True
    """Whether a person named the technique."""
    calling: Calling = "auto"
    """Form in which replies are asked for."""
    asking: Asking = USUAL
    """Temperature and wording."""
    notes: Sequence[Note] = ()
    """Why it is not the technique that most LLMs get."""


async def choose_technique(request: AskRequest, attached: Attachments, llms: LLMs) -> Choice:
    """Choose the technique and its LLM. '' means what ``choose_default`` says.

    Raises:
        SetupError: there is no such technique, setting or LLM, or the technique asks an LLM and there is none.
    """
    from decisor.session.request import name_of_technique

    technique: Technique | str = attached.technique or request.technique
    settings = {**request.settings, **attached.settings}
    calling, own = split_calling(settings, "auto")
    name = typed = technique if isinstance(technique, str) else name_of_technique(technique)
    asks = not name or asks_llm(find_technique_class(technique) if isinstance(technique, str) else technique)
    model = await llms.get(attached.llm or request.llm) if asks else None
    notes: Sequence[Note] = ()
    if not name:
        name, notes = choose_default(model, calling)
        technique = name
    elif model is None and asks:
        raise SetupError(f"{name} asks an LLM, and there is none: {NAME_ONE}.")
    kind = find_technique_class(name) if isinstance(technique, str) else type(technique)
    asking, own = split_asking_settings(kind, name, own)
    loop = await configure_technique(name if isinstance(technique, str) else technique, own, llms)
    # The trace is shown to others: an LLM object stands in it by its name, and no password does.
    texts = {key: redact(str(getattr(value, "name", value))) for key, value in settings.items()}
    return Choice(name, loop, model, texts, by_name=name == typed, calling=calling, asking=asking, notes=notes)


def choose_default(llm: LLM | None, calling: Calling) -> tuple[str, Sequence[Note]]:
    """Choose the technique of a question that names none, and tell the reason if the LLM lacks tool calls.

    ``agent`` needs native tool calls: without them, or if replies are to be text or JSON, it is ``plan_rag``. Without
    an LLM a decision model can still decide: ``exact``.
    """
    if llm is None:
        return EXACT, ()
    ways = ways_of(llm)
    if calling in ("text", "json"):
        return PLAN_RAG, ()
    if ways is None or "tools" in ways.against:
        return PLAN_RAG, [Note(NO_TOOL_CALLS.format(llm=llm.name))]
    return AGENT, ()


async def configure_technique(technique: Technique | str, settings: Mapping[str, Any], llms: LLMs) -> Technique:
    """Return a technique, given by name or as an object, with its settings.

    A setting that ends in ``_llm`` is the LLM of a part, as MODEL[@URL] or as an object: ``critic_llm``, ``judge_llm``.

    Raises:
        SetupError: there is no such technique, setting or LLM, or a value does not fit.
    """
    kind = find_technique_class(technique) if isinstance(technique, str) else type(technique)
    parts: Mapping[str, str] = {}
    if is_dataclass(kind) and any(key.endswith("_llm") for key in settings):
        from decisor.techniques.shared.judge import map_llm_settings

        parts = map_llm_settings(kind)
    own = {key: value for key, value in settings.items() if key not in parts}
    if isinstance(technique, str):
        # Texts are checked as those of the command line; objects can only come from Python.
        texts = {key: str(value) for key, value in own.items() if isinstance(value, TEXTS)}
        objects = {key: value for key, value in own.items() if key not in texts}
        if unknown := objects.keys() - (known := setting_fields(kind)):
            raise SetupError(f"{technique} has no {', '.join(sorted(unknown))}; it has {', '.join(sorted(known))}.")
        loop: Any = build_from_settings(kind, technique, texts)
        loop = replace(loop, **objects) if objects else loop
    elif own:
        raise SetupError(f"Settings are for a technique that is named: set {', '.join(own)} of yours itself.")
    else:
        loop = technique
    experts = {parts[key]: await llms.part(key, value) for key, value in settings.items() if key in parts}
    if experts:
        from decisor.techniques.shared.judge import set_part_llms

        loop = set_part_llms(loop, experts)
    configured: Technique = loop
    return configured


Listener = Callable[[TraceEntry], None]


@contextmanager
def open_run(
    tools: Sequence[Tool],
    choice: Choice,
    request: AskRequest,
    attached: Attachments,
    listeners: Sequence[Listener] = (),
    row_values: RowValues | None = None,
) -> Iterator[Run]:
    """Open a run until the block ends; an error that ends it and the trace then tell the cost.

    Args:
        listeners: Hear the trace beside ``attached.on_event``.
    """
    own = [attached.on_event] if attached.on_event else []
    with open_trace(Path(request.trace) if request.trace else None, [*listeners, *own]) as trace:
        trace.writers = Writers(attached.on_text) if attached.on_text else None
        # Observations of this run are numbered after those that the question goes on from: their ids may be cited.
        numbers = count(attached.earlier.last + 1 if attached.earlier else 1)
        env = Toolbox(tools, numbers, approve=attached.approve, row_values=row_values or RowValues())
        run = Run(
            choice.llm or NoLLM(), env, Budget(request.limits), trace, calling=choice.calling, asking=choice.asking
        )
        try:
            yield run
        # Whatever ends the run, an interrupt too, its cost is told: it has been paid for.
        except BaseException as error:
            spent = run.budget.spent
            run.trace.add(RunUsage(spent))
            if isinstance(error, Error):
                error.spent = spent
            elif spent.calls:
                error.add_note(f"Before that: {cost_line(spent)}.")
            raise


@contextmanager
def open_trace(path: Path | None, listeners: Sequence[Listener]) -> Iterator[Trace]:
    """Open a trace with listeners, written to a file if ``path`` is given.

    Raises:
        SetupError: the file cannot be written.
    """
    spans = open_telemetry()
    hears = [*listeners, *([spans.hear] if spans else [])]
    if path is None:
        yield Trace(listeners=hears)
        return
    try:
        file = open_private(path)
        trace_file = TraceFile(file)
    except OSError as error:
        raise SetupError(f"Cannot write the trace to {path}: {error.strerror}.") from error
    trace = Trace(listeners=[trace_file.write, *hears])
    try:
        yield trace
    finally:
        with suppress(OSError):  # told by the last write
            file.close()
        trace.fault = trace_file.fault


# Texts in quotes and numbers, but no digits that are part of a name.
LITERAL = re.compile(r"'(?:[^']|'')*'|(?<![\w.])\d+(?:\.\d+)?(?![\w.])")


def build_provenance(sources: Sources, tools: Sequence[Tool], tells_places: bool) -> Provenance:
    """Build the provenance that all runs on these data share. tools: the opened tools. tells_places: whether the person
    who asks may know where the data lie.
    """
    return Provenance(
        version=__version__,
        sources=tuple(build_data_source(source, tells_places) for source in sources.places),
        tables=sources.tables,
        deny_tables=sources.deny_tables if tells_places else (),
        definitions=tuple(build_used_file(path, tells_places, about=name) for name, path in sources.definitions),
        model=build_used_model(sources.model, tools, tells_places) if sources.model is not None else None,
    )


def build_data_source(source: Source, tells_place: bool) -> DataSource:
    """Build the provenance of a source.

    A connection is known by its name; its place stands in the config file. Without the right to know the place a person
    may not know the conditions either, which could name a table that is not theirs to see.
    """
    place = source.label if tells_place and source.connection is None else ""
    masks = source.policy.mask
    rows = tuple(
        RowPolicy(table, hide_masked_values(condition, masks) if tells_place else "")
        for table, condition in source.policy.rows
    )
    return DataSource(source.name, source.form, place, rows, masks, source.policy.seed if masks else "")


def hide_masked_values(condition: str, masks: tuple[str, ...]) -> str:
    """Replace the values of a condition by ``?`` if it is about a masked column.

    >>> (hide_masked_values("region = 'EU'", ("customers.email",)),
    ...     hide_masked_values("email <> 'a@b.c'", ("customers.email",)))
    ("region = 'EU'", 'email <> ?')
    """
    columns = {name.rpartition(".")[2].strip('"`[]').lower() for name in masks}
    return LITERAL.sub("?", condition) if columns & set(re.findall(r"\w+", condition.lower())) else condition


def build_used_model(path: Path, tools: Sequence[Tool], tells_place: bool) -> UsedFile:
    """Build the provenance of the decision model, as it was opened."""
    file = build_used_file(path, tells_place)
    # The text of the opened model goes before that of the file, which may have changed since.
    for tool in map(unwrap_model_tool, tools):
        if tool is not None:
            text = tool.model.model.text
            return UsedFile(file.path, digest_of_content(text.encode()), text)
    return UsedFile(file.path, file.digest, path.read_text("utf-8", "replace") if file.digest else "")


def unwrap_model_tool(tool: object) -> ModelTool | None:
    """Return the tool of a decision model, also within one that takes turns; None for any other tool."""
    from decisor.decision_models.tool import ModelTool

    # Not by SerializedTool: its module needs the definitions, which need this one.
    inside = getattr(tool, "tool", tool)
    return inside if isinstance(inside, ModelTool) else None


def build_used_file(path: Path, tells_place: bool, about: str = "") -> UsedFile:
    try:
        digest = digest_of_content(path.read_bytes())
    except OSError:
        digest = ""
    return UsedFile(str(path) if tells_place else path.name, digest, about=about)


def digest_of_content(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
