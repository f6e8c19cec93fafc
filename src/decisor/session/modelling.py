"""The tool ``decision_model`` of a session: what an LM writes of a decision model is run, checked and ranked on real
rows. Its input is the name of a job on the first line, and TOML below it:

    facts     what may be chosen, by which measures: how many candidates there are, and the two to be worked by hand
    work      expressions, one a line: their values
    check     a whole model: what the checks say
    compare   a model, a line ``SECOND``, and another one: where they differ, and on which candidate
    rank      a whole model: all candidates, best first, and the rules tested on the best one
"""

from __future__ import annotations

import asyncio
import json
import tomllib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from decisor.decision_models.checks.run import check, compared
from decisor.decision_models.format import Model
from decisor.decision_models.machine import OpenModel, open_model
from decisor.decision_models.parse import contradictions, model_of, parse
from decisor.decision_models.rule_tests import rule_tests
from decisor.decision_models.schema import faults
from decisor.decision_models.solver import decide
from decisor.errors import ModelMistake, SetupError, ToolError
from decisor.finding import Finding
from decisor.plurals import counted
from decisor.quoting import quoted
from decisor.rankings import note
from decisor.tools.abilities import Database
from decisor.types import Observation, Record, Tool, Value

SECOND = "#### second"
MOST = 10
LOOKED_UP = "looked_up"
"""A measure of ours that names the columns of the inputs."""
NOTHING = "SELECT 0.0"
"""What a measure without ``read`` is at present."""


