"""Questions of one's own over data of one's own: what ``decisor history export`` writes of marked runs, or any JSON
lines with ``question`` and ``answer`` (or ``wrong``, an answer that is not right), and what else is expected of a run.

A run of a case is that of ``decisor ask``: open words are settled, definitions are shown and cited. Questions of the
history that the file lacks are listed with the gaps that their traces show.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePath

from decisor.errors import SetupError
from decisor.history.recorder import OwnQuestion, read_questions
from decisor.history.store import ALL, History, PastRun
from decisor.lab.benchmark import Case, Score
from decisor.lab.text_match import em
from decisor.parsing.cleaning import strip_fence
from decisor.runtime.run import Run, Technique
from decisor.sandbox.dialect import parse_sql
from decisor.session.config import resolve_config
from decisor.session.data import Data, QuestionData, open_data
from decisor.session.definitions import sqlglot_dialect_of
from decisor.session.open_sources import sources_of_request
from decisor.session.request import AskRequest
from decisor.session.run_setup import Choice, NoLLM
from decisor.session.sources import Sources
from decisor.techniques import asks_llm, build_technique
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import MeaningChoice, TraceEntry, cited_records_of, events_of, iterate_actions, sum_call_usage
from decisor.types import Decision, Environment, Question, Usage


@dataclass
class SharedData:
    """The data of all cases, opened when the first case needs them."""

    data: Data | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def open(self, sources: Sources) -> Data:
        # Cases run side by side: the first one opens the data, the others wait for it.
        async with self.turn:
            if self.data is None:
                self.data = await self.stack.enter_async_context(open_data(sources))
        return self.data

    async def close(self) -> None:
        await self.stack.aclose()
        self.data = None


@dataclass(frozen=True)
class OwnBench:
    """A benchmark of a user's own questions over own data (``Bench``)."""

    questions: Path
    """The file of questions."""
    db: str = ""
    """Databases, with spaces between them; names of decisor.toml work too, here and in the next two."""
    graph: str = ""
    docs: str = ""
    model: str = ""
    """As in ``decisor ask``, like the following ones."""
    definitions: str = ""
    tables: str = ""
    deny_tables: str = ""
    name: str = "own"
    shared: SharedData = field(default_factory=SharedData, repr=False, compare=False)

    @cached_property
    def by_id(self) -> Mapping[str, OwnQuestion]:
        return {own.id: own for own in read_questions(self.questions)}

    def cases(self) -> Sequence[Case]:
        # Answer and note stay outside of the question, which is all that a technique gets.
        return [
            Case(
                own.id,
                Question(own.question, own.rules, own.goal, own.earlier),
                (own.answer,) if own.answer else (),
                expects=own.expects,
            )
            for own in self.by_id.values()
        ]

    @property
    def sources(self) -> Sources:
        """The data sources of all questions; SetupError if no data are named."""
        request = AskRequest(
            db=tuple(shlex.split(self.db)),
            graph=tuple(shlex.split(self.graph)),
            docs=tuple(shlex.split(self.docs)),
            model=self.model,
            definitions=tuple(shlex.split(self.definitions)),
            tables=tuple(self.tables.replace(",", " ").split()),
            deny_tables=tuple(self.deny_tables.replace(",", " ").split()),
        )
        if not request.names_data:
            raise SetupError("Which data are the questions about? Name them with --db, --graph or --docs.")
        return sources_of_request(request, resolve_config())

    @asynccontextmanager
    async def environment(self, case: Case) -> AsyncIterator[Environment]:
        data = await self.shared.open(self.sources)
        # The tools of most techniques: which one will use them is not known here.
        choice = Choice("plan_rag", build_technique("plan_rag"), NoLLM(), {})
        view = await data.view(case.question, choice, AskRequest())
        yield OwnEnvironment(view.tools, data=data, view=view)

    async def score(self, case: Case, decision: Decision, events: Sequence[TraceEntry]) -> Score:
        """Score a decision. It is unscored if the right answer is unknown and the known wrong answer was not given."""
        own, tools = self.by_id[case.id], self.shared.data.tools if self.shared.data else ()
        dialects = {tool.name: sqlglot_dialect_of(tool) for tool in tools}
        met: dict[str, list[bool]] = defaultdict(list)
        faults, unknown = [], False
        for name, is_met, fault in check_expectations(own, decision, events, dialects):
            if is_met is None:
                unknown = True
                continue
            met[name].append(is_met)
            faults += [] if is_met else [fault]
        right = False if faults else None if unknown else True
        metrics = {name: float(all(verdicts)) for name, verdicts in met.items()}
        return Score(right, decision.answer, metrics, next(iter(faults), ""))

    async def close(self) -> None:
        await self.shared.close()


@dataclass
class OwnEnvironment(Toolbox):
    """The tools for one question, with the view of the data that they are from."""

    data: Data = field(kw_only=True)
    view: QuestionData = field(kw_only=True)

    async def decide(self, technique: Technique, question: Question, run: Run) -> Decision:
        """Decide as ``decisor ask`` does."""
        view = self.view if asks_llm(technique) else replace(self.view, suspects=None)
        return await self.data.decide(question, view, technique, run)


