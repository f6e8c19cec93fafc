"""The tools ``whatif`` and ``decision_model``, which compute decision models on a session's data.

``whatif`` computes a model from a file, or the model of the Decision QA world that a question is about.
``decision_model`` runs, checks and ranks on real rows the models that an LLM writes. Its input is the name of a job on
the first line, and TOML below it:

    facts     choices and measures: the number of candidates, and the two to be worked by hand
    work      expressions, one a line: their values
    check     a whole model: the findings of the checks
    compare   a model, a line ``SECOND``, and another one: where they differ, and on which candidate
    rank      a whole model: all candidates, best first, and the rules tested on the best one
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from decisor.decision_models.file import build_model, parse_model
from decisor.decision_models.schema import DecisionModel
from decisor.errors import ModelMistake, SetupError, ToolError
from decisor.semantics.definitions import Definitions
from decisor.system.serialization import DocumentFormat
from decisor.system.settings import IMPORT_PATH, import_named_module
from decisor.system.structured_files import TomlFile
from decisor.system.text import quote_identifier
from decisor.system.wording import format_count, format_ranking
from decisor.tools.abilities import Database
from decisor.types import BulkSource, Finding, Observation, Question, Record, Tool, Value, WhatIf

if TYPE_CHECKING:
    from decisor.decision_models.client import OpenModel

Find: TypeAlias = Callable[[str], WhatIf]
"""A function that returns the decision model under a semantics."""

NO_DEFINITIONS: Mapping[str, Definitions] = {}


async def open_whatif_of_file(
    path: Path,
    databases: Sequence[Database],
    stack: AsyncExitStack,
    definitions: Mapping[str, Definitions] = NO_DEFINITIONS,
) -> Tool | None:
    """Open a decision model of a file or ``module:function`` on a copy of the first database.

    None means that there is no database. ``stack`` closes it.

    Raises:
        SetupError: the file or the data do not fit.
    """
    if not databases:
        return None
    from decisor.decision_models.file import read_model_file

    source = databases[0]
    # A file whose name looks like module:function is a file.
    if IMPORT_PATH.fullmatch(str(path)) and not path.exists():
        return build_whatif_tool(await load_function_models(str(path), source))
    return await open_whatif_of_model(read_model_file(path), source, stack, definitions)


async def open_whatif_of_model(
    parsed: DecisionModel,
    source: Database,
    stack: AsyncExitStack,
    definitions: Mapping[str, Definitions] = NO_DEFINITIONS,
) -> Tool:
    """Open a parsed decision model on a copy of a database, as a tool. ``stack`` closes it."""
    from decisor.decision_models.client import open_decision_model
    from decisor.decision_models.tool import ModelTool, describe_model
    from decisor.sandbox.process import start_machine
    from decisor.session.definitions import fill_metric_queries

    whole = fill_metric_queries(parsed, definitions.get(source.name), source)
    model = await open_decision_model(whole, source, start_machine)
    stack.callback(model.close)
    return SerializedTool(ModelTool(model, await asyncio.to_thread(describe_model, model)))


async def load_function_models(path: str, source: Database) -> Find:
    """Load the decision model of ``module:function``, a person's own code.

    Raises:
        SetupError: there is no such function, or it does not fit.
    """
    from decisor.decision_models.tool import build_function_model

    function = getattr(import_named_module(path), path.partition(":")[2], None)
    if not callable(function):
        raise SetupError(f"{path}: there is no function {path.partition(':')[2]}.")
    model = await build_function_model(function, source)
    return lambda semantics: model


class Recogniser(Protocol):
    """A module that knows the decision models of databases with a schema of its own."""

    def recognise_world(self, names: Iterable[str]) -> str:
        """Return the kind of world with these tables, or labels and relationship types; "" if it knows none."""

    async def recognise_model(self, source: BulkSource, names: Iterable[str], text: str) -> WhatIf | None:
        """Return the decision model of a question asked of ``source``; None if the question is about none."""


RECOGNISERS = ("decisor.lab.dqa.models",)
"""Modules that every session asks, as far as they are installed: by name, since no import points up."""


def load_recognisers() -> Sequence[Recogniser]:
    found: list[Recogniser] = []
    for name in RECOGNISERS:
        with suppress(ModuleNotFoundError):
            found.append(import_module(name))
    return found


async def find_whatif_of_question(
    question: Question, databases: Sequence[Database], recognisers: Sequence[Recogniser]
) -> Tool | None:
    """Return the tool of the decision model that a recogniser knows for a question, else None."""
    for database in databases:
        for recogniser in recognisers:
            model = await recogniser.recognise_model(database, list_schema_names(database), str(question))
            if model is not None:
                return build_whatif_tool(partial(model_with_semantics, model))
    return None


def model_with_semantics(model: Any, semantics: str) -> WhatIf:
    """Return a recognised decision model under one of its semantics."""
    whole: WhatIf = replace(model, semantics=semantics)
    return whole


def build_whatif_tool(find: Find) -> Tool:
    from decisor.decision_models.ranking import rank_what_if
    from decisor.tools.whatif import WhatIfTool

    return WhatIfTool(find, rank_what_if)


@dataclass(frozen=True)
class SerializedTool:
    """A tool whose calls wait for each other: a scratch copy holds the change of one candidate at a time."""

    tool: Tool
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def name(self) -> str:
        return self.tool.name

    def describe(self) -> str:
        return self.tool.describe()

    async def call(self, text: str) -> Observation:
        async with self.turn:
            return await self.tool.call(text)

    async def close(self) -> None:
        await self.tool.close()


def list_schema_names(tool: Database) -> list[str]:
    """Return the tables of a database; for a graph, the words of its schema, labels among them."""
    if tool.form == "sql":
        return [table.name for table in tool.tables]
    return re.findall(r"\w+", tool.describe())


SECOND = "#### second"
MOST = 10
LOOKED_UP = "looked_up"
"""A measure of ours that names the columns of the inputs."""
NOTHING = "SELECT 0.0"
"""Query of a measure without ``read``."""


@dataclass(frozen=True)
class ModellingTool:
    """A tool that checks and ranks decision models on the first database of a session.

    Satisfies ``types.Tool``.
    """

    source: Database
    trials: int = 200
    seconds: float = 120.0
    """Time limit of a ranking, of the checks or of a comparison; it ends with the results so far."""
    name: str = "decision_model"

    def describe(self) -> str:
        return "Checks and computes decision models (TOML) on the real rows: facts, work, check, compare, rank."

    async def call(self, text: str) -> Observation:
        """Do one job; raise ToolError if the model cannot be read or does not run."""
        job, _, body = text.partition("\n")
        jobs = {"facts": self.facts, "work": self.work, "check": self.check, "compare": self.compare, "rank": self.rank}
        if job.strip() not in jobs:
            raise ToolError(f"The first line names what is to be done: {', '.join(jobs)}.")
        try:
            return await jobs[job.strip()](body)
        except (SetupError, ModelMistake) as error:
            # The LLM wrote no measure of that name: tell it of the input that it did write.
            raise ToolError(str(error).replace(f"measure.{LOOKED_UP}.sql", "input")) from error

    async def facts(self, text: str) -> Observation:
        async with self.opened(build_model_of_facts(text)) as model:
            candidates = model.candidates
            count = len(candidates)
            places = [count // 8, count - 1 - count // 8] if count > 2 else [0, count - 1]
            present = await asyncio.to_thread(model.present)
            read = [one for one in model.model.measures if one.sql != NOTHING and one.name != LOOKED_UP]
            whole = [one.name for one in read if "choice" not in one.sql and "$" not in one.sql]
            if empty := [name for name in whole if present[name] is None]:
                raise ToolError(
                    f"measure.{empty[0]}.read gives no number on the present rows: name values as the data "
                    "have them, or leave read out."
                )
            picks = [fields_of_candidate(model, at) for at in dict.fromkeys(places)]
            ends = " and ".join(dict.fromkeys(candidates.name(at) for at in (0, count - 1)))
        values = [(one.name, present[one.name]) for one in read]
        now = ", ".join(f"{name} {value:.10g}" for name, value in values if value is not None)
        records = [Record(f"r{at}", fields, source=self.name) for at, fields in enumerate(picks, 1)]
        now = now or "nothing to read"
        words = f"{format_count(count, 'candidate')}, such as {ends}. At present, by your read queries: {now}."
        return Observation(tuple(records), words)

    async def work(self, text: str) -> Observation:
        from decisor.tools.calculator import CalculatorTool

        return await CalculatorTool().call(text)

    async def check(self, text: str) -> Observation:
        from decisor.decision_models.checks import check_model

        async with self.opened(parse_model(text)) as model:
            return observe_findings(await asyncio.to_thread(lambda: list(check_model(model, seconds=self.seconds))))

    async def compare(self, text: str) -> Observation:
        from decisor.decision_models.checks import compare_models

        first, _, other = text.partition(SECOND)
        async with self.opened(parse_model(first)) as one, self.opened(parse_model(other)) as two:
            difference = await asyncio.to_thread(lambda: compare_models(one, two, self.seconds))
            if difference is None:
                return observe_findings(())
            report = observe_findings([difference.finding])
            if difference.candidate is None:
                return report
            fields = fields_of_candidate(one, difference.candidate)
            fields |= dict(zip(("first", "second"), difference.outcomes, strict=True))
            fields |= dict(zip(("first_allowed", "second_allowed"), difference.allowed, strict=True))
        return replace(report, records=(*report.records, Record("r2", fields, source=self.name)))

    async def rank(self, text: str) -> Observation:
        from decisor.decision_models.client import run_rule_tests
        from decisor.decision_models.optimize import rank_or_solve

        async with self.opened(parse_model(text)) as model:
            ranking = await asyncio.to_thread(lambda: rank_or_solve(model, trials=self.trials, seconds=self.seconds))
            best = ranking.options[0].name if ranking.options else ""
            tests = await asyncio.to_thread(lambda: run_rule_tests(model, best)) if best else ()
        rows: list[dict[str, Value]] = [
            {"candidate": one.name, ranking.measure: one.outcome, "rank": at}
            for at, one in enumerate(ranking.options[:MOST], 1)
        ]
        rows += [{"rule": one.name, "for": best, "is": one.state, "because": one.why} for one in tests]
        records = tuple(Record(f"r{at}", fields, source=self.name) for at, fields in enumerate(rows, 1))
        return Observation(
            records,
            format_ranking(ranking),
            ranking=ranking,
            total=len(ranking.options),
            truncated=len(ranking.options) > MOST,
            rules=tuple(tests),
        )

    async def close(self) -> None:
        """Do nothing: the tool holds nothing open."""

    @asynccontextmanager
    async def opened(self, model: DecisionModel) -> AsyncIterator[OpenModel]:
        from decisor.decision_models.client import open_decision_model
        from decisor.sandbox.process import start_machine

        machine = await open_decision_model(model, self.source, start_machine)
        try:
            yield machine
        finally:
            # close() waits for the machine's process, so it does not run on the loop.
            await asyncio.to_thread(machine.close)


def list_modelling_tools(databases: Sequence[Database], technique: object) -> Sequence[Tool]:
    """Return the tools of a technique that writes models.

    A person at the terminal is one of them if the technique asks a person.

    Raises:
        SetupError: there is no database.
    """
    from decisor.tools.toolbox import PersonTool, is_person_present

    if not databases:
        raise SetupError("A decision model is written on a database: give --db or --graph.")
    modelling = ModellingTool(databases[0], getattr(technique, "trials", 200))
    return (
        (modelling, PersonTool()) if getattr(technique, "asks_person", False) and is_person_present() else (modelling,)
    )


def fields_of_candidate(model: OpenModel, candidate: int) -> dict[str, Value]:
    """Return the name of a candidate and the rows that it chooses."""
    return {"candidate": model.candidates.name(candidate), "choice": json.dumps(labels_of_candidate(model, candidate))}


def labels_of_candidate(model: OpenModel, candidate: int) -> list[str]:
    return [model.candidates.labels[row] for row in model.candidates.places[candidate]]


def observe_findings(findings: Sequence[Finding]) -> Observation:
    """Convert findings to an observation with one record each."""
    records = tuple(
        Record(f"r{at}", {"check": one.number, "line": one.line, "kind": one.kind, "words": one.words})
        for at, one in enumerate(findings, 1)
    )
    return Observation(records, "\n".join(map(str, findings)) or "Nothing to complain about.")


@dataclass(frozen=True)
class FactMeasure:
    """A measure of facts: a query that reads it at present takes the place of one that computes it."""

    goal: str = ""
    unit: str = ""
    read: str = ""


@dataclass(frozen=True)
class Facts:
    """The parts of facts that a model cannot take over unchanged. Other keys are the model's, or the technique's."""

    measure: Mapping[str, FactMeasure] = field(default_factory=dict)
    input: Mapping[str, object] = field(default_factory=dict)


FACTS = DocumentFormat(Facts)
MODEL_KEYS = ("decide", "choice", "take", "parameter", "input", "copy")


def build_model_of_facts(text: str) -> DecisionModel:
    """Build a model from facts. It measures values that are read at present, and looks up the columns of its inputs.

    Raises:
        FileFault: they do not fit.
    """
    file = TomlFile(text)
    facts = file.decode(FACTS)
    columns = [name.partition(".") for name in facts.input]
    # 0 * count(COLUMN) changes no value, and makes the database name a table or column that is not there.
    zero = "SELECT 0.0" + "".join(
        f" + 0 * (SELECT count({quote_identifier(column) if column else '*'}) FROM {quote_identifier(table)})"
        for table, _, column in columns
    )
    measures = {
        name: {"goal": one.goal, "unit": one.unit, "sql": one.read or NOTHING} for name, one in facts.measure.items()
    }
    measures[LOOKED_UP] = {"goal": "min", "unit": "", "sql": zero}
    file.content = {key: file.content[key] for key in MODEL_KEYS if key in file.content} | {"measure": measures}
    return build_model(file, text)