@dataclass(frozen=True)
class ModellingTool:
    """On the first database of a session. Satisfies ``types.Tool``. ``seconds``: the longest that a ranking, the checks
    of a model or a comparison of two may take each; it then ends with what is known, and says so."""

    source: Database
    trials: int = 200
    seconds: float = 120.0
    name: str = "decision_model"

    def describe(self) -> str:
        return "Checks and computes decision models (TOML) on the real rows: facts, work, check, compare, rank."

    async def call(self, text: str) -> Observation:
        """Raises ToolError where the model cannot be read or does not run."""
        job, _, body = text.partition("\n")
        jobs = {"facts": self.facts, "work": self.work, "check": self.check, "compare": self.compare,
                "rank": self.rank}  # fmt: skip
        if job.strip() not in jobs:
            raise ToolError(f"The first line names what is to be done: {', '.join(jobs)}.")
        try:
            return await jobs[job.strip()](body)
        except (SetupError, ModelMistake) as error:
            raise ToolError(str(error).replace(f"measure.{LOOKED_UP}.sql", "input")) from error

    async def facts(self, text: str) -> Observation:
        async with self.opened(model_of_facts(text)) as model:
            candidates = model.candidates
            count = len(candidates)
            places = [count // 8, count - 1 - count // 8] if count > 2 else [0, count - 1]
            present = await asyncio.to_thread(model.present)
            read = [one for one in model.model.measures if one.sql != NOTHING and one.name != LOOKED_UP]
            whole = [one.name for one in read if "choice" not in one.sql and "$" not in one.sql]
            if empty := [name for name in whole if present[name] is None]:
                raise ToolError(f"measure.{empty[0]}.read gives no number on the present rows: name values as the data "
                                "have them, or leave read out.")  # fmt: skip
            picks = [named(model, at) for at in dict.fromkeys(places)]
            ends = " and ".join(dict.fromkeys(candidates.name(at) for at in (0, count - 1)))
        values = [(one.name, present[one.name]) for one in read]
        now = ", ".join(f"{name} {value:.10g}" for name, value in values if value is not None)
        records = [Record(f"r{at}", fields, source=self.name) for at, fields in enumerate(picks, 1)]
        now = now or "nothing to read"
        words = f"{counted(count, 'candidate')}, such as {ends}. At present, by your read queries: {now}."
        return Observation(tuple(records), words)

    async def work(self, text: str) -> Observation:
        from decisor.tools.calculator import CalculatorTool

        return await CalculatorTool().call(text)

    async def check(self, text: str) -> Observation:
        async with self.opened(parse(text)) as model:
            return reported(await asyncio.to_thread(lambda: list(check(model, seconds=self.seconds))))

    async def compare(self, text: str) -> Observation:
        first, _, other = text.partition(SECOND)
        async with self.opened(parse(first)) as one, self.opened(parse(other)) as two:
            difference = await asyncio.to_thread(lambda: compared(one, two, self.seconds))
            if difference is None:
                return reported(())
            report = reported([difference.finding])
            if difference.candidate is None:
                return report
            fields = {**named(one, difference.candidate), "outcomes": list(difference.outcomes),
                      "allowed": list(difference.allowed)}  # fmt: skip
        return replace(report, records=(*report.records, Record("r2", fields, source=self.name)))

    async def rank(self, text: str) -> Observation:
        async with self.opened(parse(text)) as model:
            ranking = await asyncio.to_thread(lambda: decide(model, trials=self.trials, seconds=self.seconds))
            best = ranking.options[0].name if ranking.options else ""
            tests = await asyncio.to_thread(lambda: rule_tests(model, best)) if best else ()
        rows: list[dict[str, Value]] = [{"candidate": one.name, ranking.measure: one.outcome, "rank": at}
                for at, one in enumerate(ranking.options[:MOST], 1)]  # fmt: skip
        rows += [{"rule": one.name, "for": best, "is": one.state, "because": one.why} for one in tests]
        records = tuple(Record(f"r{at}", fields, source=self.name) for at, fields in enumerate(rows, 1))
        return Observation(records, note(ranking), ranking=ranking, total=len(ranking.options),
                           truncated=len(ranking.options) > MOST, rules=tuple(tests))  # fmt: skip

    async def close(self) -> None:
        """Holds nothing open."""

    @asynccontextmanager
    async def opened(self, model: Model) -> AsyncIterator[OpenModel]:
        from decisor.tools.databases.sandbox.blocking import start_machine

        machine = await open_model(model, self.source, start_machine)
        try:
            yield machine
        finally:
            await asyncio.to_thread(machine.close)


def modelling_tools(databases: Sequence[Database], technique: object) -> Sequence[Tool]:
    """For a technique that writes models: the tool, and the person at the terminal where there is one.

    Raises:
        SetupError: there is no database.
    """
    from decisor.tools.person import PersonTool, person_is_there

    if not databases:
        raise SetupError("A decision model is written on a database: give --db or --graph.")
    modelling = ModellingTool(databases[0], getattr(technique, "trials", 200))
    return (modelling, PersonTool()) if getattr(technique, "asks_person", False) and person_is_there() else (modelling,)


def named(model: OpenModel, candidate: int) -> dict[str, Value]:
    """By its name, and the rows that it chooses."""
    return {"candidate": model.candidates.name(candidate), "choice": json.dumps(labels(model, candidate))}


def labels(model: OpenModel, candidate: int) -> list[str]:
    return [model.candidates.labels[row] for row in model.candidates.places[candidate]]


def reported(findings: Sequence[Finding]) -> Observation:
    """One record each."""
    records = tuple(
        Record(f"r{at}", {"check": one.number, "line": one.line, "kind": one.kind, "words": one.words})
        for at, one in enumerate(findings, 1)
    )
    return Observation(records, "\n".join(map(str, findings)) or "Nothing to complain about.")


def model_of_facts(text: str) -> Model:
    """The facts as a model that measures what is read at present; the columns of its inputs are looked up.

    Raises:
        ToolError: they do not fit.
    """
    try:
        facts = tomllib.loads(text)
        columns = [name.partition(".") for name in facts.get("input", {})]
        zero = "SELECT 0.0" + "".join(
            f" + 0 * (SELECT count({quoted(column) if column else '*'}) FROM {quoted(table)})"
            for table, _, column in columns
        )
        measures = {name: {"goal": one.get("goal"), "unit": one.get("unit", ""), "sql": one.get("read") or NOTHING}
                    for name, one in facts.get("measure", {}).items()}  # fmt: skip
    except (ValueError, AttributeError, RecursionError) as error:
        raise ToolError(f"The facts cannot be read: {error}.") from error
    measures[LOOKED_UP] = {"goal": "min", "unit": "", "sql": zero}
    content: dict[str, object] = {
        key: facts[key] for key in ("decide", "choice", "take", "parameter", "input", "copy") if key in facts
    }
    content["measure"] = measures
    if wrong := [f"{'.'.join(path)} {words}" for path, words in faults(content)]:
        raise ToolError("; ".join(wrong[:5]) + ".")
    model = model_of(content, text, {}, {})
    if contrary := [words for _, words in contradictions(model)]:
        raise ToolError("; ".join(contrary[:5]) + ".")
    return model
