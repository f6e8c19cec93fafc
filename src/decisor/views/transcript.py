"""A recorded run as a story on a terminal: its events, its decision, and its cost.

The decision comes with its ranking as bars, its charts and its evidence. A search tree is drawn with each node's
action, outcome, Elo and number of updates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import TYPE_CHECKING, assert_never

from rich.padding import Padding
from rich.text import Text
from rich.tree import Tree

from decisor.system.text import clean_for_terminal, clean_one_line, format_number
from decisor.system.wording import format_count, format_plan_lines
from decisor.trace.events import (
    ActionResult,
    Conclusion,
    LLMCall,
    NodeRating,
    NodeResult,
    NodeSpan,
    RunStart,
    RunUsage,
    SearchNode,
    SearchTree,
    Span,
    TraceEntry,
)
from decisor.trace.prompts import read_thoughts
from decisor.types import Decision, Message, Question, Record, Study, Usage
from decisor.views.answer_charts import charts_of_decision
from decisor.views.chart_drawing import chart_lines
from decisor.views.links import find_figure_cells
from decisor.views.rankings import gain_chart, ranking_chart, study_lines
from decisor.views.terminal import (
    ActionOrder,
    Nodes,
    event_lines,
    group_records,
    passage_line,
    question_lines,
    row_lines,
)

if TYPE_CHECKING:
    from rich.console import Console

    from decisor.views.charts import Chart


ROWS = 20
FEW_RECORDS = 6
"""Of one observation; more are a table."""
MOST_NAMED = 5
MOST_CHARACTERS = 400
"""Of an evidence line where no terminal is narrower."""
BEST = "; this is the best supported answer until then"


def show_decision(
    decision: Decision, records: Sequence[Record], console: Console, charts: Sequence[Chart] = ()
) -> None:
    console.print()
    answer = clean_one_line(decision.answer, 300) or "none"
    console.print(Text.assemble(("Decision: ", "bold"), (answer, "bold green" if decision.answer else "bold red")))
    if why := describe_end(decision):
        console.print(Text(f"  {why}", style="yellow"))
    for reason in decision.reasons:
        if reason.startswith(("No LLM planned this", "No LM planned this")):  # as a trace of 0.1 says it
            continue  # said at the end, with how to name one
        console.print(Padding(Text(clean_for_terminal(reason)), (0, 0, 0, 2), expand=False))
    for line in runner_up_lines(decision):
        console.print(Padding(Text(clean_for_terminal(line), style="dim"), (0, 0, 0, 2), expand=False))
    computed = decision.ranking
    for line in format_plan_lines(computed) if computed else ():
        console.print(Padding(Text(clean_for_terminal(line)), (0, 0, 0, 2), expand=False))
    own = (ranking_chart(computed, known=decision.reasons), gain_chart(computed)) if computed else ()
    show_charts([*filter(None, own), *charts], console)
    show_evidence(decision, records, console)


def runner_up_lines(decision: Decision) -> tuple[str, ...]:
    """Return the next best candidate and the assumptions of a decision, a line each.

    >>> runner_up_lines(Decision("oak", runner_up="elm, 412", assumptions=("rents are monthly",)))
    ('Runner-up: elm, 412', 'Assumption: rents are monthly')
    """
    runner_up = (f"Runner-up: {decision.runner_up}",) if decision.runner_up else ()
    return (*runner_up, *(f"Assumption: {text}" for text in decision.assumptions))


def describe_end(decision: Decision) -> str:
    """Return a sentence about the end of a run; '' if it just answered."""
    best = BEST if decision.answer else ""
    match decision.stopped:
        case "answered":
            return ""
        case "budget":
            return f"A limit ended the run{best}."
        case "steps":
            return f"The technique's step limit ended the run{best}."
        case "no_answer":
            return "The data do not decide it."
        case "failed":
            return "The run failed."
        case _:
            assert_never(decision.stopped)


def show_charts(charts: Sequence[Chart], console: Console) -> None:
    for chart in charts:
        show_drawing(chart_lines(chart, console.width), console)


def show_studies(studies: Sequence[Study], console: Console) -> None:
    for study in studies:
        show_drawing(study_lines(study, console.width), console)


def show_drawing(lines: Iterable[str], console: Console) -> None:
    """Print a title and the lines below it; those that are too long are cut at the end of the terminal."""
    head, *rest = map(clean_for_terminal, lines)
    console.print()
    console.print(Text(head, style="bold"))
    for line in rest:
        console.print(Text(line), no_wrap=True, overflow="ellipsis")


def show_evidence(decision: Decision, records: Sequence[Record], console: Console) -> None:
    if not records and not decision.evidence.figures and not decision.evidence.objections:
        return
    console.print()
    console.print(Text("Evidence", style="bold"))
    width = min(console.width - 16, MOST_CHARACTERS)
    # Many rows of one query are shown as a table, in the place of the first.
    tables = {group[0].id: group for group in group_records(records) if len(group) > FEW_RECORDS}
    in_tables = {record.id for group in tables.values() for record in group}
    for record in records:
        if record.id in tables:
            show_table(tables[record.id], console)
        elif record.id not in in_tables:
            console.print(
                Text.assemble(
                    "  ", (f"[{clean_one_line(record.id)}]", "cyan"), " ", evidence_line(record, width, decision)
                )
            )
    for one in decision.evidence.objections:
        console.print(
            Padding(Text(f"Objection: {clean_one_line(one.text, 500)}", style="bold red"), (0, 0, 0, 2), expand=False)
        )
    for line in pitfall_lines(decision):
        console.print(Padding(Text(line, style="yellow"), (0, 0, 0, 2), expand=False))


def show_table(records: Sequence[Record], console: Console) -> None:
    for line in row_lines(records[:ROWS], with_ids=True):
        console.print(Text(f"  {line}"), no_wrap=True, overflow="ellipsis")
    if len(records) > ROWS:
        console.print(
            Text(f"  … and {format_count(len(records) - ROWS, 'row')} more; --html and --json have all", style="dim")
        )


def pitfall_lines(decision: Decision) -> tuple[str, ...]:
    """Return the pitfalls of the queries behind a decision, a line each.

    >>> from decisor.types import Evidence, Pitfall
    >>> pitfall_lines(Decision("oak",
    ...     Evidence(("o1.r1",), pitfalls=(Pitfall("limit_order", "Left to chance.", ("o1.r1",)),))))
    ('Doubtful [o1.r1]: Left to chance.',)
    """
    return tuple(
        f"Doubtful [{', '.join(map(clean_one_line, one.records[:MOST_NAMED]))}]: {clean_one_line(one.text, 500)}"
        for one in decision.evidence.pitfalls
    )


def evidence_line(record: Record, width: int, decision: Decision) -> str:
    """Format a record as one line.

    A passage begins with its place; a row with its name, then the columns that hold a figure of the decision.
    """
    if record.text:
        return passage_line(record, max(width, 40))
    cells = [f"{name} {format_number(v) if isinstance(v, float) else v}" for name, v in record.fields.items()]
    deciding = {
        cell.column for one in decision.evidence.figures for cell in find_figure_cells(one, {record.id: record})
    }
    # The first column names the row; then come the columns that the decision rests on.
    order = sorted(range(len(cells)), key=lambda at: (at > 0, at not in deciding, at))
    return clean_one_line(", ".join(cells[at] for at in order), max(width, 40))


def show_dim(text: str, console: Console) -> None:
    console.print(Text(clean_for_terminal(text), style="dim"))


def usage_line(usage: Usage, technique: str, llm: str) -> str:
    cost = "price unknown" if usage.dollars is None else f"${usage.dollars:.4f}"
    cached = f" ({usage.cache_reads:,} from a cache)" if usage.cache_reads else ""
    guess = ", in part estimated" if usage.estimates else ""
    calls = (
        f"{format_count(usage.calls, 'LLM call')} to {clean_for_terminal(llm)}, {usage.tokens:,} tokens{cached}, "
        f"{cost}{guess}"
    )
    return f"{clean_one_line(technique)}: {format_count(usage.actions, 'action')}, {calls if llm else 'no LLM calls'}"


ENDED = {"answered": "answered", "gave_up": "gave up", "steps": "no steps left"}


def draw_search_tree(entries: Iterable[TraceEntry], tree: SearchTree, span: int) -> Tree:
    """Draw a search tree whose nodes grew in ``span``; the path to the chosen sequence is marked.

    A node whose parent does not come before it is left out.
    """
    inside = (entry.event for entry in entries if entry.span == span)
    grown = {event.node: event for event in inside if isinstance(event, SearchNode)}
    way = path_to_node(tree.chosen, {node.node: node.parent for node in tree.nodes})
    ended = sum(bool(node.ended) for node in tree.nodes)
    head = f"Search tree: {format_count(max(0, len(tree.nodes) - 1), 'node')}, {format_count(ended, 'sequence')}"
    root = Tree(Text(head, style="bold"))
    branches: dict[int, Tree] = {}
    for node in tree.nodes:
        if node.parent is None:
            branches[node.node] = root
        elif node.parent in branches:
            label = node_line(node, grown.get(node.node), node.node in way)
            branches[node.node] = branches[node.parent].add(label)
    return root


def node_line(node: NodeRating, grown: SearchNode | None, chosen: bool) -> Text:
    """Format a node as one line. grown: its action and outcome, if the trace holds them."""
    tool = grown.action.tool if grown else "?"
    text = Text(f"{'▸ ' if chosen else ''}{clean_one_line(tool)} ", style="bold cyan" if chosen else "cyan")
    if grown:
        text.append(clean_one_line(grown.action.input, 120), style="bold" if chosen else "")
        if (result := clean_one_line(grown.text, 100)) and tool not in ENDED.values():
            text.append(f" → {result}", style="red" if grown.error else "dim")
    if node.matches:
        text.append(f"  Elo {node.elo:+.0f} (M {node.matches})", style="magenta")
    elif node.value:
        text.append(f"  value {node.value:.3g}", style="magenta")
    if node.ended:
        text.append(f"  [{ENDED[node.ended]}]", style="green" if node.ended == "answered" else "yellow")
    return text


def path_to_node(node: int | None, parents: Mapping[int, int | None]) -> set[int]:
    """Return the nodes on the path from the root to a node.

    >>> sorted(path_to_node(3, {0: None, 1: 0, 2: 0, 3: 1}))
    [0, 1, 3]
    """
    way: set[int] = set()
    # A damaged trace may have a ring of parents.
    while node is not None and node not in way:
        way.add(node)
        node = parents.get(node)
    return way


def tell_story(entries: Sequence[TraceEntry], console: Console, full: bool = False) -> None:
    """Print a run as a story. full: also the prompts and replies of the LLM."""
    story, order = Story(entries, console, full), ActionOrder()
    for entry in entries:
        for next_entry in order.hear(entry):
            story.tell(next_entry)
    for entry in order.end():
        story.tell(entry)


def format_story(entries: Sequence[TraceEntry], width: int) -> str:
    """Format a run as a story in plain text."""
    from rich.console import Console

    text = StringIO()
    tell_story(entries, Console(file=text, width=width, highlight=False, color_system=None))
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


@dataclass
class Story:
    """The state of a story: the nodes that were begun, and the records shown so far."""

    entries: Sequence[TraceEntry]
    console: Console
    full: bool = False
    nodes: Nodes = field(default_factory=Nodes)
    records: dict[str, Record] = field(default_factory=dict)
    start: RunStart = field(default_factory=lambda: RunStart(Question("")))

    def tell(self, entry: TraceEntry) -> None:
        """Print an entry: the lines before those of its event, these, and the lines after them."""
        match entry.event:
            case RunStart() as start:
                self.start = start
                if earlier := start.question.earlier:
                    steps = earlier.all_steps
                    self.records |= {record.id: record for step in steps for record in step.observation.records}
                for line in question_lines(start.question):
                    self.console.print(line)
                names = f"{clean_one_line(start.technique)}, LLM: {clean_one_line(start.llm) or 'none'}"
                self.console.print(Text(names, style="dim"))
            case LLMCall() as call if self.full:
                self.call(call)
        node = self.nodes.hear(entry)
        self.span(entry, node)
        is_told = self.full and isinstance(entry.event, LLMCall)
        for line in () if is_told else event_lines(entry.event):
            self.console.print(self.nodes.mark(node) + line)
        match entry.event:
            case ActionResult(observation=observation):
                self.records |= {record.id: record for record in observation.records}
            case NodeResult(answer=answer):
                self.records |= {record.id: record for record in answer.documents}
            case Conclusion(decision=decision) if entry.span == 0:
                self.decision(decision)
            case SearchTree():
                self.console.print(draw_search_tree(self.entries, entry.event, entry.span))
            case RunUsage(usage=usage):
                cost = f"{usage_line(usage, self.start.technique, self.start.llm)}, {entry.at:.2f} s"
                self.console.print()
                self.console.print(Text(cost, style="dim"))

    def span(self, entry: TraceEntry, node: str) -> None:
        match entry.event:
            case Span(name=name) if self.full or not node:
                self.console.print(Text(f"  — {clean_one_line(name)}", style="dim"))
            case NodeSpan() if self.full:
                self.console.print(Text("  — node", style="dim"))

    def decision(self, decision: Decision) -> None:
        records = [self.records[name] for name in decision.evidence.ids if name in self.records]
        show_decision(decision, records, self.console, charts_of_decision(self.entries, decision, records))

    def call(self, call: LLMCall) -> None:
        """Print a whole LLM call."""
        for message in call.messages:
            self.console.print(Text(f"  {message.role}:", style="dim"))
            self.message(message, "dim")
        for message in [call.turn] if call.turn else [Message("assistant", text) for text in call.texts]:
            self.console.print(Text("  the LLM:", style="magenta"))
            self.message(message)

    def message(self, message: Message, style: str = "") -> None:
        """Print what a message says: thoughts, text, and calls of tools."""
        calls = [f"{call.name} {call.arguments}" for call in message.calls]
        for text in filter(None, (read_thoughts(message), message.content, *calls)):
            self.console.print(Text(clean_for_terminal(text), style=style))
