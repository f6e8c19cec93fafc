"""A run as it happens on a terminal: plan with ticks, queries, row counts, replans.

``event_lines`` makes the lines of one event, live and in a story; events for programs only have none. Every text of an
event passes ``clean_for_terminal`` or ``clean_one_line``, as it may come from a model, a database or somebody's file.
``Progress`` follows plan and step, ``Nodes`` says which node of a reasoning DAG a line belongs to, ``ActionOrder`` puts
results under their queries, and ``diff_plans`` compares the plans of a replan.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from textwrap import wrap
from typing import TYPE_CHECKING, Literal, assert_never

from rich.console import Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from decisor.parsing.labelled import read_thought
from decisor.parsing.prompting import explain_reason
from decisor.system.tasks import COUNTER
from decisor.system.text import clean_for_terminal, clean_one_line, format_number
from decisor.system.wording import format_count, format_duration
from decisor.trace.events import (
    ActionResult,
    ActionStart,
    AnswerSnapshot,
    Conclusion,
    Event,
    FailedCall,
    GraphPlan,
    GraphResult,
    LLMCall,
    MeaningChoice,
    NodeAnswer,
    NodeResult,
    NodeSpan,
    Note,
    Plan,
    PlanChange,
    QueryScores,
    RunStart,
    RunUsage,
    SearchMatch,
    SearchNode,
    SearchProblem,
    SearchTree,
    ShortenedPrompt,
    Span,
    TechniqueChoice,
    TraceEntry,
    UnreadableReply,
    UnscoredAnswer,
    Writing,
)
from decisor.trace.prompts import read_thoughts
from decisor.types import Observation, Question, Record

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


CELL = 40
"""Characters of a cell."""


def row_lines(records: Sequence[Record], with_ids: bool = False) -> list[str]:
    """Return a head, then a line for each record, with the columns of the first record.

    >>> row_lines([Record("o1.r1", {"site": "elm", "rent": 400.0}), Record("o1.r2", {"site": "oak", "rent": 9})], True)
    ['         site  rent', '[o1.r1]  elm    400', '[o1.r2]  oak      9']
    """
    names = list(records[0].fields)
    ids = [["", *(f"[{record.id}]" for record in records)]] if with_ids else []
    columns = [*ids, *([name, *(format_table_value(record.fields.get(name)) for record in records)] for name in names)]
    cells = [[clean_one_line(cell, CELL) for cell in column] for column in columns]
    widths = [max(map(len, column)) for column in cells]
    numeric = [False] * len(ids) + [isinstance(records[0].fields[name], int | float) for name in names]
    return [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in zip(*cells, strict=True)
    ]


def group_records(records: Sequence[Record], passages_alone: bool = True) -> Iterator[list[Record]]:
    """Yield records of one observation with the same columns together, in the order of their first records."""
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        name = record.id if record.text and passages_alone else record.id.partition(".")[0]
        groups.setdefault((name, *record.fields, *(["text"] if record.text else [])), []).append(record)
    yield from groups.values()


def format_table_value(value: object) -> str:
    return "" if value is None else format_number(value) if isinstance(value, float) else str(value)


Mark = Literal["stays", "new", "dropped"]


def diff_plans(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[Mark, str]]:
    """Yield the steps of both plans in reading order, a dropped one where it stood.

    >>> list(diff_plans(("read rents", "compare"), ("Read  rents", "count rooms")))
    [('stays', 'Read  rents'), ('dropped', 'compare'), ('new', 'count rooms')]
    """
    # autojunk would ignore steps that are frequent in plans of 200 or more.
    matcher = SequenceMatcher(
        None, [fold_step(one) for one in before], [fold_step(one) for one in after], autojunk=False
    )
    for kind, start, end, first, last in matcher.get_opcodes():
        if kind == "equal":
            yield from (("stays", step) for step in after[first:last])
            continue
        yield from (("dropped", step) for step in before[start:end])
        yield from (("new", step) for step in after[first:last])


def fold_step(step: str) -> str:
    return " ".join(step.lower().split())


COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "bright_cyan", "bright_magenta", "bright_green")


@dataclass
class Nodes:
    """The nodes of a reasoning DAG that has begun, from entries in order.

    Nodes run at the same time, so each line says its node.
    """

    by_span: dict[int, str] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)

    def hear(self, entry: TraceEntry) -> str:
        """Return the id of the node that an entry belongs to, '' for none."""
        node = self.by_span.get(entry.span, "")
        if isinstance(entry.event, NodeSpan):
            node = entry.event.node
        if isinstance(entry.event, Span | NodeSpan):
            self.by_span[entry.id] = node
        if node and node not in self.order:
            self.order.append(node)
        return node

    def mark(self, node: str) -> Text:
        """Return the beginning of a line of the node."""
        if not node:
            return Text()
        return Text.assemble((f"{clean_one_line(node):>5} ", COLOURS[self.order.index(node) % len(COLOURS)]))


def answer_lines(answer: NodeAnswer, reused: bool) -> Sequence[Text]:
    """Return the outcome of a node, and the words that its answer rests on."""
    if answer.status != "answered":
        why = f": {clean_one_line(answer.why, 200)}" if answer.why else ""
        return [Text(f"    {answer.status}{why}", style="yellow")]
    origin = " (kept from the run before)" if reused else ""
    where = (
        f" [{clean_for_terminal(answer.document)}]" if answer.document else f" ({answer.attribution.replace('_', ' ')})"
    )
    lines = [Text.assemble("    -> ", (clean_one_line(answer.answer, 300), "bold"), (where, "cyan"), (origin, "dim"))]
    if answer.support:
        lines.append(highlight_answer(answer.support, answer.answer))
    return lines


def highlight_answer(sentence: str, answer: str) -> Text:
    """Return the supporting sentence with the answer marked in it.

    >>> highlight_answer("She was born in Lyon.", "lyon").plain
    '       “She was born in Lyon.”'
    """
    line = Text(f"       “{clean_one_line(sentence, 400)}”", style="italic dim")
    at = line.plain.lower().find(clean_one_line(answer, 300).lower())
    if at >= 0 and answer:
        line.stylize("not dim bold reverse", at, at + len(clean_one_line(answer, 300)))
    return line


ROWS, PASSAGE, THOUGHT = 3, 120, 600
"""How many rows of a result are shown, and how many characters of a passage and of a thought."""


@dataclass
class ActionOrder:
    """The order in which entries are told: the result of each action right after its query.

    The actions of one reply run side by side, and may end in another order than they began.
    """

    open_actions: dict[int, list[TraceEntry]] = field(default_factory=dict)
    """The starts in each span whose result was not told; the first is told itself."""
    results: dict[int, TraceEntry] = field(default_factory=dict)
    """Results that wait for those before them, by the id of their start."""

    def hear(self, entry: TraceEntry) -> list[TraceEntry]:
        """Return the entries that can be told after this one has come."""
        waiting = self.open_actions.setdefault(entry.span, [])
        match entry.event:
            case ActionStart():
                waiting.append(entry)
                return [entry] if len(waiting) == 1 else []
            case ActionResult(action=start_id) if any(start.id == start_id for start in waiting):
                self.results[start_id] = entry
                return self.release(waiting, lambda start: start.id in self.results)
            case ActionResult() | Note():
                return [entry]
            case _:  # the run has gone on: a result that is missing will not come
                return [*self.release(waiting, lambda start: True), entry]

    def end(self) -> list[TraceEntry]:
        """Return the entries that still wait when nothing more comes."""
        return [entry for waiting in self.open_actions.values() for entry in self.release(waiting, lambda start: True)]

    def release(self, waiting: list[TraceEntry], is_over: Callable[[TraceEntry], bool]) -> list[TraceEntry]:
        entries: list[TraceEntry] = []
        while waiting and is_over(waiting[0]):
            if result := self.results.pop(waiting.pop(0).id, None):
                entries.append(result)
            entries += waiting[:1]
        return entries


def event_lines(event: Event) -> Sequence[Text]:
    """Return the lines that an event prints."""
    match event:
        case Plan(steps=steps):
            return [Text("Plan", style="bold"), *plan_lines(steps)]
        case GraphPlan(steps=steps):
            return [Text("Plan", style="bold"), *(Text(f"  {clean_one_line(step, 200)}") for step in steps)]
        case PlanChange(after_step=after, why=why, steps=steps):
            reason = clean_one_line(why or "no reason given", 300)
            return [Text(f"Replan after step {after}: {reason}", style="bold yellow"), *plan_lines(steps)]
        case ActionStart(tool=tool, input=text):
            return input_lines(tool, text)
        case ActionResult(observation=observation, seconds=seconds):
            return [observation_line(observation, seconds), *first_rows(observation)]
        case UnreadableReply(reason=reason):
            return [problem_line("retrying", explain_reason(reason))]
        case FailedCall(reason="tools"):
            return []  # No failure: the line on the technique that decides instead follows.
        case FailedCall(text=text):
            return [problem_line("the LLM failed", text)]
        case ShortenedPrompt(text=text):
            return [problem_line("shortened", text)]
        case UnscoredAnswer(text=text):
            return [problem_line("unscored", text)]
        case SearchProblem(problem=problem, text=text):
            return [problem_line(problem.replace("_", " "), text)]
        case TechniqueChoice(technique=technique, why=why):
            return [Text(f"{clean_one_line(technique)} decides. {clean_for_terminal(why)}", style="dim")]
        case QueryScores():
            return best_query_lines(event)
        case NodeSpan(question=question):
            return [Text(f"  {clean_one_line(question, 300)}", style="bold")]
        case NodeResult(answer=answer, reused=reused):
            return answer_lines(answer, reused)
        case Note(text=text):
            return [Text(f"    {clean_one_line(text, 300)}", style="dim")] if text else []
        case LLMCall(turn=turn) if turn is not None:
            return thought_lines(read_thoughts(turn), turn.content)
        case LLMCall(texts=texts):
            return thought_lines(*map(read_thought, texts))
        case RunStart() | Span() | MeaningChoice() | Conclusion() | RunUsage() | GraphResult():
            return []  # a story has its own place for them
        case SearchNode() | SearchMatch() | AnswerSnapshot() | SearchTree():
            return []
        case _:
            assert_never(event)


def question_lines(question: Question) -> list[Text]:
    """Return the lines of a question: its text, its goal if that says more, and its rules."""
    lines = [Text.assemble(("Question: ", "bold"), clean_for_terminal(question.text))]
    if question.goal and question.goal not in question.text:
        lines.append(Text(clean_for_terminal(question.goal)))
    if question.rules:
        lines.append(Text.assemble(("Rules: ", "bold"), clean_for_terminal(question.rules.strip())))
    return lines


def thought_lines(*texts: str) -> list[Text]:
    """Return what a model thought before its action, and what it wrote beside its calls of tools."""
    return [Text(f"  {clean_one_line(text, THOUGHT)}", style="italic") for text in filter(str.strip, texts)]


def plan_lines(steps: Sequence[str]) -> list[Text]:
    return [Text(f"  {at}. {clean_one_line(step, 200)}") for at, step in enumerate(steps, 1)]


def input_lines(tool: str, text: str) -> list[Text]:
    """Return a query whole, in its own lines."""
    lines = [line.rstrip() for line in clean_for_terminal(text).strip().splitlines()]
    first = Text.assemble((f"  {clean_one_line(tool)} ", "cyan"), lines[0] if len(lines) == 1 else "")
    return [first, *(Text(f"    {line}") for line in lines if len(lines) > 1)]


def first_rows(observation: Observation) -> list[Text]:
    """Return the first rows of a table in columns; for passages, each one's place and beginning."""
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
    """Format the place and the text of a passage as one line.

    >>> passage_line(Record("o1.r1", {"title": "acme"}, "Acme had one\\nrecall.", "acme.txt#1"), 40)
    'acme.txt#1: Acme had one recall.'
    >>> passage_line(Record("o1.r1", {"title": "Emma (novel)"}, "A novel of 1815.", "p1"), 40)
    'Emma (novel) (p1): A novel of 1815.'
    """
    title, source = str(record.fields.get("title") or ""), record.source
    place = source if title in source else f"{title} ({source})" if source else title
    return clean_one_line(f"{place}: {record.text}" if place else record.text, width)


