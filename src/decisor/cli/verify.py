"""``decisor verify``: old decisions computed again without an LM, for a scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decisor.cli.console import print_json
from decisor.cli.exits import Exit
from decisor.errors import SetupError
from decisor.session.tools import MASK, ROWS, split_all

if TYPE_CHECKING:
    from decisor.decision_record.read import RecordFile
    from decisor.session.sources import Sources
    from decisor.session.verify import Verification
    from decisor.trace.events import Entry
    from decisor.trace.provenance import DataSource

SQLITE = b"SQLite format 3\0"
CODES = {"holds": Exit.ANSWERED, "does not hold": Exit.FAILED, "cannot be said": Exit.NO_ANSWER}


def command(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="TRACE|RECORD|N|last|STORE...", help="Traces, records of decisions, folders of them, "
                       "runs of the history by number, or run stores of an evaluation."),
    ],
    db: Annotated[list[str] | None, typer.Option("--db", metavar="URL", help="The same databases or files.")] = None,
    graph: Annotated[list[str] | None, typer.Option("--graph", metavar="URL", help="The same graphs.")] = None,
    docs: Annotated[
        list[str] | None, typer.Option("--docs", metavar="INDEX|FOLDER", help="The same documents.")
    ] = None,
    model: Annotated[Path | None, typer.Option("--model", help="The decision model it was decided by.")] = None,
    rows: Annotated[list[str] | None, typer.Option("--rows", metavar="TABLE=CONDITION", help=ROWS)] = None,
    mask: Annotated[list[str] | None, typer.Option("--mask", metavar="TABLE.COLUMN,...", help=MASK)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:  # fmt: skip
    """Compute old decisions again without an LM: which records changed, whether each still holds, what wins now. Of a
    run of the history the data are known. The exit code is 0 where all hold, 1 where one does not, 4 where it cannot
    be said."""
    from decisor.cli.again import each, sources_named
    from decisor.config.current import current
    from decisor.encoding import json_value
    from decisor.history.past_run import Inputs
    from decisor.tools.databases.sandbox.values import distinct

    own = Inputs(each(db), each(graph), each(docs), model=str(model or ""))
    seen = replace(own, rows=each(rows), mask=each(split_all(mask)))
    sources = sources_named(seen, current()) if own != Inputs() else None
    verdicts = asyncio.run(verdicts_of([one for place in runs for one in old_runs(place)], sources))
    if as_json:
        names = distinct(name for name, _ in verdicts)
        print_json({name: json_value(one) for name, (_, one) in zip(names, verdicts, strict=True)})
    for name, one in [] if as_json else verdicts:
        show(name, one)
    states = [CODES[one.state] for _, one in verdicts]
    raise typer.Exit(next((code for code in (Exit.FAILED, Exit.NO_ANSWER) if code in states), Exit.ANSWERED))


@dataclass(frozen=True)
class OldRun:
    """From a trace, or its record. ``sources``: the data that it named, where that is known."""

    name: str
    entries: Sequence[Entry] = ()
    sources: Sources | None = None
    document: RecordFile | None = None

    @property
    def origin(self) -> Sequence[DataSource]:
        """The data that it was of."""
        from decisor.trace.events import RunStart, events_of

        if self.document:
            return self.document.record.content.data.sources
        return next((one.provenance.sources for one in events_of(self.entries, RunStart)), ())


async def verdicts_of(runs: Sequence[OldRun], sources: Sources | None) -> list[tuple[str, Verification]]:
    """``sources``: those that a person names, for all. The data are opened once for runs of the same ones."""
    from decisor.session.as_it_was import as_it_was
    from decisor.session.data import opened
    from decisor.session.sources import sources_of
    from decisor.session.token_keys import with_seed
    from decisor.session.verify import verify, verify_record

    def sources_for(run: OldRun) -> Sources:
        named = sources or run.sources or sources_of()
        has_policy = any(place.policy for place in named.places)
        seen = named if has_policy or named is run.sources else as_it_was(named, run.origin)
        return with_seed(seen, next((one.seed for one in run.origin if one.mask), ""))

    verdicts = []
    for own, group in groupby(runs, sources_for):
        async with opened(own) as data:
            verdicts += [(run.name, await verify_record(run.document, data) if run.document
                          else await verify(run.entries, data)) for run in group]  # fmt: skip
    return verdicts


def old_runs(place: str) -> Iterator[OldRun]:
    """Raises SetupError where there is none."""
    from decisor.decision_record.read import is_record

    path = Path(place)
    if place == "last" or (place.isdecimal() and not path.exists()):
        yield of_history(place)
    elif path.is_dir():
        files = sorted(file for file in path.glob("*.json*") if file.suffix == ".jsonl" or is_record(file))
        if not files:
            raise SetupError("There is no trace (*.jsonl) or record (*.json) there; decisor ask --trace FILE or "
                             "--record FILE writes one.")  # fmt: skip
        yield from map(of_file, files)
    elif is_store(place):
        yield from of_store(place)
    else:
        yield of_file(path)


def of_file(path: Path) -> OldRun:
    """Of a trace or a record."""
    from decisor.decision_record.read import is_record, read_record
    from decisor.trace.file import read_trace

    if is_record(path):
        return OldRun(str(path), document=read_record(path))
    return OldRun(str(path), read_trace(path))


def of_history(place: str) -> OldRun:
    from decisor.cli.again import sources_named
    from decisor.cli.history import run_named
    from decisor.config.current import current
    from decisor.history.store import History

    history = History()
    run = run_named(history, place)
    named = run.inputs
    places = [*named.db, *named.graph, *named.docs, *([named.model] if named.model else [])]
    known = bool(places) and not named.left_out and Path(named.folder or ".") == Path.cwd()
    if not known:
        return OldRun(f"run {run.number}", history.entries(run.number))
    own = sources_named(replace(named, tools=()), current())
    return OldRun(f"run {run.number}", history.entries(run.number), own)


def is_store(place: str) -> bool:
    if place.startswith(("postgresql://", "postgres://")):
        return True
    with suppress(OSError), Path(place).open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE
    return False


def of_store(place: str) -> Iterator[OldRun]:
    """Its cases that were answered."""
    from decisor.evaluation.store.open import open_store

    with closing(open_store(place, create=False)) as store:
        for outcome in store.each_outcome():
            if outcome.answer:
                yield OldRun(" ".join(map(str, outcome.key)), store.trace(outcome.key))


def show(name: str, one: Verification) -> None:
    from decisor.session.verify_words import verification_lines

    first, *rest = verification_lines(one)
    print(f"{name}: {first}", *rest, sep="\n")
