"""How a reasoning DAG reads in a story: which node a line belongs to, and each node's answer with its sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.text import Text

from decisor.render.text import clean, one_line
from decisor.trace.events import Entry, Span
from decisor.trace.graph_events import NodeAnswer, NodeSpan

COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "bright_cyan", "bright_magenta", "bright_green")


@dataclass
class Nodes:
    """Hears entries in order; nodes run at the same time, so each line says which it belongs to."""

    by_span: dict[int, str] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)

    def hear(self, entry: Entry) -> str:
        """The id of the node that an entry belongs to, '' for none."""
        node = self.by_span.get(entry.span, "")
        if isinstance(entry.event, NodeSpan):
            node = entry.event.node
        if isinstance(entry.event, Span | NodeSpan):
            self.by_span[entry.id] = node
        if node and node not in self.order:
            self.order.append(node)
        return node

    def mark(self, node: str) -> Text:
        """What a line of the node begins with."""
        if not node:
            return Text()
        return Text.assemble((f"{one_line(node):>5} ", COLOURS[self.order.index(node) % len(COLOURS)]))


def answer_lines(answer: NodeAnswer, reused: bool) -> Sequence[Text]:
    """What became of a node, and the words that its answer rests on."""
    if answer.status != "answered":
        why = f": {one_line(answer.why, 200)}" if answer.why else ""
        return [Text(f"    {answer.status}{why}", style="yellow")]
    origin = " (kept from the run before)" if reused else ""
    where = f" [{clean(answer.document)}]" if answer.document else f" ({answer.attribution.replace('_', ' ')})"
    lines = [Text.assemble("    -> ", (one_line(answer.answer, 300), "bold"), (where, "cyan"), (origin, "dim"))]
    if answer.support:
        lines.append(highlight(answer.support, answer.answer))
    return lines


def highlight(sentence: str, answer: str) -> Text:
    """The supporting sentence with the answer marked in it.

    >>> highlight("She was born in Lyon.", "lyon").plain
    '       “She was born in Lyon.”'
    """
    line = Text(f"       “{one_line(sentence, 400)}”", style="italic dim")
    at = line.plain.lower().find(one_line(answer, 300).lower())
    if at >= 0 and answer:
        line.stylize("not dim bold reverse", at, at + len(one_line(answer, 300)))
    return line
