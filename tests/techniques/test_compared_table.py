"""Rankings that are read off an ordered result, against figures worked by hand."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from decisor.techniques.shared.answer import Trajectory
from decisor.techniques.shared.compared import explain_no_choice, find_compared_table, find_order
from decisor.types import Action, Observation, Question, Ranking, Record, Step, Value


def step(
    query: str, *rows: Mapping[str, Value], number: int = 1, truncated: bool = False, total: int | None = None
) -> Step:
    records = tuple(Record(f"o{number}.r{at}", row) for at, row in enumerate(rows, 1))
    return Step(Action("sql", query), Observation(records, truncated=truncated, total=total))


COSTS: tuple[Mapping[str, Value], ...] = (
    {"site": "oak", "cost_eur": 80.0},
    {"site": "elm", "cost_eur": 100},
    {"site": "ash", "cost_eur": 120.5},
)
ORDERED = step("SELECT site, cost_eur FROM sites ORDER BY cost_eur", *COSTS)


def test_an_ordered_result_is_the_ranking_of_a_run_without_a_model() -> None:
    decision = Trajectory(Question("Which?"), (ORDERED,)).decision("oak", "80 [o1.r1]")
    ranking = decision.ranking
    assert isinstance(ranking, Ranking)
    assert [(option.name, option.outcome) for option in ranking.options] == [("oak", 80), ("elm", 100), ("ash", 120.5)]
    assert (ranking.measure, ranking.goal, ranking.unit, ranking.ties) == ("cost_eur", "min", "EUR", ("oak",))
    # 100 - 80 = 20, and 20 / 100 = 0.2
    assert (ranking.lead, ranking.margin, ranking.candidates) == (20, 0.2, 3)
    assert ranking.method == "read off o1, ordered by cost_eur"


def test_a_candidate_that_is_not_the_first_has_no_ranking() -> None:
    assert Trajectory(Question("Which?"), (ORDERED,)).decision("elm").ranking is None
    tables = [find_compared_table(name, (ORDERED,)) for name in ("elm", "OAK")]
    assert [table is not None and table.is_best for table in tables] == [False, True]


def test_ties_are_told() -> None:
    rows: tuple[Mapping[str, Value], ...] = (
        {"site": "oak", "gain": 7.0},
        {"site": "elm", "gain": 7.0},
        {"site": "ash", "gain": 3.0},
    )
    table = find_compared_table("elm", [step("SELECT site, gain FROM s ORDER BY gain DESC", *rows)])
    assert table is not None
    ranking = table.ranking()
    assert (ranking.goal, ranking.ties, ranking.lead) == ("max", ("oak", "elm"), 4)
    assert table.is_best


def test_the_last_table_counts_and_cut_rows_are_not_counted() -> None:
    later = step(
        "SELECT site, rent FROM s ORDER BY rent LIMIT 2",
        {"site": "elm", "rent": 1},
        {"site": "oak", "rent": 2},
        number=2,
    )
    table = find_compared_table("oak", (ORDERED, later))
    assert table is not None
    assert (table.observation, table.total) == ("o2", None)
    cut = step("SELECT site, cost_eur FROM s ORDER BY cost_eur", *COSTS, truncated=True, total=700)
    table = find_compared_table("oak", (cut,))
    assert table is not None and table.ranking().candidates == 700


@pytest.mark.parametrize(
    ("query", "order"),
    [
        ("SELECT site, cost_eur FROM s ORDER BY cost_eur ASC NULLS LAST, site", ("cost_eur", "min")),
        ("SELECT site, cost_eur FROM s ORDER BY 2", ("cost_eur", "min")),
        ('SELECT site, cost_eur FROM s ORDER BY s."cost_eur";', ("cost_eur", "min")),
        ("SELECT site, rent + wages AS cost_eur FROM s ORDER BY (rent + wages)", ("cost_eur", "min")),
        ("WITH a AS (SELECT * FROM s ORDER BY site DESC) SELECT site, cost_eur FROM a", None),
        ("SELECT site, cost_eur FROM s ORDER BY cost_eur DESC", None),
        ("SELECT site, cost_eur FROM s ORDER BY site", None),
        ("SELECT site, ROW_NUMBER() OVER (ORDER BY cost_eur) AS n, cost_eur FROM s", None),
    ],
)
def test_an_order_is_read_only_where_query_and_rows_agree(query: str, order: tuple[str, str] | None) -> None:
    assert find_order(query, ORDERED.observation.records) == order


def test_keys_periods_and_missing_values_are_no_outcomes() -> None:
    ids = step(
        "SELECT site, site_id FROM s ORDER BY site_id", {"site": "oak", "site_id": 1}, {"site": "elm", "site_id": 2}
    )
    years = step("SELECT site, year FROM s ORDER BY year", {"site": "oak", "year": 2024}, {"site": "elm", "year": 2025})
    holes = step("SELECT site, cost FROM s ORDER BY cost", {"site": "oak", "cost": None}, {"site": "elm", "cost": 2})
    twice = step("SELECT site, cost FROM s ORDER BY cost", {"site": "oak", "cost": 1}, {"site": "oak", "cost": 2})
    assert [find_compared_table("oak", [table]) for table in (ids, years, holes, twice)] == [None] * 4


def test_what_all_numbered_candidates_are_about_is_none_of_them_and_a_count_may_be_an_answer() -> None:
    rows: list[Mapping[str, Value]] = [
        {"building_id": number, "goods": "fish", "price": price} for number, price in ((2523, 8.4), (1805, 9.1))
    ]
    queried = step("SELECT building_id, goods, price FROM supply WHERE goods = 'fish' ORDER BY price", *rows)
    says = explain_no_choice("fish", {"o1.r1"}, "Which building lowers the price of fish?", [queried])
    assert says.startswith("fish is what all rows that you cite are about") and says.endswith("are 2523, 1805.")
    assert not explain_no_choice("2523", {"o1.r1"}, "Which building lowers the price of fish?", [queried])
    assert not explain_no_choice("7000", {"o1.r1"}, "How many buildings make fish?", [queried])
