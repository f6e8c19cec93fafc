"""What the machine runs, as the parent sends it: the statements of a model file, and the tables they run on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from decisor.types import Value


@dataclass(frozen=True)
class TableColumn:
    """Of a table: its name, its type at the source ('' where it is not known), its values."""

    name: str
    type: str
    values: Sequence[Value]


@dataclass(frozen=True)
class Limit:
    """A rule on a measure: at most (side 1) or at least (side -1) the value of the query ``sql``."""

    measure: str
    side: int
    sql: str


@dataclass(frozen=True)
class Spread:
    """How an input varies: ``share`` is 0.1 for 10 %; ``how``: each, together, or the column that it varies by."""

    table: str
    column: str
    share: float
    how: str


@dataclass(frozen=True)
class Linear:
    """A variable, a requirement or a goal of an integer program, as its table in the file has it."""

    name: str
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class Program:
    """``single``: a candidate is one row of ``choice``, whose columns are parameters. ``parameters``: the model's own.
    ``rules``: name -> query of the rows that break it. ``doubles``: table.column names held as decimals.
    ``seconds``: the longest a statement may take.
    """

    choice: str = ""
    single: bool = True
    parameters: Mapping[str, Value] = field(default_factory=dict)
    change: str = ""
    recompute: str = ""
    times: int = 0
    until: str = ""
    measures: Mapping[str, str] = field(default_factory=dict)
    rules: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, Limit] = field(default_factory=dict)
    scenarios: Mapping[str, str] = field(default_factory=dict)
    spreads: tuple[Spread, ...] = ()
    doubles: tuple[str, ...] = ()
    variables: tuple[Linear, ...] = ()
    requirements: tuple[Linear, ...] = ()
    goals: tuple[Linear, ...] = ()
    seconds: float = 20.0


def read(text: str) -> tuple[Program, dict[str, list[TableColumn]]]:
    """From the JSON that the worker is opened on."""
    content = json.loads(text)
    tables = {name: [TableColumn(**column) for column in columns] for name, columns in content.pop("tables").items()}
    content["limits"] = {name: Limit(**limit) for name, limit in content.get("limits", {}).items()}
    content["spreads"] = tuple(Spread(**spread) for spread in content.get("spreads", ()))
    content["doubles"] = tuple(content.get("doubles", ()))
    for name in ("variables", "requirements", "goals"):
        content[name] = tuple(Linear(**one) for one in content.get(name, ()))
    return Program(**content), tables
