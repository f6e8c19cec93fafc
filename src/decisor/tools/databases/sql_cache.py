"""Catalogs of large databases, kept by a fingerprint: opening one again reads the fingerprint, and not all of it.

The fingerprint is what the engine's query for it brings, asked before the catalog is read: a change in between makes
the next opening read again. What is kept are names, types and comments, in a file of the person's own, and no value of
the data; a reader who may see other tables has another file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from decisor.cache import cache_folder, stamp_of
from decisor.private_file import make_folder, open_private
from decisor.secrets import without_password
from decisor.tools.databases.sandbox.process import Worker
from decisor.tools.databases.sql_catalog import WIDE, CatalogColumn, CatalogRelation, read_catalog

LARGE = 400
"""Tables: smaller catalogs are read as quickly as a file."""
FORMAT = 1


async def catalog_of(worker: Worker) -> tuple[CatalogRelation, ...]:
    """As ``read_catalog``. Raises ToolError."""
    dialect = worker.description.dialect
    if dialect is None or not dialect.queries.fingerprint:
        return await read_catalog(worker)
    rows = (await worker.run(dialect.queries.fingerprint, caps=WIDE, trusted=True)).rows
    fingerprint, file = stamp_of(*map(str, rows)).hex(), file_of(worker)
    relations = load(file, fingerprint)
    if relations is None:
        relations = await read_catalog(worker)
        if len(relations) > LARGE:
            save(file, fingerprint, relations)
    return relations


def file_of(worker: Worker) -> Path:
    """One for each database and what of it may be seen."""
    caps = worker.caps
    seen = (worker.engine, without_password(worker.url), caps.deny, caps.only, caps.policy.tables(), caps.policy.mask,
            sorted(worker.hidden), sorted(worker.closed))  # fmt: skip
    return cache_folder() / "schemas" / f"{stamp_of(*map(str, seen)).hex()}.json"


def load(file: Path, fingerprint: str) -> tuple[CatalogRelation, ...] | None:
    """None where there is nothing, or it is of another catalog, or damaged."""
    try:
        data: dict[str, Any] = json.loads(file.read_text("utf-8"))
        if (data["format"], data["fingerprint"]) != (FORMAT, fingerprint):
            return None
        return tuple(CatalogRelation(name, view, tuple(CatalogColumn(*column) for column in columns), *rest)
                     for name, view, columns, *rest in data["relations"])  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError):
        return None


def save(file: Path, fingerprint: str, relations: Sequence[CatalogRelation]) -> None:
    """Where that does not work, the catalog is read the next time too."""
    rows = [
        (one.name, one.view, [(c.name, c.type, c.nullable, c.key, c.references, c.comment) for c in one.columns],
         one.runs, one.schema, one.comment, one.rows)
        for one in relations
    ]  # fmt: skip
    aside = file.with_suffix(".new")
    with suppress(OSError):
        make_folder(file.parent)
        with open_private(aside) as out:
            json.dump({"format": FORMAT, "fingerprint": fingerprint, "relations": rows}, out)
        aside.replace(file)
