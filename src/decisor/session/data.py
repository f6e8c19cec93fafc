"""Compose a run, from opened data to its result; ``decisor.ask`` and ``decisor.open`` begin here.

open_data              what is named becomes ``Data``: databases, documents and tools that are open
Data.ask               one question of them, many at once:
  read_options           keyword arguments become an AskRequest, and the objects beside it
  choose_technique       the technique and its LLM
  view                   the data as this question needs them: described, defined, with models and a calculator
  open_run               the run that the technique gets: LLM, tools, budget, trace
  record_run             the history listens to the trace
  choose_readings        the meaning of the question's words, where they leave it open
  decide_by_technique    the technique
  cite                   the definitions that the decision rests on, and the answers of other readings
"""

from __future__ import annotations

import asyncio
import time
from asyncio import AbstractEventLoop
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Never, Unpack

from decisor.errors import Error, SetupError
from decisor.history.recorder import Keeping, record_run
from decisor.llms.providers import LLMSpec
from decisor.semantics.definitions import Definitions
from decisor.semantics.readings import OpenReading, suspect_readings
from decisor.session.access import Reader, restrict_sources, reveal_result, system_user_name
from decisor.session.definitions import (
    DefinedTool,
    Meaning,
    ReadingChoice,
    add_readings_to_decision,
    choose_readings,
    compare_with_question,
    find_meaning,
    find_readings_in_documents,
    question_as_read,
    read_definitions_of_databases,
)
from decisor.session.model_tools import (
    Recogniser,
    find_whatif_of_question,
    list_schema_names,
    load_recognisers,
    open_whatif_of_file,
)
from decisor.session.open_sources import limit_database_scans, open_places, open_user_tools
from decisor.session.result import Result, watch_in_notebook
from decisor.session.run_setup import (
    EXACT,
    NAME_ONE,
    Choice,
    LLMs,
    build_provenance,
    choose_technique,
    decide_by_technique,
    fill_output,
    open_run,
)
from decisor.session.sources import Sources, build_sources, check_unique_names, split_names
from decisor.session.user_tools import add_calculator, add_combine_tool, build_row_values
from decisor.system.extras import logger
from decisor.system.tasks import LoopThread, run_in_thread
from decisor.tools.abilities import Database, focus_databases, is_database_tool
from decisor.trace.events import Conclusion, Note, Provenance, RunStart, RunUsage, TraceEntry, cited_records_of
from decisor.types import Decision, Question, Tool

if TYPE_CHECKING:
    from os import PathLike

    from decisor.runtime.budget import Limits
    from decisor.runtime.run import Run, Technique
    from decisor.semantics.readings import Interpreter, Readings
    from decisor.session.request import AskRequest, Attachments, DataOptions, Options
    from decisor.session.sources import Names, Places
    from decisor.session.user_tools import Tools
    from decisor.trace.events import Writing
    from decisor.types import LLM, Action


WHICH_DATA = "No data source given. Use --db, --graph, --docs or --tools, or try: decisor demo"
NOTHING_DECIDES = (
    f"There is no LLM to plan this, and no decision model for these data: {NAME_ONE}, "
    "or give a decision model with --model FILE.toml."
)
NOTHING_TO_COMPUTE = (
    "exact computes from a decision model, and there is none for these data: give one with --model FILE.toml, "
    "or take another technique."
)


@dataclass(frozen=True)
class QuestionData:
    """The data as one question needs them."""

    meaning: Meaning
    """Definitions of its words."""
    databases: Sequence[Database | DefinedTool]
    tools: Sequence[Tool]
    """All tools that the run may use."""
    suspects: Sequence[OpenReading] | None = None
    """Words that could mean two things; None if no LLM is to judge them."""


