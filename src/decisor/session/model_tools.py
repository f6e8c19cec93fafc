"""The tools ``whatif`` and ``decision_model``, which compute decision models on a session's data.

``whatif`` computes a model from a file, or the model of the Decision QA world that a question is about.
``decision_model`` runs, checks and ranks on real rows the models that an LLM writes. Its input is the name of a job on
the first line, and TOML below it:

    facts     what is decided: the number of candidates or unknowns; corrections are held against their cells
    rows      facts with one function: the rows of arguments that it is called with
    work      expressions, one a line: their values
    check     a whole model: the findings of the checks
    decisive  a whole model: the candidates that decide, or the plan, with the figures that it gives for them
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
from decisor.decision_models.schema import DecisionModel, describe_model_keys
from decisor.errors import ModelMistake, SetupError, ToolError
from decisor.parsing.toml_reply import format_toml
from decisor.semantics.definitions import Definitions
from decisor.system.serialization import DocumentFormat
from decisor.system.settings import IMPORT_PATH, import_named_module
from decisor.system.structured_files import Finding, TomlFile
from decisor.system.text import quote_identifier
from decisor.system.wording import format_count, format_ranking
from decisor.tools.abilities import Database
from decisor.types import BulkSource, Observation, Question, Record, Tool, Value, WhatIf

if TYPE_CHECKING:
    from decisor.decision_models.client import OpenModel
    from decisor.decision_models.optimize import SolvedPlan

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
MOST_CALLS = 60
"""Rows for which a function is called."""
MOST_AMOUNTS = 60
"""Rows of a plan that is worked out by hand."""
MOST_MACHINES = 2
LOOKED_UP = "looked_up"
"""A measure of ours that names the columns of the inputs."""


@dataclass(eq=False)
class ModellingTool:
    """A tool that checks and ranks decision models on the first database of a session.

    It holds the machines of the last two models open, for a draft asks of each several times. Satisfies ``types.Tool``.
    """

    source: Database
    trials: int = 200
    seconds: float = 120.0
    """Time limit of a ranking, of the checks or of a comparison; it ends with the results so far."""
    name: str = "decision_model"
    machines: list[tuple[str, OpenModel]] = field(default_factory=list)
    """By what the machine knows of its model, the last used one last."""

    def describe(self) -> str:
        return f"Computes decision models (TOML) on the real rows. Keys of a model file:\n{describe_model_keys()}"

    async def call(self, text: str) -> Observation:
        """Do one job; raise ToolError if the model cannot be read or does not run."""
        job, _, body = text.partition("\n")
        jobs = {
            "facts": self.facts,
            "rows": self.rows,
            "work": self.work,
            "check": self.check,
            "decisive": self.decisive,
            "compare": self.compare,
            "rank": self.rank,
        }
        if job.strip() not in jobs:
            raise ToolError(f"The first line names what is to be done: {', '.join(jobs)}.")
        try:
            return await jobs[job.strip()](body)
        except (SetupError, ModelMistake) as error:
            # The LLM wrote no measure of that name: tell it of the input that it did write.
            raise ToolError(str(error).replace(f"measure.{LOOKED_UP}.sql", "input")) from error

    async def facts(self, text: str) -> Observation:
        from decisor.decision_models.optimize import solve_model

        async with self.opened(build_model_of_facts(text)) as model:
            if not model.model.unknowns:
                await asyncio.to_thread(model.present)
                names = await asyncio.to_thread(lambda: model.candidates)
                count = len(names)
                ends = " and ".join(dict.fromkeys(names.name(at) for at in (0, count - 1)))
                return Observation(note=f"{format_count(count, 'candidate')}, such as {ends}.")
            tables = (await asyncio.to_thread(lambda: solve_model(model, seconds=self.seconds))).tables
        if empty := [table.name for table in tables.values() if not table.count]:
            raise ToolError(f"unknown.{empty[0]}.per gives no row, so there is nothing to decide.")
        return Observation(
            note="; ".join(f"{format_count(one.count, 'unknown')} {one.name}" for one in tables.values())
        )

    async def rows(self, text: str) -> Observation:
        """Return the rows of arguments of the function of facts."""
        file = TomlFile(text)
        ((name, function),) = file.content["function"].items()
        file.content["choice"] = {name: {"rows": function["rows"]}}
        async with self.opened(
            build_model_of_facts(format_toml({**file.content, "function": {}, "unknown": {}}))
        ) as model:
            table = await asyncio.to_thread(lambda: model.job("choice", {}, self.seconds))
        if not 0 < len(table.rows) <= MOST_CALLS:
            raise ToolError(
                f"function.{name}.rows gives {len(table.rows)} rows; a function is called 1 to {MOST_CALLS} times."
            )
        # The machine adds a column of its own to what may be chosen.
        cells = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        rows = [{name: cell for name, cell in row.items() if not name.startswith("__")} for row in cells]
        return Observation(tuple(Record(f"r{at}", row, source=self.name) for at, row in enumerate(rows, 1)))

    async def work(self, text: str) -> Observation:
        from decisor.tools.calculator import CalculatorTool

        return await CalculatorTool().call(text)

    async def check(self, text: str) -> Observation:
        from decisor.decision_models.checks import check_model

        async with self.opened(parse_model(text)) as model:
            return observe_findings(await asyncio.to_thread(lambda: list(check_model(model, seconds=self.seconds))))

    async def decisive(self, text: str) -> Observation:
        """Return the winner, the runner-up and better candidates that rules exclude, or the plan of the solver."""
        from decisor.decision_models.optimize import is_enumerable, rank_or_solve, solve_model

        def find(model: OpenModel) -> list[dict[str, Value]]:
            if not model.model.choice or not is_enumerable(model):
                plan = solve_model(model, seconds=self.seconds)
                if not plan.parts:
                    raise ToolError(
                        f"No plan meets all rules: {rank_or_solve(model, trials=0).stopped or plan.status}."
                    )
                return (
                    [fields_of_plan(model, plan)]
                    if sum(one.used for one in plan.tables.values()) <= MOST_AMOUNTS
                    else []
                )
            ranking = rank_or_solve(model, trials=0, seconds=self.seconds)
            better = [one.name for one in ranking.excluded if one.gain is not None and one.gain > 0]
            names = [*(one.name for one in ranking.options[:2]), *better[:3]] or [
                one.name for one in ranking.excluded[:2]
            ]
            return [fields_of_candidate(model, model.candidates.find(name)) for name in names]

        async with self.opened(parse_model(text)) as model:
            picks = await asyncio.to_thread(find, model)
        return Observation(tuple(Record(f"r{at}", fields, source=self.name) for at, fields in enumerate(picks, 1)))

    async def compare(self, text: str) -> Observation:
        from decisor.decision_models.checks import compare_models

        first, _, other = text.partition(SECOND)
        async with self.opened(parse_model(first)) as one, self.opened(parse_model(other)) as two:
            if not one.model.choice:
                return await asyncio.to_thread(self.compare_plans, one, two)
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

    def compare_plans(self, first: OpenModel, second: OpenModel) -> Observation:
        """Let each model measure the plan of the other; report the first plan that they measure differently."""
        from decisor.decision_models.optimize import propose, solve_model

        goals = [model.model.first.goal for model in (first, second)]
        if len(set(goals)) > 1:
            words = f'by this model {first.model.first.name} is to be "{goals[0]}", by the second "{goals[1]}"'
            return observe_findings([Finding(16, 0, words)])
        for mine, other in ((first, second), (second, first)):
            plan = solve_model(mine, seconds=self.seconds)
            if not plan.parts:
                return observe_findings([Finding(16, 0, f"no plan meets the rules of one of the two: {plan.status}")])
            forced = [
                (name, row, plan.chosen[name].get(row, 0.0))
                for name, table in plan.tables.items()
                for row in range(table.count)
            ]
            there = propose(other, self.seconds, "", "", forced=forced)
            value, measured = plan.measures[mine.model.first.name], there.measures.get(other.model.first.name)
            if value is not None and measured is not None and abs(value - measured) <= 1e-6 * max(1.0, abs(value)):
                continue
            outcomes = [(value or 0.0, True), (measured or 0.0, measured is not None)]
            (here, allowed), (then, too) = outcomes if mine is first else outcomes[::-1]
            words = f"for the plan of one of them this model gives {here:.10g}, the second {then:.10g}"
            if not (allowed and too):
                words = f"the plan of one of them breaks a rule of the {'second' if allowed else 'first'}"
            fields = fields_of_plan(mine, plan)
            fields |= {"first": here, "second": then, "first_allowed": allowed, "second_allowed": too}
            report = observe_findings([Finding(16, 0, words)])
            return replace(report, records=(*report.records, Record("r2", fields, source=self.name)))
        return observe_findings(())

    async def rank(self, text: str) -> Observation:
        from decisor.decision_models.client import run_rule_tests
        from decisor.decision_models.optimize import rank_or_solve

        async with self.opened(parse_model(text)) as model:
            ranking = await asyncio.to_thread(lambda: rank_or_solve(model, trials=self.trials, seconds=self.seconds))
            best = ranking.options[0].name if ranking.options else ""
            tests = (
                await asyncio.to_thread(lambda: run_rule_tests(model, best)) if best and ranking.plan is None else ()
            )
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
        await self.close_machines()

    async def close_machines(self, kept: int = 0) -> None:
        """Close the machines but the last ``kept`` that were used."""
        while len(self.machines) > kept:
            # close() waits for the machine's process, so it does not run on the loop.
            await asyncio.to_thread(self.machines.pop(0)[1].close)

    @asynccontextmanager
    async def opened(self, model: DecisionModel) -> AsyncIterator[OpenModel]:
        """Open a model, in the machine that knows it already if there is one."""
        from decisor.decision_models.client import OpenModel, open_decision_model
        from decisor.decision_models.copies import write_machine_model
        from decisor.sandbox.process import start_machine

        known = write_machine_model(model)
        # Taken out while it is used: a machine does one job at a time.
        found = next((one for one in self.machines if one[0] == known), None)
        if found:
            self.machines.remove(found)
            # The examples may have changed, which the machine does not know.
            machine = OpenModel(model, found[1].jobs, found[1].copies)
        else:
            await self.close_machines(MOST_MACHINES - 1)
            machine = await open_decision_model(model, self.source, start_machine)
        try:
            yield machine
        except BaseException:
            await asyncio.to_thread(machine.close)
            raise
        self.machines.append((known, machine))
        await self.close_machines(MOST_MACHINES)


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
    """Return the name of a candidate, its chosen rows, and the model's outcome for it."""
    outcomes = model.outcomes([candidate], most=0)
    figures = {name: float(outcomes.values[0, at]) for at, name in enumerate(outcomes.names)}
    figures |= {part: float(value[0]) for (_, part), value in outcomes.parts.items() if part}
    labels = [model.candidates.labels[row] for row in model.candidates.places[candidate]]
    return {
        "candidate": model.candidates.name(candidate),
        "choice": json.dumps({model.model.choices[0].name: labels}),
        "figures": json.dumps({name: None if value != value else value for name, value in figures.items()}),
        "broken": json.dumps(outcomes.rules_broken(0)),
    }


