"""``decisor index``: documents cut into passages and indexed on disk; the second time, only what changed."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from decisor.cli.exits import Exit
from decisor.errors import SetupError
from decisor.render.text import one_line
from decisor.secrets import without_password
from decisor.tools.databases.sandbox.urls import names_database

if TYPE_CHECKING:
    from decisor.tools.documents.embedder import Embedder
    from decisor.tools.documents.index_build import Changes, Document, Progress
    from decisor.tools.documents.row_documents import RowForm

SHOWN = 20
TABLE = "Of a database: a table to read, once for each; all unless said."
SOURCE = "A folder, a file (text, Markdown, HTML, PDF, JSON lines, CSV), or the URL of a database."


def command(
    source: Annotated[str, typer.Argument(help=SOURCE)],
    out: Annotated[Path, typer.Option("--out", help="A folder for the index. An index that is there is updated.")],
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
    from decisor.tools.documents.bm25 import analyzer
    from decisor.tools.documents.index_build import update
    from decisor.tools.documents.index_files import About
    from decisor.tools.documents.row_documents import RowForm

    analyzer(language)
    embedder = embedder_of(dense, embed)
    if embedder is None and not fresh:
        vectors_stay(out)
    form = RowForm(text, title, id, words)
    about = About(language=language, words=words)
    with OpenSource(source, form, table or []) as (documents, reading), bar(reading, as_json) as progress:
        changes = update(documents, out, about, embedder, fresh, progress, may_be_empty=False)
    summary: dict[str, Any] = {**figures(changes), "index": str(out), "bytes": size_of(out)}
    if reading is not None:
        summary |= {"other_kinds": dict(reading.strange), "outside": reading.outside}
    if as_json:
        print(json.dumps(summary, ensure_ascii=False))
    else:
        say(changes, summary)
    if not changes.passages:
        raise typer.Exit(Exit.FAILED)


def embedder_of(dense: bool, embed: str) -> Embedder | None:
    if embed:
        from decisor.lms.embeddings import embedder

        return embedder(embed)
    if not dense:
        return None
    from decisor.tools.documents.minilm import MiniLM

    return MiniLM.open()


def vectors_stay(out: Path) -> None:
    """Raises SetupError where an index with vectors would be replaced by one without."""
    from decisor.tools.documents.index_files import current, is_index, read_about
    from decisor.tools.documents.minilm import NAME

    if not is_index(out):
        return
    name = ""
    with suppress(SetupError):
        name = read_about(out / str(current(out))).embedder
    if name:
        option = "--dense" if name == NAME else f"--embed {name}@URL"
        raise SetupError(f"The index in {out} holds vectors by {name}: add {option}, or --fresh to build without them.")


class OpenSource:
    """The documents of a source, and what reads them (None for a database)."""

    def __init__(self, source: str, form: RowForm, tables: Sequence[str]) -> None:
        self.source, self.form, self.tables = source, form, tables
        self.reading: Any = None

    def __enter__(self) -> tuple[Iterable[Document], Any]:
        from decisor.tools.documents.folder import Reading
        from decisor.tools.documents.index_files import is_index

        if self.source.lower().startswith(("http://", "https://")):
            raise SetupError(f"Pages are not fetched: save {without_password(self.source)} to a file and name that.")
        if is_index(Path(self.source)):
            raise SetupError(f"{self.source} is an index: ask of it (--docs), or name the documents it is made of.")
        if "://" in self.source or is_database(Path(self.source)):
            return asyncio.run(rows_of(self.source, self.form, self.tables)), None
        if self.tables:
            raise SetupError(f"--table is for databases, and {without_password(self.source)} is none.")
        self.reading = Reading(Path(self.source), self.form)
        return self.reading.documents(), self.reading

    def __exit__(self, *failure: object) -> None:
        if self.reading is not None:
            self.reading.close()


def is_database(path: Path) -> bool:
    return names_database(path.name) and path.is_file()


async def rows_of(url: str, form: RowForm, tables: Sequence[str]) -> list[Document]:
    from decisor.tools.databases.sql import SqlTool
    from decisor.tools.documents.row_documents import table_documents

    tool = await SqlTool.open(url)
    try:
        return await table_documents(tool, tables, form)
    finally:
        await tool.close()


def bar(reading: Any, quiet: bool) -> AbstractContextManager[Progress]:
    """A bar on standard error, where that is a terminal: bytes read, documents, passages."""
    if quiet or not sys.stderr.isatty():
        return nullcontext(lambda key, passages: None)
    return Bar(reading)


class Bar:
    """Shows what ``update`` tells of each document."""

    def __init__(self, reading: Any) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

        columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
        self.reading, self.documents = reading, 0
        self.progress = Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=5)

    def __enter__(self) -> Progress:
        self.progress.start()
        self.task = self.progress.add_task("reading", total=self.reading.total if self.reading else None)
        return self.hear

    def hear(self, key: str, passages: int) -> None:
        self.documents += 1
        if self.documents % 50 == 1 or self.reading is None or len(self.reading.files) < 1000:
            text = f"{self.documents:,} documents, {passages:,} new passages · {one_line(key, 40)}"
            self.progress.update(self.task, description=text, completed=self.reading.at if self.reading else None)

    def __exit__(self, *failure: object) -> None:
        self.progress.stop()


def figures(changes: Changes) -> dict[str, Any]:
    """By the names that --json has."""
    return {"kept" if name == "unchanged" else name: value for name, value in asdict(changes).items()}


def say(changes: Changes, summary: dict[str, Any]) -> None:
    """What became of the documents, and what was left out."""
    if changes.passages:
        print(f"{summary['index']}: {changes.passages:,} passages, {summary['bytes'] / 1e6:,.1f} MB")
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

    why = ""
    if not unread:
        documents = f"There are no documents in it (these can be read: {' '.join(KINDS)}). "
        why = documents if "other_kinds" in summary else "There are no rows in the database. "
    out = Path(summary["index"])
    return f"{why}Nothing could be indexed: {f'{out} stays as it was' if is_index(out) else 'no index was made'}."


def size_of(folder: Path) -> int:
    return sum((Path(at) / name).stat().st_size for at, _, names in os.walk(folder) for name in names)
