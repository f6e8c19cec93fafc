"""``decisor demo``: the recording fits the shop, the wrong figure is caught, and the model decides the same."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from decisor.cli import run_command_line
from decisor.demo import demo as show
from decisor.demo.demo import UNSUPPORTED, write_shop
from decisor.errors import SetupError


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shop") / "shop.db"
    write_shop(path)
    return path


def test_the_recorded_run_replans_decides_and_one_figure_is_caught(shop: Path) -> None:
    result = show.replay_recorded_run(shop)
    assert result.answer == "Tamsin & Co"
    assert len(result.decision.replans) == 1
    (objection,) = result.evidence.objections
    assert objection.text == f"You wrote {UNSUPPORTED} EUR; no row that you cite says so."
    assert {"143,627.33", "10,317.30", "151,728.80", "19.9"} <= {
        figure.text.strip(" %") for figure in result.evidence.figures if figure.support
    }


def test_the_decision_model_computes_the_same_and_says_who_is_ruled_out(shop: Path) -> None:
    result = show.compute_decision(shop)
    assert result.answer == "Tamsin & Co"
    assert result.ranking is not None
    assert [option.name for option in result.ranking.options][:2] == ["Tamsin & Co", "Arlo Works"]
    assert round(result.ranking.options[0].outcome, 2) == 143_627.33
    assert "Norrik" in str(result) and "nobody else has the wool rug" in str(result)


def test_the_best_is_the_best_by_plain_arithmetic(shop: Path) -> None:
    with closing(sqlite3.connect(shop)) as database:
        price = dict(database.execute("SELECT id, price FROM product"))
        offers = {(supplier, product): cost for supplier, product, cost in database.execute("SELECT * FROM offer")}
        faults = dict(database.execute("SELECT purchase, refund FROM product_return WHERE reason = 'faulty'"))
        lines = database.execute("SELECT id, supplier, product, quantity FROM purchase").fetchall()
        names = dict(database.execute("SELECT id, name FROM supplier"))

    def profit_without(dropped: int) -> float | None:
        left = {key: cost for key, cost in offers.items() if key[0] != dropped}
        if {product for _, product in left} != set(price):
            return None
        cheapest = {product: min(cost for (_, one), cost in left.items() if one == product) for product in price}
        profit: float = sum(
            quantity * (price[product] - cheapest[product])
            if supplier == dropped
            else quantity * (price[product] - offers[supplier, product]) - faults.get(number, 0.0)
            for number, supplier, product, quantity in lines
        )
        return profit

    profits = {names[one]: profit for one in names if (profit := profit_without(one)) is not None}
    assert max(profits, key=profits.__getitem__) == "Tamsin & Co"
    assert round(profits["Tamsin & Co"], 2) == 143_627.33
    assert set(names.values()) - set(profits) == {"Norrik", "Oskar Lind"}


def test_a_recording_that_no_longer_fits_is_an_error(shop: Path, tmp_path: Path) -> None:
    other = tmp_path / "shop.db"
    other.write_bytes(shop.read_bytes())
    with closing(sqlite3.connect(other)) as database, database:
        database.execute("UPDATE purchase SET quantity = quantity + 1 WHERE supplier = 3")
    with pytest.raises(SetupError, match="The recording is stale"):
        show.replay_recorded_run(other)


def test_the_command_shows_it_all_and_writes_the_page_beside_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "decision.html").write_text("mine")
    assert run_command_line(["demo"]) == 0
    out = capsys.readouterr().out
    parts = (
        "1. A recorded run",
        "Replan after step 1",
        "Objection: You wrote 4,200",
        "2. The same question",
        "ruled out by",
        "decision-2.html",
        "Your turn",
    )
    assert [part for part in parts if part not in out] == []
    assert (tmp_path / "decision.html").read_text() == "mine"
    page = (tmp_path / "decision-2.html").read_text()
    assert "Tamsin &amp; Co" in page and page.count("<script>") == 1
