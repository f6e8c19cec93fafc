"""Backups of runs: made while runs are written, restored to an empty place, and over runs only where that is said."""

from __future__ import annotations

import sqlite3
import stat
import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path
from zipfile import ZipFile

import pytest

from decisor.errors import SetupError
from decisor.history.backup import restore_backup, write_backup
from decisor.history.place import FolderPlace
from decisor.history.postgres import PostgresPlace
from decisor.history.store import History, PastRun, RunMark
from decisor.trace.events import RunStart, Trace
from decisor.types import Question
from servers.sql_databases import postgres_database

LONG = "x" * 20_000


def make_run(history: History, name: str, count: int = 3) -> int:
    """Keep a run with so many entries, as a server does."""
    run = PastRun(Question(name), owner="ann")
    number = history.begin(run)
    trace = Trace()
    for part in range(count):
        trace.add(RunStart(Question(f"{name} {part} {LONG}"), "agent", "m"))
    if isinstance(history.place, PostgresPlace):
        with history.place.transaction() as tables:
            history.place.insert_entries(tables, [(number, 0, trace.entries)])
    else:
        with closing(history.open_trace(number)) as file:
            file.write(*trace.entries)
    history.write(PastRun(Question(name), owner="ann", number=number, state="answered", answer=name))
    return number


def places(stack: ExitStack, folder: Path, kind: str) -> FolderPlace | PostgresPlace:
    return FolderPlace(folder) if kind == "folder" else PostgresPlace(stack.enter_context(postgres_database(())))


@pytest.mark.parametrize("kind", ["folder", "postgresql"])
def test_runs_that_are_written_meanwhile_come_back_whole(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with ExitStack() as stack:
        if kind == "postgresql":
            pytest.importorskip("psycopg_pool")
        place = places(stack, tmp_path / "data" / "decisor", kind)
        history = History(place)
        first = make_run(history, "first")
        history.mark(first, RunMark("right", "It was."), "ann")
        history.show(first, "bob", "ann")
        uploads = tmp_path / "data" / "decisor" / "uploads" / "5f2"
        uploads.mkdir(parents=True)
        (uploads / "sales.csv").write_text("shop,sales\nelm,7\n", "utf-8")
        written, ends = [first], threading.Event()

        def write() -> None:
            while not ends.is_set():
                written.append(make_run(history, f"run {len(written)}"))

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for number in range(5):
                time.sleep(0.1)
                least = len(written)
                assert write_backup(place, tmp_path / f"{number}.zip") >= least
        finally:
            ends.set()
            writer.join()
        assert len(written) > 5
        numbers = [run.number for run in history.list("ann", most=10_000)]
        if isinstance(place, PostgresPlace):
            place.close()
            stack.close()
    with ExitStack() as stack:
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "other"))
        other = places(stack, tmp_path / "other" / "decisor", kind)
        count = restore_backup(other, tmp_path / "4.zip")
        restored = History(other)
        runs = restored.list("ann", most=10_000)
        assert least <= len(runs) == count <= len(numbers)
        for run in runs:
            entries = restored.entries(run.number, "ann")
            if run.state == "answered":
                assert [entry.id for entry in entries] == [1, 2, 3] and run.answer == run.question.text
        assert sum(run.state == "answered" for run in runs) >= count - 1
        kept = restored.read(first, "ann")
        assert kept.mark == RunMark("right", "It was.") and restored.readers(first, "ann") == ("bob",)
        brought = tmp_path / "other" / "decisor" / "uploads" / "5f2" / "sales.csv"
        assert brought.read_text("utf-8") == "shop,sales\nelm,7\n"
        assert {stat.S_IMODE(path.stat().st_mode) for path in brought.parent.parent.rglob("*")} == {0o600, 0o700}
        # What is there is replaced only where that is said, and numbers are not used again.
        mine = make_run(restored, "mine")
        assert mine > max(run.number for run in runs)
        with pytest.raises(SetupError, match="has runs already"):
            restore_backup(other, tmp_path / "4.zip")
        assert restored.read(mine, "ann").answer == "mine"
        assert restore_backup(other, tmp_path / "4.zip", replaces=True) == count
        with pytest.raises(SetupError, match="no run"):
            restored.read(mine, "ann")
        if isinstance(other, PostgresPlace):
            other.close()


def test_a_file_that_is_no_backup_deletes_nothing(tmp_path: Path) -> None:
    place = FolderPlace(tmp_path / "history")
    number = make_run(History(place), "mine")
    write_backup(place, tmp_path / "whole.zip")
    assert stat.S_IMODE((tmp_path / "whole.zip").stat().st_mode) == 0o600
    with pytest.raises(SetupError, match="Name a new file"):
        write_backup(place, tmp_path / "whole.zip")
    cut = (tmp_path / "whole.zip").read_bytes()
    (tmp_path / "cut.zip").write_bytes(cut[: len(cut) // 2])
    (tmp_path / "text.zip").write_text("hello")
    with ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a.txt", "hello")
    with ZipFile(tmp_path / "dump.zip", "w") as archive:
        archive.writestr("store.dump", "hello")
    with ZipFile(tmp_path / "flipped.zip", "w") as archive:
        archive.writestr("history.db", "A" * 100)
    flipped = (tmp_path / "flipped.zip").read_bytes()
    (tmp_path / "flipped.zip").write_bytes(flipped.replace(b"AAAA", b"BBBB", 1))
    for name, words in (
        *(("cut.zip", "no backup"), ("text.zip", "no backup"), ("other.zip", "no history.db"), ("flipped.zip", "CRC")),
        *(("dump.zip", "--store"), ("missing.zip", "No such file")),
    ):
        with pytest.raises(SetupError, match=words):
            restore_backup(place, tmp_path / name, replaces=True)
    assert History(place).read(number, "ann").answer == "mine"
    assert [entry.id for entry in History(place).entries(number, "ann")] == [1, 2, 3]
    assert not list(place.folder.glob("restored-*"))


def test_names_that_lead_out_of_the_folder_do_not(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "empty.db")) as database:
        database.execute("CREATE TABLE a (b)")
    with ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(tmp_path / "empty.db", "history.db")
        for name in ("runs/../../../escaped.txt", "/escaped.txt", "../escaped.txt", "uploads/../../escaped.txt"):
            archive.writestr(name, "hello")
    assert restore_backup(FolderPlace(tmp_path / "deep" / "deeper" / "history"), tmp_path / "a.zip") == 0
    inside = (tmp_path / "deep" / "deeper" / "history").resolve()
    assert all(inside in path.resolve().parents for path in tmp_path.rglob("escaped.txt"))


def test_programs_of_postgresql_that_are_missing_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg_pool")
    with postgres_database(()) as url:
        place = PostgresPlace(url)
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(SetupError, match="postgresql-client"):
            write_backup(place, tmp_path / "a.zip")
        assert not (tmp_path / "a.zip").exists()
        place.close()
