"""``decisor trace``: a recorded run as a readable story."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from decisor.budget import Limits
from decisor.cli.console import console
from decisor.cli.show import RECORD
from decisor.errors import SetupError
from decisor.session.options import Options
from decisor.session.tools import AUDIT, AUTH, DENY, MASK, METHODS, ROWS, TABLES, split, split_all
from decisor.trace.events import RunStart, events_of
from decisor.trace.file import array_text, read_trace

SETTING = "With --edit: a setting of the technique, in the place of the trace's. May be given several times."

PLAN = "With --edit: a step of the plan that holds after that step, 0 for the first plan. Give every step of it."
AGAIN = "With --edit: the data again, as for decisor ask."


def command(
    file: Annotated[Path, typer.Argument(help="A file that decisor ask --trace FILE wrote.")],
    full: Annotated[bool, typer.Option("--full", help="Also what the LM was sent and what it wrote.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The events as one JSON array.")] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Write the run as one page.")] = None,
    record: Annotated[Path | None, typer.Option("--record", metavar="FILE", help=RECORD)] = None,
    edit: Annotated[str, typer.Option("--edit", metavar="AT", help="Go on from this node or step, changed.")] = "",
    answer: Annotated[str | None, typer.Option("--answer", help="The node's answer.")] = None,
    ask: Annotated[str | None, typer.Option("--ask", help="The node's question.")] = None,
    context: Annotated[str, typer.Option("--context", help="What the node is told beside its question.")] = "",
    thought: Annotated[str, typer.Option("--thought", help="The thought that the step goes on from.")] = "",
    action: Annotated[str | None, typer.Option("--action", help="The step's action input.")] = None,
    observation: Annotated[str | None, typer.Option("--observation", help="What the step brought back.")] = None,
    plan: Annotated[list[str] | None, typer.Option("--plan", metavar="STEP", help=PLAN)] = None,
    technique: Annotated[str, typer.Option("--technique", "-t", help="With --edit: another than the trace's.")] = "",
    settings: Annotated[list[str] | None, typer.Option("--option", "-o", metavar="NAME=VALUE", help=SETTING)] = None,
    lm: Annotated[str | None, typer.Option("--lm", metavar="MODEL[@URL]", help="With --edit: the LM.")] = None,
    db: Annotated[list[str] | None, typer.Option("--db", metavar="URL", help=AGAIN)] = None,
    graph: Annotated[list[str] | None, typer.Option("--graph", metavar="URL", help=AGAIN)] = None,
    docs: Annotated[list[str] | None, typer.Option("--docs", metavar="INDEX|FOLDER", help=AGAIN)] = None,
    model: Annotated[Path | None, typer.Option("--model", help="With --edit: the decision model again.")] = None,
    tables: Annotated[list[str] | None, typer.Option("--tables", metavar="NAME,...", help=TABLES)] = None,
    deny_tables: Annotated[list[str] | None, typer.Option("--deny-tables", metavar="NAME,...", help=DENY)] = None,
    rows: Annotated[list[str] | None, typer.Option("--rows", metavar="TABLE=CONDITION", help=ROWS)] = None,
    mask: Annotated[list[str] | None, typer.Option("--mask", metavar="TABLE.COLUMN,...", help=MASK)] = None,
    audit: Annotated[Path | None, typer.Option("--audit", metavar="FILE", help=AUDIT)] = None,
    tools: Annotated[list[str] | None, typer.Option("--tools", metavar="SPEC", help="With --edit: your tools.")] = None,
    allow_methods: Annotated[str, typer.Option("--allow-methods", help=METHODS)] = "",
    base_url: Annotated[str, typer.Option("--base-url", metavar="URL", help="Call the APIs of --tools here.")] = "",
    auth: Annotated[list[str] | None, typer.Option("--auth", metavar="[SCHEME=]VARIABLE", help=AUTH)] = None,
    calls: Annotated[int | None, typer.Option("--calls", min=1, help="With --edit: at most so many LM calls.")] = None,
    tokens: Annotated[int | None, typer.Option("--tokens", min=1, help="With --edit: at most so many tokens.")] = None,
    dollars: Annotated[
        float | None, typer.Option("--dollars", min=0, help="With --edit: at most so many dollars.")
    ] = None,
    seconds: Annotated[float | None, typer.Option("--seconds", min=0, help="With --edit: at most so long.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="With --edit: write the new run here.")] = None,
) -> None:
    """Show a recorded run as a readable story, or go on from it with one thing changed."""
    entries = read_trace(file)
    if not entries:
        raise SetupError(f"{file} holds no events. Make one with: decisor ask ... --trace FILE")
    changes = {"answer": answer, "ask": ask, "context": context, "thought": thought, "action": action,
               "observation": observation}  # fmt: skip
    if edit or plan or any(changes.values()):
        from decisor.cli.again import each, sources_named
        from decisor.cli.ask import read_settings
        from decisor.cli.rerun import go_on
        from decisor.config.current import current
        from decisor.history.past_run import Inputs
        from decisor.session.readers import check_masks

        own = Inputs(
            each(db), each(graph), each(docs), each(tools), tuple(split(allow_methods)), base_url, each(auth),
            str(model or ""), each(split_all(tables)), each(split_all(deny_tables)), rows=each(rows),
            mask=each(split_all(mask)), audit=str(audit or ""),
        )  # fmt: skip
        sources = sources_named(own, current())
        check_masks(entries, sources)
        options: Options = {
            "lm": lm, "technique": technique, "settings": read_settings(settings or []), "trace": out,
            "limits": Limits(calls, tokens, dollars, seconds),
        }  # fmt: skip
        raise typer.Exit(go_on(entries, edit, changes, plan or (), sources, options, as_json))
    others = {"--rows": rows, "--mask": mask, "--audit": audit, "--tables": tables, "--deny-tables": deny_tables,
              "--lm": lm, "--db": db, "--graph": graph, "--docs": docs, "--model": model, "--tools": tools,
              "--out": out, "-t": technique, "-o": settings, "--calls": calls, "--tokens": tokens,
              "--dollars": dollars, "--seconds": seconds}  # fmt: skip
    if others_with_edit := [name for name, value in others.items() if value]:
        raise SetupError(
            f"{others_with_edit[0]} goes with --edit: name the node or step to go on from, such as --edit Q2.1."
        )
    if record is not None:
        from decisor.decision_record.build import record_of
        from decisor.decision_record.read import save

        save(record_of(entries), record)
    if html is not None:
        from decisor.session.result import write
        from decisor.story.run_page import document, recorded_html

        question = next((start.question.text for start in events_of(entries, RunStart)), str(file))
        write(html, document(question, recorded_html(entries, is_page=True)))
    if as_json:
        print(array_text(entries))
    elif html is None and record is None:
        from decisor.story.telling import tell_story

        tell_story(entries, console(), full)
