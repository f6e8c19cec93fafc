"""Definitions in a session: shown with the data, compared with queries, and cited by the decision.

Definitions files are read and checked on a database, drafted from it, and give decision models the queries of their
metrics. Open words of a question are settled here: a person is asked, or both readings are computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from decisor.decision_models.schema import DecisionModel
from decisor.errors import BudgetExceeded, ModelMistake, ParseError, SetupError, ToolError
from decisor.parsing.prompting import explain_error
from decisor.runtime.budget import Budget, Limits
from decisor.runtime.run import Run, Technique
from decisor.sandbox.process import set_asker
from decisor.semantics.definitions import (
    KIND,
    ApprovedExample,
    Definition,
    Definitions,
    ImportedDefinitions,
    Metric,
    Reading,
    parse_sound_definitions,
    read_definitions_file,
    read_definitions_text,
    section_title,
)
from decisor.semantics.readings import (
    Interpreter,
    OpenReading,
    ask_for_readings,
    find_readings_in_passages,
    is_settled_reading,
)
from decisor.session.open_sources import open_first_database
from decisor.session.run_setup import LLMs, decide_by_technique, unwrap_model_tool
from decisor.session.sources import Place
from decisor.system.structured_files import Finding
from decisor.system.text import fit_on_one_line
from decisor.tools.abilities import Database
from decisor.trace.events import OTHER_READING, MeaningChoice, Note
from decisor.types import LLM, Action, Decision, Observation, Pitfall, Question, Record, Tool

if TYPE_CHECKING:
    from decisor.databases.schema import TableInfo
    from decisor.semantics.check import SandboxedDatabase


T = TypeVar("T", bound=Tool)
Needs = Mapping[str, Sequence[Definition]]
"""The definitions that a question is shown, by the name of a database."""
HEAD = "What words of the question mean in these data, by the people who keep them. Compute what is defined as it is:"


@dataclass
class DefinedTool:
    """A database with the definitions that a question needs."""

    tool: Database
    definitions: Definitions
    needs: Sequence[Definition]
    used: dict[str, Metric] = field(default_factory=dict)
    """Metrics that its queries computed."""
    other: dict[str, str] = field(default_factory=dict)
    """Metrics that they computed in another way, and how."""

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
        from decisor.semantics.relevant import format_definition

        return "\n".join(
            [
                self.tool.describe().rstrip(),
                "",
                HEAD,
                *(f"- {format_definition(definition)}" for definition in self.needs),
            ]
        )

    async def call(self, text: str) -> Observation:
        observation = await self.tool.call(text)
        dialect = sqlglot_dialect_of(self.tool)
        # A graph has no SQL, so its queries are not compared with metrics.
        if not dialect:
            return observation
        from decisor.parsing.cleaning import strip_fence
        from decisor.semantics.query_match import match_metrics

        meant = [definition for definition in self.needs if isinstance(definition, Metric)]
        computed = match_metrics(strip_fence(text), self.definitions.metrics, dialect, self.tool.tables, meant)
        self.used |= {match.metric.name: match.metric for match in computed if not match.how}
        self.other |= {section_title(match.metric): match.how for match in computed if match.how}
        # As pitfalls they go back with an answer that rests on these rows.
        pitfalls = tuple(Pitfall("definition", match.how) for match in computed if match.how)
        note = " ".join([observation.note, *(pitfall.text for pitfall in pitfalls)]).strip()
        return replace(observation, note=note, pitfalls=(*observation.pitfalls, *pitfalls))

    async def close(self) -> None:
        """Do nothing: the session closes the database."""


def sqlglot_dialect_of(tool: object) -> str:
    """Return the name of a tool's dialect in sqlglot, '' if it has no SQL."""
    dialect = getattr(getattr(getattr(tool, "worker", None), "description", None), "dialect", None)
    return str(dialect.name) if dialect is not None else ""


