"""The end of ``decisor ask``: the decision and what it cost, on a terminal or as one object."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rich.text import Text

from decisor.session.composition import NO_LM, Told
from decisor.story.decision import show_decision, usage_line
from decisor.trace.events import plain

if TYPE_CHECKING:
    from rich.console import Console


def tell(told: Told, console: Console) -> None:
    decision = told.decision
    show_decision(decision, told.records, console)
    console.print()
    console.print(Text(usage_line(told.usage, told.chosen or told.technique, told.lm), style="dim"))
    if not told.lm:
        console.print(Text(NO_LM, style="dim"))
    if told.asked.trace_file:
        console.print(Text(f"Trace: {told.asked.trace_file} (read it with: decisor trace FILE)", style="dim"))


def as_object(told: Told) -> dict[str, Any]:
    """What --json prints; docs/command.md describes each key. Numbers that JSON cannot hold are null."""
    decision, usage = told.decision, told.usage
    told_of: dict[str, Any] = finite(
        {
            "question": told.asked.question,
            "technique": told.technique,
            "chosen": told.chosen or None,
            "settings": dict(told.asked.settings),
            "lm": told.lm or None,
            "answer": decision.answer,
            "stopped": decision.stopped,
            "reasons": decision.reasons,
            "plan": decision.plan,
            "replans": decision.replans,
            "ranking": decision.ranking,
            "evidence": {
                "ids": decision.evidence.ids,
                "figures": decision.evidence.figures,
                "unsupported": decision.evidence.unsupported,
                "records": told.records,
            },
            "usage": usage,
            "trace": str(told.asked.trace_file) if told.asked.trace_file else None,
        }
    )
    return told_of


def finite(value: Any) -> Any:
    value = plain(value)
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
