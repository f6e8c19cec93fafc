"""A result as one JSON object: what ``decisor ask --json`` prints."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from decisor.encoding import json_value

if TYPE_CHECKING:
    from decisor.session.result import Result


def json_object(result: Result) -> dict[str, Any]:
    """docs/command.md describes each key. Numbers that JSON cannot hold are None."""
    decision, path = result.decision, result.options.get("trace")
    values: dict[str, Any] = finite(
        {
            "question": result.question,
            "technique": result.technique,
            "chosen": result.auto_technique or None,
            "settings": dict(result.settings),
            "lm": result.lm or None,
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
                "records": result.records,
            },
            "usage": result.usage,
            "trace": str(path) if path else None,
        }
    )
    return values


def finite(value: Any) -> Any:
    """As JSON can hold it."""
    value = json_value(value)
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
