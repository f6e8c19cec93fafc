"""Reading an answer: which one candidate it names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decisor.lab.dqa.bench import extract_candidate, score_named_candidate

NODES = ["african_great_lakes", "gulf_of_aden", "aden", "st_lawrence", "krakow", "wien", "rheinland"]
BUILDINGS = ["5", "12", "1485", "2623"]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("krakow", "krakow"),
        (" 'Krakow'. ", "krakow"),
        ("St. Lawrence", "st_lawrence"),
        ("AFRICAN GREAT LAKES", "african_great_lakes"),
        ("I would place it in the Gulf of Aden.", "gulf_of_aden"),
        ("Krakow or Wien", ""),
        ("**Krakow**, because wien sends nothing on.", "krakow"),
        ('Between wien and rheinland, "rheinland" is best.', "rheinland"),
        ("**Krakow** or **Wien**", ""),
        ("wien looked good.\nFinal answer: krakow", "krakow"),
        ("**Final answer:** krakow [o3.r1]", "krakow"),
        ("Final answer: krakow or wien. **krakow**", "krakow"),
        ("Final answer: krakow or wien", ""),
        ("Final answer: it is the one I bolded: **wien**", "wien"),
        ("Krakow it is. Krakow!", "krakow"),
        ("Kraków", "krakow"),
        ("the moon", ""),
        ("", ""),
    ],
)
def test_a_node_is_read_in_whatever_dress(text: str, answer: str) -> None:
    assert extract_candidate(text, NODES) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("1485", "1485"),
        ("Building id 1485", "1485"),
        ("Increase building 1485 by 5 levels.", "1485"),
        ("Raise the level by 5 for id: 1485, which is at level 12.", "1485"),
        ("1485 rather than 2623", ""),
        ("Building id 1485 rather than 2623", "1485"),
        ("**2623** (1485 is second)", "2623"),
        ("The price falls by 12.5 with #1485", "1485"),
        ("14850", ""),
        ("Final answer: 5", "5"),
    ],
)
def test_a_building_id_is_told_from_other_numbers(text: str, answer: str) -> None:
    assert extract_candidate(text, BUILDINGS) == answer


@given(st.text(max_size=200))
def test_any_text_at_all_can_be_read(text: str) -> None:
    assert extract_candidate(text, NODES) in ("", *NODES)
    assert extract_candidate(text, BUILDINGS) in ("", *BUILDINGS)


def test_a_decision_in_the_tie_set_is_right_in_the_second_sense_only() -> None:
    held = score_named_candidate("wien", "krakow", NODES, ties=("krakow", "wien"))
    assert (held.right, held.tie_right) == (False, True)
    assert score_named_candidate("", "krakow", NODES, ties=("krakow",)).tie_right is False