def fields_of_plan(model: OpenModel, plan: SolvedPlan) -> dict[str, Value]:
    """Return the amounts of a plan, and the model's outcome for it."""
    amounts = {name: {row.label: row.amount for row in table.rows} for name, table in plan.tables.items()}
    words = [
        f"{name} ({table.unit or 'amount'}): {', '.join(f'{row.label} = {row.amount:.10g}' for row in table.rows)}"
        for name, table in plan.tables.items()
        if table.rows
    ]
    figures = {part or measure: value for (measure, part), value in plan.parts.items()}
    return {
        "candidate": f"the plan {'; '.join(words) or 'of nothing'}; all other amounts are 0",
        "choice": json.dumps(amounts),
        "figures": json.dumps(plan.measures | figures),
        "broken": json.dumps(list(plan.broken)),
    }


def observe_findings(findings: Sequence[Finding]) -> Observation:
    """Convert findings to an observation with one record each."""
    records = tuple(
        Record(f"r{at}", {"check": one.number, "line": one.line, "kind": one.kind, "words": one.words})
        for at, one in enumerate(findings, 1)
    )
    return Observation(records, "\n".join(map(str, findings)) or "Nothing to complain about.")


@dataclass(frozen=True)
class Facts:
    """The parts of facts that a model cannot take over unchanged. Other keys are the model's, or the technique's."""

    measure: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    input: Mapping[str, object] = field(default_factory=dict)


FACTS = DocumentFormat(Facts)
MODEL_KEYS = ("decide", "choice", "unknown", "parameter", "input", "copy", "function", "correction")


def build_model_of_facts(text: str) -> DecisionModel:
    """Build a model from facts, which measures nothing and looks up the columns of its inputs.

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
    measures = {name: {"goal": one.get("goal", "min"), "sql": "SELECT 0.0"} for name, one in facts.measure.items()}
    measures[LOOKED_UP] = {"goal": "min", "sql": zero}
    file.content = {key: file.content[key] for key in MODEL_KEYS if file.content.get(key)} | {"measure": measures}
    file.content |= {"format": 3}
    # A cell that does not hold what a correction says ends the opening of a model that adopts it.
    if "correction" in file.content:
        file.content["correction"] = [one | {"adopted": True} for one in file.content["correction"]]
    return build_model(file, text)
