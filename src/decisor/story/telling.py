"""A recorded run as a story on a terminal: what it did, its decision with the evidence, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.text import Text

from decisor.render.text import clean, one_line
from decisor.story.answer_charts.of_run import charts_of
from decisor.story.decision import show_decision, usage_line
from decisor.story.lines import event_lines, question_lines
from decisor.story.nodes import Nodes
from decisor.story.tree import draw
from decisor.trace.events import ActionResult, Conclusion, Entry, LMCall, RunStart, RunUsage, Span
from decisor.trace.graph_events import NodeResult, NodeSpan
from decisor.trace.search_events import SearchTree
from decisor.types import Decision, Question, Record

if TYPE_CHECKING:
    from rich.console import Console


def tell_story(entries: Sequence[Entry], console: Console, full: bool = False) -> None:
    """Print it. ``full``: also what the LM was sent and what it wrote."""
    story = Story(entries, console, full)
    for entry in entries:
        story.tell(entry)


@dataclass
class Story:
    """Where a story is: the nodes that were begun, and the records that were shown so far."""

    entries: Sequence[Entry]
    console: Console
    full: bool = False
    nodes: Nodes = field(default_factory=Nodes)
    records: dict[str, Record] = field(default_factory=dict)
    start: RunStart = field(default_factory=lambda: RunStart(Question("")))

    def tell(self, entry: Entry) -> None:
        """What comes before the event's own lines, these, and what comes after them."""
        match entry.event:
            case RunStart() as start:
                self.start = start
                if earlier := start.question.earlier:
                    self.records |= {record.id: record for record in earlier.records}
                for line in question_lines(start.question):
                    self.console.print(line)
                names = f"{one_line(start.technique)}, LM: {one_line(start.lm) or 'none'}"
                self.console.print(Text(names, style="dim"))
            case LMCall() as call:
                self.call(call)
        node = self.nodes.hear(entry)
        self.span(entry, node)
        for line in event_lines(entry.event):
            self.console.print(self.nodes.mark(node) + line)
        match entry.event:
            case ActionResult(observation=observation):
                self.records |= {record.id: record for record in observation.records}
            case NodeResult(answer=answer):
                self.records |= {record.id: record for record in answer.documents}
            case Conclusion(decision=decision) if entry.span == 0:
                self.decision(decision)
            case SearchTree():
                self.console.print(draw(self.entries, entry.event, entry.span))
            case RunUsage(usage=usage):
                cost = f"{usage_line(usage, self.start.technique, self.start.lm)}, {entry.at:.2f} s"
                self.console.print()
                self.console.print(Text(cost, style="dim"))

    def span(self, entry: Entry, node: str) -> None:
        match entry.event:
            case Span(name=name) if self.full or not node:
                self.console.print(Text(f"  — {one_line(name)}", style="dim"))
            case NodeSpan() if self.full:
                self.console.print(Text("  — node", style="dim"))

    def decision(self, decision: Decision) -> None:
        records = [self.records[name] for name in decision.evidence.ids if name in self.records]
        show_decision(decision, records, self.console, charts_of(self.entries, decision, records))

    def call(self, call: LMCall) -> None:
        """The thought before an action; everything with ``full``."""
        if not self.full:
            for line in "\n".join(call.texts).splitlines():
                if line.lower().startswith("thought:"):
                    self.console.print(Text(f"  {one_line(line[8:], 400)}", style="italic"))
            return
        for message in call.messages:
            self.console.print(Text(f"  {message.role}:", style="dim"))
            self.console.print(Text(clean(message.content), style="dim"))
        for text in call.texts:
            self.console.print(Text("  the LM:", style="magenta"))
            self.console.print(Text(clean(text)))
