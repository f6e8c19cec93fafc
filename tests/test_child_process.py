"""Python processes of our own, started by a person who stands in a folder of someone else."""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from decisor.documents.reader import ParserProcess
from decisor.sandbox.engines import make_paths_absolute
from decisor.sandbox.process import Worker, worker_start
from decisor.system import processes as child_process
from decisor.techniques.shared.query_scorer import grow_trees

SOURCE = str(Path(__file__).resolve().parents[1] / "src")
NAMES = ("json", "numpy", "apsw", "sklearn", "selectolax", "runpy", "io", "struct", "sitecustomize", "usercustomize")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder of documents. Whatever of it runs writes its name into the file ``ran`` beside the folder."""
    folder = tmp_path / "folder"
    folder.mkdir()
    code = f"open({str(tmp_path / 'ran')!r}, 'a').write(__name__ + chr(10))\n"
    for name in NAMES:
        (folder / f"{name}.py").write_text(code)
    (folder / "evil.pth").write_text(f"import os; {code}")
    (folder / "notes.txt").write_text("The harbour fee in Genua is 12 florins a day.")
    with closing(sqlite3.connect(folder / "shop.db")) as db, db:
        db.execute("CREATE TABLE site (name TEXT)")
        db.execute("INSERT INTO site VALUES ('elm')")
    return folder


def ran(folder: Path) -> str:
    file = folder.parent / "ran"
    return file.read_text() if file.exists() else ""


@pytest.mark.slow
@pytest.mark.parametrize("flags", [["-P"], []], ids=["as the command decisor", "python -m decisor"])
@pytest.mark.parametrize(
    "words",
    [["index", ".", "--out", "../index"], ["doctor", "--db", "shop.db", "--llm", "none"]],
    ids=lambda words: words[0],
)
def test_a_command_given_in_a_folder_of_someone_else_runs_nothing_of_it(
    words: list[str], flags: list[str], hostile: Path
) -> None:
    command = [sys.executable, *flags, "-m", "decisor", *words]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    done = subprocess.run(command, cwd=hostile, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not ran(hostile)


@pytest.mark.parametrize("flags", [["-P"], []], ids=["as the command decisor", "python -m decisor"])
def test_a_module_that_the_person_names_is_still_found_in_the_folder(flags: list[str], tmp_path: Path) -> None:
    (tmp_path / "costs_here.py").write_text("import sys\n\ndef freight(city: str) -> int:\n    return 90\n")
    command = [sys.executable, *flags, "-m", "decisor", "doctor", "--tools", "costs_here:freight", "--llm", "none"]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "freight" in done.stdout, done.stderr


@pytest.fixture
def standing(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In the folder, which is on the path of this process in every way there is, as after ``python -m decisor``."""
    monkeypatch.chdir(hostile)
    monkeypatch.setattr(sys, "path", ["", ".", "../folder", str(hostile), f"{hostile}/../folder", *sys.path])
    for name in ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE"):
        monkeypatch.setenv(name, str(hostile))
    for name in ("PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONBREAKPOINT"):
        monkeypatch.setenv(name, str(hostile / "json.py"))
    monkeypatch.setenv("LD_LIBRARY_PATH", os.environ.get("LD_LIBRARY_PATH", "") + os.pathsep)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-person")
    return hostile


def test_the_process_that_reads_files_runs_nothing_of_their_folder(standing: Path) -> None:
    reader = ParserProcess()
    try:
        content = reader.read(".txt", Path("notes.txt"))
    finally:
        reader.close()
    assert content.blocks[0].text.startswith("The harbour fee")
    assert not ran(standing)


async def test_the_process_of_a_database_runs_nothing_of_its_folder_and_a_relative_path_is_the_persons(
    standing: Path,
) -> None:
    worker = Worker("sqlite", "sqlite:///shop.db")
    try:
        table = await worker.run("SELECT name FROM site")
    finally:
        await worker.close()
    assert table.rows == (("elm",),)
    assert not ran(standing)


@pytest.mark.slow
def test_the_process_that_grows_trees_runs_nothing_of_the_folder(standing: Path) -> None:
    rows = np.arange(400, dtype=np.float32).reshape(200, 2)
    assert grow_trees(rows, rows[:, 0].astype(np.float64), 2, 0).depth > 0
    assert not ran(standing)


