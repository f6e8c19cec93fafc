"""What a store has acknowledged is there when the power comes back."""

import random
from pathlib import Path

import apsw
import pytest

from decisor.lab.benchmark import Outcome
from decisor.lab.evaluation.store import RunStore, open_store
from decisor.types import Completion
from evaluation.power import PowerVFS


def connection(store: RunStore) -> apsw.Connection:
    return store.db.connection


def rounds(folder: Path, count: int, synchronous: str = "FULL") -> tuple[int, int]:
    """Rounds in which something acknowledged was lost, and in which the store was damaged."""
    lost = damaged = 0
    for seed in range(count):
        chance, name = random.Random(seed), f"power-{synchronous}-{seed}"
        before, after = folder / name, folder / f"{name}-after"
        before.mkdir()
        after.mkdir()
        open_store(before / "run.db").close()
        vfs = PowerVFS(name)
        store = open_store(before / "run.db", vfs=name)
        connection(store).execute(f"PRAGMA synchronous = {synchronous}; PRAGMA wal_autocheckpoint = 8")
        kept = chance.randrange(1, 25)
        for number in range(kept):
            store.keep_reply(f"k{number}", Completion(("x" * chance.randrange(10, 3000),)))
            store.finish(Outcome("b", f"c{number}", "t", "m", 0, "right"), [])
        vfs.lose_power(chance, after)
        store.close()
        vfs.unregister()
        again = open_store(after / "run.db")
        try:
            damaged += connection(again).execute("PRAGMA integrity_check").fetchone() != ("ok",)
            lost += again.spent().calls < kept or len(again.outcomes()) < kept
        except Exception:
            damaged += 1
        again.close()
    return lost, damaged


def test_nothing_that_was_acknowledged_is_lost_in_any_round(tmp_path: Path) -> None:
    assert rounds(tmp_path, 15) == (0, 0)


def test_the_test_can_fail_with_less_syncing_things_are_lost(tmp_path: Path) -> None:
    lost, _ = rounds(tmp_path, 20, "NORMAL")
    assert lost > 3


@pytest.mark.slow
def test_nothing_is_lost_in_many_rounds(tmp_path: Path) -> None:
    assert rounds(tmp_path, 150) == (0, 0)