@dataclass(eq=False, repr=False)
class Data:
    """Opened databases, documents and tools; made by ``decisor.open``.

    Any number of questions may be asked at once: queries to one database wait in line, and each run has its own records
    and citations.
    """

    tools: Sequence[Tool]
    """All tools, ``databases`` first."""
    databases: Sequence[Database]
    llms: LLMs
    sources: Sources = field(default_factory=Sources)
    definitions: Mapping[str, Definitions] = field(default_factory=dict)
    loop: AbstractEventLoop | None = None
    """Event loop that the data are open in; None once they are closed."""
    tells_places: bool = True
    """Whether results may name file paths and hosts."""
    recognisers: Sequence[Recogniser] = field(default_factory=load_recognisers)
    """Modules that know decision models of databases by their schema."""

    def __repr__(self) -> str:
        return f"Data({', '.join(tool.name for tool in self.tools) or 'nothing'})"

    @cached_property
    def origin(self) -> Provenance:
        """Provenance that all runs on these data share. Files are read for it at the first question."""
        origin = build_provenance(self.sources, self.tools, self.tells_places)
        return replace(origin, by=system_user_name() if self.tells_places else "")

    def provenance(self, owner: str) -> Provenance:
        """Return the provenance of a run that begins now. owner: of the history that records the run."""
        return replace(self.origin, at=round(time.time(), 3), by=self.sources.who or owner or self.origin.by)

    @cached_property
    def notes(self) -> Sequence[Note]:
        """Notes on how files were read into the databases."""
        return [Note(text) for tool in self.tools for text in getattr(tool, "notes", ())]

    @cached_property
    def documents(self) -> Sequence[Tool]:
        return [tool for tool in self.tools if getattr(tool, "form", "") == "passages"]

    @cached_property
    def worlds(self) -> Sequence[Database]:
        """Databases with a schema that a recogniser knows."""
        return [
            tool
            for tool in self.databases
            if any(recogniser.recognise_world(list_schema_names(tool)) for recogniser in self.recognisers)
        ]

    async def ask(
        self, question: str | Question, *, past: Sequence[TraceEntry] = (), **options: Unpack[Options]
    ) -> Result:
        """Decide one question. past: trace of an interrupted run to resume; its replies are not paid and its queries
        not run again. Cancelling this ends its queries and calls.

        Raises:
            SetupError: something named cannot be used, or there is nothing that could decide.
            LLMError: the endpoint failed for good.
        """
        # Here and below: to read the data alone, pydantic need not be imported.
        from decisor.session.request import read_options

        with spell_errors_for_python():
            return await self.answer(*read_options(question, options), past)

    def stream(self, question: str | Question, **options: Unpack[Options]) -> RunStream:
        """Decide one question; ``async for event in stream`` gets what happens, and ``stream.result`` is the result."""
        heard = options.pop("on_event", None)

        def decide(hear: Callable[[TraceEntry], None]) -> Coroutine[object, object, Result]:
            def hear_both(entry: TraceEntry) -> None:
                hear(entry)
                if heard:
                    heard(entry)

            options["on_event"] = hear_both
            return self.ask(question, **options)

        return RunStream(decide)

    async def answer(self, request: AskRequest, attached: Attachments, past: Sequence[TraceEntry] = ()) -> Result:
        """Decide the question of a request, as ``ask`` does. Its data are these, whatever it names."""
        from decisor.session.request import write_kept_request

        if not self.tools:
            raise SetupError(WHICH_DATA)
        if not request.question.strip():
            raise SetupError("What is to be decided? The question is empty.")
        # Choose the technique, and prepare the data that it needs.
        question = Question(request.question, request.rules, request.goal, attached.earlier)
        choice = await choose_technique(request, attached, self.llms)
        if attached.output_type and choice.llm is None:
            raise SetupError(f"An LLM fills in the output_type, and {choice.name} asks none: {NAME_ONE}.")
        view = await self.view(question, choice, request)
        keeping = (attached.keeping or Keeping()) if request.history else None
        if keeping is not None:
            keeping.inputs = write_kept_request(request, attached, self.sources)
        row_values = build_row_values(self.sources.tools, question, view.tools, past, attached.reader)
        # Open the run with everything that listens to it.
        with (
            watch_in_notebook((request, attached)) as (_, heard),
            record_run(keeping) as listeners,
            open_run(view.tools, choice, request, heard, listeners, row_values) as begun,
        ):
            run = begun
            if past:
                from decisor.techniques.replay.rerun import resume_interrupted_run

                run = resume_interrupted_run(begun, past)
            # Reruns, verification and the record read from this event what the run was begun with.
            run.trace.add(
                RunStart(
                    question,
                    choice.name,
                    run.llm.name,
                    choice.settings,
                    run.env.tools(),
                    provenance=self.provenance(keeping.owner if keeping else ""),
                )
            )
            for note in (*self.notes, *choice.notes):
                run.trace.add(note)
            decision = await self.decide(question, view, choice.technique, run, attached.reader)
            cited = cited_records_of(decision, run.trace.entries)
            output = attached.output_type and await fill_output(attached.output_type, decision, cited, run)
            run.trace.add(RunUsage(run.budget.spent))
        spent = run.budget.spent
        logger.info("%s: %s after %d calls, %d actions", choice.name, decision.stopped, spent.calls, spent.actions)
        result = Result(
            question=question,
            decision=decision,
            technique=choice.name,
            llm=run.llm.name,
            settings=choice.settings,
            usage=spent,
            records=cited,
            output=output,
            trace=tuple(run.trace.entries),
            trace_fault=run.trace.fault,
            request=request,
            attached=attached,
            ask_anew=self.answer_anew,
            keeping=keeping,
        )
        # Only the result gets values for tokens: the trace and the history are written by now.
        return await reveal_result(result, self.databases)

    async def decide(
        self, question: Question, view: QuestionData, technique: Technique, run: Run, reader: Interpreter | None = None
    ) -> Decision:
        """Decide a question within a run: open words are settled before, and definitions are cited after it."""
        # Settle words with two meanings before anything is planned.
        choices: Sequence[ReadingChoice] = ()
        if view.suspects is not None:
            sources = [*view.databases, *self.documents]
            choices = await choose_readings(question, sources, view.meaning.needs(), view.suspects, run, reader)
        # Definitions are cited as records, so they stand in the trace before the decision.
        records = await view.meaning.records(view.meaning.shows(run), run)
        # The technique concludes in a span of its own: the Conclusion outside any span is the last, with citations.
        with run.span("decision") if view.meaning or choices else nullcontext(run) as inner:
            asked = question_as_read(question, choices) if choices else question
            try:
                decision = await decide_by_technique(technique, asked, inner)
            finally:
                # The machines of models that were drafted for this question, which no other asks.
                for tool in view.tools:
                    if tool.name == "decision_model":
                        await tool.close()
        if view.meaning or choices:
            decision = await view.meaning.cite(decision, records, run)
            decision = await add_readings_to_decision(decision, question, choices, technique, run)
            run.trace.add(Conclusion(decision))
        return decision

    async def answer_anew(self, request: AskRequest, attached: Attachments) -> Result:
        """Decide a question; open the data again in another event loop or if they are closed."""
        # Connections work only in the event loop that opened them.
        if self.loop is asyncio.get_running_loop():
            return await self.answer(request, attached)
        return await ask_once(self.sources, request, attached)

    async def view(self, question: Question, choice: Choice, request: AskRequest) -> QuestionData:
        """Prepare the data for a question.

        They get descriptions, limits and definitions, a decision model if the question is about one, and tools to
        calculate with; words that may have two meanings are noted.
        """
        models = await self.models(question, choice)
        topic = question.topic
        databases = await focus_databases(topic, limit_database_scans(self.databases, request.max_scan))
        is_alone = len(self.tools) == 1
        databases = [
            compare_with_question(tool, question, self.definitions.get(tool.name, ()), is_alone) for tool in databases
        ]
        tools = add_combine_tool([*databases, *models, *self.tools[len(databases) :]])
        meaning = find_meaning(topic, databases, self.definitions, tools)
        own, needs = meaning.around(databases), meaning.needs()
        suspects: list[OpenReading] | None = None
        if request.readings != "off" and choice.llm is not None:
            suspects = []
            for tool in own:
                suspects += suspect_readings(question, tool.tables, needs.get(tool.name, ()))
            if self.documents:
                suspects += await find_readings_in_documents(question, self.documents)
            suspects = suspects or ([] if request.readings == "always" else None)
        return QuestionData(meaning, own, add_calculator(meaning.around(tools), choice.technique), suspects)

    async def models(self, question: Question, choice: Choice) -> Sequence[Tool]:
        """Return the tools for a decision model that the technique needs or the question is about.

        None are added to a decision model that was named.

        Raises:
            SetupError: nothing else could decide, and there is none.
        """
        if "decision_model" in getattr(choice.technique, "needs", ()):
            from decisor.session.model_tools import list_modelling_tools

            return list_modelling_tools(self.databases, choice.technique)
        if any(tool.name == "whatif" for tool in self.tools):
            return ()
        model = await find_whatif_of_question(question, self.worlds, self.recognisers) if self.worlds else None
        if model is None and choice.name == EXACT:
            raise SetupError(NOTHING_TO_COMPUTE if choice.by_name else NOTHING_DECIDES)
        return [model] if model else ()


