"""The two worlds against every released answer at hand, and against plain Python to the last bit."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import dqa_reference
from data import DATA
from decisor.decision_models.ranking import rank_what_if
from decisor.lab.dqa import worlds as dumps
from decisor.lab.dqa.building import BuildingData, compute_goods_prices
from decisor.lab.dqa.locating import LocatingData, Semantics
from decisor.lab.dqa.worlds import DqaCase, Form, Scenario, read_dqa_questions
from decisor.types import Ranking

FORMS: tuple[Form, ...] = ("sql", "graph")
pytestmark = pytest.mark.skipif(not (DATA / "dqa").is_dir(), reason="no released questions at hand")


def ranked(scenario: Scenario, form: Form, semantics: Semantics) -> Iterator[tuple[DqaCase, Ranking]]:
    worlds: dict[object, LocatingData | BuildingData] = {}
    for case in read_dqa_questions(DATA / "dqa", scenario, form):
        if case.database not in worlds:
            worlds[case.database] = dumps.read_dump(case.database)
        yield case, rank_what_if(worlds[case.database].model(case.subject, semantics), trials=0)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scenario", ["locating", "building"])
def test_released_semantics_agree_with_every_released_answer(scenario: Scenario, form: Form) -> None:
    wrong = [case.id for case, ranking in ranked(scenario, form, "released") if ranking.options[0].name != case.gold]
    assert not wrong


def test_the_printed_rules_agree_less_often() -> None:
    bounds: list[tuple[Scenario, int, int]] = [("locating", 85, 90), ("building", 43, 49)]
    for scenario, least, most in bounds:
        right = [ranking.options[0].name == case.gold for case, ranking in ranked(scenario, "sql", "paper")]
        assert least <= sum(right) <= most


def test_the_fast_trade_world_equals_plain_python_to_the_last_bit() -> None:
    for case in read_dqa_questions(DATA / "dqa", "locating", "sql")[::25]:
        data = dumps.read_dump(case.database)
        assert isinstance(data, LocatingData)
        model = data.model(case.subject)
        places = [row.trade_node for row in data.powers if row.country_name == case.subject][:3]
        places = [place for place in places if place != model.home]
        slow = [dqa_reference.profit(data, case.subject, place) for place in places]
        assert model.outcomes(places).tolist() == slow


def test_the_fast_economy_equals_plain_python_to_the_last_bit() -> None:
    for case in read_dqa_questions(DATA / "dqa", "building", "sql")[::10]:
        data = dumps.read_dump(case.database)
        assert isinstance(data, BuildingData)
        some = list(range(0, len(data.buildings), max(1, len(data.buildings) // 4)))
        goods = data.chains.goods[case.subject]
        slow = [dqa_reference.price(data, case.subject, data.buildings[at].id) for at in some]
        assert compute_goods_prices(data, some, "released")[:, goods].tolist() == slow
        assert [compute_goods_prices(data, [at], "released")[0, goods] for at in some] == slow


def test_a_tie_set_margin_and_robustness_belong_to_a_ranking() -> None:
    case = read_dqa_questions(DATA / "dqa", "building", "sql")[0]
    model = dumps.read_dump(case.database).model(case.subject, "paper")
    ranking = rank_what_if(model, percent=5, trials=20)
    assert ranking.ties[0] == ranking.options[0].name
    assert ranking.margin is not None and ranking.margin > 0
    assert ranking.robustness is not None and 0 <= ranking.robustness <= 1
    assert rank_what_if(model, percent=5, trials=20) == ranking


def test_the_home_node_and_unknown_names_are_no_candidates() -> None:
    case = read_dqa_questions(DATA / "dqa", "locating", "sql")[0]
    data = dumps.read_dump(case.database)
    assert isinstance(data, LocatingData)
    model = data.model(case.subject)
    assert np.isnan(model.outcomes([model.home, "atlantis"])).all()
    assert model.home not in model.candidates()


def test_a_merchant_that_is_already_there_votes() -> None:
    case = read_dqa_questions(DATA / "dqa", "locating", "sql")[0]
    data = dumps.read_dump(case.database)
    assert isinstance(data, LocatingData)
    powers = tuple(
        row._replace(has_merchant=True) if row.country_name == "DAN" and not row.is_home else row for row in data.powers
    )
    merchants = replace(data, powers=powers)
    places = [row.trade_node for row in data.powers if row.country_name == "SWE" and row.trade_node != "baltic_sea"][:2]
    slow = [dqa_reference.profit(merchants, "SWE", place) for place in places]
    assert merchants.model("SWE").outcomes(places).tolist() == slow
