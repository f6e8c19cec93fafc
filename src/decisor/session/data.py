"""Every run is composed here, from what is named to its result, top to bottom.

opened           what is named becomes ``Data``: databases, documents and tools that are open
Data.ask         one question of them, many at once:
  choose           the technique and its LM
  view             the data as this question needs them: described, defined, with a decision model and a calculator
  running          the run that the technique gets: LM, tools, budget, trace; ``recorded``: heard by the history
  settle           what the words of the question mean, where they leave it open
  decide           the technique
  cite             the definitions that the decision rests on, and what other readings would give
"""

from __future__ import annotations

import asyncio
import time
from asyncio import AbstractEventLoop
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Unpack

from decisor.definitions.format import Definitions
from decisor.definitions.readings.open import OpenReading, Readings
from decisor.definitions.readings.rules import suspicions
from decisor.errors import SetupError
from decisor.history.recording import recorded
from decisor.lms.spec import LMSpec
from decisor.log import logger
from decisor.session.decide import NAME_ONE, decide
from decisor.session.definitions import DefinedTool, Meaning, meaning_of
from decisor.session.definitions_file import read_definitions
from decisor.session.keeping import keeping_of, owner_of
from decisor.session.lms import LMs
from decisor.session.opening import open_functions, open_places
from decisor.session.options import Options, check_options
from decisor.session.provenance import origin_of
from decisor.session.readers import revealed, user_name
from decisor.session.readings import ReadingChoice, as_read, of_documents, settle, with_readings
from decisor.session.result import Result
from decisor.session.row_values import row_values_of
from decisor.session.running import running
from decisor.session.scan_limits import limited
from decisor.session.sources import Sources, check_names
from decisor.session.technique import EXACT, Choice, choose
from decisor.session.tools import with_calculator, with_combine
from decisor.session.watching import watched
from decisor.session.whatif import from_file, from_question, has_world
from decisor.techniques.replay.resume import resuming
from decisor.tools.abilities import Database, about, is_database
from decisor.trace.events import Conclusion, Entry, Note, RunStart, RunUsage, records_of
from decisor.trace.provenance import Provenance
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
class View:
    """The data as one question needs them. ``meaning``: what its words mean; ``tools``: all that a run may use;
    ``suspects``: words that could mean two things."""

    meaning: Meaning
    databases: Sequence[Database | DefinedTool]
    tools: Sequence[Tool]
    suspects: Sequence[OpenReading] = ()


@dataclass(eq=False, repr=False)
class Data:
    """Opened databases, documents and tools; made by ``decisor.open``. Any number of questions may be asked at once:
    queries to one database wait in line, and what a run has seen and cited is its own. ``tools``: all, ``databases``
    first. ``loop``: that they are open in, None once they are closed. ``tells_places``: whether who asks may know where
    the data lie."""

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
        """Where all runs on these data are from; files are read for it at the first question."""
        origin = origin_of(self.sources, self.tools, self.tells_places)
        return replace(origin, by=user_name() if self.tells_places else "")

    def provenance(self, owner: str) -> Provenance:
        """Of a run that begins. ``owner``: of the history that it is kept in."""
        return replace(self.origin, at=round(time.time(), 3), by=self.sources.who or owner or self.origin.by)

    @cached_property
    def notes(self) -> Sequence[Note]:
        """How data came to be there, where they were read from files."""
        return [Note(text) for tool in self.tools for text in getattr(tool, "notes", ())]

    @cached_property
    def documents(self) -> Sequence[Tool]:
        return [tool for tool in self.tools if getattr(tool, "form", "") == "passages"]

    @cached_property
    def worlds(self) -> Sequence[Database]:
        """The databases with the schema of a Decision QA world."""
        return [tool for tool in self.databases if has_world(tool)]

    async def ask(self, question: str | Question, *, past: Sequence[Entry] = (), **options: Unpack[Options]) -> Result:
        """Decide one question. ``past``: a run of it that did not come to its end; what it bought is not bought again,
        and what it queried is not queried again. Cancelling it ends its queries and calls.

        Raises:
            SetupError: something named cannot be used, or there is nothing that could decide.
            LMError: the endpoint failed for good.
        """
        if not self.tools:
            raise SetupError(WHICH_DATA)
        check_options(options)
        question = question_of(question, options)
        choice = await choose(options.get("technique", ""), options.get("settings", {}), options.get("lm"), self.lms)
        readings = options.get("readings", "auto") if choice.lm is not None else "off"
        view = await self.view(question, choice, options, readings)
        keeping, last = keeping_of(options, self.sources), question.earlier.last if question.earlier else 0
        row_values = row_values_of(self.sources.tools, question, view.tools, past, options.get("reader"))
        with (
            watched(options) as own,
            recorded(keeping) as listeners,
            running(view.tools, choice, own, last, listeners, row_values=row_values) as begun,
        ):
            run = resuming(begun, past) if past else begun
            run.trace.add(RunStart(question, choice.name, run.lm.name, choice.settings, run.env.tools(),
                                   provenance=self.provenance(owner_of(options))))  # fmt: skip
            for note in self.notes:
                run.trace.add(note)
            choices: Sequence[ReadingChoice] = ()
            if view.suspects or readings == "always":
                sources = [*view.databases, *self.documents]
                choices = await settle(
                    question, sources, view.meaning.needs(), view.suspects, run, options.get("reader")
                )
            records = await view.meaning.records(view.meaning.shows(run), run)
            with run.span("decision") if view.meaning or choices else nullcontext(run) as inner:
                decision = await decide(choice.technique, as_read(question, choices) if choices else question, inner)
            if view.meaning or choices:
                decision = await view.meaning.cite(decision, records, run)
                decision = await with_readings(decision, question, choices, choice.technique, run)
                run.trace.add(Conclusion(decision))
            run.trace.add(RunUsage(run.budget.spent))
        logger.info("%s: %s after %d calls, %d actions", choice.name, decision.stopped, run.budget.spent.calls,
                    run.budget.spent.actions)  # fmt: skip
        result = Result(
            question=question, decision=decision, technique=choice.name, lm=run.lm.name, settings=choice.settings,
            usage=run.budget.spent, records=records_of(decision, run.trace.entries), trace=tuple(run.trace.entries),
            trace_fault=run.trace.fault, options=options, ask_anew=self.ask_anew, keeping=keeping,
        )  # fmt: skip
        return await revealed(result, self.databases)

    async def ask_anew(self, question: str | Question, options: Options) -> Result:
        """In another loop, or where the data are closed, they are opened anew."""
        if self.loop is asyncio.get_running_loop():
            return await self.ask(question, **options)
        return await ask_once(self.sources, question, options)

    async def view(self, question: Question, choice: Choice, options: Options, readings: Readings) -> View:
        """The data as this question needs them: with descriptions, limits and definitions, a decision model where the
        question is about one, and tools to calculate with; and what its words leave open."""
        models = await self.models(question, choice)
        topic = question.topic
        databases = await about(topic, limited(self.databases, options.get("max_scan", "")))
        tools = with_combine([*databases, *models, *self.tools[len(databases) :]])
        meaning = meaning_of(topic, databases, self.definitions, tools)
        own, needs = meaning.around(databases), meaning.needs()
        suspects: list[OpenReading] = []
        if readings != "off":
            for tool in own:
                suspects += suspicions(question, tool.tables, needs.get(tool.name, ()))
            if self.documents:
                suspects += await of_documents(question, self.documents)
        return View(meaning, own, with_calculator(meaning.around(tools), choice.technique), suspects)

    async def models(self, question: Question, choice: Choice) -> Sequence[Tool]:
        """Those that the technique needs, or that the question is about, beside the one that was named.

        Raises:
            SetupError: nothing else could decide, and there is none.
        """
        if "decision_model" in getattr(choice.technique, "needs", ()):
            from decisor.session.modelling import modelling_tools

            return modelling_tools(self.databases, choice.technique)
        if any(tool.name == "whatif" for tool in self.tools):
            return ()
        model = await from_question(question, self.worlds) if self.worlds else None
        if model is None and choice.name == EXACT:
            raise SetupError(NOTHING_TO_COMPUTE if choice.by_name else NOTHING_DECIDES)
        return [model] if model else ()