def check_expectations(
    own: OwnQuestion, decision: Decision, events: Sequence[TraceEntry], dialects: Mapping[str, str]
) -> Iterator[tuple[str, bool | None, str]]:
    """Yield what is expected of a run, whether it is met (None: not known), and the fault if not; the answer first."""
    answer = decision.answer
    if own.answer:
        yield "answer", em(answer, (own.answer,)) == 1, "another answer" if answer else "no answer"
    elif own.wrong:
        yield "answer", False if answer and em(answer, (own.wrong,)) == 1 else None, "the wrong answer"
    if own.abstains is not None:
        has_abstained = decision.stopped == "no_answer" and not answer
        yield "abstains", has_abstained is own.abstains, "does not abstain" if own.abstains else "abstains"
    if own.asks is not None:
        has_asked = any(True for _ in events_of(events, MeaningChoice))
        yield "asks", has_asked is own.asks, "does not ask what is meant" if own.asks else "asks what is meant"
    cited, sources = cited_records_of(decision, events), find_cited_sources(decision, events, dialects)
    for name in own.cites:
        yield "cites", name.lower() in sources, f"does not cite {name}"
    titles = {str(record.fields.get("definition", "")).casefold() for record in cited}
    names = {title.partition(".")[2] for title in titles} | titles
    for name in own.uses:
        yield "uses", name.casefold() in names, f"does not use the definition {name}"
    if own.dollars is not None:
        dollars = sum_call_usage(events).dollars
        yield "dollars", None if dollars is None else dollars <= own.dollars, f"costs more than ${own.dollars:g}"


def find_cited_sources(decision: Decision, events: Sequence[TraceEntry], dialects: Mapping[str, str]) -> frozenset[str]:
    """Return the names of tables, labels and documents that the cited records are from, in lower case.

    dialects: of the tools that speak SQL, as sqlglot has them.
    """
    cited, sources = set(decision.evidence.ids), set[str]()
    names_of: dict[str, set[str]] = {}
    for start, result in iterate_actions(events):
        names = find_query_sources(start.input, dialects.get(start.tool, ""))
        # A query of combine names other observations as its tables.
        names = names.union(*(names_of.get(name, ()) for name in names))
        for record in result.observation.records:
            names_of[record.id.partition(".")[0]] = names
            if record.id in cited:
                document = record.source.partition("#")[0].lower()
                sources |= {*names, document, PurePath(document).name, str(record.fields.get("title", "")).lower()}
    return frozenset(sources - {""})


def find_query_sources(query: str, dialect: str) -> set[str]:
    """Return the names that a query reads from, in lower case; of one that is no SQL, all its words.

    >>> sorted(find_query_sources("SELECT name FROM main.site JOIN lease USING (id)", "sqlite"))
    ['lease', 'main.site', 'site']
    >>> "site" in find_query_sources("MATCH (s:Site) RETURN s.name", "")
    True
    """
    from sqlglot import exp

    tree = parse_sql(strip_fence(query), dialect) if dialect else None
    if tree is None:
        return set(re.findall(r"\w+", query.lower()))
    tables = tree.find_all(exp.Table)
    return {name.lower() for table in tables for name in (table.name, f"{table.db}.{table.name}".lstrip("."))}


@dataclass(frozen=True, slots=True)
class UntestedQuestion:
    """A question of the history that a file of questions lacks."""

    text: str
    runs: int
    usage: Usage
    gaps: tuple[str, ...]
    """What its runs lacked: a definition, a table."""


def find_untested_questions(history: History, tested: Sequence[OwnQuestion]) -> list[UntestedQuestion]:
    """Return the questions of the history that are not among the tested ones, the costliest first."""
    known = {normalise_question(own.question) for own in tested}
    runs_of: dict[str, list[PastRun]] = defaultdict(list)
    for run in history.list("", most=ALL):
        if normalise_question(run.question.text) not in known:
            runs_of[normalise_question(run.question.text)].append(run)
    untested = [
        UntestedQuestion(
            runs[0].question.text,
            len(runs),
            sum_usage(run.usage for run in runs),
            tuple(dict.fromkeys(gap for run in runs for gap in find_gaps(history.entries(run.number, run.owner)))),
        )
        for runs in runs_of.values()
    ]
    return sorted(untested, key=lambda question: cost_key(question.usage), reverse=True)


def rank_gaps(untested: Sequence[UntestedQuestion]) -> list[tuple[str, int, Usage]]:
    """Return each gap with the number and the usage of the runs of its questions, the costliest first."""
    gaps = dict.fromkeys(gap for question in untested for gap in question.gaps)
    shares = {gap: [question for question in untested if gap in question.gaps] for gap in gaps}
    ranked = [
        (gap, sum(one.runs for one in share), sum_usage(one.usage for one in share)) for gap, share in shares.items()
    ]
    return sorted(ranked, key=lambda row: cost_key(row[2]), reverse=True)


def find_gaps(events: Sequence[TraceEntry]) -> Iterator[str]:
    """Yield what a run lacked: definitions of words with two meanings, and tables that its queries did not find."""
    for choice in events_of(events, MeaningChoice):
        yield f'no definition of "{choice.words}"'
    actions = [
        (find_query_sources(start.input, "duckdb"), result.observation) for start, result in iterate_actions(events)
    ]
    known = {name for names, observation in actions if not observation.error for name in names}
    for names, observation in actions:
        if observation.error and re.search(r"table|relation", observation.note, re.I):
            complaint = set(re.findall(r"\w+(?:\.\w+)*", observation.note.lower()))
            yield from (f"table {name} not found" for name in sorted((names - known) & complaint))


def normalise_question(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def sum_usage(usages: Iterable[Usage]) -> Usage:
    return sum(usages, Usage())


def cost_key(usage: Usage) -> tuple[float, int]:
    return usage.dollars or 0.0, usage.tokens