@dataclass
class Meaning:
    """The definitions that one question needs."""

    tools: Mapping[str, DefinedTool]
    """Databases with their definitions, by name."""
    files: Mapping[str, Definitions] = field(default_factory=dict)
    """All definitions, by the name of a database."""
    modelled: Sequence[Metric] = ()
    """Metrics of a decision model."""

    def around(self, tools: Sequence[T]) -> Sequence[T | DefinedTool]:
        """Return the same tools, the databases with their definitions."""
        return [self.tools.get(tool.name, tool) for tool in tools]

    def __bool__(self) -> bool:
        """Return whether any word has a definition."""
        return bool(self.tools or self.modelled)

    def needs(self) -> Needs:
        """Return the definitions that the question is shown, by the name of a database."""
        return {name: tool.needs for name, tool in self.tools.items()}

    def shows(self, run: Run) -> list[Definition]:
        """Return the definitions that the LLM is shown, none if no LLM is asked."""
        return [definition for tool in self.tools.values() for definition in tool.needs] if run.llm.name else []

    async def cite(self, decision: Decision, records: Sequence[Record], run: Run) -> Decision:
        """Add citations of the used definitions to a decision's own evidence.

        If queries computed a metric only in another way, a reason says so. records: of the definitions that the LLM was
        shown.
        """
        shown = self.shows(run)
        queried = [metric for tool in self.tools.values() for metric in tool.used.values()]
        is_modelled = decision.ranking is not None and not decision.ranking.is_read_off
        modelled = self.modelled if is_modelled else ()
        # A metric is used if it was computed; a reading or an example, if it was shown.
        read = [definition for definition in shown if isinstance(definition, Reading | ApprovedExample)]
        used = {section_title(definition): definition for definition in (*queried, *modelled, *read)}
        there = {record.fields["definition"] for record in records}
        more = await self.records([definition for title, definition in used.items() if title not in there], run)
        # Without an answer there is nothing that could rest on a definition.
        if not decision.answer:
            return decision
        cited = [record for record in (*records, *more) if record.fields["definition"] in used]
        lines = [
            f"By the definition {record.fields['definition']}{used[str(record.fields['definition'])].signature()} "
            f"[{record.id}]."
            for record in cited
        ]
        told = {pitfall.text for pitfall in decision.evidence.pitfalls}
        lines += [
            f"A query computed something else: {how}"
            for tool in self.tools.values()
            for name, how in tool.other.items()
            if name not in used and how not in told
        ]
        ids = (*decision.evidence.ids, *(record.id for record in cited))
        evidence = replace(decision.evidence, ids=ids)
        return replace(decision, evidence=evidence, reasons=(*decision.reasons, *lines))

    async def records(self, definitions: Sequence[Definition], run: Run) -> list[Record]:
        """Write definitions to the trace and return them as records.

        None are returned if the budget has no action left.
        """
        if not definitions:
            return []
        from decisor.semantics.relevant import NAME, DefinitionsTool
        from decisor.tools.toolbox import Toolbox

        env: Any = run.env
        tool = DefinitionsTool(definitions, tuple(self.files.values()))
        # The toolbox counts on with the run's own counter, so that ids of definitions and of rows never meet.
        try:
            observation = await run.using(env=Toolbox([tool], env.counter)).act(Action(NAME, tool.format_input()))
        except BudgetExceeded:
            return []
        return list(observation.records)


def find_meaning(
    topic: str, databases: Sequence[Database], definitions: Mapping[str, Definitions], tools: Sequence[Tool] = ()
) -> Meaning:
    """Find the definitions that a topic needs, in the databases and in a decision model of ``tools``."""
    if not definitions:
        return Meaning({})
    from decisor.semantics.relevant import find_relevant_definitions

    defined = {}
    for database in databases:
        if file := definitions.get(database.name):
            defined[database.name] = DefinedTool(database, file, find_relevant_definitions(topic, file))
    models = [tool.model.model for tool in map(unwrap_model_tool, tools) if tool is not None]
    names = {measure.metric for model in models for measure in model.measures}
    modelled = [metric for file in definitions.values() for metric in file.metrics if metric.name in names]
    return Meaning(defined, definitions, modelled)


def compare_with_question(
    tool: Database, question: Question, definitions: Iterable[Definition], is_alone: bool
) -> Database:
    """Return a database whose queries are compared with a question; other tools than SQL are left as they are."""
    from decisor.databases.sql import SqlTool

    if not isinstance(tool, SqlTool):
        return tool
    from decisor.databases.pitfalls.question import AskedQuestion
    from decisor.semantics.relevant import format_definition

    earlier = (*question.earlier.before, question.earlier.question) if question.earlier else ()
    known = "\n".join([*earlier, *map(format_definition, definitions)])
    return tool.compare_with(AskedQuestion(question.text, f"{question.rules}\n{question.goal}", known, is_alone))


