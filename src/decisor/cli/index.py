"""``decisor index``: documents cut into passages and indexed; the second time, only what changed."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from decisor.cli.console import error_console, print_json
from decisor.cli.exits import Exit
from decisor.cli.settings import tell_folder_file
from decisor.config.connection import Connection
from decisor.config.current import current
from decisor.plurals import counted
from decisor.render.text import one_line
from decisor.secrets import without_password
from decisor.session.indexing import IndexRequest, index

if TYPE_CHECKING:
    from decisor.tools.documents.folder import FolderReader
    from decisor.tools.documents.update import Changes, Progress

SHOWN = 20
TABLE = "Of a database: a table to read, once for each; all unless said."
OUT = "A folder for the index, or postgresql://HOST/DATABASE/TABLE. An index that is there is updated."
SOURCE = (
    "A folder, a file (text, Markdown, HTML, PDF, Word, PowerPoint, Excel, JSON lines, CSV), a database's URL, or the "
    "name of a connection."
)


def command(
    source: Annotated[str, typer.Argument(help=SOURCE)],
    out: Annotated[str, typer.Option("--out", metavar="PLACE", help=OUT)],
    dense: Annotated[bool, typer.Option("--dense", help="Vectors too, by the model on this machine (slow).")] = False,
    embed: Annotated[str, typer.Option("--embed", metavar="MODEL@URL", help="Vectors too, by an endpoint.")] = "",
    words: Annotated[int, typer.Option("--words", min=20, max=2000, help="About so many words a passage.")] = 100,
    language: Annotated[str, typer.Option("--language", help="Of the documents; none: words as they are.")] = "english",
    table: Annotated[list[str] | None, typer.Option("--table", metavar="TABLE", help=TABLE)] = None,
    text: Annotated[str, typer.Option("--text", metavar="COLUMN", help="Of rows: what is the text.")] = "",
    title: Annotated[str, typer.Option("--title", metavar="COLUMN", help="Of rows: what is the title.")] = "",
    id: Annotated[str, typer.Option("--id", metavar="COLUMN", help="Of rows: what names them for good.")] = "",
    fresh: Annotated[bool, typer.Option("--fresh", help="Build anew, also what did not change.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Index documents, so that decisor ask --docs can find passages in them.

    The same command once more updates the index: what is new or changed is read, what is gone is taken out. A build
    that is stopped leaves the index as it was.
    """
    from decisor.tools.documents.row_documents import RowForm

    form = RowForm(text, title, id, words)
    config = current()
    place = config.connections.get(source, source)
    if isinstance(place, Connection):
        tell_folder_file(config)
    request = IndexRequest(place, out, language, dense, embed, form, table or (), fresh)
    report = index(request, partial(bar, quiet=as_json))
    changes, reading = report.changes, report.reading
    summary: dict[str, Any] = {**figures(changes), "index": without_password(out), "bytes": report.bytes}
    if reading is not None:
        summary |= {"other_kinds": dict(reading.strange), "outside": reading.outside}
    if as_json:
        print_json(summary)
    else:
        say(changes, summary)
    if not changes.passages:
        raise typer.Exit(Exit.FAILED)


def bar(reading: FolderReader | None, quiet: bool) -> AbstractContextManager[Progress]:
    """A bar on standard error, where that is a terminal: bytes read, documents, passages."""
    if quiet or not sys.stderr.isatty():
        return nullcontext(lambda key, passages: None)
    return Bar(reading)


class Bar:
    """Shows what ``update`` tells of each document."""

    def __init__(self, reading: FolderReader | None) -> None:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

        columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
        self.reading, self.documents = reading, 0
        self.progress = Progress(*columns, console=error_console(), transient=True, refresh_per_second=5)

    def __enter__(self) -> Progress:
        self.progress.start()
        self.task = self.progress.add_task("reading", total=self.reading.total if self.reading else None)
        return self.hear

    def hear(self, key: str, passages: int) -> None:
        self.documents += 1
        if self.documents % 50 == 1 or self.reading is None or len(self.reading.files) < 1000:
            text = f"{counted(self.documents, 'document')}, {counted(passages, 'new passage')} · {one_line(key, 40)}"
            self.progress.update(self.task, description=text, completed=self.reading.at if self.reading else None)

    def __exit__(self, *failure: object) -> None:
        self.progress.stop()


def figures(changes: Changes) -> dict[str, Any]:
    """By the names that --json has."""
    return {"kept" if name == "unchanged" else name: value for name, value in asdict(changes).items()}


def say(changes: Changes, summary: dict[str, Any]) -> None:
    """What became of the documents, and what was left out."""
    if changes.passages:
        print(f"{summary['index']}: {counted(changes.passages, 'passage')}, {size_in_words(summary['bytes'])}")
        counts = {name: summary[name] for name in ("added", "updated", "deleted", "kept")}
        print("Documents: " + ", ".join(f"{count:,} {name}" for name, count in counts.items()))
    if changes.anew:
        print(f"Built anew, since {changes.anew}.")
    if changes.unread:
        print(f"Not read: {changes.unread:,}")
        for key, why in changes.skipped[:SHOWN]:
            print(f"  {one_line(key, 80)}: {one_line(why, 120)}")
        if changes.unread > SHOWN:
            print(f"  and {changes.unread - SHOWN:,} more (--json names the first {len(changes.skipped):,})")
    if kinds := summary.get("other_kinds"):
        print("Left out: " + ", ".join(f"{count:,} {one_line(kind, 20)}" for kind, count in sorted(kinds.items())))
    if not changes.passages:
        print(nothing(summary, bool(changes.unread)))
    if outside := summary.get("outside"):
        print(f"Links that lead outside, not followed: {', '.join(one_line(name, 60) for name in outside[:SHOWN])}")


def nothing(summary: dict[str, Any], unread: bool) -> str:
    """Why there are no passages, where no document said so, and what became of the index."""
    from decisor.tools.documents.folder import KINDS
    from decisor.tools.documents.index_files import is_index
    from decisor.tools.documents.postgres import names_table

    why = ""
    if not unread:
        documents = f"There are no documents in it (these can be read: {' '.join(KINDS)}). "
        why = documents if "other_kinds" in summary else "There are no rows in the database. "
    out = summary["index"]
    stays = names_table(out) or is_index(Path(out))
    return f"{why}Nothing could be indexed: {f'{out} stays as it was' if stays else 'no index was made'}."


def size_in_words(size: int) -> str:
    """
    >>> size_in_words(45_300), size_in_words(12_345_678)
    ('45.3 kB', '12.3 MB')
    """
    return f"{size / 1e3:,.1f} kB" if size < 1e6 else f"{size / 1e6:,.1f} MB"
