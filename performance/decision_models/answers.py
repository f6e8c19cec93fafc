"""Optima of model files by the product: tables written to a database, the model opened on it, one figure out."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decisor.decision_models.file import parse_model
from decisor.decision_models.optimize import NothingFits, rank_or_solve
from decisor.decision_models.tool import ModelTool
from decisor.errors import ToolError
from decisor.session.decision_models import opened_model

Tables = Mapping[str, Sequence[Mapping[str, Any]]]
TYPES = {int: "INTEGER", float: "REAL", str: "TEXT"}


@dataclass(frozen=True)
class Answer:
    status: str
    """optimal, infeasible, or the complaint."""
    value: float | None = None


def write_tables(tables: Tables, path: Path) -> str:
    """Write a SQLite file; return its address."""
    with sqlite3.connect(path) as db:
        for name, rows in tables.items():
            cells = {column: {type(row[column]) for row in rows} - {type(None)} for column in rows[0]} if rows else {}
            if not cells:
                continue
            kinds = {column: TYPES[max(types or {int}, key=[int, float, str].index)] for column, types in cells.items()}
            db.execute(f"CREATE TABLE {name} ({', '.join(f'{column} {kind}' for column, kind in kinds.items())})")
            db.executemany(
                f"INSERT INTO {name} VALUES ({', '.join('?' * len(kinds))})", [tuple(row.values()) for row in rows]
            )
    db.close()
    return f"sqlite:///{path}"


def count_lines(path: Path) -> int:
    """Lines with content."""
    return sum(bool(line.strip()) and not line.startswith("#") for line in path.read_text("utf-8").splitlines())


@asynccontextmanager
async def open_tool(model: str, url: str) -> AsyncIterator[ModelTool]:
    async with opened_model(parse_model(model), url) as opened:
        yield ModelTool(opened)


async def ask_whatif(tool: ModelTool, fragment: str) -> Answer:
    """The optimum with a fragment of a model file laid over the model."""
    try:
        fields = (await tool.call(fragment)).records[0].fields
    except ToolError as error:
        return Answer(str(error))
    value = fields[f"{tool.measure} then"]
    return Answer("infeasible") if value is None else Answer("optimal", float(str(value)))


async def ask_optimum(model: str, url: str) -> Answer:
    async with opened_model(parse_model(model), url) as opened:
        try:
            ranking = await asyncio.to_thread(rank_or_solve, opened, trials=0)
        except NothingFits:
            return Answer("infeasible")
        except ToolError as error:
            return Answer(str(error))
        return Answer("optimal", ranking.options[0].outcome)
