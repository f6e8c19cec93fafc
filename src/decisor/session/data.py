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
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

from decisor.errors import SetupError
from decisor.history.recorder import Keeping, record_run
from decisor.llms.providers import LLMSpec
from decisor.semantics.ambiguity import suspect_readings
from decisor.semantics.definitions import Definitions
from decisor.semantics.readings import OpenReading
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
from decisor.session.provenance import build_provenance
from decisor.session.result import Result, watch_in_notebook
from decisor.session.run_setup import EXACT, NAME_ONE, Choice, LLMs, choose_technique, decide_by_technique, open_run
from decisor.session.sources import Sources, build_sources, check_unique_names, split_names
from decisor.session.user_tools import add_calculator, add_combine_tool, build_row_values
from decisor.system.extras import logger
from decisor.system.tasks import run_in_thread
from decisor.tools.abilities import Database, focus_databases, is_database_tool
from decisor.trace.events import Conclusion, Note, Provenance, RunStart, RunUsage, TraceEntry, cited_records_of
from decisor.types import Question, Tool

if TYPE_CHECKING:
    from decisor.session.request import AskOptions, AskRequest, Attachments, DataOptions, Options


WHICH_DATA = (
    "Which data? Name them with --db, --graph, --docs or --tools (in Python db=, graph=, docs=, tools=), "
    "or try --example trade."
)
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
    suspects: Sequence[OpenReading] = ()
    """Words that could mean two things."""


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

        return await self.answer(*read_options(question, options), past)

    async def answer(self, request: AskRequest, attached: Attachments, past: Sequence[TraceEntry] = ()) -> Result:
        """Decide the question of a request, as ``ask`` does. Its data are these, whatever it names."""
        from decisor.session.request import write_kept_request
        from decisor.techniques.replay.rerun import resume_interrupted_run

        if not self.tools:
            raise SetupError(WHICH_DATA)
        if not request.question.strip():
            raise SetupError("What is to be decided? The question is empty.")
        # Choose the technique, and prepare the data that it needs.
        question = Question(request.question, request.rules, request.goal, attached.earlier)
        choice = await choose_technique(request, attached, self.llms)
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
            run = resume_interrupted_run(begun, past) if past else begun
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
            # Settle words with two meanings before anything is planned.
            choices: Sequence[ReadingChoice] = ()
            if view.suspects or (request.readings == "always" and choice.llm is not None):
                sources = [*view.databases, *self.documents]
                choices = await choose_readings(
                    question, sources, view.meaning.needs(), view.suspects, run, attached.reader
                )
            # Definitions are cited as records, so they stand in the trace before the decision.
            records = await view.meaning.records(view.meaning.shows(run), run)
            # The technique concludes in a span of its own: the Conclusion outside any span is the final one, with
            # citations.
            with run.span("decision") if view.meaning or choices else nullcontext(run) as inner:
                decision = await decide_by_technique(
                    choice.technique, question_as_read(question, choices) if choices else question, inner
                )
            if view.meaning or choices:
                decision = await view.meaning.cite(decision, records, run)
                decision = await add_readings_to_decision(decision, question, choices, choice.technique, run)
                run.trace.add(Conclusion(decision))
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
            records=cited_records_of(decision, run.trace.entries),
            trace=tuple(run.trace.entries),
            trace_fault=run.trace.fault,
            request=request,
            attached=attached,
            ask_anew=self.answer_anew,
            keeping=keeping,
        )
        # Only the result gets values for tokens: the trace and the history are written by now.
        return await reveal_result(result, self.databases)

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
        databases = [compare_with_question(tool, question, self.definitions.get(tool.name, ())) for tool in databases]
        tools = add_combine_tool([*databases, *models, *self.tools[len(databases) :]])
        meaning = find_meaning(topic, databases, self.definitions, tools)
        own, needs = meaning.around(databases), meaning.needs()
        suspects: list[OpenReading] = []
        if request.readings != "off" and choice.llm is not None:
            for tool in own:
                suspects += suspect_readings(question, tool.tables, needs.get(tool.name, ()))
            if self.documents:
                suspects += await find_readings_in_documents(question, self.documents)
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


def ask(question: str | Question, **options: Unpack[AskOptions]) -> Result:
    """Decide a question from data, with the evidence of the answer. This works in a notebook too.

        result = decisor.ask("Which site should we open?", db="sqlite:///sites.db", llm="gpt-4.1-mini")
        print(result)
        result.answer, result.ranking, result.evidence, result.usage

    ``db``, ``graph``: URLs of databases; ``db`` also files (CSV, Excel, Parquet, ...), DataFrames, or
    ``{"name": table}``; ``docs``: folders, files, or indexes of documents; ``tools``: functions, ``"module:function"``,
    or OpenAPI documents. Each is one or several; ``"name=URL"`` gives one a name. ``model``: a file with a decision
    model. ``tables``: of databases and graphs, only these may be read; ``deny_tables``: these may be neither read nor
    seen; ``"name.table"`` is of one source alone. ``definitions``: a file of what words mean in these data.
    ``rows``: ``{"orders": "region = 'EU'"}``, the rows of a table that may be read; ``mask``: ``"customers.email"``,
    columns of which only tokens are sent to an LLM; ``reveal``: the result has values again; ``audit``: a file that
    each query is noted in, for ``who``, whom the record of the decision names too. Other options: rules, goal, llm,
    technique, settings, limits, on_event, on_text, calling, trace.

    Raises:
        SetupError: something named cannot be used, or there is nothing that could decide.
        LLMError: the endpoint failed for good.
    """
    from decisor.session.request import DataOptions, read_options

    data = {name: options.pop(name) for name in DataOptions.__annotations__ if name in options}  # type: ignore[misc]
    sources = restricted_sources(**data)
    with watch_in_notebook(read_options(question, options)) as (request, attached):
        return run_in_thread(ask_once(sources, request, attached))


@asynccontextmanager
async def open(**data: Unpack[DataOptions]) -> AsyncIterator[Data]:
    """Open data once for many questions, also for many at once. They are named as for ``decisor.ask``.

        async with decisor.open(db="sqlite:///sites.db", docs="reports/") as data:
            result = await data.ask("Which site should we open?", llm="gpt-4.1-mini")

    Raises:
        SetupError: something named cannot be opened.
    """
    async with open_data(restricted_sources(**data)) as opened:
        yield opened


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
