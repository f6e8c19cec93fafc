"""A run as it happens: the plan with steps ticking off, queries, row counts, replans."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from decisor.counting import COUNTER
from decisor.plurals import counted
from decisor.render.text import clean, one_line
from decisor.story.lines import event_lines, question_lines
from decisor.story.nodes import Nodes
from decisor.story.progress import Progress
from decisor.trace.events import Entry, FailedCall, RunStart, RunUsage
from decisor.trace.writing import Writing

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

MOST_LINES, MOST_CHARACTERS = 6, 2_000


class LiveView:
    """Prints the question and the lines of each event; on a terminal the plan stays below and ticks. Hears a ``Trace``.

    A failed call is printed when something follows it: one that ends the run is the error that the person gets.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self.progress = Progress(doing="opening the data")
        self.nodes = Nodes()
        self.texts: dict[int, str] = {}
        self.last_fault: Entry | None = None
        self.live = Live(console=console, refresh_per_second=8, transient=True)

    def __enter__(self) -> LiveView:
        self.before = COUNTER.set(self.hear_count)
        if self.console.is_terminal:
            self.live.update(self.below())
            self.live.start()
        return self

    def __exit__(self, *failure: object) -> None:
        COUNTER.reset(self.before)
        if self.console.is_terminal:
            self.live.stop()

    def hear(self, entry: Entry) -> None:
        """Called by the trace with each entry."""
        match entry.event:
            case RunStart(question=question):
                self.progress = Progress()
                for line in question_lines(question):
                    self.console.print(line)
            case RunUsage():
                return
            case event:
                self.progress.follow(event)
                self.show(self.last_fault)
                self.last_fault = entry if isinstance(event, FailedCall) else None
                if self.last_fault is None:
                    self.show(entry)
        if self.console.is_terminal:
            self.live.update(self.below())

    def show(self, entry: Entry | None) -> None:
        if entry is None:
            return
        node = self.nodes.hear(entry)
        for line in event_lines(entry.event):
            self.console.print(self.nodes.mark(node) + line)

    def hear_text(self, writing: Writing) -> None:
        """Called while the LM writes: the end of what it wrote so far stands below the plan."""
        self.texts.pop(writing.call, None)
        if not writing.is_over:
            self.texts[writing.call] = writing.text
        if self.console.is_terminal:
            self.live.update(self.below())

    def hear_count(self, what: str, done: int, count: int) -> None:
        """A ``counting.COUNTER``: what a decision model computes stands in the place of what is waited for."""
        self.progress.doing = f"computed {done:,} of {counted(count, what)}"
        if self.console.is_terminal:
            self.live.update(self.below())

    def below(self) -> RenderableType:
        steps = self.progress.plan
        ticks = [tick(at, step, self.progress.current) for at, step in enumerate(steps, 1)]
        text = next(reversed(self.texts.values()), "")
        lines = [Text(f"  {line}", style="italic dim") for line in last_lines(text, self.console.width - 4)]
        return Group(Text(), *ticks, *lines, Spinner("dots", Text(self.progress.doing, style="dim")))


def last_lines(text: str, width: int) -> list[str]:
    """The end of a text that is being written, as a few lines that fit.

    >>> last_lines("Thought: one\\n\\n" + "two three " * 4, 20)
    ['Thought: one', 'two three two three', 'two three two three']
    """
    lines = clean(text[-MOST_CHARACTERS:]).splitlines()
    return [part for line in lines for part in wrap(line, max(width, 20))][-MOST_LINES:]


def tick(at: int, step: str, current: int) -> Text:
    mark, style = ("✓", "green") if at < current else ("▸", "bold") if at == current else ("·", "dim")
    return Text(f"  {mark} {at}. {one_line(step, 90)}", style=style)
