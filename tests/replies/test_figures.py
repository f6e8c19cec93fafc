from __future__ import annotations

import pytest

from decisor.parsing.figures import check_figures, interpret_number, written_numbers
from decisor.types import Figure, Record

ROWS = (
    Record("o1.r1", {"site": "oak", "rent": 700.0, "area": 40}),
    Record("o1.r2", {"site": "elm", "rent": 412.5, "area": 30}),
    Record("o1.r3", {"site": "fir", "rent": 655.25, "area": 35}),
)


def support(text: str, *records: Record) -> dict[str, str]:
    sources = [(one.id, [value for value in one.fields.values() if isinstance(value, float | int)]) for one in records]
    sources.append(("question", [12.0]))
    return {figure.text: figure.support for figure in check_figures(text, sources)}


@pytest.mark.parametrize(
    ("text", "figure", "formula"),
    [
        ("elm costs 412.5, oak 700, so 287.5 less", "287.5", "computed: 700 [o1.r1] - 412.5 [o1.r2]"),
        ("oak and elm cost 1,112.5 together (700 and 412.5)", "1,112.5", "computed: 700 [o1.r1] + 412.5 [o1.r2]"),
        ("elm costs 412.5 of oak's 700: 58.9 %", "58.9 %", "computed: 412.5 [o1.r2] / 700 [o1.r1]"),
        ("elm is 41.1 % cheaper: 412.5 against 700", "41.1 %", "computed: 412.5 [o1.r2] / 700 [o1.r1] - 1"),
        ("it is 700 + 12 * 40 = 1,180, at 12 a metre", "1,180", "computed: 700 [o1.r1] + 12 [question] * 40 [o1.r1]"),
        (
            "oak 700, elm 412.5, fir 655.25: 1767.75",
            "1767.75",
            "computed: sum of 700 [o1.r1], 412.5 [o1.r2], 655.25 [o1.r3]",
        ),
    ],
)
def test_what_follows_from_cited_figures_is_computed_and_says_how(text: str, figure: str, formula: str) -> None:
    assert support(text, *ROWS)[figure] == formula


@pytest.mark.parametrize("text", ["700 + 412.5 + 40 = 1,180", "700 + 480.5 = 1,180.5", "700 / 0 = 1,180"])
def test_a_calculation_that_is_wrong_or_starts_from_what_nothing_holds_supports_nothing(text: str) -> None:
    assert not support(text, *ROWS)[text.rpartition("= ")[2]]


def test_a_figure_that_no_record_and_no_calculation_gives_is_unsupported() -> None:
    assert support("elm costs 412.5, and 931.7 with heating", *ROWS) == {"412.5": "o1.r2", "931.7": ""}


def test_a_short_figure_is_no_calculation_from_numbers_that_the_answer_does_not_quote() -> None:
    assert support("it takes 75 days", *ROWS) == {"75": ""}


def test_a_record_that_was_shown_supports_a_figure_though_another_one_is_cited() -> None:
    figures = check_figures("it costs 655.25", [("o1.r1", [700.0]), ("o1.r3", [655.25])])
    assert figures == (Figure("655.25", "o1.r3"),)


@pytest.mark.parametrize("text", ["1.234,5", "1 234,5", "1\u202f234,5", "1,234.5", "1234.5", "1'234.5", "１２３４.５"])
def test_a_number_is_read_in_the_form_of_any_country(text: str) -> None:
    (figure,) = written_numbers(f"es kostet {text} Mark")
    assert [one.value for one in interpret_number(figure)] == [1234.5]
    assert check_figures(f"es kostet {text} Mark", [("o1.r1", [1234.5])])[0].support == "o1.r1"


def test_a_mark_with_two_meanings_counts_in_either() -> None:
    assert check_figures("1.234 und 1,234", [("o1.r1", [1234.0]), ("o1.r2", [1.234])]) == (
        Figure("1.234", "o1.r1"),
        Figure("1,234", "o1.r1"),
    )


def test_numbers_stand_between_chinese_words_and_in_ten_thousands() -> None:
    figures = check_figures("价格从12.5元降到３.２元，产量1.2万吨", [("o1.r1", [12.5, 3.2, 12_000])])
    assert [(one.text, one.support) for one in figures] == [("12.5", "o1.r1"), ("3.2", "o1.r1"), ("1.2万", "o1.r1")]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("it weighs 3.5kg", 3.5),
        ("it costs 5,495EUR", 5495),
        ("it costs $1.2M", 1_200_000),
        ("it costs 1,2 Mio. EUR", 1_200_000),
        ("about 5.5k units", 5500),
        ("12 billion", 12_000_000_000),
        ("it is 1.5x as dear", 1.5),
    ],
)
def test_a_figure_with_a_unit_or_a_word_for_a_thousand_is_read_whole(text: str, number: float) -> None:
    """The digits before the mark alone were read: 3, 5, 1."""
    (figure,) = check_figures(text, [("o1.r1", [number]), ("o1.r2", [3, 5, 1, 12])])
    assert figure.support == "o1.r1"


def test_a_number_that_runs_on_into_a_word_is_no_figure() -> None:
    assert written_numbers("v1.10 of b7, 12abc, 10.5XYZ, 0x1F") == ()
