"""Rows of JSON lines, CSV and database tables as documents: each is added, changed and deleted by itself."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from decisor.cache import stamp_of
from decisor.errors import SetupError
from decisor.tools.documents.cutting import WORDS, Block, Content, fits, passages, tidy
from decisor.tools.documents.passage import Passage
from decisor.tools.documents.text_formats import Unreadable
from decisor.tools.documents.update import Document
from decisor.types import Value

if TYPE_CHECKING:
    from decisor.tools.databases.sql import SqlTool

LONGEST_LINE = 4 * 2**20
MOST_ROWS = 1_000_000
TEXTS = ("text", "contents", "content", "body", "passage", "paragraph")
TITLES = ("title", "name", "heading")
IDS = ("id", "_id", "docid", "pid", "key")
WHOLE = 3
"""A row is one passage until it is so many times as long as a passage."""


@dataclass(frozen=True, slots=True)
class RowForm:
    """Which columns hold what; '' takes the usual names. Without a text column all columns are the text."""

    text: str = ""
    title: str = ""
    id: str = ""
    words: int = WORDS

    def document(self, where: str, row: Mapping[str, Value]) -> Document:
        """``where`` is put before its id, as WHERE:ID, unless it is ''. A row without an id is known by its content.

        Raises:
            Unreadable: it has no text.
        """
        text_name, title_name, id_name = (
            column or first_of(row, usual)
            for column, usual in ((self.text, TEXTS), (self.title, TITLES), (self.id, IDS))
        )
        title = tidy(str(row.get(title_name) or ""))
        if text_name:
            text = tidy(str(row.get(text_name) or "")).strip()
        else:
            lines = (f"{name}: {plain(value)}" for name, value in row.items() if value not in (None, "", [], {}))
            text = tidy("\n".join(lines)).strip()
        if not text:
            lacks = self.text and self.text not in row
            raise Unreadable(f"it has no {self.text}; it has {names_of(row)}" if lacks else "it has no text")
        stamp = stamp_of(title, text, str(self.words))
        own = tidy(str(row[id_name])) if row.get(id_name) not in (None, "") else ""
        own = own or stamp.hex()[:12]
        key = f"{where}:{own}" if where else own

        def cut() -> tuple[Passage, ...]:
            if fits(text, WHOLE * self.words):
                return (Passage(key, text, title),)
            blocks = tuple(Block(part) for part in text.split("\n\n"))
            return passages(key, Content(title, blocks), self.words)

        return Document(key, stamp, cut)

    def missing(self, columns: Sequence[str]) -> str:
        """What is said of a table without a column that was named; '' where all are there."""
        lacking = [name for name in (self.text, self.title, self.id) if name and name not in columns]
        return f"it has no column {', '.join(lacking)}; it has {names_of(columns)}" if lacking else ""


def first_of(row: Mapping[str, Value], usual: Sequence[str]) -> str:
    """The first of these columns that holds something, else the first that is there at all; '' where none is."""
    present = [name for name in usual if name in row]
    return next((name for name in present if row[name] not in (None, "")), next(iter(present), ""))


def names_of(names: Iterable[str]) -> str:
    """
    >>> names_of(f"c{number}" for number in range(20))
    'c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 and 10 more'
    """
    every = list(names)
    return ", ".join(every[:10]) + (f" and {len(every) - 10} more" if len(every) > 10 else "")


def looks_like_data(columns: Sequence[str]) -> bool:
    """A row that is unlikely to name columns: it has a number, an empty cell or the same twice, and no usual name.

    >>> looks_like_data(["1", "Genua", "A port"]), looks_like_data(["id", "1990", "1991"]), looks_like_data(["a", "b"])
    (True, False, False)
    """
    if {column.lower() for column in columns} & {*TEXTS, *TITLES, *IDS}:
        return False
    number = any(column.strip().lstrip("+-").replace(".", "", 1).isdecimal() for column in columns)
    return number or not all(columns) or len(set(columns)) < len(columns)


def plain(value: Value) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def bad(key: str, why: str) -> Document:
    """A document that is named and skipped when its turn comes."""

    def cut() -> tuple[Passage, ...]:
        raise Unreadable(why)

    return Document(key, b"", cut)


def json_documents(lines: IO[bytes], name: str, where: str, form: RowForm) -> Iterator[Document]:
    """A document for each line; lines that cannot be used are bad ones. ``name`` is the file's, for complaints."""
    number = 0
    try:
        while line := lines.readline(LONGEST_LINE + 1):
            number += 1
            if len(line) > LONGEST_LINE:
                yield bad(name, f"line {number} is longer than {LONGEST_LINE:,} bytes; what follows is not read")
                return
            if line.strip():
                yield _row(line, f"{name} line {number}", where, form)
        if not number:
            yield bad(name, "it is empty")
    except (OSError, EOFError) as error:
        yield bad(name, f"it cannot be read after line {number}: {error}")


