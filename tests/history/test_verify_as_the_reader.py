"""A run of the history is verified as the one who asked may see the data."""

from pathlib import Path

import pytest

from decisor.cli.history import read_history_run
from decisor.history.store import History, PastRun
from decisor.types import Question


def test_the_rows_and_masks_of_a_run_hold_when_it_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    inputs = {
        "db": ["sqlite:///shop.db"],
        "rows": ["orders=region = 'EU'"],
        "mask": ["customers.email"],
        "folder": str(tmp_path),
    }
    number = History().begin(PastRun(Question("Which?"), inputs))
    sources = read_history_run(str(number)).sources
    assert sources is not None
    assert sources.places[0].policy.rows == (("orders", "region = 'EU'"),)
    assert sources.places[0].policy.mask == ("customers.email",)
