"""A solver's plan, as people see it: each amount, on the terminal, on the page and in the text for an agent."""

import io
import re
import sqlite3
from pathlib import Path

import pytest
from rich.console import Console

import decisor
from decisor.mcp.runs import ranking_lines
from decisor.views.page import recorded_html
from decisor.views.transcript import show_decision

MODEL = """
format = 3
decide = "servings of each food"
[unknown.buy]
per = "SELECT name, cost, protein FROM food"
unit = "servings"
[measure.cost]
goal = "min"
unit = "EUR"
sql = "SELECT sum(amount * cost) FROM buy"
[rule.protein]
text = "At least 50 g of protein."
rows = "SELECT sum(amount * protein) AS grams FROM buy"
must = "grams >= 50"
because = "{grams} g"
[input]
"food.cost" = { unit = "EUR/serving", raises = "cost" }
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> decisor.Result:
    folder: Path = tmp_path_factory.mktemp("food")
    with sqlite3.connect(folder / "food.db") as data:
        data.execute("CREATE TABLE food (name TEXT PRIMARY KEY, cost REAL, protein REAL)")
        data.executemany("INSERT INTO food VALUES (?, ?, ?)", [("beans", 1.0, 8.0), ("nuts", 3.0, 20.0)])
    (folder / "food.toml").write_text(MODEL)
    return decisor.ask(
        "How many servings?", db=str(folder / "food.db"), model=str(folder / "food.toml"), technique="exact"
    )


# 50 g from beans at 8 g a serving and 1 EUR: 6.25 servings, 6.25 EUR; nuts give 6.67 g for a EUR.
def test_a_plan_is_told_by_its_amounts_and_not_as_one_candidate(result: decisor.Result) -> None:
    console = Console(file=io.StringIO(), width=100)
    show_decision(result.decision, result.records, console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "beans: 6.25 servings" in text and "beans gives the smallest cost: 6.25 EUR." in text
    assert "candidate" not in text.partition("Evidence")[0] and "no other." not in text.lower()
    assert result.ranking is not None and "  beans: 6.25 servings" in ranking_lines(result.ranking)


def test_the_page_has_a_table_of_the_amounts(result: decisor.Result) -> None:
    page = recorded_html(result.trace)
    section = page[page.index("<h2>The plan</h2>") :].partition("</section>")[0]
    assert re.findall(r"<td[^>]*>([^<]*)</td>", section) == ["beans", "6.25 servings"]
    assert "What limits it" in section