def problem_line(name: str, text: str) -> Text:
    return Text(f"    {clean_one_line(name)}: {clean_one_line(text, 200)}", style="dim yellow")


def best_query_lines(event: QueryScores) -> list[Text]:
    """Return a line that says which of several queries the scorer took."""
    if len(event.scores) < 2:
        return []
    score, query = max(zip(event.scores, event.queries, strict=False), key=lambda pair: pair[0])
    return [Text(f"    taken of {len(event.scores)}: {clean_one_line(query, 200)} (score {score:.2f})", style="dim")]


def observation_line(observation: Observation, seconds: float) -> Text:
    after = f" in {format_duration(seconds) or '0 ms'}"
    if observation.error:
        return Text(f"    failed{after}: {clean_one_line(observation.note, 300)}", style="red")
    count, total = len(observation.records), observation.total
    cut = f" of {total:,}" if total and total > count else " (cut)" if observation.truncated else ""
    if not count and observation.note:
        return Text(f"    {clean_one_line(observation.note, 300)}", style="dim")
    word = "passage" if any(record.text for record in observation.records) else "row"
    return Text(f"    {format_count(count, word)}{cut}{after}", style="dim")


CURRENT = re.compile(r"current step\W{0,6}(?:step\W{0,3})?(\d{1,3})", re.I)


