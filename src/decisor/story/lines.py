"""One event as lines for a terminal, live and in a story. What only matters to programs has none.

Every text of an event passes ``clean`` or ``one_line``: it may come from a model, a database or somebody's file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from rich.text import Text

from decisor.durations import took
from decisor.plurals import counted
from decisor.render.text import clean, one_line
from decisor.replies.reasons import in_words
from decisor.story.nodes import answer_lines
from decisor.story.rows import row_lines
from decisor.trace.events import (
    ActionResult,
    ActionStart,
    Conclusion,
    Event,
    FailedCall,
    LMCall,
    MeaningChoice,
    Note,
    Plan,
    PlanChange,
    RunStart,
    RunUsage,
    ShortenedPrompt,
    Span,
    TechniqueChoice,
    UnreadableReply,
    UnscoredAnswer,
)
from decisor.trace.graph_events import GraphPlan, GraphResult, NodeResult, NodeSpan
from decisor.trace.search_events import AnswerSnapshot, QueryScores, SearchMatch, SearchNode, SearchProblem, SearchTree
from decisor.types import Observation, Question, Record

ROWS, PASSAGE = 3, 120
"""How many rows of a result are shown, and how many characters of a passage."""


def event_lines(event: Event) -> Sequence[Text]:
    """What an event prints where it happens."""
    match event:
        case Plan(steps=steps):
            return [Text("Plan", style="bold"), *plan_lines(steps)]
        case GraphPlan(steps=steps):
            return [Text("Plan", style="bold"), *(Text(f"  {one_line(step, 200)}") for step in steps)]
        case PlanChange(after_step=after, why=why, steps=steps):
            reason = one_line(why or "no reason given", 300)
            return [Text(f"Replan after step {after}: {reason}", style="bold yellow"), *plan_lines(steps)]
        case ActionStart(tool=tool, input=text):
            return input_lines(tool, text)
        case ActionResult(observation=observation, seconds=seconds):
            return [observation_line(observation, seconds), *first_rows(observation)]
        case UnreadableReply(reason=reason):
            return [problem_line("asked again", in_words(reason))]
        case FailedCall(text=text):
            return [problem_line("the LM failed", text)]
        case ShortenedPrompt(text=text):
            return [problem_line("shortened", text)]
        case UnscoredAnswer(text=text):
            return [problem_line("unscored", text)]
        case SearchProblem(problem=problem, text=text):
            return [problem_line(problem.replace("_", " "), text)]
        case TechniqueChoice(technique=technique, why=why):
            return [Text(f"auto takes {one_line(technique)}. {clean(why)}", style="dim")]
        case QueryScores():
            return best_query(event)
        case NodeSpan(question=question):
            return [Text(f"  {one_line(question, 300)}", style="bold")]
        case NodeResult(answer=answer, reused=reused):
            return answer_lines(answer, reused)
        case Note(text=text):
            return [Text(f"    {one_line(text, 300)}", style="dim")] if text else []
        case RunStart() | Span() | LMCall() | MeaningChoice() | Conclusion() | RunUsage() | GraphResult():
            return []  # a story has its own place for them
        case SearchNode() | SearchMatch() | AnswerSnapshot() | SearchTree():
            return []
        case _:
            assert_never(event)


def question_lines(question: Question) -> list[Text]:
    """The question, its goal where it says more, and its rules."""
    lines = [Text.assemble(("Question: ", "bold"), clean(question.text))]
    if question.goal and question.goal not in question.text:
        lines.append(Text(clean(question.goal)))
    if question.rules:
        lines.append(Text.assemble(("Rules: ", "bold"), clean(question.rules.strip())))
    return lines


def plan_lines(steps: Sequence[str]) -> list[Text]:
    return [Text(f"  {at}. {one_line(step, 200)}") for at, step in enumerate(steps, 1)]


def input_lines(tool: str, text: str) -> list[Text]:
    """A query whole, in its own lines."""
    lines = [line.rstrip() for line in clean(text).strip().splitlines()]
    first = Text.assemble((f"  {one_line(tool)} ", "cyan"), lines[0] if len(lines) == 1 else "")
    return [first, *(Text(f"    {line}") for line in lines if len(lines) > 1)]


def first_rows(observation: Observation) -> list[Text]:
    """The first rows of a table, in columns; of passages, where each stands and how it begins."""
    if observation.error:
        return []
    if any(record.text for record in observation.records):
        return [Text(f"      {passage_line(record, PASSAGE)}", style="dim") for record in observation.records[:ROWS]]
    records = [record for record in observation.records[:ROWS] if record.fields]
    if not records:
        return []
    more = [Text("      …", style="dim")] if len(observation.records) > len(records) else []
    return [*(Text(f"      {line}", style="dim") for line in row_lines(records)), *more]


def passage_line(record: Record, width: int) -> str:
    """
    >>> passage_line(Record("o1.r1", {"title": "acme"}, "Acme had one\\nrecall.", "acme.txt#1"), 40)
    'acme.txt#1: Acme had one recall.'
    >>> passage_line(Record("o1.r1", {"title": "Emma (novel)"}, "A novel of 1815.", "p1"), 40)
    'Emma (novel) (p1): A novel of 1815.'
    """
    title, source = str(record.fields.get("title") or ""), record.source
    place = source if title in source else f"{title} ({source})" if source else title
    return one_line(f"{place}: {record.text}" if place else record.text, width)


def problem_line(name: str, text: str) -> Text:
    return Text(f"    {one_line(name)}: {one_line(text, 200)}", style="dim yellow")


def best_query(event: QueryScores) -> list[Text]:
    """Which of several queries the scorer took."""
    if len(event.scores) < 2:
        return []
    score, query = max(zip(event.scores, event.queries, strict=False), key=lambda pair: pair[0])
    return [Text(f"    taken of {len(event.scores)}: {one_line(query, 200)} (score {score:.2f})", style="dim")]


def observation_line(observation: Observation, seconds: float) -> Text:
    after = f" in {took(seconds) or '0 ms'}"
    if observation.error:
        return Text(f"    failed{after}: {one_line(observation.note, 300)}", style="red")
    count, total = len(observation.records), observation.total
    cut = f" of {total:,}" if total and total > count else " (cut)" if observation.truncated else ""
    if not count and observation.note:
        return Text(f"    {one_line(observation.note, 300)}", style="dim")
    word = "passage" if any(record.text for record in observation.records) else "row"
    return Text(f"    {counted(count, word)}{cut}{after}", style="dim")
