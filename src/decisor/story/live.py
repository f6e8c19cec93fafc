"""A run as it happens: the plan with steps ticking off, queries, row counts, replans."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from decisor.plurals import counted
from decisor.render.text import clean, one_line
from decisor.story.nodes import Nodes, node_lines
from decisor.trace.events import Event, plain
from decisor.types import Question

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

CURRENT = re.compile(r"current step\W{0,6}(?:step\W{0,3})?(\d{1,3})", re.I)


class LiveView:
    """Prints a line for each event; on a terminal the plan stays below them and ticks. Hears ``Trace``."""

    def __init__(self, console: Console, question: Question) -> None:
        self.console, self.question = console, question
        self.plan: tuple[str, ...] = ()
        self.current = 1
        self.nodes = Nodes()
        self.doing = "opening the data"
        self.live = Live(console=console, refresh_per_second=8, transient=True)

    def __enter__(self) -> LiveView:
        self.console.print(Text.assemble(("Question: ", "bold"), clean(self.question.text)))
        if self.question.goal and self.question.goal not in self.question.text:
            self.console.print(Text(clean(self.question.goal)))
        if self.console.is_terminal:
            self.live.update(self.below())
            self.live.start()
        return self

    def __exit__(self, *failure: object) -> None:
        if self.console.is_terminal:
            self.live.stop()

    def hear(self, event: Event) -> None:
        """Called by the trace with each event."""
        if event.kind == "lm" and (found := CURRENT.findall("\n".join(event.data.get("texts", ())))):
            self.current = int(found[-1])
        if event.kind in ("plan", "replan"):
            self.plan, self.current = tuple(event.data["plan"]), 1
        self.doing = "waiting for the database" if event.kind == "action" else "waiting for the LM"
        if event.kind == "note" and "answered" in event.data:
            self.current += 1
        node = self.nodes.hear(event)
        for line in lines_of(event):
            self.console.print(self.nodes.mark(node) + line)
        if self.console.is_terminal:
            self.live.update(self.below())

    def below(self) -> RenderableType:
        ticks = [tick(at, step, self.current) for at, step in enumerate(self.plan, 1)]
        return Group(Text(), *ticks, Spinner("dots", Text(self.doing, style="dim")))


def tick(at: int, step: str, current: int) -> Text:
    mark, style = ("✓", "green") if at < current else ("▸", "bold") if at == current else ("·", "dim")
    return Text(f"  {mark} {at}. {one_line(step, 90)}", style=style)


def lines_of(event: Event) -> Sequence[Text]:
    """What an event prints, live and in a story: nothing for those that only matter to programs."""
    data = plain(event.data)
    if event.kind == "plan":
        lines = [Text(f"  {one_line(step, 200)}") for step in data["plan"]] if "nodes" in data else None
        return [Text("Plan", style="bold"), *(lines or plan_lines(data["plan"]))]
    if event.kind == "replan":
        why = one_line(data.get("why") or "no reason given", 300)
        return [Text(f"Replan after step {data['after_step']}: {why}", style="bold yellow"), *plan_lines(data["plan"])]
    if event.kind == "action":
        return [Text.assemble((f"  {clean(data['tool'])} ", "cyan"), one_line(data["input"], 400))]
    if event.kind == "observation":
        return [observed(data["observation"], data.get("seconds", 0.0))]
    if event.kind == "note" and data.get("problem"):
        told = PROBLEMS.get(data["problem"], str(data["problem"]).replace("_", " "))
        return [Text(f"    {clean(told)}: {one_line(data.get('text', ''), 200)}", style="dim yellow")]
    return choice_lines(event, data) or node_lines(event, data)


PROBLEMS = {"reply": "asked again", "lm": "the LM failed"}
"""What a story calls a problem; one that has no name here is called what the trace calls it."""


def choice_lines(event: Event, data: Mapping[str, Any]) -> Sequence[Text]:
    """Which technique ``auto`` took, and which of several queries a scorer took."""
    if event.kind == "note" and data.get("name") == "auto":
        return [Text(f"auto takes {clean(data['technique'])}. {clean(data['text'])}", style="dim")]
    if event.kind == "note" and data.get("name") == "scores" and len(data["scores"]) > 1:
        score, query = max(zip(data["scores"], data["queries"], strict=True), key=lambda pair: float(pair[0]))
        return [Text(f"    taken of {len(data['scores'])}: {one_line(query, 200)} (score {score:.2f})", style="dim")]
    return []


def plan_lines(plan: Sequence[str]) -> list[Text]:
    return [Text(f"  {at}. {one_line(step, 200)}") for at, step in enumerate(plan, 1)]


def observed(observation: Mapping[str, Any], seconds: float) -> Text:
    took = f" in {seconds:.2f} s" if seconds >= 0.1 else f" in {1000 * seconds:.0f} ms"
    if observation["error"]:
        return Text(f"    failed{took}: {one_line(observation['note'], 300)}", style="red")
    count, total = len(observation["records"]), observation.get("total")
    rows = counted(count, "row")
    cut = f" of {total:,}" if total and total > count else " (cut)" if observation["truncated"] else ""
    if not count and observation["note"]:
        return Text(f"    {one_line(observation['note'], 300)}", style="dim")
    return Text(f"    {rows}{cut}{took}", style="dim")