async def draft_definitions(db: Place, llm: LLM | str | None = None, limits: Limits = Limits()) -> ImportedDefinitions:
    """Draft definitions from a database, with an LLM if there is one. llm: as ``ask`` takes it; "none" uses the schema
    and the rows alone.

    Raises:
        SetupError: it is no SQL database, or cannot be opened.
        LLMError: the endpoint failed for good.
    """
    tool = await open_first_database(db)
    llms = LLMs()
    try:
        if tool.form != "sql":
            raise SetupError("Definitions are drafted of SQL databases.")
        from decisor.semantics.draft import draft_from_schema

        first = await draft_from_schema(tool, tool.tables)
        model = await llms.get(llm)
        if model is None:
            return ImportedDefinitions(first)
        from decisor.semantics.draft import improve_draft
        from decisor.tools.toolbox import Toolbox

        run = Run(model, Toolbox([tool]), Budget(limits))
        try:
            return await improve_draft(first, tool, tool.describe(), run)
        # The draft from the schema is sound without the LLM.
        except ParseError as error:
            return ImportedDefinitions(first, [f"what the LLM wrote could not be read: {error}"])
    finally:
        await llms.close()
        await tool.close()


def count_definitions(whole: ImportedDefinitions) -> Mapping[str, int]:
    """Count the definitions of each kind; kinds without any are left out."""
    names = {"metric": "metrics", "dimension": "dimensions", "entity": "entities", "join": "joins"}
    names |= {"calendar": "calendars", "value": "values", "reading": "readings"}
    counts = Counter(KIND[type(definition)] for definition in whole.definitions)
    return {name: counts[kind] for kind, name in names.items() if counts[kind]}


def read_definitions_of_databases(
    files: Sequence[tuple[str, Path]], databases: Sequence[str]
) -> dict[str, Definitions]:
    """Read definitions files by database: the one that a file is named for, or the only one.

    Raises:
        SetupError: a file cannot be read, or says not which database it is about.
    """
    if not files:
        return {}
    whole: dict[str, Definitions] = {}
    for name, path in files:
        if name and name not in databases:
            raise SetupError(
                f"{path} is about {name}, and there is no such database; there is {', '.join(databases) or 'none'}."
            )
        if not name and len(databases) != 1:
            raise SetupError(
                f"Which database is {path} about? Write --definitions NAME={path}; there is "
                f"{', '.join(databases) or 'none'}."
            )
        at = name or databases[0]
        if at in whole:
            raise SetupError(f"{path} is the second file of definitions of {at}: one database has one.")
        whole[at] = read_definitions_file(path)
    return whole


async def check_definitions_file(file: Path, db: Place) -> list[Finding]:
    """Check a definitions file: its form, and its sound definitions on the database.

    Raises:
        SetupError: the file or the database cannot be read.
    """
    from decisor.semantics.check import check_definitions
    from decisor.system.structured_files import FileFault

    try:
        definitions, wrong = parse_sound_definitions(read_definitions_text(file))
    except FileFault as error:
        raise SetupError(f"{file}: {error}") from error
    tool = await open_first_database(db)
    try:
        findings = await check_definitions(definitions, cast("SandboxedDatabase", tool))  # of a graph nothing is quoted
        return sorted(
            [*(Finding(0, line, words) for line, words in wrong), *findings], key=lambda finding: finding.line
        )
    finally:
        await tool.close()


def fill_metric_queries(model: DecisionModel, definitions: Definitions | None, source: object) -> DecisionModel:
    """Return a decision model whose measures have the queries of their metrics.

    They are in the SQL of the model's copy.

    Raises:
        SetupError: a metric is not defined, or cannot be computed on a copy.
    """
    named = [measure for measure in model.measures if measure.metric]
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
        # The copy of a decision model is DuckDB, whatever its source is.
        query = there[measure.metric].full_query()
        try:
            queries[measure.name] = sqlglot.transpile(query, read=sqlglot_dialect_of(source) or None, write="duckdb")[0]
        except SqlglotError as error:
            raise SetupError(f"The metric {measure.metric} cannot be computed on a copy: {error}") from error
    unit = {measure.name: measure.unit or there[measure.metric].unit for measure in named}
    measures = [
        replace(measure, sql=queries[measure.name], unit=unit[measure.name]) if measure.metric else measure
        for measure in model.measures
    ]
    return replace(model, measures=tuple(measures))


READINGS_HEAD = "What is meant, where words could mean two things:"


@dataclass(frozen=True)
class ReadingChoice:
    """The chosen meaning of open words."""

    open: OpenReading
    choice: str
    """Meaning that is taken."""
    by: str = ""
    """Person who chose, '' if nobody could be asked."""

    @property
    def other(self) -> str:
        return next((text for text in self.open.choices if text != self.choice), "")

    def line(self) -> str:
        return f'- "{self.open.words}": {self.choice}'

    def event(self, answer: str = "", why: str = "") -> MeaningChoice:
        """Return the choice for the trace. answer: by the other meaning. why: reason that there is none."""
        return MeaningChoice(self.open.words, self.choice, self.by, self.other, answer, why)


