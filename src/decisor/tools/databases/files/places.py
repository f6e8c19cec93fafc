"""Which files a place names, and which of them make one table.

A place is a file, a folder, or a pattern such as ``data/*.parquet``. Files of one kind that a pattern names, or whose
names in a folder differ in digits only, are parts of one table where their columns agree.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from decisor.errors import SetupError
from decisor.secrets import without_password

KINDS = {
    ".csv": "csv", ".tsv": "csv", ".tab": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json",
    ".parquet": "parquet", ".pq": "parquet", ".xlsx": "excel", ".xlsm": "excel", ".xls": "excel", ".xlsb": "excel",
    ".ods": "excel", ".db": "sqlite", ".sqlite": "sqlite", ".sqlite3": "sqlite", ".db3": "sqlite", ".duckdb": "duckdb",
    ".ddb": "duckdb",
}  # fmt: skip
"""Ending -> how it is read. ``.gz`` may follow those of CSV and JSON."""
DATABASES = ("sqlite", "duckdb")
MOST_FILES = 10_000
PATTERN = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Part:
    """Files that are read alike. ``name``: of the table; of a workbook or database, how its tables begin, or ''."""

    name: str
    kind: str
    paths: tuple[str, ...]


def kind_of(path: str | Path) -> str:
    """
    >>> kind_of("a/sales.CSV"), kind_of("log.jsonl.gz"), kind_of("notes.txt")
    ('csv', 'json', '')
    """
    ending, *before = [one.lower() for one in reversed(Path(path).suffixes)] or [""]
    if ending == ".gz" and before:
        kind = KINDS.get(before[0], "")
        return kind if kind in ("csv", "json") else ""
    return KINDS.get(ending, "")


def names_files(place: str) -> bool:
    """Whether a place is read as files. One file with a database is not: it is asked as it is.

    >>> names_files("sales.csv"), names_files("data/*.parquet"), names_files("shop.db"), names_files("bolt://host")
    (True, True, False, False)
    """
    if "://" in place:
        return False
    return bool(PATTERN.search(place)) or kind_of(place) not in ("", *DATABASES) or Path(place).is_dir()


def parts_of(place: str) -> tuple[Part, ...]:
    """What is to be read.

    >>> parts_of("nowhere.csv")
    Traceback (most recent call last):
    decisor.errors.SetupError: There is no file nowhere.csv. Check the path.

    Raises:
        SetupError: there is nothing, or too much.
    """
    root = Path(place)
    if root.is_file():
        return (Part(table_name(root), kind_of(root), (str(root.absolute()),)),)
    if root.is_dir():
        paths = [path for path in root.rglob("*") if path.is_file() and not is_hidden(path, root)]
        base = root
    elif PATTERN.search(place):
        paths = [Path(name) for name in glob.glob(place, recursive=True) if Path(name).is_file()]  # noqa: PTH207
        base = Path(PATTERN.split(place)[0])
    else:
        raise SetupError(f"There is no file {without_password(place)}. Check the path.")
    readable = sorted(path for path in paths if kind_of(path))
    if not readable:
        endings = ", ".join(KINDS)
        raise SetupError(f"{without_password(place)} holds no file that is read as data: their names end in {endings}.")
    if len(readable) > MOST_FILES:
        raise SetupError(f"{place} names {len(readable):,} files, more than {MOST_FILES:,}: name fewer.")
    return tuple(groups(readable, base, by_digits=root.is_dir()))


def is_hidden(path: Path, root: Path) -> bool:
    return any(part.startswith((".", "~$")) for part in path.relative_to(root).parts)


def groups(paths: Iterable[Path], base: Path, by_digits: bool) -> Iterable[Part]:
    """Files of one kind under one name, in order."""
    members: dict[tuple[str, str], list[Path]] = {}
    for path in paths:
        kind = kind_of(path)
        name = table_name(path)
        if kind in ("csv", "json", "parquet"):
            name = without_digits(name) if by_digits else table_name(base)
        members.setdefault((name, kind), []).append(path)
    for (name, kind), some in members.items():
        whole = table_name(some[0]) if len(some) == 1 else name
        yield Part(whole, kind, tuple(str(path.absolute()) for path in some))


def without_digits(name: str) -> str:
    """
    >>> without_digits("sales_2024_01"), without_digits("2024")
    ('sales', '2024')
    """
    return re.sub(r"[_\d]+$", "", name) or name


def table_name(path: Path | str) -> str:
    """A word of the file's own name.

    >>> table_name("data/Sales 2024.csv.gz"), table_name("data/2024-prices.csv")
    ('Sales_2024', 't_2024_prices')
    """
    stem = Path(path).name
    while Path(stem).suffix and (kind_of(stem) or Path(stem).suffix.lower() in (".gz", *KINDS)):
        stem = Path(stem).stem
    word = re.sub(r"\W+", "_", stem).strip("_") or "data"
    return f"t_{word}" if word[0].isdigit() else word
