"""Compose a run, from opened data to its result; ``decisor.ask`` and ``decisor.open`` begin here.

open_data              what is named becomes ``Data``: databases, documents and tools that are open
Data.ask               one question of them, many at once:
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
from os import PathLike
from typing import Any, Unpack

from decisor.errors import SetupError
from decisor.history.recorder import record_run
from decisor.llms.providers import LMSpec
from decisor.semantics.ambiguity import suspect_readings
from decisor.semantics.definitions import Definitions
from decisor.semantics.readings import OpenReading, Readings
from decisor.session.access import restrict_sources, reveal_result, system_user_name
from decisor.session.definitions import (
    DefinedTool,
    Meaning,
    ReadingChoice,
    add_readings_to_decision,
    choose_readings,
    find_meaning,
    find_readings_in_documents,
    question_as_read,
    read_definitions_of_databases,
)
from decisor.session.model_tools import find_whatif_of_question, has_world_schema, open_whatif_of_file
from decisor.session.open_sources import limit_database_scans, open_places, open_user_tools
from decisor.session.provenance import build_provenance, history_owner, prepare_keeping
from decisor.session.request import Names, Options, Places, Sources, build_sources, check_options, check_unique_names
from decisor.session.result import Result, watch_in_notebook
from decisor.session.run_setup import EXACT, NAME_ONE, Choice, LMs, choose_technique, decide_by_technique, open_run
from decisor.session.user_tools import Tools, add_calculator, add_combine_tool, build_row_values
from decisor.system.extras import logger
from decisor.system.tasks import run_in_thread
from decisor.tools.abilities import Database, focus_databases, is_database_tool
from decisor.trace.events import Conclusion, Note, Provenance, RunStart, RunUsage, TraceEntry, cited_records_of
from decisor.types import Question, Tool

WHICH_DATA = (
    "Which data? Name them with --db, --graph, --docs or --tools (in Python db=, graph=, docs=, tools=), "
    "or try --example trade."
)
NOTHING_DECIDES = (
    f"There is no LM to plan this, and no decision model for these data: {NAME_ONE}, "
    "or give a decision model with --model FILE.toml."
)
NOTHING_TO_COMPUTE = (
    "exact computes from a decision model, and there is none for these data: give one with --model FILE.toml, "
    "or take another technique."
)


@dataclass(frozen=True)
class QuestionData:
    """The data as one question needs them. meaning: definitions of its words. tools: all tools that the run may use.
    suspects: words that could mean two things.
    """

    meaning: Meaning
    databases: Sequence[Database | DefinedTool]
    tools: Sequence[Tool]
    suspects: Sequence[OpenReading] = ()


@dataclass(eq=False, repr=False)
class Data:
    """Opened databases, documents and tools; made by ``decisor.open``.

    Any number of questions may be asked at once: queries to one database wait in line, and each run has its own records
    and citations. tools: all tools, ``databases`` first. loop: event loop that they are open in, None once they are
    closed. tells_places: whether the person who asks may know where the data lie.
    """

    tools: Sequence[Tool]
    databases: Sequence[Database]
    lms: LMs
    sources: Sources = field(default_factory=Sources)
    definitions: Mapping[str, Definitions] = field(default_factory=dict)
    loop: AbstractEventLoop | None = None
    tells_places: bool = True

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
        """Databases with the schema of a Decision QA world."""
        return [tool for tool in self.databases if has_world_schema(tool)]

    async def ask(
        self, question: str | Question, *, past: Sequence[TraceEntry] = (), **options: Unpack[Options]
    ) -> Result:
        """Decide one question. past: trace of an interrupted run to resume; its replies are not paid and its queries
        not run again. Cancelling this ends its queries and calls.

        Raises:
            SetupError: something named cannot be used, or there is nothing that could decide.
            LMError: the endpoint failed for good.
        """
        from decisor.techniques.replay.rerun import resume_interrupted_run

        if not self.tools:
            raise SetupError(WHICH_DATA)
        check_options(options)
        question = build_question(question, options)
        choice = await choose_technique(
            options.get("technique", ""), options.get("settings", {}), options.get("lm"), self.lms
        )
        readings = options.get("readings", "auto") if choice.lm is not None else "off"
        view = await self.view(question, choice, options, readings)
        keeping, last = prepare_keeping(options, self.sources), question.earlier.last if question.earlier else 0
        row_values = build_row_values(self.sources.tools, question, view.tools, past, options.get("reader"))
        with (
            watch_in_notebook(options) as own,
            record_run(keeping) as listeners,
            open_run(view.tools, choice, own, last, listeners, row_values=row_values) as begun,
        ):
            run = resume_interrupted_run(begun, past) if past else begun
            run.trace.add(
                RunStart(
                    question,
                    choice.name,
                    run.lm.name,
                    choice.settings,
                    run.env.tools(),
                    provenance=self.provenance(history_owner(options)),
                )
            )
            for note in self.notes:
                run.trace.add(note)
            choices: Sequence[ReadingChoice] = ()
            if view.suspects or readings == "always":
                sources = [*view.databases, *self.documents]
                choices = await choose_readings(
                    question, sources, view.meaning.needs(), view.suspects, run, options.get("reader")
                )
            records = await view.meaning.records(view.meaning.shows(run), run)
            with run.span("decision") if view.meaning or choices else nullcontext(run) as inner:
                decision = await decide_by_technique(
                    choice.technique, question_as_read(question, choices) if choices else question, inner
                )
            if view.meaning or choices:
                decision = await view.meaning.cite(decision, records, run)
                decision = await add_readings_to_decision(decision, question, choices, choice.technique, run)
                run.trace.add(Conclusion(decision))
            run.trace.add(RunUsage(run.budget.spent))
        logger.info(
            "%s: %s after %d calls, %d actions",
            choice.name,
            decision.stopped,
            run.budget.spent.calls,
            run.budget.spent.actions,
        )
        result = Result(
            question=question,
            decision=decision,
            technique=choice.name,
            lm=run.lm.name,
            settings=choice.settings,
            usage=run.budget.spent,
            records=cited_records_of(decision, run.trace.entries),
            trace=tuple(run.trace.entries),
            trace_fault=run.trace.fault,
            options=options,
            ask_anew=self.ask_anew,
            keeping=keeping,
        )
        return await reveal_result(result, self.databases)

    async def ask_anew(self, question: str | Question, options: Options) -> Result:
        """Decide a question; open the data again in another event loop or if they are closed."""
        if self.loop is asyncio.get_running_loop():
            return await self.ask(question, **options)
        return await ask_once(self.sources, question, options)

    async def view(self, question: Question, choice: Choice, options: Options, readings: Readings) -> QuestionData:
        """Prepare the data for a question.

        They get descriptions, limits and definitions, a decision model if the question is about one, and tools to
        calculate with; words that may have two meanings are noted.
        """
        models = await self.models(question, choice)
        topic = question.topic
        databases = await focus_databases(topic, limit_database_scans(self.databases, options.get("max_scan", "")))
        tools = add_combine_tool([*databases, *models, *self.tools[len(databases) :]])
        meaning = find_meaning(topic, databases, self.definitions, tools)
        own, needs = meaning.around(databases), meaning.needs()
        suspects: list[OpenReading] = []
        if readings != "off":
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
        model = await find_whatif_of_question(question, self.worlds) if self.worlds else None
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
        lms = LMs()
        stack.push_async_callback(lms.close)
        places = await open_places(sources, stack)
        databases = [tool for tool in places if is_database_tool(tool)]
        definitions = read_definitions_of_databases(sources.definitions, [tool.name for tool in databases])
        models: list[Tool] = []
        if sources.model is not None:
            model = await open_whatif_of_file(sources.model, databases, stack, definitions)
            models = [model] if model else []
        tools = [*databases, *models, *places[len(databases) :], *await open_user_tools(sources.tools, stack)]
        check_unique_names([tool.name for tool in tools])
        data = Data(tools, databases, lms, sources, definitions, asyncio.get_running_loop())
        stack.callback(setattr, data, "loop", None)
        yield data


async def ask_once(
    sources: Sources, question: str | Question, options: Options, past: Sequence[TraceEntry] = ()
) -> Result:
    """Open data, decide a question, and close the data. past: trace of an interrupted run to resume.

    Connections of LLMs that were given as objects are closed too: this event loop may end here.
    """
    from decisor.llms.concurrency import close_lm

    check_options(options)
    settings: Mapping[str, Any] = options.get("settings", {})
    lms = [options.get("lm"), *(value for key, value in settings.items() if key.endswith("_lm"))]
    try:
        async with open_data(sources) as data:
            return await data.ask(question, past=past, **options)
    finally:
        for lm in lms:
            if lm is not None and not isinstance(lm, str | LMSpec):
                await close_lm(lm)


def build_question(question: str | Question, options: Options) -> Question:
    """Build a question with the rules and the goal of its options.

    Raises:
        SetupError: there is no text in it.
    """
    if isinstance(question, str):
        question = Question(question)
    if not question.text.strip():
        raise SetupError("What is to be decided? The question is empty.")
    rules, goal = options.get("rules", "") or question.rules, options.get("goal", "") or question.goal
    question = replace(question, rules=rules, goal=goal)
    check_question_text(question)
    return question


def check_question_text(question: Question) -> None:
    """Raise SetupError if a question is not valid UTF-8: it has other bytes or half characters."""
    for name in ("text", "rules", "goal"):
        try:
            getattr(question, name).encode()
        except UnicodeEncodeError as error:
            what = "question" if name == "text" else name
            raise SetupError(
                f"The {what} is not UTF-8 (character {error.start + 1}). Write it in a terminal that "
                "speaks UTF-8, or as a file: iconv -f LATIN1 -t UTF-8 FILE | decisor ask -"
            ) from error


Model = str | PathLike[str] | None
Rows = Mapping[str, str] | None


def ask(
    question: str | Question,
    *,
    db: Places = (),
    graph: Places = (),
    docs: Places = (),
    tools: Tools = (),
    model: Model = None,
    tables: Names = (),
    deny_tables: Names = (),
    definitions: Places = (),
    rows: Rows = None,
    mask: Names = (),
    reveal: bool = False,
    audit: Model = None,
    who: str = "",
    **options: Unpack[Options],
) -> Result:
    """Decide a question from data, with the evidence of the answer. This works in a notebook too.

        result = decisor.ask("Which site should we open?", db="sqlite:///sites.db", lm="gpt-4.1-mini")
        print(result)
        result.answer, result.ranking, result.evidence, result.usage

    ``db``, ``graph``: URLs of databases; ``db`` also files (CSV, Excel, Parquet, ...), DataFrames, or
    ``{"name": table}``; ``docs``: folders, files, or indexes of documents; ``tools``: functions, ``"module:function"``,
    or OpenAPI documents. Each is one or several; ``"name=URL"`` gives one a name. ``model``: a file with a decision
    model. ``tables``: of databases and graphs, only these may be read; ``deny_tables``: these may be neither read nor
    seen; ``"name.table"`` is of one source alone. ``definitions``: a file of what words mean in these data.
    ``rows``: ``{"orders": "region = 'EU'"}``, the rows of a table that may be read; ``mask``: ``"customers.email"``,
    columns of which only tokens are sent to an LM; ``reveal``: the result has values again; ``audit``: a file that each
    query is noted in, for ``who``, whom the record of the decision names too. Other options: rules, goal, lm,
    technique, settings, limits, on_event, on_text, calling, trace.

    Raises:
        SetupError: something named cannot be used, or there is nothing that could decide.
        LMError: the endpoint failed for good.
    """
    sources = build_sources(db, graph, docs, tools, model, tables, deny_tables, definitions)
    sources = replace(restrict_sources(sources, rows, mask, reveal, audit, who), who=who)
    with watch_in_notebook(options) as own:
        return run_in_thread(ask_once(sources, question, own))


@asynccontextmanager
async def open(
    *,
    db: Places = (),
    graph: Places = (),
    docs: Places = (),
    tools: Tools = (),
    model: Model = None,
    tables: Names = (),
    deny_tables: Names = (),
    definitions: Places = (),
    rows: Rows = None,
    mask: Names = (),
    reveal: bool = False,
    audit: Model = None,
    who: str = "",
) -> AsyncIterator[Data]:
    """Open data once for many questions, also for many at once.

        async with decisor.open(db="sqlite:///sites.db", docs="reports/") as data:
            result = await data.ask("Which site should we open?", lm="gpt-4.1-mini")

    Raises:
        SetupError: something named cannot be opened.
    """
    sources = build_sources(db, graph, docs, tools, model, tables, deny_tables, definitions)
    async with open_data(replace(restrict_sources(sources, rows, mask, reveal, audit, who), who=who)) as data:
        yield data
