"""Figures and names as words, the same in every form of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decisor.plurals import plural

if TYPE_CHECKING:
    from decisor.evaluation.failure_judge import Agreement
    from decisor.evaluation.win_rates import WinRate
    from decisor.statistics.summary import SummaryRow

SPACE = "\u202f"
"""A narrow space that does not break."""


def percent(share: float, digits: int = 0) -> str:
    """
    >>> percent(0.1234, 1).replace(SPACE, " ")
    '12.3 %'
    """
    return f"{100 * share:.{digits}f}{SPACE}%"


def points(share: float) -> str:
    """A difference of shares, in percentage points.

    >>> points(0.125), points(-0.02)
    ('+12.5', '−2.0')
    """
    return f"{100 * share:+.1f}".replace("-", "\u2212")


def probability(p: float) -> str:
    """
    >>> probability(0.0312), probability(0.00001), probability(1.0)
    ('0.031', '<0.001', '1')
    """
    return "<0.001" if p < 0.001 else f"{p:.2g}"


def short(value: float) -> str:
    """
    >>> short(12.0), short(15300), short(2_400_000), short(0.00123), short(9.97), short(99.9), short(1234.5)
    ('12', '15.3k', '2.4M', '0.0012', '10', '99.9', '1,234')
    """
    for size, unit, letter in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if abs(value) >= size:
            return f"{value / unit:.3g}{letter}"
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2g}"


def money(dollars: float | None) -> str:
    """
    >>> money(None), money(0.0), money(0.00123), money(12.5)
    ('unknown', '$0', '$0.0012', '$12.50')
    """
    if dollars is None:
        return "unknown"
    return "$0" if not dollars else f"${dollars:,.2f}" if dollars >= 1 else f"${dollars:.2g}"


def spoken(name: str) -> str:
    """
    >>> spoken("over_budget")
    'over budget'
    """
    return name.replace("_", " ")


def counted(many: int, what: str) -> str:
    """
    >>> counted(1, "case"), counted(1200, "case")
    ('1 case', '1,200 cases')
    """
    return f"{many:,} {plural(many, what)}"


def say_unmeasured(row: SummaryRow) -> str:
    """Say which metrics are no finite number in some outcomes; nothing where all are measured."""
    parts = [f"{spoken(name)} in {counted(many, 'outcome')}" for name, many in row.unmeasured.items()]
    return f"Left out of the mean, no finite number: {', '.join(parts)}." if parts else ""


def beside(row: SummaryRow) -> list[str]:
    """What judge and simulator cost an outcome, in the mean; nothing where there was none."""
    parts = []
    for name, usage in row.beside.items():
        many, dollars = row.outcomes, None if usage.dollars is None else usage.dollars / row.outcomes
        calls = f"{short(usage.calls / many)} {'call' if usage.calls == many else 'calls'}"
        parts.append(f"{name} {calls}, {short(usage.tokens / many)} tokens, {money(dollars)}")
    return parts


def agreed(agreement: Agreement) -> str:
    """How far rules and judge agree, in a sentence."""
    if agreement.agreed is None:
        return f"{agreement.judge} was asked about {agreement.failures} failures; none of its replies could be read."
    kappa = "" if agreement.kappa is None else f" (Cohen’s kappa {agreement.kappa:.2f})"
    return (f"{agreement.judge} was asked about {agreement.failures} failures, {agreement.read} of its replies could "
            f"be read, and {percent(agreement.agreed)} of these name the class that the rules gave{kappa}."
    )  # fmt: skip


def won_over(one: WinRate) -> str:
    """A win rate, in a sentence."""
    rest = f"{one.wins.ties} ties, {one.wins.unread} not read"
    if one.wins.rate is None:
        cases = counted(one.cases, "case")
        return f"{one.technique} against {one.over} on {one.benchmark}: no winner in {cases} ({rest})."
    decided = one.wins.wins + one.wins.losses
    return (f"{one.technique} wins over {one.over} on {one.benchmark} in {percent(one.wins.rate, 1)} of "
            f"{counted(decided, 'case')} with a winner ({rest}), judged by {one.judge} where both or neither passed."
    )  # fmt: skip