@asynccontextmanager
async def open_data(sources: Sources) -> AsyncIterator[Data]:
    """Open data until the block ends.

    Raises:
        SetupError: something cannot be opened, or two tools have one name.
    """
    async with AsyncExitStack() as stack:
        llms = LLMs()
        stack.push_async_callback(llms.close)
        places = await open_places(sources, stack)
        databases = [tool for tool in places if is_database_tool(tool)]
        definitions = read_definitions_of_databases(sources.definitions, [tool.name for tool in databases])
        models: list[Tool] = []
        if sources.model is not None:
            model = await open_whatif_of_file(sources.model, databases, stack, definitions)
            models = [model] if model else []
        tools = [*databases, *models, *places[len(databases) :], *await open_user_tools(sources.tools, stack)]
        # The tools of an MCP server have names only once it is open, so names are compared last.
        check_unique_names([tool.name for tool in tools])
        data = Data(tools, databases, llms, sources, definitions, asyncio.get_running_loop())
        # Data that outlive their block can tell that they are closed, and are opened again.
        stack.callback(setattr, data, "loop", None)
        yield data


async def ask_once(
    sources: Sources, request: AskRequest, attached: Attachments, past: Sequence[TraceEntry] = ()
) -> Result:
    """Open data, decide a question, and close the data. past: trace of an interrupted run to resume.

    Connections of LLMs that were given as objects are closed too: this event loop may end here.
    """
    from decisor.llms.shared import close_llm

    # LLM objects also stand in settings such as critic_llm.
    llms: list[Any] = [attached.llm, *(value for key, value in attached.settings.items() if key.endswith("_llm"))]
    try:
        async with open_data(sources) as data:
            return await data.answer(request, attached, past)
    finally:
        for llm in llms:
            # What an LLMSpec names is opened and closed with the data.
            if llm is not None and not isinstance(llm, LLMSpec):
                await close_llm(llm)


