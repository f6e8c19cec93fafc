"""Definitions in a session: shown with the data where a question needs them, held against its queries, and cited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from decisor.decision_models.format import Measure, Model
from decisor.definitions.format import Definition, Definitions, Example, Metric, Reading, title
from decisor.errors import BudgetExceeded
from decisor.run import Run
from decisor.tools.abilities import Database
from decisor.types import Action, Decision, Observation, Record, Tool

if TYPE_CHECKING:
    from decisor.tools.databases.sql_tables import TableInfo

T = TypeVar("T", bound=Tool)
Needs = Mapping[str, Sequence[Definition]]
"""The definitions that a question is shown, by the name of a database."""
HEAD = "What words of the question mean in these data, by the people who keep them. Compute what is defined as it is:"


@dataclass
class DefinedTool:
    """A database with the definitions that a question needs. ``used``: the metrics that its queries
    computed; ``other``: those that they computed in another way, and how."""

    tool: Database
    definitions: Definitions
    needs: Sequence[Definition]
    used: dict[str, Metric] = field(default_factory=dict)
    other: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.tool.name

    @property
    def form(self) -> str:
        return self.tool.form

    @property
    def is_restricted(self) -> bool:
        return self.tool.is_restricted

    def examples(self) -> Sequence[str]:
        return self.tool.examples()

    @property
    def tables(self) -> Sequence[TableInfo]:
        return self.tool.tables

    def describe(self) -> str:
        if not self.needs:
            return self.tool.describe()
        from decisor.definitions.show import line

        return "\n".join([self.tool.describe().rstrip(), "", HEAD, *(f"- {line(one)}" for one in self.needs)])

    async def call(self, text: str) -> Observation:
        observation = await self.tool.call(text)
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


def dialect_of(tool: object) -> str:
    """As sqlglot calls it; '' of what speaks no SQL."""
    dialect = getattr(getattr(getattr(tool, "worker", None), "description", None), "dialect", None)
    return str(dialect.name) if dialect is not None else ""


@dataclass
class Meaning:
    """``tools``: the databases with the definitions that one question needs. ``files``: all definitions, by the name of
    a database; ``modelled``: the metrics of a decision model."""

    tools: Mapping[str, DefinedTool]
    files: Mapping[str, Definitions] = field(default_factory=dict)
    modelled: Sequence[Metric] = ()

    def around(self, tools: Sequence[T]) -> Sequence[T | DefinedTool]:
        """The same tools, the databases with their definitions."""
        return [self.tools.get(tool.name, tool) for tool in tools]

    def __bool__(self) -> bool:
        """Whether any word has a definition."""
        return bool(self.tools or self.modelled)

    def needs(self) -> Needs:
        """What the question is shown, by the name of a database."""
        return {name: tool.needs for name, tool in self.tools.items()}

    def shows(self, run: Run) -> list[Definition]:
        """What the LM is shown; nothing where none is asked."""
        return [one for tool in self.tools.values() for one in tool.needs] if run.lm.name else []

    async def cite(self, decision: Decision, records: Sequence[Record], run: Run) -> Decision:
        """The decision with the definitions that it used. ``records``: of those that the LM was shown."""
        used = self.used(decision, self.shows(run))
        there = {record.fields["definition"] for record in records}
        more = await self.records([one for one in used if title(one) not in there], run)
        return self.citing(decision, used, [*records, *more])

    async def records(self, definitions: Sequence[Definition], run: Run) -> list[Record]:
        """Definitions in the trace, as records; none where no action is left for it."""
        if not definitions:
            return []
        from decisor.definitions.tool import NAME, Brought
        from decisor.tools.toolbox import Toolbox

        env: Any = run.env
        tool = Brought(definitions, tuple(self.files.values()))
        try:
            observation = await run.using(env=Toolbox([tool], env.counter)).act(Action(NAME, tool.names()))
        except BudgetExceeded:
            return []
        return list(observation.records)

    def used(self, decision: Decision, shows: Sequence[Definition]) -> list[Definition]:
        """What its queries computed or its decision model is made of, and the readings and examples that it was
        shown."""
        queries = [one for tool in self.tools.values() for one in tool.used.values()]
        modelled = self.modelled if decision.ranking is not None else ()
        return list({title(one): one for one in (*queries, *modelled, *followed(shows))}.values())

    def citing(self, decision: Decision, used: Sequence[Definition], records: Sequence[Record]) -> Decision:
        """Beside its own evidence. Where a query computed a metric in another way alone, it says that."""
        if not decision.answer:
            return decision
        names = {title(one): one for one in used}
        cited = [record for record in records if record.fields["definition"] in names]
        lines = [f"By the definition {record.fields['definition']}{names[str(record.fields['definition'])].origin} "
                 f"[{record.id}]." for record in cited]  # fmt: skip
        lines += [f"A query computed something else: {how}" for tool in self.tools.values()
                  for name, how in tool.other.items() if name not in names]  # fmt: skip
        ids = (*decision.evidence.ids, *(record.id for record in cited))
        evidence = replace(decision.evidence, ids=ids)
        return replace(decision, evidence=evidence, reasons=(*decision.reasons, *lines))


def followed(needs: Sequence[Definition]) -> list[Definition]:
    return [one for one in needs if isinstance(one, Reading | Example)]


def meaning_of(
    topic: str, databases: Sequence[Database], definitions: Mapping[str, Definitions], tools: Sequence[Tool] = ()
) -> Meaning:
    """Of what a question is about, by the databases that have definitions, and by a decision model among ``tools``."""
    if not definitions:
        return Meaning({})
    from decisor.definitions.relevant import relevant

    defined = {}
    for database in databases:
        if file := definitions.get(database.name):
            defined[database.name] = DefinedTool(database, file, relevant(topic, file))
    names = {one.metric for tool in tools for one in measures_of(tool)}
    modelled = [one for file in definitions.values() for one in file.metrics if one.name in names]
    return Meaning(defined, definitions, modelled)


def measures_of(tool: object) -> Sequence[Measure]:
    """Of the decision model that a tool ``whatif`` computes; none of another tool."""
    model = getattr(getattr(getattr(tool, "tool", tool), "model", None), "model", None)
    return model.measures if isinstance(model, Model) else ()
