"""``decisor verify``: old decisions computed again without an LM, for a scheduler."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decisor.cli.exits import Exit
from decisor.errors import SetupError

if TYPE_CHECKING:
    from decisor.session.sources import Sources
    from decisor.session.verify import Verification

CODES = {"holds": Exit.ANSWERED, "does not hold": Exit.FAILED, "cannot be said": Exit.NO_ANSWER}


def command(
    trace: Annotated[list[Path], typer.Argument(metavar="TRACE...", help="Traces of runs, or folders of them.")],
    db: Annotated[list[str] | None, typer.Option("--db", metavar="URL", help="The same databases or files.")] = None,
    graph: Annotated[list[str] | None, typer.Option("--graph", metavar="URL", help="The same graphs.")] = None,
    docs: Annotated[
        list[str] | None, typer.Option("--docs", metavar="INDEX|FOLDER", help="The same documents.")
    ] = None,
    model: Annotated[Path | None, typer.Option("--model", help="The decision model it was decided by.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Compute old decisions again without an LM: which records changed, whether each still holds, what wins now. The
    exit code is 0 where all hold, 1 where one does not, 4 where it cannot be said of one."""
    from decisor.encoding import json_value
    from decisor.session.sources import sources_of

    verdicts = asyncio.run(verdicts_of(files_in(trace), sources_of(db or (), graph or (), docs or (), model=model)))
    if as_json:
        print(json.dumps({str(path): json_value(one) for path, one in verdicts}, ensure_ascii=False, default=str))
    for path, one in [] if as_json else verdicts:
        show(path, one)
    states = [CODES[one.state] for _, one in verdicts]
    raise typer.Exit(next((code for code in (Exit.FAILED, Exit.NO_ANSWER) if code in states), Exit.ANSWERED))


async def verdicts_of(files: Sequence[Path], sources: Sources) -> list[tuple[Path, Verification]]:
    from decisor.session.opening import opened
    from decisor.session.verify import verify
    from decisor.trace.file import read_trace

    async with opened(sources) as data:
        return [(file, await verify(read_trace(file), data)) for file in files]


def files_in(places: Sequence[Path]) -> list[Path]:
    """Raises SetupError where there is none."""
    files = [file for place in places
             for file in (sorted(place.glob("*.jsonl")) if place.is_dir() else [place])]  # fmt: skip
    if not files:
        raise SetupError("There is no trace (*.jsonl) there; decisor ask --trace FILE writes one.")
    return files


def show(path: Path, one: Verification) -> None:
    from decisor.plurals import counted
    from decisor.render.text import clean

    print(clean(f"{path}: {one.answer}: {one.state}. {one.why}"))
    print(f"  {counted(one.records, 'cited record')} read again, {counted(len(one.changes), 'change')}.")
    for change in one.changes:
        print(clean(f"  [{change.id}] {change.before} -> {change.after or 'not there'}"))
    for rule in one.rules:
        print(clean(f"  rule {rule.name}: {rule.state}: {rule.why}"))
