"""The lies of ``performance/planted_lies.py`` are lies, and its true answers are read."""

import random
import re

from decisor.techniques.shared.analyst import FINAL_ANSWER
from decisor.techniques.shared.answer import Trajectory, build_final_answer_form
from planted import (
    answer_texts,
    answer_texts_fresh,
    answer_texts_kept,
    answer_texts_last,
    answer_texts_second,
    answer_texts_third,
)
from planted.answer_slots import KINDS, fits, spell, tell_lies, write, wrong_number
from planted.answer_worlds import Case, numbered, own

CASES = [case for made in own(5) if (case := numbered(made))][:40]
PHRASINGS = (
    *answer_texts.TEXTS,
    *answer_texts_kept.TEXTS,
    *answer_texts_last.TEXTS,
    *answer_texts_fresh.TEXTS,
    *answer_texts_second.TEXTS,
    *answer_texts_third.TEXTS,
)


def some_case(phrasing_at: int) -> Case | None:
    return next((case for case in CASES if fits(PHRASINGS[phrasing_at], case)), None)


def test_a_lie_changes_one_place_of_an_answer_that_can_be_read() -> None:
    kinds = set()
    for at, phrasing in enumerate(PHRASINGS):
        case = some_case(at)
        if case is None:
            continue
        true = write(phrasing, case, "seed")
        decision = build_final_answer_form(Trajectory(case.asked, case.steps), FINAL_ANSWER).read_text(true)
        assert decision.answer == case.candidates[0].name
        assert decision.runner_up
        for lie in tell_lies(phrasing, case, "seed"):
            kinds.add(lie.kind)
            assert lie.text != true
            assert len(lie.text) - len(true) == len(lie.is_now) - len(lie.was)
    assert kinds == set(KINDS)


def test_a_wrong_number_is_wrong_as_it_is_written() -> None:
    chance = random.Random(3)
    for spelling in ("0", "2", "p2", "M2", "k1", "1%", "~"):
        for _ in range(300):
            value = round(chance.uniform(2e6, 9e6), 2) if spelling == "M2" else round(chance.uniform(20, 90_000), 2)
            for kind in ("figure", "scale"):
                if (wrong := wrong_number(value, spelling, kind, chance)) is not None:
                    assert read_number(wrong) != read_number(spell(value, spelling)), (value, spelling)


def read_number(text: str) -> float:
    """A figure with commas between thousands, and its scale."""
    found = re.fullmatch(r"([\d,.]+)( million| billion| thousand|[kM%])?", text)
    assert found, text
    scale = {" million": 1e6, " billion": 1e9, " thousand": 1e3, "k": 1e3, "M": 1e6}.get(found[2] or "", 1.0)
    return float(found[1].replace(",", "")) * scale