def ask(
    question: str | Question,
    *,
    db: Places | None = None,
    graph: Places | None = None,
    docs: Places | None = None,
    tools: Tools | None = None,
    rules: str | None = None,
    goal: str | None = None,
    llm: LLM | LLMSpec | str | None = None,
    technique: Technique | str | None = None,
    settings: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    model: str | PathLike[str] | None = None,
    definitions: Places | None = None,
    tables: Names | None = None,
    deny_tables: Names | None = None,
    rows: Mapping[str, str] | None = None,
    mask: Names | None = None,
    reveal: bool | None = None,
    audit: str | PathLike[str] | None = None,
    who: str | None = None,
    history: bool | Keeping | None = None,
    on_event: Callable[[TraceEntry], None] | None = None,
    on_text: Callable[[Writing], None] | None = None,
    approve: Callable[[Action], Awaitable[str]] | None = None,
    reader: Interpreter | None = None,
    readings: Readings | None = None,
    max_scan: str | int | None = None,
    trace: str | PathLike[str] | None = None,
    output_type: type | None = None,
    **others: Never,
) -> Result:
    """Decide a question from data, with the evidence of the answer. This works in a notebook too.

        result = decisor.ask("Which site should we open?", db="sqlite:///sites.db", llm="gpt-4.1-mini")
        print(result)
        result.answer, result.ranking, result.evidence, result.usage

    Args:
        db: Databases: URLs, files (CSV, Excel, Parquet, ...), DataFrames, or ``{"name": table}``. Here and in the next
            three: one or several; ``"name=URL"`` gives one a name.
        graph: Graphs, such as ``"bolt://localhost"``.
        docs: Documents: folders, files, or indexes that ``decisor index`` made.
        tools: Functions, ``"module:function"``, or OpenAPI documents; ``ToolSpecs`` says how APIs are called.
        rules: Rules to decide by, in words.
        goal: Goal, in words.
        llm: ``"MODEL[@URL]"``, with settings (``"m@URL timeout=900 context=8192"``) or as ``LLMSpec``; ``"none"``; or
            any object with ``name`` and ``complete``.
        technique: A name (``"agent"``), an import path (``"module:Class"``), or the object.
        settings: Fields of the technique, how replies are asked for (``{"calling": "json"}``), and the LLMs of its
            parts (``{"critic_llm": ...}``).
        limits: ``Limits(calls=20, dollars=0.5, seconds=60)``.
        model: A file with a decision model.
        definitions: A file of what words mean in these data.
        tables: Of databases and graphs, only these may be read; ``"name.table"`` is of one source alone.
        deny_tables: These may be neither read nor seen.
        rows: The rows of a table that may be read: ``{"orders": "region = 'EU'"}``.
        mask: Columns of which an LLM gets tokens, and no values: ``"customers.email"``.
        reveal: Whether the result has the values of masked columns again.
        audit: A file that each query is noted in.
        who: The person for whom it is asked: they stand in ``audit`` and in the record of the decision.
        history: Whether the run is kept, as ``decisor history`` lists it; a ``Keeping`` says where, and whose it is.
        on_event: Gets each ``TraceEntry`` as it happens.
        on_text: Gets a ``Writing`` again and again while the LLM writes a reply, which is streamed then.
        approve: Awaited with each ``Action`` on the data before it is done: '' lets it be done, any other text is why
            not.
        reader: Awaited with an ``OpenReading``, words that can be read in two ways; says which is meant. Without
            one, or where it says '', both are computed.
        readings: When an LLM judges whether there are such words: ``"auto"`` (where rules suspect it), ``"always"`` or
            ``"off"``.
        max_scan: Rows (``"5M"``) or bytes (``"2GB"``) that one SQL query may read, where its engine tells before.
        trace: A file that the events are written to.
        output_type: A pydantic model or dataclass. The LLM fills it in from the decision, every figure is looked up
            in the cited records, and ``result.output`` is the object.

    Raises:
        SetupError: something named cannot be used, or there is nothing that could decide.
        LLMError: the endpoint failed for good.
    """
    options: dict[str, Any] = {name: value for name, value in locals().items() if value is not None}
    del options["question"]
    options |= options.pop("others")
    from decisor.session.request import DataOptions, read_options

    with spell_errors_for_python():
        data = {name: options.pop(name) for name in DataOptions.__annotations__ if name in options}
        sources = restricted_sources(**data)
        with watch_in_notebook(read_options(question, options)) as (request, attached):
            return run_in_thread(ask_once(sources, request, attached))


