"""What went wrong in a run of Decision QA, by rule from its trace. One class per wrong answer, first rule that fits:

* QUR, query errors: a query was refused or failed, and what it asked for never came: no later query brought rows, or
  a needed value that the failed query named was never retrieved.
* OTH, other: no answer could be read, or the run ended at a limit.
* MIS, missing data: a needed value was neither queried nor computed (see ``missed``).
* CAN, wrong candidates: the answer names no candidate, or
  a candidate that cannot change the outcome (a building that does not supply the
  goods, a node where the country has no power), or the best one was never among the records, nor in a query, nor left
  to the database to pick (order by ... limit, min, max).
* DEEP: everything was there, and the conclusion was still wrong.

Two classes of ours come before all of them: RULES, the answer is right by the printed rules, which the release did not
follow to the letter; FORM, right in substance and wrong in form: no candidate could be read from the answer, and what
was written around it names the right one and no other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from decisor.trace.events import ActionResult, ActionStart, Entry, events_of
from decisor.types import Observation, Value

Failure = Literal["RULES", "FORM", "CAN", "MIS", "DEEP", "QUR", "OTH"]
Reading = Literal["any", "all"]

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
    """One query of a run. ``columns`` and ``values`` (as text) are those of the rows it brought;
    numbers of columns that hold amounts are left out of ``values``."""

    query: str
    failed: bool
    rows: int
    columns: frozenset[str]
    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class Facts:
    """What the failure analysis knows of a question. ``able``: the candidates that can change the outcome; empty
    where none can, or where that is not known."""

    scenario: str
    gold: str
    able: frozenset[str] = frozenset()


def retrievals(events: Sequence[Entry]) -> tuple[Retrieval, ...]:
    """The queries to databases in a trace, in order. An action without an observation (a limit) counts as failed."""
    observations = {result.action: result.observation for result in events_of(events, ActionResult)}
    return tuple(
        _retrieval(entry.event.input, observations.get(entry.id))
        for entry in events
        if isinstance(entry.event, ActionStart) and entry.event.tool in DATABASES
    )


def _retrieval(query: str, observation: Observation | None) -> Retrieval:
    if observation is None:
        return Retrieval(query, True, 0, frozenset(), frozenset())
    leaves = [leaf for record in observation.records for leaf in _leaves(record.fields)]
    return Retrieval(
        query,
        observation.error,
        len(observation.records),
        frozenset(name for name, _ in leaves),
        frozenset(value for name, value in leaves if not (value.isdigit() and QUANTITY.search(name))),
    )


def _leaves(value: Value, name: str = "") -> Iterator[tuple[str, str]]:
    """Column and text of each value, nodes and lists of a graph unfolded."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, str(key))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item, name)
    else:
        yield name, str(value)


def ranked(events: Sequence[Entry]) -> bool:
    """Whether a decision model computed the outcome of candidates in this run."""
    return any(result.observation.ranking for result in events_of(events, ActionResult))


def missed(events: Sequence[Entry], scenario: str) -> tuple[str, ...]:
    """The needed values that were neither queried nor computed. Only queries that brought rows count.

    "Any missing" is a result that is not empty; "all missing" one as long as ``NEEDED[scenario]``.
    """
    if ranked(events):
        return ()
    texts = [f"{COMMENT.sub(' ', got.query)} {' '.join(got.columns)}" for got in retrievals(events) if got.rows]
    return tuple(name for name, asks in NEEDED[scenario].items() if not any(asks.search(text) for text in texts))


def classify(events: Sequence[Entry], facts: Facts, answer: str, stopped: str = "answered") -> Failure:
    """The class of a wrong answer; ``answer`` is the candidate that was read, '' where none could be."""
    got = retrievals(events)
    missing = missed(events, facts.scenario)
    if query_errors(got, missing, facts.scenario):
        return "QUR"
    if not answer or stopped != "answered":
        return "OTH"
    if missing:
        return "MIS"
    return "CAN" if wrong_candidates(got, facts, answer) and not ranked(events) else "DEEP"


def query_errors(got: Sequence[Retrieval], missing: Sequence[str], scenario: str) -> bool:
    """Whether a failed query cost the run its data."""
    failed = [at for at, one in enumerate(got) if one.failed]
    if not failed:
        return False
    if not any(one.rows for one in got[failed[-1] + 1 :]):
        return True
    return any(NEEDED[scenario][name].search(got[at].query) for at in failed for name in missing)


def wrong_candidates(got: Sequence[Retrieval], facts: Facts, answer: str) -> bool:
    """Whether the answer could not be right at all, or the best candidate was never looked at."""
    if facts.able and answer not in facts.able:
        return True
    was_looked_at = any(facts.gold in one.values or _names(one.query, facts.gold) for one in got if not one.failed)
    return not was_looked_at and not any(PICKED.search(one.query) for one in got if one.rows)


def _names(query: str, candidate: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(candidate)}(?!\w)", query) is not None