def question_as_read(
    question: Question, choices: Sequence[ReadingChoice], instead: ReadingChoice | None = None
) -> Question:
    """Return the question with the chosen meanings as rules. instead: the choice whose other meaning is taken."""
    lines = [replace(choice, choice=choice.other).line() if choice is instead else choice.line() for choice in choices]
    rules = "\n".join([*([question.rules.strip(), ""] if question.rules.strip() else []), READINGS_HEAD, *lines])
    return replace(question, rules=rules)


async def find_readings_in_documents(question: Question, documents: Sequence[Tool]) -> list[OpenReading]:
    """Find open readings in the passages that a search for the question finds.

    A document source whose search fails is skipped.
    """
    records: list[Record] = []
    for tool in documents:
        # For the audit: Decisor searches here, not the model.
        with set_asker("decisor"), suppress(ToolError):
            records += (await tool.call(question.text)).records
    return find_readings_in_passages(question, records)


async def choose_readings(
    question: Question,
    sources: Sequence[Tool],
    needs: Needs,
    suspects: Sequence[OpenReading],
    run: Run,
    reader: Interpreter | None,
) -> list[ReadingChoice]:
    """Choose the meaning of each open reading.

    The ``reader`` is asked; the first choice is taken if there is none or they do not know.
    """
    if not sources:
        return []
    data, choices = "\n\n".join(tool.describe() for tool in sources), []
    for reading in await judge_readings(question, data, suspects, needs, run):
        answer = reading.choice(await reader(reading)) if reader else ""
        choices.append(
            ReadingChoice(reading, fit_on_one_line(answer, 300) or reading.choices[0], "you" if answer else "")
        )
    return choices


async def judge_readings(
    question: Question, data: str, suspects: Sequence[OpenReading], needs: Needs, run: Run
) -> Sequence[OpenReading]:
    """Return the readings that an LLM finds open and no definition settles.

    None are returned if the LLM cannot be asked or its reply cannot be read.
    """
    with run.span("readings") as sub:
        try:
            open_readings = await ask_for_readings(question, data, suspects, sub)
        # Readings are a help: without them the question is decided as it stands.
        except (BudgetExceeded, ModelMistake) as error:
            sub.trace.add(
                Note(f"Whether the question has two readings could not be judged: {explain_error(error)}"), sub.span_id
            )
            return ()
    # An LLM may call open what a definition settles; nobody is asked about that.
    return [
        reading for reading in open_readings if not any(is_settled_reading(reading, group) for group in needs.values())
    ]


def describe_other_reading(decision: Decision, choice: ReadingChoice, other: Decision | None, why: str = "") -> str:
    """Describe the answer of the other reading, and whether it changes the decision. why: reason that it was not
    computed.
    """
    begin = f'"{choice.open.words}" was taken as {choice.choice}; it could mean {choice.other}'
    if other is None or not other.answer:
        return f"{begin}, which was not computed: {why}."
    if other.answer.casefold() == decision.answer.casefold():
        return f"{begin}. That gives the same answer, so the choice does not change the decision."
    return f"{begin}. That gives {other.answer}: the choice changes the decision."


async def add_readings_to_decision(
    decision: Decision, question: Question, choices: Sequence[ReadingChoice], technique: Technique, run: Run
) -> Decision:
    """Add the chosen meanings to a decision's assumptions.

    If nobody said which reading is meant, the other readings are decided too, after it.
    """
    lines = []
    for choice in choices:
        if choice.by or not choice.other:
            run.trace.add(choice.event())
            continue
        # After a limit or a failure there is no room for a second decision.
        other, why = None, "the run ended before"
        if decision.stopped in ("answered", "no_answer"):
            with run.span(f"{OTHER_READING}{choice.other}") as sub:
                other = await decide_by_technique(technique, question_as_read(question, choices, instead=choice), sub)
            reason = other.reasons[0] if other.reasons else "it came to no answer"
            why = "" if other.answer else fit_on_one_line(reason, 200).rstrip(".")
        run.trace.add(choice.event(other.answer if other else "", why))
        lines.append(describe_other_reading(decision, choice, other, why))
    means = [
        f'"{choice.open.words}" means {choice.choice}{f" (by {choice.by})" if choice.by else ""}' for choice in choices
    ]
    return replace(decision, reasons=(*decision.reasons, *lines), assumptions=(*decision.assumptions, *means))
