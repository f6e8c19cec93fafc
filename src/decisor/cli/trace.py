"""``decisor trace``: a recorded run as a readable story."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from decisor.errors import SetupError
from decisor.session.data import Options
from decisor.session.tools import AUTH, METHODS, ToolSpecs, split
from decisor.trace.events import Event, decision_of, plain, read_trace
from decisor.types import Record

if TYPE_CHECKING:
    from rich.console import Console

SETTING = "With --edit: a setting of the technique, in the place of the trace's. May be given several times."

AGAIN = "With --edit: the data again, as for decisor ask."


def command(
    file: Annotated[Path, typer.Argument(help="A file that decisor ask --trace FILE wrote.")],
    full: Annotated[bool, typer.Option("--full", help="Also what the LM was sent and what it wrote.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The events as one JSON array.")] = False,
    edit: Annotated[str, typer.Option("--edit", metavar="AT", help="Go on from this node or step, changed.")] = "",
    answer: Annotated[str | None, typer.Option("--answer", help="The node's answer.")] = None,
    ask: Annotated[str | None, typer.Option("--ask", help="The node's question.")] = None,
    context: Annotated[str, typer.Option("--context", help="What the node is told beside its question.")] = "",
    thought: Annotated[str, typer.Option("--thought", help="The thought that the step goes on from.")] = "",
    action: Annotated[str | None, typer.Option("--action", help="The step's action input.")] = None,
    observation: Annotated[str | None, typer.Option("--observation", help="What the step brought back.")] = None,
    technique: Annotated[str, typer.Option("--technique", "-t", help="With --edit: another than the trace's.")] = "",
    settings: Annotated[list[str] | None, typer.Option("--option", "-o", metavar="NAME=VALUE", help=SETTING)] = None,
    lm: Annotated[str | None, typer.Option("--lm", metavar="MODEL[@URL]", help="With --edit: the LM.")] = None,
    db: Annotated[list[str] | None, typer.Option("--db", metavar="URL", help=AGAIN)] = None,
    graph: Annotated[list[str] | None, typer.Option("--graph", metavar="URL", help=AGAIN)] = None,
    docs: Annotated[list[str] | None, typer.Option("--docs", metavar="INDEX|FOLDER", help=AGAIN)] = None,
    model: Annotated[Path | None, typer.Option("--model", help="With --edit: the decision model again.")] = None,
    tools: Annotated[list[str] | None, typer.Option("--tools", metavar="SPEC", help="With --edit: your tools.")] = None,
    allow_methods: Annotated[str, typer.Option("--allow-methods", help=METHODS)] = "",
    base_url: Annotated[str, typer.Option("--base-url", metavar="URL", help="Call the APIs of --tools here.")] = "",
    auth: Annotated[list[str] | None, typer.Option("--auth", metavar="[SCHEME=]VARIABLE", help=AUTH)] = None,
    out: Annotated[Path | None, typer.Option("--out", help="With --edit: write the new run here.")] = None,
) -> None:
    """Show a recorded run as a readable story, or go on from it with one thing changed."""
    events = read_trace(file)
    if not events:
        raise SetupError(f"{file} holds no events. Make one with: decisor ask ... --trace FILE")
    changes = {"answer": answer, "ask": ask, "context": context, "thought": thought, "action": action,
               "observation": observation}  # fmt: skip
    if edit or any(changes.values()):
        from decisor.cli.ask import read_settings
        from decisor.cli.rerun import go_on
        from decisor.session.sources import sources_of

        specs = ToolSpecs(tools or (), split(allow_methods), base_url, auth or ())
        sources = sources_of(db or (), graph or (), docs or (), specs, model)
        options: Options = {
            "lm": lm, "technique": technique, "settings": read_settings(settings or []), "trace": out,
        }  # fmt: skip
        raise typer.Exit(go_on(events, edit, changes, sources, options, as_json))
    others = {"--lm": lm, "--db": db, "--graph": graph, "--docs": docs, "--model": model, "--tools": tools,
               "--out": out, "-t": technique, "-o": settings}  # fmt: skip
    if named := [name for name, value in others.items() if value]:
        raise SetupError(f"{named[0]} goes with --edit: name the node or step to go on from, such as --edit Q2.1.")
    if as_json:
        print(json.dumps([plain(event) for event in events], ensure_ascii=False))
        return
    from rich.console import Console

    try:
        tell_story(events, Console(highlight=False), full)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise SetupError(f"{file} holds an event that is not as --trace writes it ({error!r}).") from error


def tell_story(events: Sequence[Event], console: Console, full: bool = False) -> None:
    from rich.text import Text

    from decisor.render.text import clean
    from decisor.story.decision import show_decision, usage_line
    from decisor.story.live import lines_of
    from decisor.story.nodes import Nodes

    nodes = Nodes()
    shown: dict[str, Record] = {}
    head: Mapping[str, Any] = {}
    for event in events:
        if event.kind == "run":
            head = event.data
            console.print(Text.assemble(("Question: ", "bold"), clean(head["question"]["text"])))
            console.print(Text(f"{head['technique']}, LM: {clean(head['lm']) or 'none'}", style="dim"))
        if event.kind == "lm":
            show_lm(event.data, console, full)
        node = nodes.hear(event)
        if event.kind == "span" and (full or not node):
            console.print(Text(f"  — {clean(str(event.data.get('name', '')))}", style="dim"))
        for line in lines_of(event):
            console.print(nodes.mark(node) + line)
        if event.kind == "observation":
            shown |= {row["id"]: Record(**row) for row in event.data["observation"]["records"]}
        if event.kind == "note" and "answered" in event.data:
            shown |= {row["id"]: Record(**row) for row in event.data["answered"]["documents"]}
        if event.kind == "decision" and event.parent == 0:
            decision = decision_of(event.data["decision"])
            show_decision(decision, [shown[name] for name in decision.evidence.ids if name in shown], console)
        if event.kind == "note" and event.data.get("name") == "tree":
            from decisor.story.tree import draw

            console.print(draw(events, event))
        if event.kind == "note" and "usage" in event.data:
            from decisor.types import Usage

            spent = Usage(**event.data["usage"])
            console.print()
            console.print(
                Text(f"{usage_line(spent, head.get('technique', ''), head.get('lm', ''))}, {event.at:.2f} s", "dim")
            )


def show_lm(data: Mapping[str, Any], console: Console, full: bool) -> None:
    """The thought before an action; everything with ``full``."""
    from rich.text import Text

    from decisor.render.text import clean, one_line

    if full:
        for message in data["messages"]:
            console.print(Text(f"  {message['role']}:", style="dim"))
            console.print(Text(clean(message["content"]), style="dim"))
        for text in data["texts"]:
            console.print(Text("  the LM:", style="magenta"))
            console.print(Text(clean(text)))
        return
    for text in data["texts"]:
        for line in text.splitlines():
            if line.lower().startswith("thought:"):
                console.print(Text(f"  {one_line(line[8:], 400)}", style="italic"))
