"""Documents from a folder, a file or the rows of a table.

The end of a file's name tells its reader. Each row of JSON lines, CSV or a database table is a document that is added,
changed and deleted by itself. Other files are parsed in a child process with little memory, time and environment,
because any file can be a bomb. The child gets a line of JSON for each file, [kind, path], and answers with a line:
title and blocks, or the reason of the failure. A child that takes too long is killed, and a new one goes on.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Timer
from typing import IO, TYPE_CHECKING, TypeAlias, cast

from decisor.databases.files.columns import TOO_LARGE, limit_reader_memory, reason_of_end
from decisor.documents.formats import READERS, UnreadableDocument, read_document
from decisor.documents.index import SourceDocument, is_index
from decisor.documents.passage import (
    WORDS,
    DocumentContent,
    Passage,
    TextBlock,
    clean_document_text,
    cut_passages,
    has_at_most_words,
)
from decisor.errors import SetupError
from decisor.system.processes import start_child
from decisor.system.storage import stamp_of
from decisor.types import Value

if TYPE_CHECKING:
    from decisor.databases.sql import SqlTool


LONGEST_ANSWER = 400_000_000


@dataclass
class ParserProcess:
    """A child process that parses files."""

    seconds: float = 60.0
    """Time limit for one file; twice that for a PDF."""
    child: subprocess.Popen[bytes] | None = None

    def read(self, kind: str, path: Path, tries: int = 2) -> DocumentContent:
        """Read one file in the child.

        A child that was ended from outside (SIGTERM, as when the thread that started it ends) is replaced once.

        Raises:
            UnreadableDocument: it cannot be read, or takes too much memory or time.
            SetupError: a library is not installed.
        """
        child = self.child = self.child if self.child and self.child.poll() is None else start_child(__name__)
        assert child.stdin is not None and child.stdout is not None
        seconds = self.seconds * (2 if kind == ".pdf" else 1)
        until = time.monotonic() + seconds
        # A thread kills it: readline blocks, and a parser in C code hears no signal of Python.
        timer = Timer(seconds, child.kill)
        timer.daemon = True  # an interrupt may come before it can be cancelled
        try:
            timer.start()
            child.stdin.write(json.dumps([kind, str(path.absolute())]).encode() + b"\n")
            child.stdin.flush()
            # The child answers one file at a time; a line without its end means that it is gone.
            line = child.stdout.readline(LONGEST_ANSWER)
        except OSError:
            line = b""
        finally:
            timer.cancel()
        if not line.endswith(b"\n"):
            self.close()
            if child.returncode == -signal.SIGTERM and tries > 1:
                return self.read(kind, path, tries - 1)
            is_late = time.monotonic() >= until
            raise UnreadableDocument(
                f"it takes more than {seconds:g} seconds" if is_late else reason_of_end(child.returncode)
            )
        reply = json.loads(line)
        if "setup" in reply:
            raise SetupError(reply["setup"])
        if "error" in reply:
            raise UnreadableDocument(reply["error"])
        return DocumentContent(
            reply["title"], tuple(TextBlock(text, tuple(trail), head) for text, trail, head in reply["blocks"])
        )

    def close(self) -> None:
        if self.child is not None:
            self.child.kill()
            self.child.communicate()
            self.child = None


def parse_file(kind: str, path: str) -> dict[str, object]:
    try:
        content = read_document(kind, Path(path).read_bytes())
    except SetupError as error:
        return {"setup": str(error)}
    except UnreadableDocument as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": TOO_LARGE}
    except OSError as error:
        return {"error": f"it cannot be read: {error}"}
    return {"title": content.title, "blocks": [(block.text, block.trail, block.head) for block in content.blocks]}


def main() -> None:
    """Parse the files that standard input names, with limited memory and without a file to write to."""
    import resource

    # A parser that was taken over by a file could write none.
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    limit_reader_memory()
    for request in sys.stdin.buffer:
        sys.stdout.buffer.write(json.dumps(parse_file(*json.loads(request))).encode() + b"\n")
        sys.stdout.buffer.flush()


LONGEST_LINE = 4 * 2**20
MOST_ROWS = 1_000_000
TEXTS = ("text", "contents", "content", "body", "passage", "paragraph")
TITLES = ("title", "name", "heading")
IDS = ("id", "_id", "docid", "pid", "key")
WHOLE = 3
"""A row is one passage until it is so many times as long as a passage."""


@dataclass(frozen=True, slots=True)
class RowForm:
    """The columns of text, title and id. An empty name means the usual ones; without a text column all columns are the
    text."""

    text: str = ""
    title: str = ""
    id: str = ""
    words: int = WORDS
    """Length of a passage, in words."""

    def document(self, where: str, row: Mapping[str, Value], name: str) -> SourceDocument:
        """Build the document of a row; one that is reported and skipped if it has no text.

        ``where``: prefix of the id, as WHERE:ID, unless empty. A row without an id is identified by its content.
        ``name``: of the row, for complaints.
        """
        text_name, title_name, id_name = (
            column or find_filled_column(row, usual)
            for column, usual in ((self.text, TEXTS), (self.title, TITLES), (self.id, IDS))
        )
        title = clean_document_text(str(row.get(title_name) or ""))
        if text_name:
            text = clean_document_text(str(row.get(text_name) or "")).strip()
        else:
            lines = (
                f"{column}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)}"
                for column, value in row.items()
                if value not in (None, "", [], {})
            )
            text = clean_document_text("\n".join(lines)).strip()
        if not text:
            lacks = self.text and self.text not in row
            why = f"it has no {self.text}; it has {list_names(row)}" if lacks else "it has no text"
            return build_unreadable_document(name, why)
        stamp = stamp_of(title, text, str(self.words))
        id = clean_document_text(str(row[id_name])) if row.get(id_name) not in (None, "") else ""
        key = f"{where}{':' if where else ''}{id or stamp.hex()[:12]}"

        def cut() -> tuple[Passage, ...]:
            # A row belongs together: cut only if it is far longer than a passage.
            if has_at_most_words(text, WHOLE * self.words):
                return (Passage(key, text, title),)
            blocks = tuple(TextBlock(part) for part in text.split("\n\n"))
            return cut_passages(key, DocumentContent(title, blocks), self.words)

        return SourceDocument(key, stamp, cut)

    def missing(self, columns: Sequence[str]) -> str:
        """Return a complaint about named columns that a table lacks; empty if it has all."""
        lacking = [name for name in (self.text, self.title, self.id) if name and name not in columns]
        return f"it has no column {', '.join(lacking)}; it has {list_names(columns)}" if lacking else ""


def find_filled_column(row: Mapping[str, Value], usual: Sequence[str]) -> str:
    """Find the first usual column with a value, else the first that exists; empty without one."""
    present = [name for name in usual if name in row]
    return next((name for name in present if row[name] not in (None, "")), next(iter(present), ""))


def list_names(names: Iterable[str]) -> str:
    """Return the first ten names as text, with the number of the others.

    >>> list_names(f"c{number}" for number in range(20))
    'c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 and 10 more'
    """
    every = list(names)
    return ", ".join(every[:10]) + (f" and {len(every) - 10} more" if len(every) > 10 else "")


def looks_like_data(columns: Sequence[str]) -> bool:
    """Return whether a row is unlikely to be column names.

    It then has a number, an empty cell or a repeated cell, and no usual name.

    >>> looks_like_data(["1", "Genua", "A port"]), looks_like_data(["id", "1990", "1991"]), looks_like_data(["a", "b"])
    (True, False, False)
    """
    # A usual name settles it, whatever stands beside it.
    if {column.lower() for column in columns} & {*TEXTS, *TITLES, *IDS}:
        return False
    number = any(column.strip().lstrip("+-").replace(".", "", 1).isdecimal() for column in columns)
    return number or not all(columns) or len(set(columns)) < len(columns)


def build_unreadable_document(key: str, why: str) -> SourceDocument:
    """Build a document that is reported and skipped when its turn comes."""

    def cut() -> tuple[Passage, ...]:
        raise UnreadableDocument(why)

    return SourceDocument(key, b"", cut)


Rows: TypeAlias = Iterator[tuple[str, Mapping[str, Value] | str]]
"""Place of each row in its file, such as " line 7", and the row or why it cannot be used. The place of a file is ''."""


def iterate_json_rows(lines: IO[bytes], form: RowForm) -> Rows:
    """Iterate over JSON lines."""
    number = 0
    while line := lines.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            yield "", f"line {number} is longer than {LONGEST_LINE:,} bytes; what follows is not read"
            return
        if line.strip():
            try:
                row = json.loads(line.decode("utf-8-sig"))
                yield f" line {number}", row if isinstance(row, dict) else "it is no JSON object"
            except (ValueError, RecursionError):
                yield f" line {number}", "it is no JSON in UTF-8"
    if not number:
        yield "", "it is empty"


def iterate_csv_rows(file: IO[bytes], form: RowForm) -> Rows:
    """Iterate over the rows of a CSV file.

    The first row names the columns. The separator is the most frequent of comma, semicolon and tab in it.
    """
    csv.field_size_limit(LONGEST_LINE)
    lines = (line.decode("utf-8-sig", "replace") for line in iter(lambda: file.readline(LONGEST_LINE), b""))
    first, number = next(lines, ""), 1
    mark = max(",;\t", key=first.count)
    columns = next(csv.reader([first], delimiter=mark), [])
    if why := form.missing(columns):
        yield "", why
        return
    if columns and looks_like_data(columns):
        yield (
            " row 1",
            f"taken for names of columns ({list_names(columns)}): if it is data, put a row of names above it",
        )
    for number, cells in enumerate(csv.reader(lines, delimiter=mark), 2):
        yield f" row {number}", dict(zip(columns, cells, strict=False))
    if number == 1:
        yield "", "it has no rows below the names of its columns" if first else "it is empty"


async def read_table_documents(tool: SqlTool, names: Sequence[str], form: RowForm) -> list[SourceDocument]:
    """Read one document for each row of all or of the named tables, under TABLE:KEY.

    The rows are read through the sandbox.

    Raises:
        SetupError: there is no such table.
        ToolError: it cannot be read.
    """
    table_of_name = {table.name: table for table in tool.tables}
    if missing := [name for name in names if name not in table_of_name]:
        others = f"there is {list_names(table_of_name)}" if table_of_name else "the database has no tables"
        raise SetupError(f"There is no table {', '.join(missing)}; {others}.")
    documents: list[SourceDocument] = []
    for table in [table_of_name[name] for name in names] or tool.tables:
        quoted = ".".join(map(tool.quoted, table.name.split(".")))
        rows = await tool.fetch(f"SELECT * FROM {quoted}", MOST_ROWS)
        if why := form.missing([column.name for column in table.columns]):
            documents.append(build_unreadable_document(table.name, why))
            continue
        keys = [column.name for column in table.columns if column.key]
        # A single primary key names a row for good; its content, the fallback, makes each change another document.
        keyed = replace(form, id=form.id or (keys[0] if len(keys) == 1 else ""))
        for number, row in enumerate(rows.rows, 1):
            values = dict(zip(rows.columns, row, strict=True))
            documents.append(keyed.document(table.name, values, f"{table.name} row {number}"))
        if rows.truncated:
            documents.append(build_unreadable_document(table.name, f"only the first {len(rows.rows):,} rows are read"))
    return documents


LARGEST = 100 * 2**20
ROWS: dict[str, Callable[[IO[bytes], RowForm], Rows]] = {
    ".jsonl": iterate_json_rows,
    ".ndjson": iterate_json_rows,
    ".csv": iterate_csv_rows,
    ".tsv": iterate_csv_rows,
}
KINDS = (*READERS, *ROWS)


@dataclass
class FolderReader:
    """A folder or file that is being read."""

    root: Path
    form: RowForm = field(default_factory=RowForm)
    total: int = 0
    """Bytes of all files."""
    at: int = 0
    """Bytes read so far, for a progress bar."""
    strange: Counter[str] = field(default_factory=Counter)
    """Number of files left out, by the end of their names."""
    outside: list[str] = field(default_factory=list)
    """Links that lead out of the folder or to no file."""
    parser: ParserProcess = field(default_factory=ParserProcess)

    def __post_init__(self) -> None:
        if not self.root.exists():
            raise SetupError(f"There is nothing at {self.root}: name a folder, a file, or the URL of a database.")
        if self.root.is_file() and read_file_suffix(self.root) not in KINDS:
            raise SetupError(f"{self.root} cannot be read: it ends in none of {' '.join(KINDS)}.")
        self.files = [self.root] if self.root.is_file() else list(self._walk())
        self.total = sum(path.stat().st_size for path in self.files)

    def documents(self) -> Iterator[SourceDocument]:
        done = 0
        for path in self.files:
            name = build_file_key(path, self.root)
            kind = read_file_suffix(path)
            if kind in ROWS:
                yield from self._rows(path, name, kind)
            else:
                yield build_file_document(path, name, self.parser, self.form.words)
            self.at = (done := done + path.stat().st_size)

    def _rows(self, path: Path, name: str, kind: str) -> Iterator[SourceDocument]:
        """Iterate over one document for each row; unusable rows give unreadable ones."""
        before, place, where = self.at, "", "" if self.root.is_file() else name
        try:
            with path.open("rb") as raw:
                lines = cast(IO[bytes], gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw)
                for place, row in ROWS[kind](lines, self.form):
                    self.at = before + raw.tell()
                    if isinstance(row, str):
                        yield build_unreadable_document(f"{name}{place}", row)
                    else:
                        yield self.form.document(where, row, f"{name}{place}")
        except (OSError, EOFError, zlib.error, csv.Error) as error:
            why = (error.strerror if isinstance(error, OSError) else "") or error
            yield build_unreadable_document(name, f"it cannot be read{' after' if place else ''}{place}: {why}")

    def close(self) -> None:
        """End the process that parses."""
        self.parser.close()

    def _walk(self) -> Iterator[Path]:
        """Iterate over regular files in the order of their names; hidden ones and indexes are left out.

        A link counts if it leads to a regular file within the folder.
        """
        # A link out of the folder would index files that nobody named.
        real = self.root.resolve()
        for folder, inner, names in os.walk(self.root):
            inner[:] = sorted(name for name in inner if name[0] != "." and not is_index(Path(folder) / name))
            for name in sorted(names):
                path = Path(folder) / name
                if name.startswith("."):
                    continue
                target = path.resolve()
                leads_inside = path.is_symlink() and target.is_file() and target.is_relative_to(real)
                if not stat.S_ISREG(path.lstat().st_mode) and not leads_inside:
                    self.outside.append(build_file_key(path, self.root))
                elif read_file_suffix(path) in KINDS:
                    yield path
                else:
                    self.strange[path.suffix.lower() or "no ending"] += 1


def build_file_key(path: Path, root: Path) -> str:
    """Return the path of a file below its folder, or its name if it is the root.

    Bytes that are not UTF-8 are replaced.
    """
    name = path.name if path == root else path.relative_to(root).as_posix()
    return os.fsencode(name).decode("utf-8", "replace")


def read_file_suffix(path: Path) -> str:
    """Return the lower-case suffix of a file; for compressed rows the one before ``.gz``.

    >>> read_file_suffix(Path("a/B.MD")), read_file_suffix(Path("c.jsonl.gz")), read_file_suffix(Path("d.txt.gz"))
    ('.md', '.jsonl', '.gz')
    """
    suffix = path.suffix.lower()
    inner = Path(path.stem).suffix.lower()
    return inner if suffix == ".gz" and inner in ROWS else suffix


def build_file_document(path: Path, name: str, parser: ParserProcess, words: int) -> SourceDocument:
    """Build the document of one file, titled by its own title or else by its name."""
    try:
        if path.stat().st_size > LARGEST:
            return build_unreadable_document(name, f"it is larger than {LARGEST >> 20} MB: split it")
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).digest()
    except OSError as error:
        return build_unreadable_document(name, f"it cannot be read: {error.strerror}")

    def cut() -> tuple[Passage, ...]:
        content = parser.read(read_file_suffix(path), path)
        return cut_passages(name, DocumentContent(content.title or Path(name).stem, content.blocks), words)

    return SourceDocument(name, stamp_of(digest, str(words)), cut)