@asynccontextmanager
async def opened(sources: Sources) -> AsyncIterator[Data]:
    """The data, until the block ends.

    Raises:
        SetupError: something cannot be opened, or two tools have one name.
    """
    async with AsyncExitStack() as stack:
        lms = LMs()
        stack.push_async_callback(lms.close)
        places = await open_places(sources, stack)
        databases = [tool for tool in places if is_database(tool)]
        definitions = read_definitions(sources.definitions, [tool.name for tool in databases])
        models: list[Tool] = []
        if sources.model is not None:
            model = await from_file(sources.model, databases, stack, definitions)
            models = [model] if model else []
        tools = [*databases, *models, *places[len(databases) :], *await open_functions(sources.tools, stack)]
        check_names([tool.name for tool in tools])
        data = Data(tools, databases, lms, sources, definitions, asyncio.get_running_loop())
        stack.callback(setattr, data, "loop", None)
        yield data


async def ask_once(sources: Sources, question: str | Question, options: Options, past: Sequence[Entry] = ()) -> Result:
    """Open, ask, close. ``past``: a run of it that did not come to its end. Connections of LMs that
    were given as objects are closed too: this loop may end here."""
    from decisor.lms.closing import close_lm

    check_options(options)
    settings: Mapping[str, Any] = options.get("settings", {})
    lms = [options.get("lm"), *(value for key, value in settings.items() if key.endswith("_lm"))]
    try:
        async with opened(sources) as data:
            return await data.ask(question, past=past, **options)
    finally:
        for lm in lms:
            if lm is not None and not isinstance(lm, str | LMSpec):
                await close_lm(lm)


def question_of(question: str | Question, options: Options) -> Question:
    """With the rules and the goal that were named beside it.

    Raises:
        SetupError: there is no text in it.
    """
    if isinstance(question, str):
        question = Question(question)
    if not question.text.strip():
        raise SetupError("What is to be decided? The question is empty.")
    rules, goal = options.get("rules", "") or question.rules, options.get("goal", "") or question.goal
    question = replace(question, rules=rules, goal=goal)
    check_text(question)
    return question


def check_text(question: Question) -> None:
    """Raise SetupError if the question holds what is no text: bytes that are not UTF-8, or half characters."""
    for name in ("text", "rules", "goal"):
        try:
            getattr(question, name).encode()
        except UnicodeEncodeError as error:
            what = "question" if name == "text" else name
            raise SetupError(
                f"The {what} is not UTF-8 (character {error.start + 1}). Write it in a terminal that "
                "speaks UTF-8, or as a file: iconv -f LATIN1 -t UTF-8 FILE | decisor ask -"
            ) from error
