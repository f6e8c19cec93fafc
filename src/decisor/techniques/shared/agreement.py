"""Agreement: a question is planned several times side by side, and the results are compared as tables.

    decisions <- the technique, n times at once, each with a plan of its own
    groups    <- decisions with the same answer and the same outcomes, whatever the columns are called
    decision  <- of the largest group, if more than half agree; else one more turn of its conversation, which is shown
                 the rows that differ and the queries that they come from

Open disagreements are told with the decision.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace

from decisor.errors import BudgetExceeded, ParseError
from decisor.runtime.run import Run
from decisor.system.tasks import map_concurrently
from decisor.techniques.shared.answer import record_decision
from decisor.trace.events import iterate_actions
from decisor.types import Decision

Look = Callable[[str, Run], Awaitable[Decision]]
"""Decides once more, behind all that led to a decision and these words."""
Attempt = Callable[[Run], Awaitable[tuple[Decision, Look]]]

SAME = 1e-6
"""Relative difference up to which two outcomes are the same: queries round, and prompts show seven digits."""
VARIED = 0.7
"""Temperature of all attempts but the first, or a model would write the same plan three times."""
SHOWN = 6
"""Rows that differ, at most, in a prompt and in a decision."""
LOOK = """\
The question was computed in several ways, with these results:
{results}
Find out which of them is right, and why; query again if you must. Cite only rows that you were shown. Then decide."""


async def decide_by_agreement(attempt: Attempt, attempts: int, run: Run) -> Decision:
    """Make several attempts at once, and return the decision that most agree on, with what differs."""

    async def begin(number: int) -> tuple[Decision, Look] | None:
        asking = run.asking
        if number > 1:
            warmth = VARIED if asking.temperature is None else asking.temperature
            # The seed tells the attempts apart where equal prompts are looked up in a journal.
            asking = replace(asking, temperature=warmth, seed=number)
        with run.span(f"attempt {number} of {attempts}") as part:
            try:
                return await attempt(replace(part, asking=asking))
            except (BudgetExceeded, ParseError):
                return None

    made = [pair for pair in await map_concurrently(begin, range(1, attempts + 1)) if pair is not None]
    if not made:
        return (await attempt(run))[0]
    groups = group_by_result([decision for decision, _ in made])
    best, count = groups[0][0], len(groups[0])
    if len(groups) == 1:
        words = f"{count} of {attempts} attempts computed the same result."
        return record_decision(replace(best, reasons=(*best.reasons, words)), run)
    results = [f"- {line}" for line in describe_results(groups)]
    if 2 * count <= attempts:
        queries = [
            f"{line}\n  {'; '.join(list_cited_queries(group[0], run))}"
            for line, group in zip(results, groups, strict=True)
        ]
        look = next(look for decision, look in made if decision is best)
        with run.span("one more look") as part:
            best = await look(LOOK.format(results="\n".join(queries)), part)
        count = next((len(group) for group in groups if is_same_result(group[0], best)), 0)
        words = f"{attempts} attempts did not agree; one more look took the result of {count} of them."
    else:
        words = f"{count} of {attempts} attempts agree on this."
    text = "\n".join([f"{words} The results:", *results])
    return record_decision(replace(best, reasons=(*best.reasons, text)), run)


def list_cited_queries(decision: Decision, run: Run) -> Iterator[str]:
    """Yield the queries of the records that a decision cites."""
    for start, result in iterate_actions(run.trace.entries):
        if any(record.id in decision.evidence.ids for record in result.observation.records):
            yield " ".join(start.input.split())


def group_by_result(decisions: Sequence[Decision]) -> list[list[Decision]]:
    """Group decisions with the same result, the largest group first, equal ones in the order of the attempts."""
    groups: list[list[Decision]] = []
    for decision in decisions:
        group = next((group for group in groups if is_same_result(group[0], decision)), None)
        if group is None:
            groups.append([decision])
        else:
            group.append(decision)
    return sorted(groups, key=len, reverse=True)


def is_same_result(first: Decision, second: Decision) -> bool:
    """Return whether two decisions have the same answer, and the same outcome for each candidate that both computed.

    The names and the order of columns do not matter, nor rounding. A decision without a table agrees by its answer.
    """
    if first.answer.strip().casefold() != second.answer.strip().casefold():
        return False
    return next(list_differences(first, second), None) is None


def list_differences(first: Decision, second: Decision) -> Iterator[tuple[str, float, float]]:
    """Yield each candidate whose outcomes differ, with both."""
    if first.ranking is None or second.ranking is None:
        return
    others = {option.name.casefold(): option.outcome for option in second.ranking.options}
    for option in first.ranking.options:
        outcome = others.get(option.name.casefold())
        if outcome is not None and not math.isclose(option.outcome, outcome, rel_tol=SAME):
            yield option.name, option.outcome, outcome


def describe_results(groups: Sequence[Sequence[Decision]]) -> Iterator[str]:
    """Yield a line for each group: its answer and the candidates whose outcomes differ from the first group's."""
    first = groups[0][0]
    for group in groups:
        decision, others = group[0], [other[0] for other in groups if other is not group]
        names = dict.fromkeys(
            name for other in others for name, _, _ in list_differences(decision, other)
        ) or dict.fromkeys([decision.answer, first.answer])
        outcomes = {option.name: option.outcome for option in decision.ranking.options} if decision.ranking else {}
        shown = [f"{name} {outcomes[name]:.7g}" for name in names if name in outcomes][:SHOWN]
        measure = f" by {decision.ranking.measure}" if decision.ranking and shown else ""
        cited = f" [{', '.join(decision.evidence.ids[:SHOWN])}]" if decision.evidence.ids else ""
        figures = f": {', '.join(shown)}" if shown else ""
        yield f"{decision.answer or 'no answer'} ({len(group)} times){measure}{figures}{cited}"
