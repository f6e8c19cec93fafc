"""A user's own decision model: a TOML file that says what may be chosen, what choosing it changes, and what to measure.

    measure = "monthly cost"
    goal = "min"
    candidates = "SELECT name FROM site WHERE is_open = 0"
    change = ["UPDATE site SET is_open = 1 WHERE name = :candidate"]
    outcome = "SELECT sum(rent) FROM site WHERE is_open = 1"

The tables are read from the source through its tool, whose guard checks the queries of ``[copy]`` like a model's, and
copied to a scratch SQLite in a process of its own. ``candidates``, ``change`` and ``outcome`` are SQLite's SQL and run
on the copy alone; the source is never written to.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from decisor.decision_models.copying import Schema
from decisor.decision_models.scratch import OpenScratch, Scratch, content
from decisor.errors import SetupError, ToolError
from decisor.types import BulkSource, Goal, Table

MAX_CHARS = 1_000_000
MAX_SECONDS = 3600


@dataclass(frozen=True)
class ModelFile:
    """``copy``: scratch table -> query on the source; empty copies every table. ``vary``: table.column names whose
    values are inputs that robustness varies; empty means every column that holds decimal numbers. ``seconds``: the
    longest a statement may take.
    """

    measure: str
    goal: Goal
    candidates: str
    outcome: str
    change: tuple[str, ...] = ()
    copy: Mapping[str, str] = field(default_factory=dict)
    vary: tuple[str, ...] = ()
    seconds: float = 20.0


def read_model(path: Path) -> ModelFile:
    """Raises SetupError where the file is missing or is not a decision model."""
    try:
        with path.open(encoding="utf-8") as file:
            return parse_model(file.read(MAX_CHARS + 1))
    except OSError as error:
        raise SetupError(f"The decision model {path} cannot be read: {error.strerror}.") from error
    except (SetupError, UnicodeDecodeError) as error:
        raise SetupError(f"{path}: {one_line(error)}") from error


def parse_model(text: str) -> ModelFile:
    """
    >>> parse_model('measure = "cost"')
    Traceback (most recent call last):
    decisor.errors.SetupError: A decision model needs goal, candidates, outcome.
    """
    try:
        settings = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise SetupError(f"This is not TOML: {error}.") from error
    if len(text) > MAX_CHARS:
        raise SetupError(f"A decision model has at most {MAX_CHARS:,} characters.")
    kinds = {"measure": str, "goal": str, "candidates": str, "outcome": str, "change": list, "copy": dict, "vary": list,
             "seconds": (int, float)}  # fmt: skip
    if strange := settings.keys() - kinds.keys():
        raise SetupError(f"A decision model has no {', '.join(sorted(strange))}; it has {', '.join(kinds)}.")
    if missing := [name for name in ("measure", "goal", "candidates", "outcome") if not settings.get(name)]:
        raise SetupError(f"A decision model needs {', '.join(missing)}.")
    for name, value in settings.items():
        _check(name, value, kinds[name])
    if settings["goal"] not in get_args(Goal):
        raise SetupError(f'goal is "min" or "max", not "{settings["goal"]}".')
    if not 0 < settings.get("seconds", 1) <= MAX_SECONDS:
        raise SetupError(f"seconds is to be above 0 and at most {MAX_SECONDS}.")
    lists = {name: tuple(settings.get(name, ())) for name in ("change", "vary")}
    return ModelFile(**(settings | lists))


def _check(name: str, value: Any, kind: Any) -> None:
    items = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
    if not isinstance(value, kind) or isinstance(value, bool) or not all(isinstance(item, str) for item in items):
        words = {str: "text", list: "list of texts", dict: "table of texts"}
        raise SetupError(f"{name} is to be a {words.get(kind, 'number')}.")


async def load(model: ModelFile, source: BulkSource, open_scratch: OpenScratch) -> Scratch:
    """The model on a scratch copy of the source, in a process that ``open_scratch`` starts
    (``decisor.tools.databases.sandbox.blocking.open_scratch``). Close it when it is done with.

    Raises:
        SetupError: a table or statement does not fit, or the source cannot be read; the message names it.
    """
    queries = dict(model.copy) or _whole_tables(source)
    copies = {name: await _whole(name, query, source) for name, query in queries.items()}
    text = content(copies, model.candidates, model.change, model.outcome, model.vary, model.seconds,
                   {} if model.copy else types_of(source))  # fmt: skip
    longest = model.seconds * (len(model.change) + 3)  # its outcome, the query of candidates, and varying
    return Scratch(model.measure, model.goal, await open_scratch(text), longest)


def _whole_tables(source: BulkSource) -> dict[str, str]:
    if not isinstance(source, Schema):
        raise SetupError("On a graph, a decision model needs [copy]: a query for each table it works on.")
    return {one.name: f"SELECT * FROM {source.quoted(one.name)}" for one in source.tables if not one.view}


def types_of(source: BulkSource) -> dict[str, dict[str, str]]:
    """Table -> column (lower case) -> type, where the source tells them."""
    if not isinstance(source, Schema):
        return {}
    return {table.name: {one.name.lower(): one.type for one in table.columns} for table in source.tables}


async def _whole(name: str, query: str, source: BulkSource) -> Table:
    try:
        table = await source.fetch(query)
    except ToolError as error:
        raise SetupError(f"{name} cannot be copied: {one_line(error)}") from error
    if table.truncated:
        raise SetupError(f"{name} is too large to copy whole; narrow its query in [copy].")
    return table


def one_line(error: Exception) -> str:
    return " ".join(str(error).split())
