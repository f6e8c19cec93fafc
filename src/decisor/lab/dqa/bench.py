"""Decision QA as a benchmark: the candidate that an answer names, and the class of a failure.

An answer is read in four tiers, and the first that names exactly one candidate counts: the whole text; the text after
the last "Final answer:"; marked parts (bold, quoted, code, "building id N"); any mention. A tier that names several is
skipped, so two names in one sentence are wrong unless one of them is marked.

Retrieval kinds are those of figure 5 of the PlanRAG paper: a question is SR if IterRAG made exactly one retrieval for
it, MR if it made several. The split is of questions, so all techniques are compared on the same two sets.

Each wrong answer has one class, by the first rule that fits on its trace:

    QUR   query errors: a query was refused or failed, and its data never came: no later query returned rows, or a
          needed value that the failed query named was never retrieved
    OTH   other: no answer could be read, or the run ended at a limit
    MIS   missing data: a needed value was neither queried nor computed (see ``find_missed_values``)
    CAN   wrong candidates: the answer names no candidate, or one that cannot change the outcome (a building that does
          not supply the goods, a node in which the country has no power), or the best one was never among the
          records, nor in a query, nor left to the database to pick (order by ... limit, min, max)
    DEEP  all data were there, and the conclusion was still wrong

Two classes of ours come before all of them: RULES, the answer is right by the printed rules, which the release did not
follow to the letter; FORM, right in substance and wrong in form: no candidate could be read from the answer, and the
text around it names the right one and no other.

For the kind of a replan, steps of the old and the new plan are paired if they say nearly the same. The steps that are
left over decide the kind:

    reorder        the same steps in another order
    change target  a step kept its words except for the names or figures that it is about
    replace        a step gave way to a different one
    divide, merge  one old step became several; several old steps became one
    add lookup, add calculation     a new step, by its words
    delete         a step is gone
    unchanged      the plan was written again
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from decisor.errors import SetupError
from decisor.lab.benchmark import Case, Outcome, Score
from decisor.lab.dqa.databases import Stores, form_of_url
from decisor.lab.dqa.rows import WORLD_TABLES
from decisor.lab.dqa.worlds import SCENARIOS, Form, Scenario, WorldCase, WorldData, read_dqa_cases
from decisor.system.secrets import hide_password
from decisor.trace.events import ActionResult, ActionStart, GraphPlan, LLMCall, Plan, PlanChange, TraceEntry, events_of
from decisor.types import Decision, Environment, Observation, Tool, Value

Failure = Literal["RULES", "FORM", "CAN", "MIS", "DEEP", "QUR", "OTH"]

DATABASES = frozenset({"sql", "cypher"})
NEEDED: Mapping[str, Mapping[str, re.Pattern[str]]] = {
    "locating": {
        "ingoing": re.compile(r"\bingoing\b|\bsum\s*\(\s*(?:\w+\.)?flow\b", re.I),
        "total_power": re.compile(r"\btotal_power\b|\bsum\s*\(\s*(?:\w+\.)?(?:calculated|base)_trading_power\b", re.I),
    },
    "building": {
        "current_output": re.compile(r"\bcurrent_output\b", re.I),
        "pop_demand": re.compile(r"\bpop_demand\b", re.I),
    },
}
"""The values that a decision needs, and what in a query or in a column's name asks for them or computes them."""
PICKED = re.compile(r"\border\s+by\b.*\blimit\b|\b(?:min|max)\s*\(", re.I | re.S)
QUANTITY = re.compile(r"level|max_|current_|price|demand\b|output|input\b|supply\b|goods|code|count|sum|avg", re.I)
"""Columns of numbers that are no building: a level of 12 is not a look at building 12."""
COMMENT = re.compile(r"--[^\n]*|//[^\n]*|/\*.*?\*/", re.S)


@dataclass(frozen=True, slots=True)
class Retrieval:
    """A database query of a run, with the rows that came back."""

    query: str
    """Text of the query."""
    failed: bool
    rows: int
    """Number of rows."""
    columns: frozenset[str]
    """Names of the columns."""
    values: frozenset[str]
    """Cells as text, without the numbers of columns that hold amounts."""


@dataclass(frozen=True, slots=True)
class FailureFacts:
    """The facts of a question that the failure analysis needs."""

    scenario: str
    gold: str
    able: frozenset[str] = frozenset()
    """Candidates that can change the outcome; empty if none can, or if that is not known."""


