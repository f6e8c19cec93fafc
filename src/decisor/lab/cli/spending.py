"""What a run would cost, told and confirmed before anything is bought."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from decisor.errors import SetupError

if TYPE_CHECKING:
    from decisor.lab.evaluation.runner import Suite
    from decisor.lab.evaluation.suite import SuiteRequest
    from decisor.lab.reproduction.runs import Estimate

ASKED_FROM_DOLLARS = 1.0
"""An estimate above this is confirmed by a person."""


def estimate_suites(opened: Sequence[tuple[SuiteRequest, Suite]], place: str) -> list[Estimate]:
    """Estimate what the suites would still cost after what their store holds."""
    from decisor.lab.evaluation.postgres_store import open_store
    from decisor.lab.reproduction.runs import estimate_suite

    outcomes = []
    if "://" in place or Path(place).exists():
        with closing(open_store(place, create=False)) as store:
            outcomes = store.outcomes()
    return [estimate for _, suite in opened for estimate in estimate_suite(suite, outcomes)]


def format_estimates(estimates: Sequence[Estimate]) -> str:
    """Format estimates as columns: calls, tokens and dollars of each technique, and the sum."""
    rows = [("benchmark", "technique", "LLM", "cases", "calls", "tokens", "dollars", "measured by")]
    for one in estimates:
        calls = tokens = "not known"
        if one.usage is not None:
            calls = f"{one.cases * one.usage.calls:,.0f}"
            tokens = f"{one.cases * (one.usage.prompt_tokens + one.usage.completion_tokens):,.0f}"
        dollars = "not known" if one.dollars is None else f"{one.dollars:,.2f}"
        rows.append((one.bench, one.technique, one.model, str(one.cases), calls, tokens, dollars, one.source))
    total, unknown = sum(one.dollars or 0.0 for one in estimates), any(one.dollars is None for one in estimates)
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.append(f"{'At least ' if unknown else 'About '}${total:,.2f}, without judges and simulators.")
    if any(one.source == "scripted replies" for one in estimates):
        lines.append("Scripted replies are short: an LLM writes more, and a wrong query costs a call.")
    return "\n".join(lines) + "\n"


def confirm_spending(estimates: Sequence[Estimate], yes: bool, max_dollars: float | None) -> None:
    """Ask a person at a terminal before more than a dollar is spent.

    Raises:
        SetupError: the answer is no, or there is nobody to ask and no ``--yes``.
    """
    dollars = sum(one.dollars or 0.0 for one in estimates)
    if yes or min(dollars, dollars if max_dollars is None else max_dollars) <= ASKED_FROM_DOLLARS:
        return
    if not sys.stdin.isatty():
        raise SetupError(f"This costs about ${dollars:,.2f}. Write --yes to spend it, or --max-dollars 1.")
    print(format_estimates(estimates), end="", file=sys.stderr)
    if not typer.confirm(f"Spend about ${dollars:,.2f}?", err=True):
        raise SetupError("Nothing was run.")
