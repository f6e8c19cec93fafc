"""Definitions in a session: shown with the data where a question needs them, held against its queries, and cited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decisor.decision_models.format import Model
from decisor.definitions.format import Definition, Definitions, Example, Metric, Reading, title
from decisor.errors import BudgetExceeded, SetupError
from decisor.run import Run
from decisor.session.decide import decide
from decisor.session.readings import ReadingChoice, Settled, compared, with_readings
from decisor.trace.events import ActionResult, Conclusion, events_of
from decisor.types import Action, Decision, Evidence, Observation, Question, Record, Technique, Tool

if TYPE_CHECKING:
    from decisor.definitions.check import Finding

HEAD = "What words of the question mean in these data, by the people who keep them. Compute what is defined as it is:"


@dataclass
class DefinedTool:
    """A database with the definitions that a question needs. ``used``: the metrics that its queries
    computed; ``other``: those that they computed in another way, and how."""

    tool: Any
    definitions: Definitions
    needs: Sequence[Definition]
    used: dict[str, Metric] = field(default_factory=dict)
    other: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return str(self.tool.name)

    @property
    def form(self) -> str:
        return str(getattr(self.tool, "form", ""))

    @property
    def tables(self) -> Any:
        return self.tool.tables

    def describe(self) -> str:
        from decisor.definitions.show import line

        return "\n".join([self.tool.describe().rstrip(), "", HEAD, *(f"- {line(one)}" for one in self.needs)])

    async def call(self, text: str) -> Observation:
        observation: Observation = await self.tool.call(text)
        dialect = dialect_of(self.tool)
        if not dialect:
            return observation
        from decisor.definitions.compare import matches
        from decisor.replies.cleaning import strip_fence

        meant = [one for one in self.needs if isinstance(one, Metric)]
        computed = matches(strip_fence(text), self.definitions.metrics, dialect, self.tool.tables, meant)
        self.used |= {match.metric.name: match.metric for match in computed if not match.how}
        self.other |= {title(match.metric): match.how for match in computed if match.how}
        how = " ".join(match.how for match in computed)
        return replace(observation, note=f"{observation.note} {how}".strip()) if how else observation

    async def close(self) -> None:
        """The session closes the database."""


def dialect_of(tool: Any) -> str:
    """As sqlglot calls it; '' of what speaks no SQL."""
    dialect = getattr(getattr(getattr(tool, "worker", None), "description", None), "dialect", None)
    return str(dialect.name) if dialect is not None else ""


@dataclass
class Meaning:
    """The definitions that one question needs, by the name of the database that they are about."""

    tools: Mapping[str, DefinedTool]

    def around(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """The same tools, the databases with their definitions."""
        return [self.tools.get(tool.name, tool) for tool in tools]

    def needs(self) -> Mapping[str, Sequence[Definition]]:
        """What the question is shown, by the name of a database."""
        return {name: tool.needs for name, tool in self.tools.items()}

    async def decide(self, technique: Technique, settled: Settled, run: Run) -> Decision:
        """The technique's decision, which cites the definitions that it used. Where nobody said which reading is meant,
        the other ones are decided too, after it."""
        if not self.tools and not settled.choices:
            return await decide(technique, settled.question, run)
        records = await self.records(run)
        with run.span("decision") as sub:
            decision = await decide(technique, settled.whole(), sub)
        decision = self.citing(decision, records)
        lines = [await self.otherwise(one, decision, technique, settled, run)
                 for one in settled.choices if not one.by and one.other]  # fmt: skip
        decision = with_readings(decision, settled, lines)
        run.trace.add(Conclusion(decision))
        return decision

    async def otherwise(
        self, one: ReadingChoice, decision: Decision, technique: Technique, settled: Settled, run: Run
    ) -> str:
        """What the other choice would give."""
        if decision.stopped not in ("answered", "no_answer"):
            return compared(decision, one, None, "the run ended before")
        with run.span(f"other reading: {one.other}") as sub:
            other = await decide(technique, settled.whole(one), sub)
        return compared(decision, one, other)

    async def records(self, run: Run) -> Sequence[Record]:
        """What the question needs, in the trace; none where no action is left for it."""
        if not self.tools:
            return ()
        from decisor.definitions.tool import NAME
        from decisor.tools.toolbox import Toolbox

        env: Any = run.env
        needs = [Needs(tool) for tool in self.tools.values()]
        try:
            for need in needs:
                await run.using(env=Toolbox([need], env.counter)).act(Action(NAME, need.tool.name))
        except BudgetExceeded:
            return ()
        return [record for result in events_of(run.trace.entries, ActionResult)
                for record in result.observation.records if record.source == NAME]  # fmt: skip

    def citing(self, decision: Decision, records: Sequence[Record]) -> Decision:
        """With what its queries computed, and the readings and examples that it was shown."""
        used = [one for tool in self.tools.values() for one in (*tool.used.values(), *followed(tool.needs))]
        names = {title(one): one for one in used}
        cited = [record for record in records if record.fields["definition"] in names]
        if not decision.answer:
            return decision
        ids = (*decision.evidence.ids, *(record.id for record in cited))
        lines = [f"By the definition {record.fields['definition']}{names[str(record.fields['definition'])].origin} "
                 f"[{record.id}]." for record in cited]  # fmt: skip
        lines += [f"A query computed something else: {how}" for tool in self.tools.values()
                  for name, how in tool.other.items() if name not in names]  # fmt: skip
        return replace(decision, evidence=Evidence(ids, decision.evidence.figures),
                       reasons=(*decision.reasons, *lines))  # fmt: skip


def followed(needs: Sequence[Definition]) -> list[Definition]:
    return [one for one in needs if isinstance(one, Reading | Example)]


@dataclass(frozen=True)
class Needs:
    """The definitions that a question needs, as a tool that brings them."""

    tool: DefinedTool
    name: str = "definitions"

    def describe(self) -> str:
        return ""

    async def call(self, text: str) -> Observation:
        from decisor.definitions.tool import records_of

        return Observation(records_of(self.tool.needs, self.tool.definitions))

    async def close(self) -> None:
        """Holds nothing open."""


def meaning_of(question: Question, databases: Sequence[Tool], definitions: Mapping[str, Definitions]) -> Meaning:
    """Of the databases that have definitions which the question needs."""
    if not definitions:
        return Meaning({})
    from decisor.definitions.relevant import relevant

    tools = {}
    for database in databases:
        if file := definitions.get(database.name):
            needs = relevant(question.topic, file)
            if needs:
                tools[database.name] = DefinedTool(database, file, needs)
    return Meaning(tools)


def with_metrics(model: Model, definitions: Definitions | None, source: Any) -> Model:
    """A decision model whose measures have the queries of the metrics that they name, in the SQL of its copy.

    Raises:
        SetupError: a metric is not defined, or cannot be computed on a copy.
    """
    named = [one for one in model.measures if one.metric]
    if not named:
        return model
    import sqlglot
    from sqlglot.errors import SqlglotError

    there = {metric.name: metric for metric in definitions.metrics} if definitions else {}
    queries = {}
    for measure in named:
        if measure.metric not in there:
            names = (
                f"there is {', '.join(there)}" if there else "there are no definitions: give them with --definitions"
            )
            raise SetupError(f"measure.{measure.name} names the metric {measure.metric}; {names}.")
        query = there[measure.metric].whole()
        try:
            queries[measure.name] = sqlglot.transpile(query, read=dialect_of(source) or None, write="duckdb")[0]
        except SqlglotError as error:
            raise SetupError(f"The metric {measure.metric} cannot be computed on a copy: {error}") from error
    unit = {one.name: one.unit or there[one.metric].unit for one in named}
    measures = [replace(one, sql=queries[one.name], unit=unit[one.name]) if one.metric else one
                for one in model.measures]  # fmt: skip
    return replace(model, measures=tuple(measures))


async def check_file(file: Path, db: str) -> list[Finding]:
    """A file of definitions held against its database.

    Raises:
        SetupError: the file or the database cannot be read.
    """
    from decisor.definitions.check import check
    from decisor.definitions.parse import read
    from decisor.session.opening import open_source
    from decisor.session.sources import sources_of

    definitions = read(file)
    tool: Any = await open_source(sources_of(db=db).places[0])
    try:
        return await check(definitions, tool)
    finally:
        await tool.close()


def read_definitions(files: Sequence[tuple[str, Path]], databases: Sequence[str]) -> dict[str, Definitions]:
    """By the database that each file is about: the one that is named, or the only one.

    Raises:
        SetupError: a file cannot be read, or says not which database it is about.
    """
    if not files:
        return {}
    from decisor.definitions.parse import read

    whole: dict[str, Definitions] = {}
    for name, path in files:
        if name and name not in databases:
            raise SetupError(f"{path} is about {name}, and there is no such database; there is "
                             f"{', '.join(databases) or 'none'}.")  # fmt: skip
        if not name and len(databases) != 1:
            raise SetupError(f"Which database is {path} about? Write --definitions NAME={path}; there is "
                             f"{', '.join(databases) or 'none'}.")  # fmt: skip
        at = name or databases[0]
        if at in whole:
            raise SetupError(f"{path} is the second file of definitions of {at}: one database has one.")
        whole[at] = read(path)
    return whole
