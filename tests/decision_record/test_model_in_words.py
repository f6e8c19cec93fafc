"""The decision model of a record in words: each part of its file that a person answers for, with its source."""

from __future__ import annotations

from pathlib import Path

import pytest

import decisor
from decision_shops import CLOSE, SITES, database
from decisor.decision_models.file import parse_model
from decisor.decision_record.build import build_record
from decisor.decision_record.page import list_model_parts

MODEL = """
format = 3
decide = "the supplier to drop"
choice.pick.rows = "SELECT name FROM supplier"
change = "DELETE FROM offer WHERE supplier IN (SELECT name FROM pick)"
parameter.fee = { value = 2.5, unit = "EUR an order", source = "letter of the carrier" }
open = ["does the fee fall in June?"]

[measure.cost]
goal = "min"
unit = "EUR"
now  = 1200.0
part.goods = "SELECT sum(unit_cost) FROM offer"
part.fees  = "SELECT $fee * count(*) FROM offer"

[[correction]]
table = "offer"
key = { supplier = "elm" }
column = "unit_cost"
was = 59.0
is = 58.0
adopted = true
source = { document = "memo.md", passage = "Elm sells at 58 from June." }

[scenario.june]
open = "Is the fee paid once?"
parameter.fee = 0.0

[rule.supply]
text   = "Somebody has to be left."
exists = "SELECT * FROM offer"

[rule.taste]
text     = "Nobody may be offended."
testable = false

[function.rate]
call  = "exchange_rate"
rows  = "SELECT 'USD' AS currency"
gives = { eur = "EUR" }
at    = "2026-11-28T10:00:00Z"
values = [{ currency = "USD", eur = 0.92 }]

[input]
"offer.unit_cost" = { unit = "EUR", raises = "cost", spread = "5 % by supplier" }
"offer.days" = {}
"""


def test_every_part_that_a_person_answers_for_is_said_with_its_source() -> None:
    parts = {(kind, name): words for kind, name, words in list_model_parts(MODEL)}
    assert parts["to decide", ""] == "the supplier to drop"
    assert parts["measure", "cost"] == "as small as possible, in EUR: goods + fees; the books say 1,200.0"
    assert parts["rule", "supply"] == "Somebody has to be left."
    assert parts["rule", "taste"] == "Nobody may be offended. Not tested: no data say it."
    assert parts["input", "offer.unit_cost"] == "EUR; raises cost; varies by 5 % by supplier"
    assert parts["input", "offer.days"] == "taken as certain"
    assert parts["parameter", "fee"] == "2.5 EUR an order (letter of the carrier)"
    assert parts["left open", "june"] == "Is the fee paid once? fee = 0.0"
    assert (
        parts["correction", "offer.unit_cost of supplier elm"]
        == '58.0, not 59.0. memo.md: "Elm sells at 58 from June."'
    )
    assert parts["function", "rate"].startswith("exchange_rate, called 2026-11-28T10:00:00Z: ")
    assert "0.92" in parts["function", "rate"]
    assert parts["left open", ""] == "does the fee fall in June?"


def test_the_source_of_a_parameter_is_kept_unless_another_value_is_given() -> None:
    assert parse_model(MODEL).sources == {"fee": "letter of the carrier"}
    assert not parse_model(MODEL, fee=3.0).sources


@pytest.mark.slow
def test_an_assumption_of_the_record_says_where_a_parameter_comes_from(tmp_path: Path) -> None:
    rent = 'parameter.share = { value = 1.0, source = "the landlord" }\n'
    text = CLOSE.replace("[measure.cost]", f"{rent}\n[measure.cost]").replace("sum(rent)", "sum(rent * $share)")
    model = tmp_path / "close.toml"
    model.write_text(text)
    url = database(tmp_path, SITES)
    result = decisor.ask("Which two?", db=url, model=model, technique="exact", settings={"trials": 0})
    assert "share is 1.0: the landlord." in build_record(result.trace).content.assumptions


def test_a_text_that_is_no_model_of_this_form_has_no_words() -> None:
    assert list(list_model_parts("")) == list(list_model_parts('choice = "SELECT 1"\n[measure')) == []
