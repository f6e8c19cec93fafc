"""Makes the data of an example: a DuckDB file, and the customers' notes as documents.

python examples/decision_models/make.py NAME FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

HERE = Path(__file__).parent


def make(name: str, folder: Path) -> Path:
    """The DuckDB file. Existing files are written anew."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as db:
        db.execute((HERE / f"{name}.sql").read_text())
        if name == "customers_to_call":
            for customer, text in db.execute("SELECT name, text FROM note").fetchall():
                (folder / "notes").mkdir(exist_ok=True)
                (folder / "notes" / f"{customer}.txt").write_text(f"{customer}: {text}\n")
    return path


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("Give the name of an example and a folder: make.py shifts data")
    print(make(sys.argv[1], Path(sys.argv[2])))
