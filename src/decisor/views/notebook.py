"""A run in a notebook, while it happens: the lines of the terminal, the plan and the cost in one output of the cell.

The output is written anew.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from io import StringIO
from typing import Any

from rich.console import Console
from rich.text import Text

from decisor.system.text import clean_for_terminal
from decisor.system.wording import format_whole_seconds
from decisor.trace.events import ActionStart, LLMCall, RunStart, RunUsage, TraceEntry
from decisor.types import Question, Usage
from decisor.views.terminal import Nodes, Progress, event_lines, format_tick
from decisor.views.transcript import usage_line

SOON = 0.1
"""Seconds for which events are gathered before the output is written."""
CLOCK = 1.0
MOST_LINES, WIDTH = 40, 120
PAGE = (
    '<pre style="background: #fff; color: #1b1d22; border: 1px solid #e3e0d8; border-radius: 10px; padding: 10px 16px; '
    'font-size: 12.5px; line-height: 1.45; white-space: pre-wrap">{code}</pre>'
)
"""Colours of a light terminal, so its paper is light in every notebook."""


class NotebookView:
    """A view of a run in a notebook; it hears a ``Trace`` in the thread of the run.

    A fault in writing the output never ends a run.
    """

    def __init__(self) -> None:
        self.progress, self.nodes = Progress(), Nodes()
        self.usage, self.start = Usage(), RunStart(Question(""))
        self.lines: deque[Text] = deque(maxlen=MOST_LINES)
        self.began = time.monotonic()
        self.timer: asyncio.TimerHandle | None = None
        self.ended = ""
        self.output: Any = None

    def __enter__(self) -> NotebookView:
        display = import_module("IPython.display").display
        self.output = display(self.bundle(), raw=True, display_id=True)
        return self

    def __exit__(self, *failure: object) -> None:
        self.ended = "ended by an error" if failure[0] else "done"
        self.write()

    def hear(self, entry: TraceEntry) -> None:
        """Note an entry; the trace calls it with each one."""
        self.progress.follow(entry.event)
        node = self.nodes.hear(entry)
        self.lines.extend(self.nodes.mark(node) + line for line in event_lines(entry.event))
        match entry.event:
            case RunStart():
                self.start = entry.event
            case LLMCall(usage=usage):
                self.usage += usage
            case ActionStart():
                self.usage += Usage(actions=1)
            case RunUsage(usage=usage):
                self.usage = usage
            case _:
                pass
        self.write_in(SOON)

    def write_in(self, seconds: float) -> None:
        """Write the output once after ``seconds``, whatever comes until then.

        If the clock would write later, it is put forward; then the clock goes on.
        """
        try:
            # Without a loop nothing can be put off, so the output is written at once.
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.write()
            return
        # An earlier write is on its way and will show this entry too.
        if self.timer is not None and self.timer.when() <= loop.time() + seconds:
            return
        if self.timer is not None:
            self.timer.cancel()
        self.timer = loop.call_later(seconds, self.write_on)

    def write_on(self) -> None:
        self.timer = None
        if not self.ended:
            self.write()
            self.write_in(CLOCK)

    def write(self) -> None:
        # The output is for looking; a front end that went away must not end the run.
        with suppress(Exception):
            self.output.update(self.bundle(), raw=True)

    def bundle(self) -> dict[str, str]:
        """Return the output as HTML, and as text for a front end that shows none."""
        console = Console(file=StringIO(), record=True, width=WIDTH, highlight=False, force_jupyter=False)
        seconds = format_whole_seconds(int(time.monotonic() - self.began))
        console.print(Text(f"Decisor: {self.ended or self.progress.doing}, {seconds}", style="bold"))
        steps = self.progress.plan
        current = len(steps) + 1 if self.ended == "done" else self.progress.current
        for line in (
            *(format_tick(at, clean_for_terminal(step), current) for at, step in enumerate(steps, 1)),
            *self.lines,
        ):
            console.print(line)
        cost = usage_line(replace(self.usage, seconds=0.0), self.start.technique or "default", self.start.llm)
        console.print(Text(cost, style="dim"))
        page = console.export_html(code_format=PAGE, inline_styles=True, clear=False)
        return {"text/html": page, "text/plain": console.export_text().rstrip()}
