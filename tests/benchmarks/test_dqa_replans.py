"""Kinds of replan, by rule."""

import pytest

from decisor.lab.dqa.bench import classify_replan

A = "Find the nodes upstream of genua"
B = "Find the power of SAV in these nodes"
C = "Calculate the profit for each node"


@pytest.mark.parametrize(
    ("new", "change", "kind"),
    [
        ([A, B, C], "same", "unchanged"),
        (["1. " + A, "2. " + B, "3. " + C], "same", "unchanged"),
        ([B, A, C], "same", "reorder"),
        ([A, B, "Look up what merchants cost"], "same", "replace"),
        (["Find the nodes upstream of venice", B, C], "same", "change target"),
        ([A, B, "Look up the flow between them", C], "increase", "add lookup"),
        ([A, B, "Compute what a merchant adds", C], "increase", "add calculation"),
        ([A, "Find the power of SAV", "Look in these nodes for power", C], "increase", "divide"),
        ([A, C], "decrease", "delete"),
        (["Find the nodes upstream of genua and the power of SAV in these", C], "decrease", "merge"),
        ([], "decrease", "delete"),
    ],
)
def test_a_replan_is_sorted_by_what_changed(new: list[str], change: str, kind: str) -> None:
    held = classify_replan([A, B, C], new)
    assert (held.change, held.kind) == (change, kind)


def test_a_first_plan_is_an_added_lookup() -> None:
    assert classify_replan([], [A]).kind == "add lookup"
