"""A person who waits for a decision model sees how many candidates and trials are computed."""

import io
from pathlib import Path

import pytest
from rich.console import Console

import decisor
from decisor.system.tasks import COUNTER
from decisor.views.terminal import LiveView

MODEL = """
format = 3
decide = "the shop"
choice.pick.rows = "SELECT name, rent FROM shop"
[measure.rent]
goal = "min"
sql = "SELECT (SELECT rent FROM pick)"
[input]
"shop.rent" = { spread = "10 % each" }
"""


def shops(folder: Path) -> tuple[str, str]:
    (folder / "shop.csv").write_text("name,rent\nash,900\noak,700\n")
    (folder / "shop.toml").write_text(MODEL)
    return str(folder / "shop.csv"), str(folder / "shop.toml")


@pytest.mark.slow
def test_candidates_and_trials_are_counted_while_they_are_computed(tmp_path: Path) -> None:
    news: list[tuple[str, int, int]] = []
    view = LiveView(Console(file=io.StringIO(), force_terminal=True, width=100))
    data, model = shops(tmp_path)

    def hear(what: str, done: int, count: int) -> None:
        news.append((what, done, count))
        view.hear_count(what, done, count)

    with view:
        assert COUNTER.get() == view.hear_count
        COUNTER.set(hear)
        decisor.ask("Which?", db=data, model=model, llm="none", settings={"trials": "5"})
    assert ("candidate", 2, 2) in news and ("trial", 5, 5) in news
    view.hear_count("candidate", 1200, 3000)
    assert view.progress.doing == "computed 1,200 of 3,000 candidates"


def test_nobody_is_told_of_another_run(tmp_path: Path) -> None:
    with LiveView(Console(file=io.StringIO())):
        assert COUNTER.get() is not None
    assert COUNTER.get() is None
