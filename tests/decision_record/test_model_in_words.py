"""The decision model of a record in words: each part of its file that a person answers for, with its source."""

from __future__ import annotations

from decisor.decision_record.page import list_model_parts

MODEL = """
format = 3
decide = "the supplier to drop"
choice.pick.rows = "SELECT name FROM supplier"
change = "DELETE FROM offer WHERE supplier IN (SELECT name FROM pick)"
parameter.fee = { value = 2.5, unit = "EUR an order" }
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
    assert parts["parameter", "fee"] == "2.5 EUR an order"
    assert (
        parts["correction", "offer.unit_cost of supplier elm"]
        == '58.0, not 59.0. memo.md: "Elm sells at 58 from June."'
    )
    assert parts["function", "rate"].startswith("exchange_rate, called 2026-11-28T10:00:00Z: ")
    assert "0.92" in parts["function", "rate"]
    assert parts["left open", ""] == "does the fee fall in June?"


def test_a_text_that_is_no_model_of_this_form_has_no_words() -> None:
    assert list(list_model_parts("")) == list(list_model_parts('choice = "SELECT 1"\n[measure')) == []
