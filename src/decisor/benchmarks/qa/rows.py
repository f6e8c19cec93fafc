"""Rows of a released file: a JSON list, JSON lines, or tab-separated values, gzipped or not."""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from decisor.errors import SetupError

Row = Mapping[str, Any]


def find(data: Path, folder: str, names: Sequence[str], what: str) -> Path:
    """The file itself, or the first of ``names`` in ``data``, or in ``data/folder``, or in ``data/multihop/folder``.

    Raises:
        SetupError: there is none; it says which names would do.
    """
    if data.is_file():
        return data
    places = [data, data / folder, data / "multihop" / folder]
    for place in places:
        for name in names:
            if (place / name).is_file():
                return place / name
    raise SetupError(f"{data} holds no questions of {what}: there is no {' or '.join(names)}. Give the folder or file.")


def rows(path: Path) -> Iterator[Row]:
    """Every row as a mapping.

    Raises:
        SetupError: the file cannot be read, or a line is not a JSON object.
    """
    try:
        with open_text(path) as file:
            if path.name.removesuffix(".gz").endswith(".tsv"):
                csv.field_size_limit(2**24)
                yield from csv.DictReader(file, delimiter="\t")
            elif path.name.removesuffix(".gz").endswith(".json"):
                yield from whole(file.read(), path)
            else:
                yield from lines(file, path)
    except (OSError, EOFError, zlib.error, ValueError, RecursionError, csv.Error) as error:
        raise SetupError(f"{path} cannot be read: {error}.") from error


def open_text(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8-sig", newline="")


def lines(file: Iterable[str], path: Path) -> Iterator[Row]:
    for number, line in enumerate(file, 1):
        if line.strip():
            yield json_object(json.loads(line), path, number)


def whole(text: str, path: Path) -> Iterator[Row]:
    """A list of objects, an object of objects by id, or lines all the same (some releases name them .json)."""
    try:
        value = json.loads(text)
    except ValueError:
        yield from lines(text.splitlines(), path)
        return
    if isinstance(value, dict) and all(isinstance(item, dict) for item in value.values()):
        value = [{"id": key, **item} for key, item in value.items()]
    if not isinstance(value, list):
        raise SetupError(f"{path} holds no list of questions.")
    for number, item in enumerate(value, 1):
        yield json_object(item, path, number)


def json_object(item: object, path: Path, number: int) -> Row:
    if not isinstance(item, dict):
        raise SetupError(f"{path}, row {number}, is no JSON object.")
    return item


@contextmanager
def row_errors(path: Path, number: int, what: str) -> Iterator[None]:
    """Turns what a row lacks into a SetupError: ``with row_errors(path, number, "HotpotQA"): ...``."""
    where = f"{path}, row {number}, is no question of {what}"
    try:
        yield
    except KeyError as error:
        raise SetupError(f"{where}: it has no {error}.") from error
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise SetupError(f"{where}: {error}.") from error
