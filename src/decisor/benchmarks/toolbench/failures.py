"""What went wrong with the calls of a run, over its whole trace, abandoned branches too.

    hallucinated_tool  a function that does not exist was called        status 1
    tool_call_error    input that is no object, or that the API refused  2, 11
    unavailable        timeout, keys, subscriptions, limits, transport   5 to 10, 12
    decision_failure   not passed, and none of these

RaD-Agent ("Rational Decision-Making Agent with Internalized Utility Judgment", arXiv 2308.12519) names the classes; its
release has no script, so this rule is ours. ``not_recorded`` is ours too: a gap of the recorded data, no API's failure.
The incidence of a class is the share of runs that met it; its fix ratio the share of these that passed all the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from decisor.benchmarks.toolbench.answers import By
from decisor.benchmarks.toolbench.functions import FINISH
from decisor.benchmarks.toolbench.statuses import UNAVAILABLE, status_of
from decisor.outcome import Outcome
from decisor.trace.events import ActionResult, ActionStart, Entry, events_of
from decisor.types import Observation

CLASSES: Mapping[str, frozenset[int]] = {
    "hallucinated_tool": frozenset({1}),
    "tool_call_error": frozenset({2, 11}),
    "unavailable": UNAVAILABLE,
}
DECISION, GAP, FIXED = "decision_failure", "not_recorded", "fixed:"
WHO: tuple[By, ...] = ("recorded", "live", "simulated")


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """One call: the function, its input, how it ended, who answered, and what the model was shown."""

    tool: str
    input: str
    status: int
    by: str
    response: str


def calls(events: Sequence[Entry]) -> list[CallOutcome]:
    """In time order. Actions without an observation are left out."""
    actions = {entry.id: entry.event for entry in events if isinstance(entry.event, ActionStart)}
    results = [result for result in events_of(events, ActionResult) if result.action in actions]
    return [call_outcome(actions[one.action].tool, actions[one.action].input, one.observation) for one in results]


def call_outcome(tool: str, arguments: str, observation: Observation) -> CallOutcome:
    fields = observation.records[0].fields if observation.records else {}
    error, response = str(fields.get("error", "")), str(fields.get("response", ""))
    status = status_of(error)
    if tool == FINISH and not status:
        status = 3 if observation.answer else 4
    return CallOutcome(
        tool,
        arguments,
        status,
        by=observation.records[0].source if observation.records else "",
        response=f"{error} {response}".strip(),
    )


def met(outcomes: Sequence[CallOutcome]) -> list[str]:
    """The classes that calls ran into, and what was not recorded."""
    statuses = {one.status for one in outcomes}
    classes = [name for name, codes in CLASSES.items() if codes & statuses]
    return [*classes, GAP] if 13 in statuses else classes


def tags(outcomes: Sequence[CallOutcome], passed: bool | None) -> tuple[str, ...]:
    """The classes, with ``fixed:`` ones where the run passed all the same, and who answered."""
    classes = met(outcomes)
    incidents = [name for name in classes if name in CLASSES]
    fixed = [f"{FIXED}{name}" for name in incidents] if passed else []
    decided = [DECISION] if passed is False and not incidents else []
    return (*classes, *decided, *fixed, *(f"by:{who}" for who in WHO if any(one.by == who for one in outcomes)))


def failure(outcomes: Sequence[CallOutcome], passed: bool | None) -> str:
    """The first class of a run that did not pass; '' where it did or nobody judged."""
    if passed is not False:
        return ""
    return next((name for name in met(outcomes) if name in CLASSES), DECISION)


@dataclass(frozen=True, slots=True)
class Incidence:
    """Of ``runs`` judged runs ``met`` ran into a class, and ``fixed`` of them passed all the same."""

    runs: int
    met: int
    fixed: int

    @property
    def share(self) -> float:
        return self.met / self.runs if self.runs else 0.0

    @property
    def fix_ratio(self) -> float | None:
        """None where none met it."""
        return self.fixed / self.met if self.met else None


def incidences(outcomes: Sequence[Outcome]) -> dict[str, Incidence]:
    """By class, over the outcomes that were judged right or wrong."""
    judged = [one for one in outcomes if one.state in ("right", "wrong")]
    count = Counter(tag for one in judged for tag in one.tags)
    return {name: Incidence(len(judged), count[name], count[f"{FIXED}{name}"]) for name in (*CLASSES, DECISION)}
