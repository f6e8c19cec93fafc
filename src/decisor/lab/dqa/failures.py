"""Failures of Decision QA runs by rule from their traces, and replans by kind.

Each wrong answer has one class, by the first rule that fits:

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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from decisor.trace.events import ActionResult, ActionStart, GraphPlan, Plan, PlanChange, TraceEntry, events_of
from decisor.types import Observation, Value

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