@contextmanager
def spell_errors_for_python() -> Iterator[None]:
    """Name arguments of Python, in place of options of the command, in the messages of errors within the block."""
    try:
        yield
    except Error as error:
        from decisor.session.request import spell_arguments

        error.args = (spell_arguments(str(error)), *error.args[1:])
        raise


def open(**data: Unpack[DataOptions]) -> DataBlock:
    """Open data once for many questions, also for many at once. They are named as for ``decisor.ask``.

        with decisor.open(db="sqlite:///sites.db", docs="reports/") as data:
            result = data.ask("Which site should we open?", llm="gpt-4.1-mini")

        async with decisor.open(db="sqlite:///sites.db") as data:
            result = await data.ask("Which site should we open?", llm="gpt-4.1-mini")

    Raises:
        SetupError: something named cannot be opened.
    """
    with spell_errors_for_python():
        return DataBlock(restricted_sources(**data))


class DataBlock:
    """Data that are open within a block: with ``async with`` as ``Data``, with ``with`` as ``BlockingData``."""

    def __init__(self, sources: Sources) -> None:
        self.opening = open_data(sources)

    async def __aenter__(self) -> Data:
        with spell_errors_for_python():
            return await self.opening.__aenter__()

    async def __aexit__(self, *failure: Any) -> None:
        await self.opening.__aexit__(*failure)

    def __enter__(self) -> BlockingData:
        self.thread = LoopThread().__enter__()
        try:
            return BlockingData(self.thread.run(self.__aenter__()), self.thread)
        except BaseException:
            self.thread.__exit__()
            raise

    def __exit__(self, *failure: Any) -> None:
        try:
            self.thread.run(self.__aexit__(*failure))
        finally:
            self.thread.__exit__()


