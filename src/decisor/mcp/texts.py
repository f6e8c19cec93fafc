"""What a client's model is told: short, with the ids of records and the number of the run."""

from __future__ import annotations

from decisor.outside import clean_text, framed_observation
from decisor.plurals import counted
from decisor.session.result import Result
from decisor.story.decision import beside, doubts, ended
from decisor.techniques.shared.render import show_observation, show_records
from decisor.types import Observation, Ranking

MOST = 8_000
"""Characters of a decision or a query's rows."""
MOST_LONG = 24_000
"""Of a description of data, or of a whole run."""
OPTIONS, RECORDS = 8, 12


def short(text: str, most: int = MOST, hint: str = "") -> str:
    """Cut at the end of a line, which is said.

    >>> short("one\\ntwo three", 9)
    'one\\n(10 more characters)'
    """
    text = clean_text(text).strip()
    if len(text) <= most:
        return text
    head = text[:most].rpartition("\n")[0] or text[:most]
    return f"{head}\n({len(text) - len(head):,} more characters{f': {hint}' if hint else ''})"


def decision_text(result: Result) -> str:
    """The decision, why, what it rests on, and what it cost."""
    decision = result.decision
    lines = [f"Decision: {decision.answer or 'none'}", *filter(None, [ended(decision)]), *decision.reasons]
    lines += beside(decision)
    if decision.ranking is not None and decision.ranking.options:
        lines += ["", *ranking_lines(decision.ranking)]
    if result.records:
        lines += ["", "Evidence (ids of records; cite them):", *show_records(result.records[:RECORDS])[0]]
        if more := len(result.records) - RECORDS:
            lines += [f"({more} more records)"] if more > 0 else []
    lines += [f"Objection (say it, or leave the claim out): {one.text}" for one in decision.evidence.objections]
    lines += [*doubts(decision), "", result.summary()]
    if result.number:
        lines.append(f"Run {result.number} (explain_run tells its steps and queries; a person sees it with: "
                     f"decisor show {result.number})")  # fmt: skip
    return short("\n".join(lines))


def ranking_lines(ranking: Ranking) -> list[str]:
    word = "largest" if ranking.goal == "max" else "smallest"
    head = f"Ranking by {ranking.measure}, {word} first, of {counted(ranking.count, 'candidate')}:"
    return [head, *(f"{at}. {one.name}: {one.outcome:.8g}" for at, one in enumerate(ranking.options[:OPTIONS], 1))]


def observation_text(observation: Observation) -> str:
    """Rows with their ids, and the note."""
    return short(str(show_observation(framed_observation(observation))), hint="rank, add up or filter in the query")


def story_text(result: Result) -> str:
    """The whole run as it is told on a terminal, without colours."""
    from io import StringIO

    from rich.console import Console

    from decisor.story.telling import tell_story

    text = StringIO()
    console = Console(file=text, highlight=False, width=200, force_terminal=False, no_color=True)
    tell_story(result.trace, console)
    lines = "\n".join(line.rstrip() for line in text.getvalue().splitlines())
    return short(f"Run {result.number}\n{lines}", MOST_LONG, f"decisor show {result.number} has all")
