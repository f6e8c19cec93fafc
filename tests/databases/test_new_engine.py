"""To add an SQL engine is one file and one line."""

import shutil
import subprocess
import sys
from pathlib import Path

import decisor

ENGINE = '''"""A second SQLite, under a scheme of its own, with a function fewer."""

from dataclasses import replace

from decisor.sandbox.engine import Caps, EngineDatabase
from decisor.sandbox.engines import sqlite
from decisor.sandbox.sql_guard import SqlGuard


def connect(url: str, caps: Caps) -> EngineDatabase:
    database = sqlite.connect_sqlite(url.replace("toy:///", "sqlite:///"), caps)
    database.guard = SqlGuard(DIALECT, database.guard.access)
    return database


DIALECT = replace(sqlite.DIALECT, functions=sqlite.DIALECT.functions - {"julianday"})
ENGINE = replace(
    sqlite.ENGINE, name="toy", title="Toybase", schemes=("toy",), endings=(".toy",), connect=connect, dialect=DIALECT
)
'''
USE = """
import asyncio, sys
from decisor.errors import ToolError
from decisor.databases.sql import SqlTool

async def use():
    tool = await SqlTool.open(sys.argv[1], deny_tables=["secrets"])
    print(tool.describe())
    print(dict((await tool.call("SELECT city FROM plant")).records[0].fields))
    for query in ("SELECT julianday('now')", "SELECT * FROM secrets", "DROP TABLE plant", "SELECT citty FROM plant"):
        try:
            await tool.call(query)
        except ToolError as error:
            print(error)
    await tool.close()

asyncio.run(use())
"""


def test_an_sql_engine_is_one_file_and_one_line(tmp_path: Path) -> None:
    house = tmp_path / "house"
    shutil.copytree(Path(decisor.__file__).parent, house / "decisor", ignore=shutil.ignore_patterns("__pycache__"))
    engines = house / "decisor" / "sandbox" / "engines"
    (engines / "toy.py").write_text(ENGINE)
    names = (engines / "__init__.py").read_text()
    (engines / "__init__.py").write_text(names.replace('    "sqlite",\n', '    "sqlite",\n    "toy",\n', 1))

    import apsw

    with apsw.Connection(str(tmp_path / "plants.toy")) as db:
        db.execute("CREATE TABLE plant(city TEXT); INSERT INTO plant VALUES ('Ghent'); CREATE TABLE secrets(token)")
    db.close()
    for url in (f"toy:///{tmp_path}/plants.toy", f"{tmp_path}/plants.toy"):
        path = [str(house), *(entry for entry in sys.path if entry and not Path(entry, "decisor").is_dir())]
        code = f"import sys; sys.path = {path!r} + sys.path\n{USE}"
        run = subprocess.run(
            [sys.executable, "-c", code, url], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        assert run.stderr == ""
        lines = run.stdout.splitlines()
        assert lines[0].startswith("A Toybase database: ") and "secrets" not in "".join(lines[:4])
        assert "{'city': 'Ghent'}" in lines
        assert "julianday is not on the list" in run.stdout and "the table secrets may not be read" in run.stdout
        assert "DROP is not a query" in run.stdout and "Did you mean: city (in plant)?" in run.stdout