@dataclass(frozen=True, eq=False, repr=False)
class BlockingData:
    """Opened data for code that is not async. Threads may ask at once."""

    data: Data
    thread: LoopThread

    def __repr__(self) -> str:
        return f"Blocking{self.data}"

    def ask(self, question: str | Question, **options: Unpack[Options]) -> Result:
        """Decide one question, as ``decisor.ask`` does."""
        return self.thread.run(self.data.ask(question, **options))

    def stream(self, question: str | Question, **options: Unpack[Options]) -> RunStream:
        """Decide one question; ``for event in stream`` gets what happens, and ``stream.result`` is the result."""
        return replace(self.data.stream(question, **options), thread=self.thread)


@dataclass
class RunStream:
    """The events of a run while it goes on, and then its result. Leaving the loop over them ends the run."""

    decide: Callable[[Callable[[TraceEntry], None]], Coroutine[object, object, Result]]
    """Runs it, and calls a function with each entry of its trace."""
    thread: LoopThread | None = None
    """Thread of the run, for a loop that is not async."""
    outcome: Result | None = None

    @property
    def result(self) -> Result:
        """Result of the run; SetupError before its last event."""
        if self.outcome is None:
            raise SetupError("The run has not ended: loop over all of its events first.")
        return self.outcome

    async def __aiter__(self) -> AsyncIterator[TraceEntry]:
        entries: asyncio.Queue[TraceEntry | None] = asyncio.Queue()
        task = asyncio.ensure_future(self.decide(entries.put_nowait))
        # None ends the queue, in whatever way the run ended.
        task.add_done_callback(lambda _: entries.put_nowait(None))
        try:
            while (entry := await entries.get()) is not None:
                yield entry
            self.outcome = await task
        finally:
            task.cancel()
            await asyncio.wait([task])

    def __iter__(self) -> Iterator[TraceEntry]:
        if self.thread is None:
            raise SetupError("Write `async for` here, or open the data with `with decisor.open(...)`.")
        entries = aiter(self)

        async def following() -> TraceEntry | None:
            return await anext(entries, None)

        try:
            while (entry := self.thread.run(following())) is not None:
                yield entry
        finally:
            self.thread.run(entries.aclose())  # type: ignore[attr-defined]  # it is a generator


def restricted_sources(**data: Unpack[DataOptions]) -> Sources:
    """Return the data that a program names, as far as ``who`` may read them.

    Raises:
        SetupError: something named cannot be data, or a table or column is of none.
    """
    sources = build_sources(
        data.get("db", ()),
        data.get("graph", ()),
        data.get("docs", ()),
        data.get("tools", ()),
        data.get("model"),
        data.get("tables", ()),
        data.get("deny_tables", ()),
        data.get("definitions", ()),
    )
    rows, mask = tuple((data.get("rows") or {}).items()), split_names(data.get("mask", ()))
    reader = Reader(data.get("who", ""), rows, mask, data.get("reveal", False))
    return replace(restrict_sources(sources, reader, data.get("audit")), who=reader.name)
