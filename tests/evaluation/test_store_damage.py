"""A store that something happened to: one line says so, and no figure is made of it."""

import os
import random
import socket
import sqlite3
import stat
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from decisor.cli import run_command_line
from decisor.lab.benchmark import Outcome, State
from decisor.lab.evaluation import store as sql
from decisor.lab.evaluation.store import CaseTask, open_store
from decisor.lab.evaluation.store_file import StoreError
from decisor.trace.events import Conclusion, LLMCall, Trace
from decisor.types import Decision, Message, Usage

CASES = 51
STATES: tuple[State, ...] = ("right", "wrong", "unscored", "crashed", "over_budget")


def filled(path: Path) -> list[Outcome]:
    """A store of 51 finished cases, each with a trace."""
    outcomes = [
        Outcome(
            "dqa",
            f"c{n:02}",
            "plan_rag",
            "m",
            0,
            STATES[n % 5],
            answer=f"answer {n}",
            gold=("a", "b"),
            metrics={"f1": 0.5},
            counts={"replans": n},
            usage=Usage(n, 10 * n, n, 0.25, 1.5),
            tags=("SR",),
        )
        for n in range(CASES)
    ]
    store = open_store(path)
    store.begin({"seed": 7})
    store.plan([CaseTask(one.key) for one in outcomes])
    for one in outcomes:
        trace = Trace()
        trace.add(LLMCall("m", [Message("user", f"Which river? {one.case}")], ("bel",), usage=Usage(1)))
        trace.add(Conclusion(Decision("bel")))
        store.finish(one, trace.entries)
    store.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return outcomes


def damage(whole: bytes, chance: random.Random) -> bytes:
    """One of: a few bytes changed, a stretch of zeros or of noise, a stretch lost or doubled, cut short."""
    data, at = bytearray(whole), chance.randrange(len(whole))
    size = chance.choice((1, 16, 512, 4096))
    match chance.randrange(6):
        case 0:
            for _ in range(8):
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        case 1:
            data[at : at + size] = bytes(len(data[at : at + size]))
        case 2:
            data[at : at + size] = chance.randbytes(len(data[at : at + size]))
        case 3:
            del data[at : at + size]
        case 4:
            data[at:at] = data[at : at + size]
        case _:
            del data[at:]
    return bytes(data)


def test_of_seventy_damaged_stores_each_is_read_as_it_was_or_said_to_be_damaged_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, page, chance = tmp_path / "run.db", tmp_path / "page.html", random.Random(13)
    truth = [(one.key, one.state) for one in filled(path)]
    whole, damaged = path.read_bytes(), 0
    for number in range(70):
        for left in tmp_path.glob("run.db*"):
            left.unlink()
        path.write_bytes(damage(whole, chance))
        code = run_command_line(["report", str(path), "--html", str(page)])
        told = capsys.readouterr()
        assert "Traceback" not in told.out + told.err, number
        assert code in (0, 2), (number, told.err)
        if code == 2:
            damaged += 1
            assert told.err.count("\n") == 1 and str(path) in told.err, (number, told.err)
            continue
        store = open_store(path, create=False)
        assert [(one.key, one.state) for one in store.outcomes()] == truth, number
        store.close()
    assert damaged > 20


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("UPDATE cases SET outcome = replace(outcome, 'c03', 'c99') WHERE case_id = 'c03'", "is of another case"),
        ("UPDATE cases SET case_id = 'c99' WHERE case_id = 'c03'", "is of another case"),
        ("UPDATE cases SET outcome = replace(outcome, '\"right\"', '\"rigth\"')", 'not "rigth"'),
        ("UPDATE cases SET outcome = '{'", "is damaged"),
        ("UPDATE cases SET outcome = '[1]'", "is damaged"),
        ('UPDATE cases SET outcome = replace(outcome, \'"tags": ["SR"]\', \'"tags": [1]\')', "is damaged"),
        ('UPDATE cases SET outcome = replace(outcome, \'"f1": 0.5\', \'"f1": "x"\')', "is damaged"),
        ("UPDATE about SET value = '{'", "is damaged"),
        ("UPDATE traces SET lines = x'00'", "is damaged"),
        ("DELETE FROM traces", ""),
    ],
)
def test_a_row_that_cannot_be_is_said_to_be_damaged(
    change: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.db"
    filled(path)
    with closing(sqlite3.connect(path)) as db:
        changed = db.execute(change).rowcount
        db.commit()
    assert changed
    code = run_command_line(["report", str(path), "--html", str(tmp_path / "page.html")])
    error = capsys.readouterr().err
    assert (code, complaint in error, error.count("\n")) == ((2, True, 1) if complaint else (0, True, 0))


def test_a_trace_that_inflates_to_more_than_a_trace_may_be_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.db"
    filled(path)
    bomb = zlib.compress(b" " * (sql.MOST_TRACE_BYTES + 1), 9)
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE traces SET lines = ? WHERE seq = 3", (bomb,))
        db.commit()
    assert run_command_line(["report", str(path), "--html", str(tmp_path / "page.html")]) == 2
    assert "more than 128 MB" in capsys.readouterr().err


def test_a_store_is_never_put_in_the_place_of_a_special_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as place:
        place.bind(str(tmp_path / "socket"))
        for name in ("pipe", "socket"):
            with pytest.raises(StoreError, match="is no regular file"):
                open_store(tmp_path / name)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode) and stat.S_ISSOCK((tmp_path / "socket").stat().st_mode)
    with pytest.raises(StoreError, match="is a folder"):
        open_store(tmp_path)


def test_a_store_that_is_deleted_under_a_run_is_told_and_not_taken_for_another(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    filled(path)
    store = open_store(path)
    path.rename(tmp_path / "moved.db")
    filled(path)
    with pytest.raises(StoreError, match="was deleted, moved or replaced"):
        store.finish(Outcome("dqa", "new", "plan_rag", "m", 0, "right"), [])
    path.unlink()
    with pytest.raises(StoreError, match="was deleted, moved or replaced"):
        store.plan([CaseTask(("dqa", "new", "plan_rag", "m", 0))])
    store.close()


@pytest.mark.parametrize("place", ["/proc/run.db", "/proc/nowhere/run.db"])
def test_a_store_where_nothing_can_be_written_is_one_line(place: str) -> None:
    with pytest.raises(StoreError, match=place) as failure:
        open_store(place)
    assert "\n" not in str(failure.value)
