"""How a delimited file is written: its separator, quotes and header, and texts from all over it."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from decisor.tools.databases.files.header import Header, find_header, kind_of_cell, unique

SEPARATORS = ("\t", ";", "|", ",")
"""In the order in which one is taken where two part all rows alike: a comma stands within values most often."""
NO_SEPARATOR = "\x1f"
HEAD_BYTES, PROBE_BYTES, PROBES = 2**18, 2**16, 8
"""Of the start of a file, and of some places spread over the rest of it."""
csv.field_size_limit(2**24)


@dataclass(frozen=True, slots=True)
class Dialect:
    """``skip``: lines before the first row of data. ``names``: of the columns, each once."""

    separator: str
    quote: str
    escape: str
    skip: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sketch:
    """What the start of a file and some places of it show. ``titles``: the names as they stand there."""

    dialect: Dialect
    header: Header
    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def sketch_of(path: Path, head: str, is_whole: bool) -> Sketch | None:
    """``head``: the first text of the file, up to its end if ``is_whole``. None if it holds no row."""
    if not is_whole:
        head = head[: head.rfind("\n") + 1] or head
    quote = "'" if '"' not in head and re.search(r"(?:^|[,;\t|])'[^'\n]*'(?:[,;\t|]|$)", head, re.M) else '"'
    escape = "\\" if f"\\{quote}" in head and quote * 2 not in head else quote
    separator = separator_of(head, quote, escape)
    rows = rows_in(head, separator, quote, escape)
    header = find_header([[cell.strip() for cell in row] for row in rows])
    if header is None:
        return None
    titles = tuple(rows[header.row]) if header.is_named else ("",) * len(rows[header.row])
    wider = Counter(len(row) for row in rows[header.row + 1 :]).most_common(1)
    if wider and len(titles) < wider[0][0] <= len(titles) + 1:
        titles = (*titles, "")  # the rows end with a separator, or their names have no title
    first = header.row + header.is_named  # DuckDB counts a line break in quotes as no new line, as Python does
    dialect = Dialect(separator, quote, escape, first, tuple(unique(titles)))
    body = [row for row in rows[first:] if len(row) == len(titles)]
    if not is_whole and path.suffix.lower() != ".gz":
        body += [row for row in probes(path, dialect) if len(row) == len(titles)]
    return Sketch(dialect, header, titles, tuple(map(tuple, body)))


def separator_of(head: str, quote: str, escape: str) -> str:
    """Return what parts most rows into the same number of values. Titles above the first such row do not count against
    it, unless another separator parts them too. One column of numbers with commas under its name is not parted."""
    best, best_share = NO_SEPARATOR, 0.0
    name, *lines = [row[0] for row in rows_in(head[:PROBE_BYTES], NO_SEPARATOR, quote, escape) if row] or [""]
    kinds = set(map(kind_of_cell, lines)) - {"empty"}
    if kinds == {"number"} and kind_of_cell(name) == "text" and not set(name) & set(SEPARATORS):
        return best
    for separator in SEPARATORS:
        widths = [len(row) for row in rows_in(head[:PROBE_BYTES], separator, quote, escape) if row]
        counts = Counter(width for width in widths if width > 1)
        if not counts:
            continue
        usual, alike = counts.most_common(1)[0]
        share, begin = alike / len(widths), widths.index(usual)
        is_split = 2 * alike > len(widths) - begin > 2 * widths[begin:].count(1) + (1 if begin else 0)
        if share > best_share and is_split:
            best, best_share = separator, share
    return best


def rows_in(text: str, separator: str, quote: str, escape: str) -> list[list[str]]:
    """Return rows as far as they can be read; a blank line is a row without cells."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, quotechar=quote,
                        doublequote=escape == quote, escapechar=None if escape == quote else escape)  # fmt: skip
    rows: list[list[str]] = []
    with suppress(csv.Error):
        rows.extend(reader)
    return rows


def probes(path: Path, dialect: Dialect) -> Sequence[list[str]]:
    """Return rows from places spread over the file, so that what comes late is seen."""
    size = path.stat().st_size
    rows: list[list[str]] = []
    with path.open("rb") as file:
        for number in range(1, PROBES):
            file.seek(max(0, size * number // (PROBES - 1) - PROBE_BYTES))
            lines = file.read(PROBE_BYTES).decode("utf-8", "replace").splitlines(keepends=True)[1:-1]
            rows += rows_in("".join(lines), dialect.separator, dialect.quote, dialect.escape)
    return rows