@dataclass
class Progress:
    """The progress of a run."""

    plan: tuple[str, ...] = ()
    """Steps of the latest plan."""
    current: int = 1
    """Number of the step under way, from 1."""
    doing: str = "waiting for the LLM"
    """What the run waits for, in words."""
    actions: int = 0
    """Number of actions under way."""

    def follow(self, event: Event) -> None:
        self.doing = "waiting for the LLM"
        match event:
            case ActionStart() | ActionResult():
                # The actions of one reply run side by side.
                self.actions = self.actions + 1 if isinstance(event, ActionStart) else max(0, self.actions - 1)
                if self.actions:
                    self.doing = "waiting for the database"
            case LLMCall(texts=texts):
                self.actions = 0  # one that a limit cut off has no result
                if numbers := CURRENT.findall("\n".join(texts)):
                    # The technique has no event for a step; the LLM names it in its reply.
                    self.current = int(numbers[-1])
            case Plan(steps=steps) | GraphPlan(steps=steps) | PlanChange(steps=steps):
                self.plan, self.current = steps, 1
            case NodeResult():
                self.current += 1
            case _:
                pass


MOST_LINES, MOST_CHARACTERS = 6, 2_000


class LiveView:
    """A view of a run as it happens, which hears a ``Trace``.

    It prints the question and the lines of each event; on a terminal the plan stays below and ticks.

    A failed call is printed when something follows it: one that ends the run is the error that the person gets.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self.progress = Progress(doing="opening the data")
        self.nodes = Nodes()
        self.order = ActionOrder()
        self.texts: dict[int, str] = {}
        self.last_fault: TraceEntry | None = None
        self.live = Live(console=console, refresh_per_second=8, transient=True)

    def __enter__(self) -> LiveView:
        self.before = COUNTER.set(self.hear_count)
        if self.console.is_terminal:
            self.live.update(self.below())
            self.live.start()
        return self

    def __exit__(self, *failure: object) -> None:
        COUNTER.reset(self.before)
        self.print(self.order.end())
        if self.console.is_terminal:
            self.live.stop()

    def hear(self, entry: TraceEntry) -> None:
        """Print an entry; the trace calls it with each one."""
        match entry.event:
            case RunStart(question=question):
                self.progress = Progress()
                for line in question_lines(question):
                    self.console.print(line)
            case RunUsage():
                return
            case event:
                self.progress.follow(event)
                # The run went on after the failed call, so it is no longer the error that ends it.
                self.show(self.last_fault)
                self.last_fault = entry if isinstance(event, FailedCall) else None
                if self.last_fault is None:
                    self.show(entry)
        if self.console.is_terminal:
            self.live.update(self.below())

    def show(self, entry: TraceEntry | None) -> None:
        if entry is not None:
            self.print(self.order.hear(entry))

    def print(self, entries: Iterable[TraceEntry]) -> None:
        for entry in entries:
            node = self.nodes.hear(entry)
            for line in event_lines(entry.event):
                self.console.print(self.nodes.mark(node) + line)

    def hear_text(self, writing: Writing) -> None:
        """Show the end of a text that the LLM is writing, below the plan."""
        # Taken out and put in again: the text that changed last is the last of the dict, and is shown.
        self.texts.pop(writing.call, None)
        if not writing.is_over:
            self.texts[writing.call] = writing.text
        if self.console.is_terminal:
            self.live.update(self.below())

    def hear_count(self, what: str, done: int, count: int) -> None:
        """Show how far a decision model has computed, as a ``tasks.COUNTER``.

        It stands in place of the words about waiting.
        """
        self.progress.doing = f"computed {done:,} of {format_count(count, what)}"
        if self.console.is_terminal:
            self.live.update(self.below())

    def below(self) -> RenderableType:
        steps = self.progress.plan
        ticks = [format_tick(at, step, self.progress.current) for at, step in enumerate(steps, 1)]
        text = next(reversed(self.texts.values()), "")
        lines = [Text(f"  {line}", style="italic dim") for line in last_lines(text, self.console.width - 4)]
        return Group(Text(), *ticks, *lines, Spinner("dots", Text(self.progress.doing, style="dim")))


def last_lines(text: str, width: int) -> list[str]:
    """Return the end of a text that is being written, as a few lines that fit.

    >>> last_lines("Thought: one\\n\\n" + "two three " * 4, 20)
    ['Thought: one', 'two three two three', 'two three two three']
    """
    lines = clean_for_terminal(text[-MOST_CHARACTERS:]).splitlines()
    return [part for line in lines for part in wrap(line, max(width, 20))][-MOST_LINES:]


def format_tick(at: int, step: str, current: int) -> Text:
    mark, style = ("✓", "green") if at < current else ("▸", "bold") if at == current else ("·", "dim")
    return Text(f"  {mark} {at}. {clean_one_line(step, 90)}", style=style)
