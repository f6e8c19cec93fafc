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
HABITS = {"decimal": {"comma": ",", "point": "."}, "dates": {"day": "day", "month": "month"}}
"""What may follow the name of a file after #, and what it means."""


@dataclass(frozen=True, slots=True)
class Part:
    """Files that are read alike. ``name``: of the table; of a workbook or database, how its tables begin, or ''."""

    name: str
    kind: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Files:
    """What a place names. ``left_out``: notes on links that are not followed."""

    parts: tuple[Part, ...]
    decimal: str = ""
    """The decimal separator of its texts, "," or "."; '' if the person does not say."""
    dates: str = ""
    """"day" or "month": which goes first in its dates; '' if the person does not say."""
    left_out: tuple[str, ...] = ()


def split_habits(place: str) -> tuple[str, dict[str, str]]:
    """The path, and how its numbers and dates are written.

    >>> split_habits("sales.csv#decimal=comma,dates=day")
    ('sales.csv', {'decimal': ',', 'dates': 'day'})

    Raises:
        SetupError: a word after # means nothing.
    """
    path, mark, words = place.rpartition("#")
    if not mark or "=" not in words or Path(place).exists():
        return place, {}
    habits: dict[str, str] = {}
    for word in words.split(","):
        name, _, choice = word.strip().partition("=")
        if choice not in HABITS.get(name, {}):
            raise SetupError(f"Unknown {word.strip()!r} after the name of a file. Write #decimal=comma or "
                             "#decimal=point, #dates=day or #dates=month.")  # fmt: skip
        habits[name] = HABITS[name][choice]
    return path, habits


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
    place = split_habits(place)[0]
    return bool(PATTERN.search(place)) or kind_of(place) not in ("", *DATABASES) or Path(place).is_dir()


def files_of(place: str) -> Files:
    """Return the files of a place. A link in a folder that leads out of it is not followed.

    >>> files_of("nowhere.csv")
    Traceback (most recent call last):
    decisor.errors.SetupError: There is no file nowhere.csv. Check the path.

    Raises:
        SetupError: there is nothing, or too much.
    """
    place, habits = split_habits(place)
    root = Path(place)
    if root.is_file():
        part = Part(table_name(root), kind_of(root), (str(root.absolute()),))
        return Files((part,), left_out=(), **habits)
    if root.is_dir():
        paths = [path for path in root.rglob("*") if not is_hidden(path, root)]
        base = inside = root
    elif PATTERN.search(place):
        paths = [Path(name) for name in glob.glob(place, recursive=True)]  # noqa: PTH207
        base = Path(PATTERN.split(place)[0])
        inside = base if place[: len(str(base)) + 1].endswith("/") else base.parent
    else:
        raise SetupError(f"There is no file {without_password(place)}. Check the path.")
    real = inside.resolve()
    readable, left_out = [], []
    for path in sorted(path for path in paths if kind_of(path)):
        if not is_within(path, real):
            left_out.append(f"Left out: {path} is a link that leads out of {inside}, or to nothing: name it by itself.")
        elif path.is_file():
            readable.append(path)
    if not readable:
        endings = ", ".join(KINDS)
        because = f" {left_out[0]}" if left_out else ""
        raise SetupError(
            f"{without_password(place)} holds no file that is read as data: their names end in {endings}.{because}"
        )
    if len(readable) > MOST_FILES:
        raise SetupError(f"{place} names {len(readable):,} files, more than {MOST_FILES:,}: name fewer.")
    return Files(tuple(groups(readable, base, by_digits=root.is_dir())), left_out=tuple(left_out), **habits)


def is_within(path: Path, folder: Path) -> bool:
    """Whether it is there, and no link of its path leads out of a folder."""
    try:
        return path.resolve(strict=True).is_relative_to(folder)
    except (OSError, RuntimeError):
        return False


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
