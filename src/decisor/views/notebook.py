"""A run in a notebook, while it happens: the plan ticking off, the queries, what was spent. One output of the cell,
which is written anew."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

from decisor.system.text import clean_one_line
from decisor.system.wording import format_whole_seconds
from decisor.trace.events import ActionResult, ActionStart, LLMCall, RunStart, RunUsage, TraceEntry
from decisor.types import Question, Usage
from decisor.views.markup import Html, join, read_static, tag
from decisor.views.terminal import Progress, observation_line
from decisor.views.transcript import usage_line

SOON = 0.1
"""Seconds for which events are gathered before the output is written."""
CLOCK = 1.0
MOST_QUERIES = 12


class NotebookView:
    """A view of a run in a notebook; it hears a ``Trace`` in the thread of the run.

    A fault in writing the output never ends a run.
    """

    def __init__(self) -> None:
        self.progress, self.usage, self.start = Progress(), Usage(), RunStart(Question(""))
        self.queries: dict[int, tuple[ActionStart, ActionResult | None]] = {}
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
        match entry.event:
            case RunStart():
                self.start = entry.event
            case LLMCall(usage=usage):
                self.usage += usage
            case ActionStart():
                self.queries[entry.id] = (entry.event, None)
                self.usage += Usage(actions=1)
            case ActionResult(action=action) if action in self.queries:
                self.queries[action] = (self.queries[action][0], entry.event)
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
        return {"text/html": self.html(), "text/plain": "\n".join(self.lines())}

    def lines(self) -> Iterator[str]:
        """Yield the output as text, for a front end that shows no HTML."""
        yield self.state()
        yield from (f"{mark} {text}" for mark, _, text in self.steps())
        yield from (f"{head}: {text}: {words}" for head, text, words, _ in self.acts())
        yield self.spend()

    def html(self) -> Html:
        steps = [tag("li", f"{mark} {text}", cls=kind) for mark, kind, text in self.steps()]
        acts = [
            tag("li", tag("b", head), " ", tag("code", text), " ", tag("span", words, cls=kind))
            for head, text, words, kind in self.acts()
        ]
        parts = (
            tag("p", self.state(), role="status"),
            tag("ol", *steps) if steps else None,
            tag("ol", *acts) if acts else None,
            tag("p", self.spend(), cls="soft"),
        )
        return join(tag("style", Html(notebook_style())), tag("div", *parts, cls="decisor-live"))

    def state(self) -> str:
        seconds = int(time.monotonic() - self.began)
        return f"Decisor: {self.ended or self.progress.doing}, {format_whole_seconds(seconds)}"

    def steps(self) -> Iterator[tuple[str, str, str]]:
        """Yield each step of the plan: its mark, its kind and its words."""
        current = self.progress.current
        for at, step in enumerate(self.progress.plan, 1):
            kind = "done" if self.ended == "done" or at < current else "now" if at == current else "next"
            yield {"done": "✓", "now": "▸", "next": "·"}[kind], kind, f"{at}. {clean_one_line(step, 120)}"

    def acts(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield the last queries: the tool, its input, the outcome, and the kind of outcome."""
        last = list(self.queries.values())[-MOST_QUERIES:]
        if len(self.queries) > len(last):
            yield "…", f"{len(self.queries) - len(last)} earlier", "", "soft"
        for start, result in last:
            failed = result is not None and result.observation.error
            words = observation_line(result.observation, result.seconds).plain.strip() if result else "runs"
            yield (
                clean_one_line(start.tool, 30),
                clean_one_line(start.input, 160),
                words,
                "failed" if failed else "soft",
            )

    def spend(self) -> str:
        return usage_line(replace(self.usage, seconds=0.0), self.start.technique or "auto", self.start.llm)


@cache
def notebook_style() -> str:
    return read_static("colours.css").replace(":root", ".decisor-live") + read_static("notebook.css")
