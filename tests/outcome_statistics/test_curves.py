"""Curves of hand-made outcomes."""

from dataclasses import replace

from decisor.lab.benchmark import Outcome
from decisor.lab.statistics import (
    accuracy_by_count,
    accuracy_by_decile,
    accuracy_by_kind,
    choose_curve_limits,
    compute_budget_curve,
    was_right_by,
)
from decisor.types import Usage


def outcome(case: int, right: bool, calls: int = 0, **more: object) -> Outcome:
    made = Outcome("bench", f"c{case}", "t", "m", 0, "right" if right else "wrong", usage=Usage(calls=calls))
    return replace(made, **more)  # type: ignore[arg-type]


def test_a_budget_curve_reads_the_last_snapshot_before_each_limit() -> None:
    """It right_by a right answer at 30 calls, gave it up at 60, and ended wrong after 75."""
    one = outcome(0, False, calls=75, snapshots={30: True, 60: False})
    assert [was_right_by(one, calls) for calls in (29, 30, 59, 60, 90)] == [False, True, True, False, False]


def test_without_snapshots_an_answer_is_there_only_at_the_end() -> None:
    part = [outcome(0, True, calls=4), outcome(1, True, calls=12), outcome(2, False, calls=3)]
    assert [(point.at, point.right, point.total) for point in compute_budget_curve(part, (3, 4, 12))] == [
        (3, 0, 3),
        (4, 1, 3),
        (12, 2, 3),
    ]


def test_the_limits_are_the_snapshots_or_a_dozen_round_numbers() -> None:
    assert choose_curve_limits([outcome(0, True, 90, snapshots={30: True, 60: True})]) == (30, 60)
    assert choose_curve_limits([outcome(0, True, 7)]) == (1, 2, 3, 4, 5, 6, 7)
    assert choose_curve_limits([outcome(0, True, 230)]) == (20, 40, 60, 80, 100, 120, 140, 160, 180, 200, 220, 240)
    assert choose_curve_limits([outcome(0, True, 0)]) == choose_curve_limits([]) == ()


def test_what_crashed_or_was_not_scored_is_in_no_curve() -> None:
    part = [
        outcome(0, True, 2),
        replace(outcome(1, True, 2), state="crashed"),
        outcome(2, True, 2, counts={"replans": 1}),
    ]
    assert compute_budget_curve(part, (2,))[0].total == 2
    assert [(point.at, point.right, point.total) for point in accuracy_by_count(part, "replans")] == [(1, 1, 1)]


def test_accuracy_by_number_of_replans_and_by_kind() -> None:
    part = [
        outcome(at, at % 3 == 0, counts={"replans": at % 2}, tags=("SR",) if at < 3 else ("MR",)) for at in range(9)
    ]
    assert [(point.at, point.right, point.total) for point in accuracy_by_count(part, "replans")] == [
        (0, 2, 5),
        (1, 1, 4),
    ]
    points = accuracy_by_kind(part, ("SR", "MR", "none"), lambda one: one.tags[0])
    assert [(point.label, point.right, point.total) for point in points] == [("SR", 1, 3), ("MR", 2, 6)]


def test_elo_deciles_are_equal_parts_and_sort_the_other_techniques_by_the_same_cases() -> None:
    rated = [outcome(at, at >= 50, metrics={"elo": float(at * at)}) for at in range(100)]
    plain = [replace(outcome(at, at < 10), technique="plain") for at in range(100)]
    found = accuracy_by_decile([*rated, *plain])
    assert [point.right for point in found["t"]] == [0] * 5 + [10] * 5
    assert [point.right for point in found["plain"]] == [10] + [0] * 9
    assert [point.total for point in found["t"]] == [10] * 10
    assert found["t"][0].at < 0.05 and found["t"][-1].at > 0.85
    assert accuracy_by_decile(plain) == {}
    both = accuracy_by_decile([*rated, *(replace(one, metrics={"elo": -1.0 * at}) for at, one in enumerate(plain))])
    assert [point.right for point in both["plain"]] == [0] * 9 + [10]
    assert [point.total for point in accuracy_by_decile(rated[:4])["t"]] == [4]
    assert [point.total for point in accuracy_by_decile(rated[:20])["t"]] == [5, 5, 5, 5]
