"""Where a run is kept: a file, or a schema of PostgreSQL."""

from __future__ import annotations

from pathlib import Path

from decisor.evaluation.store.postgres import open_postgres
from decisor.evaluation.store.protocol import Store
from decisor.evaluation.store.sqlite import open_sqlite


def open_store(path: Path | str, create: bool = True) -> Store:
    """A store in a file, or in a schema of PostgreSQL (``postgresql://USER@HOST/DATABASE?schema=NAME``). It is made
    where there is none, unless not ``create``.

    Raises:
        SetupError: it cannot be opened, or is something else.
    """
    if str(path).startswith(("postgresql://", "postgres://")):
        return open_postgres(str(path), create)
    return open_sqlite(Path(path), create)