def test_a_child_has_no_keys_no_folder_of_the_person_and_no_variables_of_python(standing: Path) -> None:
    done = child_process.run_child("probe_of_child_process", b"some input")
    told = json.loads(done.stdout)
    assert told["input"] == "some input" and told["isolated"] == 1
    assert told["environment"].keys() <= {*child_process.KEPT, "LC_CTYPE", "__CF_USER_TEXT_ENCODING"}
    assert all(Path(entry).is_absolute() and Path(entry).resolve() != standing.resolve() for entry in told["path"])
    assert told["in it"] == [] and Path(told["folder"]) != standing
    assert not ran(standing)


def test_a_folder_that_was_left_since_the_start_stays_off_the_path_of_children(hostile: Path) -> None:
    code = (
        "import os, sys; from decisor.system import processes as child_process; os.chdir('/'); "
        "print(child_process.run_child('probe_of_child_process').stdout.decode())"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([SOURCE, str(Path(__file__).parent)])}
    clean = hostile.parent / "clean"
    clean.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(clean)!r}); {code}"],
        cwd=clean,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(clean) not in json.loads(done.stdout)["path"]


def test_the_folder_of_children_is_gone_with_the_process_and_made_anew_where_it_was_removed() -> None:
    code = (
        "from decisor.system import processes as child_process; from pathlib import Path; "
        "first = Path(child_process.child_folder()); first.rmdir(); "
        "second = Path(child_process.child_folder()); assert second.is_dir(); print(second)"
    )
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert not Path(done.stdout.strip()).exists()


def test_files_that_a_url_names_are_where_the_person_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    here = str(tmp_path)
    for url, meant in (
        ("sqlite:///a.db", f"sqlite:///{here}/a.db"),
        ("sqlite:////data/a.db", "sqlite:////data/a.db"),
        ("duckdb:///../a b.duckdb", f"duckdb:///{here}/../a b.duckdb"),
        ("kglite:///g.kgl", f"kglite:///{here}/g.kgl"),
        ("bolt://me:a?b@host/graph", "bolt://me:a?b@host/graph"),
        (
            "postgresql://me@h/d?sslmode=verify-full&sslrootcert=ca%20x.pem&sslcert=/me.pem",
            f"postgresql://me@h/d?sslmode=verify-full&sslrootcert={here}/ca%20x.pem&sslcert=/me.pem",
        ),
        ("postgresql://me@h/d?sslrootcert=system", "postgresql://me@h/d?sslrootcert=system"),
        ("mysql://me@h/d?ssl_ca=ca.pem&charset=utf8", f"mysql://me@h/d?ssl_ca={here}/ca.pem&charset=utf8"),
    ):
        assert make_paths_absolute(url) == meant


def test_the_certificates_of_the_environment_are_where_the_person_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PGSSLROOTCERT", "ca.pem")
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    monkeypatch.setenv("PGPASSWORD", "secret")
    environment = worker_start().environment
    assert environment["PGSSLROOTCERT"] == str(tmp_path / "ca.pem") and environment["PGSSLMODE"] == "verify-full"
    assert "PGPASSWORD" not in environment


def test_a_process_whose_starting_thread_has_ended_reads_on_for_another(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("The harbour fee is 90 EUR.")
    reader = ParserProcess()
    first = threading.Thread(target=reader.read, args=(".txt", tmp_path / "notes.txt"))
    first.start()
    first.join()
    try:
        assert reader.read(".txt", tmp_path / "notes.txt").blocks[0].text.startswith("The harbour fee")
    finally:
        reader.close()


def test_a_worker_whose_starting_thread_has_ended_answers_another(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as db, db:
        db.execute("CREATE TABLE site AS SELECT 'elm' AS name")
    loop, worker = asyncio.new_event_loop(), Worker("sqlite", f"sqlite:///{tmp_path}/shop.db")
    rows: list[object] = []
    for _ in range(3):
        thread = threading.Thread(
            target=lambda: rows.append(loop.run_until_complete(worker.run("SELECT name FROM site")).rows)
        )
        thread.start()
        thread.join()
    loop.run_until_complete(worker.close())
    loop.close()
    assert rows == [(("elm",),)] * 3
