"""Summaries, comparisons and curves of hand-made outcomes."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from decisor.lab.benchmark import Outcome, State
from decisor.lab.statistics import (
    Interval,
    compare_all_pairs,
    compare_outcomes,
    compare_with_earlier_run,
    find_changed_outcomes,
    mcnemar,
    summarise_outcomes,
    wilson,
)
from decisor.types import Usage

LETTERS: Mapping[str, State] = {"r": "right", "w": "wrong", "o": "over_budget", "u": "unscored", "c": "crashed"}


def outcomes(technique: str, states: str, repeat: int = 0, **more: object) -> list[Outcome]:
    """One outcome a letter: r(ight), w(rong), o(ver budget), u(nscored), c(rashed)."""
    plain = Outcome("bench", "", technique, "m", repeat, "right", usage=Usage(calls=2, dollars=0.01), seconds=1.5)
    return [
        replace(plain, case=f"case-{at}", state=LETTERS[state], **more)  # type: ignore[arg-type]
        for at, state in enumerate(states)
    ]


def test_four_outcomes_are_never_merged() -> None:
    (row,) = summarise_outcomes(outcomes("t", "rrrwwouc"))
    assert row.states == {"right": 3, "wrong": 2, "over_budget": 1, "unscored": 1, "crashed": 1}
    assert (row.counted, row.outcomes) == (6, 8)
    assert row.accuracy == 0.5 and row.interval == wilson(3, 6)
    assert (row.least, row.most) == (3 / 8, 5 / 8)
    assert row.usage.calls == 16 and row.usage.dollars == pytest.approx(0.08) and row.seconds == 1.5


def test_nothing_that_counts_has_no_accuracy() -> None:
    (row,) = summarise_outcomes(outcomes("t", "uc"))
    assert row.accuracy is None and row.interval is None and (row.least, row.most) == (0.0, 1.0)


def test_one_unknown_price_makes_the_sum_unknown() -> None:
    part = outcomes("t", "rr")
    (row,) = summarise_outcomes([part[0], replace(part[1], usage=Usage(calls=1, dollars=None))])
    assert row.usage.dollars is None


def test_groups_follow_the_row_of_all() -> None:
    part = outcomes("t", "rw", group="easy") + [
        replace(one, case=one.case + "b") for one in outcomes("t", "ww", group="hard")
    ]
    assert [(row.group, row.accuracy) for row in summarise_outcomes(part, by_group=True)] == [
        ("", 0.25),
        ("easy", 0.5),
        ("hard", 0.0),
    ]
    assert [row.group for row in summarise_outcomes(part)] == [""]


def test_a_few_cases_that_all_came_out_the_same_in_every_repeat_have_a_wide_interval() -> None:
    (row,) = summarise_outcomes([*outcomes("t", "ww"), *outcomes("t", "ww", 1), *outcomes("t", "ww", 2)])
    assert row.interval == wilson(0, 2)


def test_repeats_give_a_mean_and_the_chances_of_k_tries() -> None:
    """case-0 right twice, case-1 once, case-2 never: pass@1 = (1 + 1/2 + 0)/3, pass@2 = 2/3, pass^2 = 1/3."""
    part = outcomes("t", "rrw", 0) + outcomes("t", "rww", 1)
    (row,) = summarise_outcomes(part)
    assert row.accuracy == pytest.approx(0.5) and row.pass_at == pytest.approx({1: 0.5, 2: 2 / 3})
    assert row.pass_hat == pytest.approx({1: 0.5, 2: 1 / 3})


def test_answers_to_the_same_case_do_not_count_as_independent() -> None:
    """Ten tries that always agree tell no more than one: the interval stays as wide as that of the cases."""
    once = outcomes("t", "rrrrrwwwww" * 4)
    often = [one for repeat in range(10) for one in outcomes("t", "rrrrrwwwww" * 4, repeat)]
    (narrow,), (wide,) = summarise_outcomes(once), summarise_outcomes(often)
    assert narrow.interval and wide.interval
    assert wide.interval.high - wide.interval.low == pytest.approx(narrow.interval.high - narrow.interval.low, abs=0.03)


def test_a_comparison_is_paired_and_leaves_out_what_was_not_judged() -> None:
    one, other = outcomes("a", "rrrrrrruwr"), outcomes("b", "rrwwwwwrwc")
    found = compare_outcomes(one, other)
    assert found is not None
    assert (found.pairs, found.left_out, found.only_one, found.only_other) == (8, 2, 5, 0)
    assert found.difference == 5 / 8 and found.p == mcnemar(5, 0) == 0.0625
    assert 0.2 < found.interval.low < found.difference < found.interval.high <= 1.0


def test_running_over_the_budget_is_not_right_but_counts_in_a_comparison() -> None:
    found = compare_outcomes(outcomes("a", "rr"), outcomes("b", "oo"))
    assert found is not None and (found.pairs, found.only_one) == (2, 2)


def test_no_shared_case_is_no_comparison() -> None:
    assert compare_outcomes(outcomes("a", "uc"), outcomes("b", "rr")) is None
    assert compare_outcomes(outcomes("a", "rr"), []) is None


def test_all_pairs_face_up_and_are_corrected_together() -> None:
    three = outcomes("worst", "wwwwwwwwww") + outcomes("middle", "rrrrrrwwww") + outcomes("best", "rrrrrrrrrr")
    found = compare_all_pairs(three)
    assert [(str(one.one), str(one.other)) for one in found] == [
        ("middle, m", "worst, m"),
        ("best, m", "worst, m"),
        ("best, m", "middle, m"),
    ]
    assert [one.p for one in found] == [mcnemar(6, 0), mcnemar(10, 0), mcnemar(4, 0)]
    assert found[1].p_holm == pytest.approx(3 * mcnemar(10, 0))
    assert found[0].p_holm == pytest.approx(2 * mcnemar(6, 0))
    assert found[1].interval == Interval(1.0, 1.0)


def test_a_run_against_an_earlier_one() -> None:
    before, after = outcomes("t", "rwwc"), outcomes("t", "rrrw")
    (found,) = compare_with_earlier_run(after, before)
    assert (found.pairs, found.left_out, found.only_one) == (3, 1, 2)
    assert [(one.case, one.before, one.after) for one in find_changed_outcomes(after, before)] == [
        ("case-1", "wrong", "right"),
        ("case-2", "wrong", "right"),
        ("case-3", "crashed", "wrong"),
    ]


def test_two_runs_of_one_side_each_are_compared_whatever_they_are_called() -> None:
    (found,) = compare_with_earlier_run(outcomes("new", "rr"), outcomes("old", "rw"))
    assert (str(found.one), str(found.other), found.only_one) == ("new, m", "old, m", 1)
    assert compare_with_earlier_run(outcomes("new", "rr"), outcomes("old", "rw") + outcomes("older", "ww")) == ()
