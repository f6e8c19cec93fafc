"""What stands in a document, and what does not."""

import pytest

from decisor.parsing.attribution import attribute_answer, contains_phrase
from decisor.types import Record, Value

RIGGING = Record(
    "o1.r1", {"title": "Rigging"}, "Rigging supports a ship's masts\u2014standing rigging\u2014and sails. It is old."
)
ROW = Record("o2.r1", {"shelf": "B4", "copies": 7})


@pytest.mark.parametrize(
    ("text", "answer", "found"),
    [
        ("They know.", "no", False),
        ("It was 1994.", "1", False),
        ("in the U.S. state", "US", True),
        ("masts\u2014standing rigging\u2014and", "standing rigging", True),
        ("The \u201cBeatles\u201d came.", "The Beatles", True),
        ("anything", "the", False),
        ("anything", "", False),
    ],
)
def test_whole_words_count_however_they_are_written(text: str, answer: str, found: bool) -> None:
    assert contains_phrase(text, answer) is found


def test_a_quote_counts_though_a_dash_ends_it() -> None:
    quote = "Rigging supports a ship's masts"
    assert attribute_answer("It holds them up", quote, [RIGGING], True) == ("quoted", "o1.r1", quote)
    assert attribute_answer("yes", "Rigging is new and cheap", [RIGGING], True)[0] == "unattributed"
    assert attribute_answer("yes", "ship's masts", [RIGGING], True)[0] == "quoted"
    assert attribute_answer("yes", "masts", [RIGGING], True)[0] == "unattributed", "one word proves nothing"


def test_a_row_tells_an_answer_of_several_of_its_values() -> None:
    assert attribute_answer("shelf B4, 7 copies", "none", [ROW], True)[:2] == ("attributed", "o2.r1")
    assert attribute_answer("shelf B5, 7 copies", "none", [ROW], True)[0] == "unattributed"
    assert attribute_answer("copies", "none", [ROW], True)[0] == "unattributed", "a name of a column is no value"


def test_the_supporting_sentence_is_the_quote_where_it_holds_the_answer_and_else_found() -> None:
    document = Record("o1.r1", text="He moved to St. Louis in 1950. He stayed there.")
    assert attribute_answer("St. Louis", "", [document], True)[2] == "He moved to St. Louis in 1950."
    assert attribute_answer("St. Louis", "moved to St. Louis", [document], True)[2] == "moved to St. Louis"
    assert attribute_answer("St. Louis", "made up: St. Louis", [document], True)[2] == "He moved to St. Louis in 1950."


def test_without_looking_an_answer_is_the_models_own() -> None:
    assert attribute_answer("Lyon", "", [], looked=False) == ("model_knowledge", "", "")
    assert attribute_answer("Lyon", "", [RIGGING], looked=True) == ("unattributed", "", "")


def test_a_node_of_a_graph_tells_its_properties() -> None:
    town: dict[str, Value] = {"_labels": ["Town"], "name": "Ghent", "also": ["Gent", "Gand"], "inhabitants": 265000}
    row = Record("o3.r1", {"t": town, "path": [town, {"_type": "LIES_IN"}, {"name": "oak", "rooms": 12}]})
    assert attribute_answer("Ghent", "", [row], True) == ("attributed", "o3.r1", "Ghent")
    assert attribute_answer("Gand", "", [row], True)[:2] == ("attributed", "o3.r1")
    assert attribute_answer("oak, 12 rooms", "", [row], True)[:2] == ("attributed", "o3.r1")
    assert attribute_answer("Lyon", "", [row], True)[0] == "unattributed"


def test_what_is_quoted_stands_beside_the_sentence_that_holds_the_answer() -> None:
    berth = Record("o1.r1", {"title": "Velden"}, "Velden is a harbour town. A berth costs 41 crowns a night.")
    other = "A berth costs 41 crowns a night."
    assert attribute_answer("Velden", other, [berth], True)[2] == f"Velden is a harbour town. \u2026 {other}"
    assert (
        attribute_answer("Velden", "A berth costs 99 crowns a night.", [berth], True)[2] == "Velden is a harbour town."
    )
    assert attribute_answer("41", other, [berth], True)[2] == other