def list_retrievals(events: Sequence[TraceEntry]) -> tuple[Retrieval, ...]:
    """Return the database queries of a trace, in order.

    An action without an observation (because of a limit) counts as failed.
    """
    observations = {result.action: result.observation for result in events_of(events, ActionResult)}
    retrievals = []
    for entry in events:
        if isinstance(entry.event, ActionStart) and entry.event.tool in DATABASES:
            observation = observations.get(entry.id, Observation(error=True))
            leaves = [leaf for record in observation.records for leaf in _iterate_leaves(record.fields)]
            retrievals.append(
                Retrieval(
                    entry.event.input,
                    observation.error,
                    len(observation.records),
                    frozenset(name for name, _ in leaves),
                    frozenset(value for name, value in leaves if not (value.isdigit() and QUANTITY.search(name))),
                )
            )
    return tuple(retrievals)


def _iterate_leaves(value: Value, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the column and the text of each value, with nodes and lists of a graph unfolded."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _iterate_leaves(item, str(key))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _iterate_leaves(item, name)
    else:
        yield name, str(value)


def has_model_ranking(events: Sequence[TraceEntry]) -> bool:
    """Return whether a decision model computed the outcome of candidates in this run."""
    return any(result.observation.ranking for result in events_of(events, ActionResult))


def find_missed_values(events: Sequence[TraceEntry], scenario: str) -> tuple[str, ...]:
    """Return the needed values that a run neither queried nor computed. Only queries that returned rows count.

    "Any missing" is a result that is not empty; "all missing" one as long as ``NEEDED[scenario]``.
    """
    # A decision model reads all that its rules need.
    if has_model_ranking(events):
        return ()
    # A comment in a query asks for nothing, whatever it names.
    texts = [f"{COMMENT.sub(' ', got.query)} {' '.join(got.columns)}" for got in list_retrievals(events) if got.rows]
    return tuple(name for name, asks in NEEDED[scenario].items() if not any(asks.search(text) for text in texts))


def classify_wrong_answer(
    events: Sequence[TraceEntry], facts: FailureFacts, answer: str, stopped: str = "answered"
) -> Failure:
    """Return the failure class of a wrong answer. answer: the candidate that was read, empty if none could be read."""
    got = list_retrievals(events)
    missing = find_missed_values(events, facts.scenario)
    if has_costly_query_error(got, missing, facts.scenario):
        return "QUR"
    if not answer or stopped != "answered":
        return "OTH"
    if missing:
        return "MIS"
    # The release has questions where no candidate changes anything: then every one could be right.
    could_be_right = not facts.able or answer in facts.able
    gold = re.compile(rf"(?<!\w){re.escape(facts.gold)}(?!\w)")
    was_seen = any(facts.gold in one.values or gold.search(one.query) for one in got if not one.failed)
    was_left_to_database = any(PICKED.search(one.query) for one in got if one.rows)
    has_candidates = could_be_right and (was_seen or was_left_to_database)
    return "DEEP" if has_candidates or has_model_ranking(events) else "CAN"


def has_costly_query_error(got: Sequence[Retrieval], missing: Sequence[str], scenario: str) -> bool:
    """Return whether a failed query cost the run data that it needed."""
    failed = [at for at, one in enumerate(got) if one.failed]
    if not failed:
        return False
    # No rows after the last failure: the run went on without data.
    if not any(one.rows for one in got[failed[-1] + 1 :]):
        return True
    return any(NEEDED[scenario][name].search(got[at].query) for at in failed for name in missing)


Change = Literal["increase", "same", "decrease"]
Kind = Literal[
    "reorder", "replace", "change target", "add lookup", "add calculation", "divide", "delete", "merge", "unchanged"
]
SAME, RELATED, COVERED = 0.8, 0.4, 0.6
CALCULATION = re.compile(
    r"\b(?:calculat|comput|estimat|sum\b|add up|multipl|divid|subtract|compare|simulat|averag|rank|total up|ratio)",
    re.I,
)
NUMBERING = re.compile(r"^\s*(?:step\s*)?\d*\s*[.:)-]?\s*", re.I)
SMALL = {"a", "an", "and", "at", "by", "each", "for", "from", "in", "of", "on", "the", "then", "to", "with"}


@dataclass(frozen=True, slots=True)
class ReplanClass:
    """The class of one replan: more, as many or fewer steps, and the kind of change."""

    change: Change
    kind: Kind


def step_word_set(step: str) -> frozenset[str]:
    """Return the words of a step, lower case, without its number and small words.

    >>> sorted(step_word_set("Step 2: Find the flow of krakow."))
    ['find', 'flow', 'krakow']
    """
    return frozenset(re.findall(r"\w+", NUMBERING.sub("", step).lower())) - SMALL


def word_overlap_share(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of words that two steps have in common, 0 to 1."""
    return len(one & other) / len(one | other) if one | other else 1.0


def classify_replan(old: Sequence[str], new: Sequence[str]) -> ReplanClass:
    """Classify the change from an old plan to a new one.

    >>> classify_replan(["Find the nodes", "Compute profit"], ["Find the nodes", "Find the flow", "Compute profit"])
    ReplanClass(change='increase', kind='add lookup')
    """
    change: Change = "increase" if len(new) > len(old) else "decrease" if len(new) < len(old) else "same"
    before, after = [step_word_set(step) for step in old], [step_word_set(step) for step in new]
    # Pair the steps that stay; what is left over tells the kind.
    pairs = pair_steps(before, after)
    gone = [at for at in range(len(old)) if at not in pairs]
    come = [at for at in range(len(new)) if at not in pairs.values()]
    if not gone and not come:
        order = [pairs[at] for at in sorted(pairs)]
        return ReplanClass(change, "unchanged" if order == sorted(order) else "reorder")
    # Divide and merge come before add and delete, as they change the number of steps too.
    if any(is_split_into(before[at], [after[to] for to in come]) for at in gone):
        return ReplanClass(change, "divide")
    if any(is_split_into(after[to], [before[at] for at in gone]) for to in come):
        return ReplanClass(change, "merge")
    if len(come) > len(gone):
        lookup = any(not CALCULATION.search(NUMBERING.sub("", new[at])) for at in come)
        return ReplanClass(change, "add lookup" if lookup else "add calculation")
    if len(gone) > len(come):
        return ReplanClass(change, "delete")
    alike = all(max(word_overlap_share(before[at], after[to]) for to in come) >= RELATED for at in gone)
    return ReplanClass(change, "change target" if alike else "replace")


def pair_steps(before: Sequence[frozenset[str]], after: Sequence[frozenset[str]]) -> dict[int, int]:
    """Return the pairs of old step and new step that say nearly the same, best pairs first."""
    likely = sorted(
        ((word_overlap_share(one, other), -at, -to) for at, one in enumerate(before) for to, other in enumerate(after)),
        reverse=True,
    )
    pairs: dict[int, int] = {}
    for value, at, to in likely:
        if value >= SAME and -at not in pairs and -to not in pairs.values():
            pairs[-at] = -to
    return pairs


def is_split_into(whole: frozenset[str], parts: Sequence[frozenset[str]]) -> bool:
    """Return whether two or more ``parts`` together cover most words of ``whole``.

    Each part must share words of its own with it.
    """
    covered: frozenset[str] = frozenset()
    count = 0
    for part in parts:
        own = (part & whole) - covered
        if own and len(own) >= 0.3 * len(whole):
            covered |= part & whole
            count += 1
    return count >= 2 and len(covered) >= COVERED * len(whole)


def classify_replans(events: Sequence[TraceEntry]) -> tuple[ReplanClass, ...]:
    """Classify each replan of a trace against the plan before it."""
    changes: list[ReplanClass] = []
    plan: Sequence[str] = ()
    for entry in events:
        match entry.event:
            case Plan(steps=steps) | GraphPlan(steps=steps):
                plan = steps
            case PlanChange(steps=steps):
                changes.append(classify_replan(plan, steps))
                plan = steps
    return tuple(changes)


LABEL = re.compile(r"(?:final answer|answer|decision)\s*\**\s*[:=]\s*", re.I)
MARKED = re.compile(r"\*\*(.+?)\*\*|__(.+?)__|`(.+?)`|\"(.+?)\"|“(.+?)”|‘(.+?)’|(?<!\w)'(.+?)'(?!\w)", re.S)
CITATION = re.compile(r"\[[^\]]*\bo\d+\.r\d+[^\]]*\]")
ID = re.compile(r"\b(?:building(?:\s+(?:with\s+)?(?:the\s+)?id)?|id)\s*(?:is|of|number|no\.?|[:=#])*\s*(\d+)\b", re.I)
NUMBER = re.compile(r"(?<![\d.,\w-])#?(\d+)(?!\w|[.,]\d|\s*(?:%|percent|levels?\b))", re.I)
NOT_AN_ID = re.compile(r"(?:\bby|\blevels?(?:\s+(?:of|to|from|is))?|[-+*/=<>])\s*$", re.I)


@dataclass(frozen=True, slots=True)
class DqaScore:
    """The candidate that an answer names, and whether it is right."""

    answer: str
    """The candidate; '' if none or several were named."""
    right: bool
    tie_right: bool
    """Whether it is in the tie set of the released semantics, and so worth as much as the released answer."""


def score_named_candidate(text: str, gold: str, candidates: Sequence[str], ties: Iterable[str] = ()) -> DqaScore:
    """Score the candidate that a text names against the released answer and its ties.

    >>> score_named_candidate("I would choose **Krakow**, not rheinland.", "krakow", ["krakow", "rheinland"])
    DqaScore(answer='krakow', right=True, tie_right=True)
    >>> score_named_candidate("Genua", "valencia", ["genua", "valencia"], ties=["valencia", "genua"])
    DqaScore(answer='genua', right=False, tie_right=True)
    """
    answer = extract_candidate(text, candidates)
    right = bool(answer) and normalize_candidate_name(answer) == normalize_candidate_name(gold)
    return DqaScore(
        answer,
        right,
        right or (bool(answer) and normalize_candidate_name(answer) in {normalize_candidate_name(tie) for tie in ties}),
    )


def normalize_candidate_name(text: str) -> str:
    """Remove case, accents, quotes, underscores and punctuation from a name.

    >>> normalize_candidate_name("'St. Lawrence' "), normalize_candidate_name("st_lawrence")
    ('st lawrence', 'st lawrence')
    """
    letters = unicodedata.normalize("NFKD", text.casefold())
    spaced = "".join(
        " " if letter in "_-/ \t\n\r" else letter for letter in letters if not unicodedata.combining(letter)
    )
    return " ".join(re.sub(r"[^\w\s]", "", spaced).split())


def extract_candidate(text: str, candidates: Sequence[str]) -> str:
    """Return the one candidate that a text names, as the data spell it. Empty if the text names none or several.

    >>> extract_candidate("Baltic Sea or Lübeck?", ["baltic_sea", "lubeck"])
    ''
    >>> extract_candidate("Raise building id 1485 by 5 levels.", ["5", "1485"])
    '1485'
    """
    text = CITATION.sub("", unicodedata.normalize("NFKC", text)).strip()
    whole = {normalize_candidate_name(name): name for name in candidates}
    numbers = bool(candidates) and all(name.isdigit() for name in candidates)
    if normalize_candidate_name(text) in whole:
        return whole[normalize_candidate_name(text)]
    labels = list(LABEL.finditer(text))
    tail = text[labels[-1].end() :] if labels else ""
    # What follows the last label counts before the text around it.
    for part in (tail, text):
        if not part:
            continue
        if normalize_candidate_name(part) in whole:
            return whole[normalize_candidate_name(part)]
        # What its writer marked; of numbers, building ids too.
        marked = [next(group for group in match.groups() if group) for match in MARKED.finditer(part)]
        for region in (marked + (ID.findall(part) if numbers else []), [part]):
            candidates_here = find_mentions(region, whole, numbers)
            if len(candidates_here) == 1:
                return whole[candidates_here.pop()]
            # An answer that names several candidates chooses none; the text before it must not choose for it.
            if candidates_here and region == [part] and part is tail:
                return ""
    return ""


def find_mentions(texts: Sequence[str], names: Iterable[str], numbers: bool) -> set[str]:
    """Return the normalized names that occur in the texts, the longer one if two overlap."""
    plain_names = set(names)
    if numbers:
        return {
            match[1]
            for text in texts
            for match in NUMBER.finditer(text)
            if match[1] in plain_names and not NOT_AN_ID.search(text[: match.start()])
        }
    # A regular expression takes the first alternative that fits, so longer names come first.
    longest = sorted(plain_names, key=len, reverse=True)
    pattern = re.compile(r"\b(?:" + "|".join(map(re.escape, longest)) + r")\b") if longest else re.compile(r"(?!)")
    return {match[0] for text in texts for match in pattern.finditer(normalize_candidate_name(text))}


def has_mention(text: str, candidates: Sequence[str]) -> bool:
    """Return whether a text names one or more candidates."""
    numbers = bool(candidates) and all(name.isdigit() for name in candidates)
    return bool(find_mentions([text], {normalize_candidate_name(name) for name in candidates}, numbers))


UNLABELLED = {"unlabelled": True}


@dataclass
class SharedState:
    """The cases and databases that copies of one benchmark share."""

    cases: dict[str, WorldCase] = field(default_factory=dict)
    stores: Stores | None = None


@dataclass(frozen=True)
class DqaBench:
    """The benchmark Decision QA on released or generated worlds."""

    data: Path
    """Folder in the released layout."""
    scenario: Literal["locating", "building", "both"] = "both"
    form: Form = "sql"
    limit: int | None = field(default=None, metadata=UNLABELLED)
    """Number of first questions of each scenario. None means all."""
    db: str = field(default="", metadata=UNLABELLED)
    """A server (mysql://HOST, postgresql://HOST, bolt://HOST) that keeps each question's world in a place of its own,
    or one database, which must contain the world of each question. '' means files."""
    fresh: bool = field(default=False, metadata=UNLABELLED)
    """Load worlds again that the server has."""
    tools: Literal["database", "whatif", "both", "decision_model"] = "database"
    """The database; for ``exact`` the decision model behind the questions; both side by side; or for ``model_first``
    the database with the tools that run a model written by an LLM."""
    schema: Literal["described", "bare"] = "described"
    """Bare: names of tables and columns alone, as the paper shows them; no examples, row counts or guessed joins."""
    name: str = "dqa"
    shared: SharedState = field(default_factory=SharedState, repr=False, compare=False)

    def cases(self) -> Sequence[Case]:
        """Return the cases, sorted by database so that each database is opened once."""
        if self.fresh and not self.db:
            raise SetupError("--fresh loads worlds anew on a server: name one with --db or --graph, or leave it out.")
        if self.db and self.tools == "whatif":
            self.for_exact()
        if self.db and form_of_url(self.db) != self.form:
            raise SetupError(f"{self.db} is a database of the form {form_of_url(self.db)}, not {self.form}.")
        cases = [one for name in self.scenarios() for one in read_dqa_cases(self.data, name, self.form, self.limit)]
        self.shared.cases.update({one.case.id: one for one in cases})
        return [one.case for one in sorted(cases, key=lambda one: one.world.key)]

    def scenarios(self) -> Sequence[Scenario]:
        if self.scenario != "both":
            return (self.scenario,)
        return [name for name in SCENARIOS if (self.data / name / "questions").is_dir()] or SCENARIOS

    def for_exact(self) -> DqaBench:
        """Return a copy whose tool is the decision model, for the technique ``exact``.

        Raise SetupError if a database is named, because it would not be read.
        """
        if self.db:
            raise SetupError(
                f"exact computes from the files of --data and would not read {hide_password(self.db)}: "
                "leave out --db and --graph, or take another technique."
            )
        return replace(self, tools="whatif")

    @asynccontextmanager
    async def environment(self, case: Case) -> AsyncIterator[Environment]:
        from decisor.session.model_tools import list_modelling_tools
        from decisor.tools.abilities import is_database_tool
        from decisor.tools.toolbox import Toolbox

        one = self.shared.cases[case.id]
        if self.tools == "whatif":
            yield Toolbox([make_whatif_tool(one)])
            return
        self.shared.stores = self.shared.stores or Stores(self.form, self.db, self.fresh)
        async with self.shared.stores.tool(one.world) as tool:
            if self.schema == "bare":
                language = "sql" if self.form == "sql" else "cypher"
                tool = BareTool(tool, format_bare_schema(one.world.data, self.form), language)
            more = [make_whatif_tool(one)] if self.tools == "both" else []
            if self.tools == "decision_model":
                more += list_modelling_tools([tool] if is_database_tool(tool) else [], None)
            try:
                yield Toolbox([tool, *more])
            finally:
                for member in more:
                    await member.close()

    async def score(self, case: Case, decision: Decision, events: Sequence[TraceEntry]) -> Score:
        """Score a decision and sort its failure into a class.

        ``right`` is strict. The metric ``ties`` also counts answers that are as good as the released one, ``printed``
        answers that are best by the printed rules.
        """
        one = self.shared.cases[case.id]
        reading = score_named_candidate(decision.answer, case.gold[0], one.candidates, one.ties)
        printed = score_named_candidate(decision.answer, case.gold[0], one.candidates, one.printed).tie_right
        answer = reading.answer or (decision.answer if not has_mention(decision.answer, one.candidates) else "")
        changes = classify_replans(events)
        failure = ""
        # RULES and FORM come before the paper's classes: neither is a fault of the reasoning.
        if not reading.tie_right and printed:
            failure = "RULES"
        elif not reading.answer and is_right_in_substance(decision, events, one):
            failure = "FORM"
        elif not reading.tie_right:
            facts = FailureFacts(case.group, case.gold[0], one.able)
            failure = classify_wrong_answer(events, facts, answer, decision.stopped)
        return Score(
            reading.right,
            reading.answer,
            metrics={
                "strict": float(reading.right),
                "ties": float(reading.tie_right),
                "printed": float(printed),
                # With one candidate a look at one row is the answer: the others are told apart.
                **({"strict_of_several": float(reading.right)} if one.choices > 1 else {}),
            },
            failure=failure,
            tags=(
                *(f"missed: {name}" for name in find_missed_values(events, case.group)),
                *(f"replan: {change.change}, {change.kind}" for change in changes),
            ),
            counts={"replans": len(changes), "retrievals": len(list_retrievals(events))},
        )

    async def close(self) -> None:
        if self.shared.stores is not None:
            await self.shared.stores.close()


@dataclass(frozen=True)
class BareTool:
    """A database tool whose description is its schema alone (``RowSource``)."""

    tool: Tool
    schema: str
    form: str
    is_restricted: bool = False

    @property
    def name(self) -> str:
        return self.tool.name

    def examples(self) -> Sequence[str]:
        return ()

    def describe(self) -> str:
        return self.schema

    async def call(self, text: str) -> Observation:
        return await self.tool.call(text)

    async def close(self) -> None:
        await self.tool.close()


def format_bare_schema(world: WorldData, form: Form) -> str:
    """Return the names of tables and columns, or of labels, properties and relationships, of a world."""
    tables = {name: WORLD_TABLES[name] for name in world.tables}
    if form == "sql":
        rows = [f"{name}({', '.join(table.types)})" for name, table in tables.items()]
        return "\n".join([SQL_TOOL, *rows])
    rows = []
    for table in tables.values():
        inside = ", ".join(table.properties.values())
        ends = [tables[of].label for _, of in table.ends]
        rows.append(
            f"(:{ends[0]})-[:{table.label} {{{inside}}}]->(:{ends[1]})" if ends else f"(:{table.label} {{{inside}}})"
        )
    return "\n".join([CYPHER_TOOL, *rows])


SQL_TOOL = """\
A SQL database: one SELECT, over data of this schema:"""
CYPHER_TOOL = """\
A property graph: one reading Cypher statement, over data of this schema:"""


def is_right_in_substance(decision: Decision, events: Sequence[TraceEntry], one: WorldCase) -> bool:
    """Return whether the reasons or the last reply name a right candidate and no other.

    Asked if the answer itself names no candidate. A tie counts as right.
    """
    replies = [call.texts[0] for call in events_of(events, LLMCall) if call.texts]
    texts = [" ".join(decision.reasons), *replies[-1:]]
    return any(score_named_candidate(text, one.case.gold[0], one.candidates, one.ties).tie_right for text in texts)


def make_whatif_tool(one: WorldCase) -> Tool:
    from decisor.decision_models.ranking import rank_what_if
    from decisor.tools.whatif import WhatIfTool

    return WhatIfTool(one.model, rank_what_if)


SPLITTER = "iter_rag"
KINDS = ("SR", "MR", "none")
Kinds = Mapping[tuple[str, str], str]
"""(case, model) -> SR, MR or none. Under the model '' stands the split for techniques that ran with another model, or
with none, where IterRAG ran with just one."""


def find_retrieval_kinds(outcomes: Iterable[Outcome]) -> Kinds:
    """Return the retrieval kind of each question by question and model.

    It comes from the runs of ``iter_rag`` with its usual settings, else of a variant; its first repeat decides. Empty
    if it was not run.
    """
    by_question: dict[tuple[str, str], tuple[tuple[bool, str, int], str]] = {}
    for one in outcomes:
        if one.technique.partition(" ")[0] != SPLITTER:
            continue
        # The plain technique before its variants, then the first repeat.
        rank = (one.technique != SPLITTER, one.technique, one.repeat)
        key = one.case, one.model
        if key not in by_question or rank < by_question[key][0]:
            by_question[key] = rank, ("none", "SR", "MR")[min(one.counts.get("retrievals", 0), 2)]
    named = {key: name for key, (_, name) in by_question.items()}
    if len({model for _, model in named}) == 1:
        named |= {(case, ""): name for (case, _), name in named.items()}
    return named


def retrieval_kind_of(outcome: Outcome, by_question: Kinds) -> str:
    """Return the retrieval kind of the question of an outcome, empty if no run of IterRAG tells it."""
    return by_question.get((outcome.case, outcome.model), by_question.get((outcome.case, ""), ""))
