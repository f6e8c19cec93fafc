"""Metrics of questions over documents, against cases worked by hand from the released scorers' rules."""

import pytest

from decisor.lab.qa.score import (
    best_recall,
    classify_attribution,
    interleave_rankings,
    match_sets,
    recall_at,
    reciprocal_gold_rank,
)
from decisor.lab.text_match import (
    acc,
    acc_word,
    em,
    f1,
    f1_hotpot,
    is_near_answer,
    normalise_answer,
    read_choice_letter,
    read_first_yes_no,
)
from decisor.types import Record


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Who", "who"),
        ("A.", ""),
        ("an  Apple\ta day", "apple day"),
        ("Theatre", "theatre"),  # "the" only as a whole word
        ("1,024", "1024"),
        ("rock'n'roll", "rocknroll"),
        ("Beyoncé", "beyoncé"),  # no folding of letters
        ("“quoted”", "“quoted”"),  # only ASCII punctuation goes
        ("", ""),
    ],
)
def test_normalising_is_that_of_the_released_scorers(text: str, expected: str) -> None:
    assert normalise_answer(text) == expected


def test_exact_match_takes_the_best_accepted_answer() -> None:
    assert em("the Beatles", ["Beatles"]) == 1
    assert em("Beatles, The", ["The Beatles"]) == 1
    assert em("Beyonce", ["Beyoncé"]) == 0
    assert em("b", ["a", "b"]) == 1
    assert em("anything", []) == 0


def test_f1_counts_tokens_with_repetition() -> None:
    # predicted: new york new york (4), gold: new york city (3), common: new 1 + york 1 = 2 -> P 2/4, R 2/3
    assert f1("New York, New York", ["New York City"]) == pytest.approx(2 * 0.5 * (2 / 3) / (0.5 + 2 / 3))
    assert f1("cat", ["dog"]) == 0
    assert f1("the", ["an"]) == 1  # nothing is left on either side
    assert f1("the", ["dog"]) == 0


def test_the_two_f1_differ_only_for_yes_no_and_nothing() -> None:
    assert f1("no way", ["no"]) == f1("yes", ["yes indeed"]) == pytest.approx(2 / 3)
    assert f1_hotpot("no way", ["no"]) == f1_hotpot("yes", ["yes indeed"]) == 0
    assert (f1("the", ["a"]), f1_hotpot("the", ["a"])) == (1, 0)
    assert f1("blue whale", ["whale"]) == f1_hotpot("blue whale", ["whale"]) == pytest.approx(2 / 3)


def test_accuracy_is_containment_and_has_a_word_form() -> None:
    assert (acc("I do not know", ["no"]), acc_word("I do not know", ["no"])) == (1, 0)
    assert (acc("in 1994", ["1"]), acc_word("in 1994", ["1"])) == (1, 0)
    assert (acc("It was Jane Austen.", ["Jane Austen"]), acc_word("It was Jane Austen.", ["Jane Austen"])) == (1, 1)
    assert (acc("An answer", ["A"]), acc("a", ["A"])) == (0, 1)  # nothing is left of "A": it must be the whole answer


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Yes.", "yes"), ("The answer is no, not yes", "no"), ("nothing known", ""), ("TRUE", "yes"), ("**No**", "no")],
)
def test_the_first_yes_or_no_counts(text: str, expected: str) -> None:
    assert read_first_yes_no(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("C", "C"),
        ("c.", "C"),
        ("(B) The days become shorter.", "B"),
        ("The correct answer is **D**.", "D"),
        ("Answer: A) Years", "A"),
        ("B The days become shorter", "B"),
        ("A day on the planet becomes longer", ""),  # an article, no letter
        ("the days become shorter", "B"),
        ("I think the days become shorter because of the spin", "B"),
        ("Gravity", ""),
        ("the years become longer or the days become shorter", ""),
        ("E", ""),
        ("", ""),
    ],
)
def test_a_choice_is_read_by_letter_or_by_text(text: str, expected: str) -> None:
    choices = {"A": "The years become longer.", "B": "The days become shorter.", "C": "Stronger gravity", "D": "None"}
    assert read_choice_letter(text, choices) == expected


def test_choices_with_digits_for_letters() -> None:
    assert read_choice_letter("2", {"1": "ice", "2": "steam"}) == "2"
    assert read_choice_letter("(1) ice", {"1": "ice", "2": "steam"}) == "1"


def test_parallelqa_allows_ten_per_cent_of_a_number() -> None:
    assert (
        is_near_answer("about 110 m", "110.12")
        and is_near_answer("1.94", "1.94")
        and is_near_answer("104,736,200", "104736200")
    )
    assert not is_near_answer("121.2", "110.12") and not is_near_answer("none", "110.12")
    assert is_near_answer("The Mekong river", "Mekong River") and not is_near_answer("Mekong", "Mekong River")


def test_cited_passages_are_compared_as_sets() -> None:
    facts = match_sets([("A", 0), ("B", 3)], [("A", 0), ("C", 1)])
    assert (facts.precision, facts.recall, facts.f1, facts.em) == (0.5, 0.5, 0.5, 0)
    assert match_sets([], [("A", 0)]).f1 == 0
    assert match_sets([("A", 0), ("A", 0)], [("A", 0)]).em == 1


def test_recall_counts_gold_within_k_and_all_recall_wants_every_one() -> None:
    ranked = ["x", "a", "y", "b"]
    assert [recall_at(ranked, ["a", "b"], k) for k in (1, 2, 4)] == [0, 0.5, 1]
    assert (reciprocal_gold_rank(ranked, ["b", "a"]), reciprocal_gold_rank(ranked, ["z"])) == (0.5, 0)
    assert recall_at(["a", "a", "b"], ["a", "b"], 2) == 0.5


def test_strategyqa_takes_the_annotator_it_fits_best() -> None:
    ranked = [f"p{i}" for i in range(12)]
    assert best_recall(ranked, [["p0", "q"], ["p11"], ["p9", "p1", "r"]]) == pytest.approx(2 / 3)
    assert best_recall(ranked, [[], []]) == 0


def test_several_rankings_are_taken_in_turns() -> None:
    assert interleave_rankings([["a", "b", "c"], ["b", "d"], []]) == ["a", "b", "d", "c"]


def test_an_answer_is_attributed_declared_or_neither() -> None:
    def one(text: str) -> list[Record]:
        return [Record("r1", text=text)]

    assert classify_attribution("the Loire", one("It joins the loire, near Nantes")) == "attributed"
    assert classify_attribution("Loire", []) == "declared"
    assert classify_attribution("Loire", one("The Rhine")) == "unattributed"
    assert classify_attribution("no", one("It is known. No other river is.")) == "unattributed"


def test_parallelqa_reads_thousands_where_the_answer_is_0() -> None:
    assert not is_near_answer("1,000 m", "0") and is_near_answer("0 m", "0")