def _row(line: bytes, name: str, where: str, form: RowForm) -> Document:
    try:
        row = json.loads(line.decode("utf-8-sig"))
        if not isinstance(row, dict):
            return bad(name, "it is no JSON object")
        return form.document(where, row)
    except (ValueError, RecursionError):
        return bad(name, "it is no JSON in UTF-8")
    except Unreadable as error:
        return bad(name, str(error))


def csv_documents(file: IO[bytes], name: str, where: str, form: RowForm) -> Iterator[Document]:
    """The first row names the columns; comma, semicolon or tab, whichever it has most of."""
    csv.field_size_limit(LONGEST_LINE)
    number = 1
    try:
        lines = (line.decode("utf-8-sig", "replace") for line in iter(lambda: file.readline(LONGEST_LINE), b""))
        first = next(lines, "")
        mark = max(",;\t", key=first.count)
        columns = next(csv.reader([first], delimiter=mark), [])
        if why := form.missing(columns):
            yield bad(name, why)
            return
        if columns and looks_like_data(columns):
            why = f"taken for names of columns ({names_of(columns)}): if it is data, put a row of names above it"
            yield bad(f"{name} row 1", why)
        for number, cells in enumerate(csv.reader(lines, delimiter=mark), 2):
            try:
                yield form.document(where, dict(zip(columns, cells, strict=False)))
            except Unreadable as error:
                yield bad(f"{name} row {number}", str(error))
        if number == 1:
            yield bad(name, "it has no rows below the names of its columns" if first else "it is empty")
    except (OSError, EOFError, csv.Error) as error:
        yield bad(name, f"it cannot be read after row {number}: {error}")


async def table_documents(tool: SqlTool, names: Sequence[str], form: RowForm) -> list[Document]:
    """A document for each row, under TABLE:KEY; of all tables, or of those named. Read through the sandbox.

    Raises:
        SetupError: there is no such table.
        ToolError: it cannot be read.
    """
    there = {table.name: table for table in tool.tables}
    if missing := [name for name in names if name not in there]:
        others = f"there is {names_of(there)}" if there else "the database has no tables"
        raise SetupError(f"There is no table {', '.join(missing)}; {others}.")
    documents: list[Document] = []
    for table in [there[name] for name in names] or tool.tables:
        quoted = ".".join(map(tool.quoted, table.name.split(".")))
        rows = await tool.fetch(f"SELECT * FROM {quoted}", MOST_ROWS)
        if why := form.missing([column.name for column in table.columns]):
            documents.append(bad(table.name, why))
            continue
        keys = [column.name for column in table.columns if column.key]
        own = RowForm(form.text, form.title, form.id or (keys[0] if len(keys) == 1 else ""), form.words)
        for number, row in enumerate(rows.rows, 1):
            try:
                documents.append(own.document(table.name, dict(zip(rows.columns, row, strict=True))))
            except Unreadable as error:
                documents.append(bad(f"{table.name} row {number}", str(error)))
        if rows.truncated:
            documents.append(bad(table.name, f"only the first {len(rows.rows):,} rows are read"))
    return documents
