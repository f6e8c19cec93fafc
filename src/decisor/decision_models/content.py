"""What a machine opens on: the model's statements and the copied tables, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping

from decisor.decision_models.copying import Copy
from decisor.decision_models.format import Model


def content(model: Model, copies: Mapping[str, Copy]) -> str:
    """Lone surrogates, which no database takes, become question marks."""
    tables = {
        name: [{"name": one.name, "type": one.type, "values": one.values} for one in copy.columns]
        for name, copy in copies.items()
    }
    text = json.dumps({"tables": tables, **program(model)}, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode()


def program(model: Model) -> dict[str, object]:
    """By the names of ``tools.databases.sandbox.models.program.Program``."""
    recompute = model.recompute
    return {
        "choice": model.choice,
        "single": model.take.single,
        "parameters": model.parameters,
        "change": model.change,
        "recompute": recompute.sql if recompute else "",
        "times": recompute.times if recompute else 0,
        "until": recompute.until if recompute else "",
        "measures": {one.name: one.sql for one in model.measures},
        "rules": {one.name: one.broken for one in model.rules if one.broken},
        "limits": {one.name: limit(one.measure, one.at_most, one.bound) for one in model.rules if one.measure},
        "scenarios": {one.name: one.change for one in model.scenarios},
        "spreads": [
            {"table": one.table, "column": one.column, "share": one.spread.share, "how": one.spread.how}
            for one in model.inputs
            if one.spread
        ],
        "doubles": [one.name for one in model.inputs],
        "variables": [{"name": one.name, "fields": {"each": one.each, "kind": one.kind, "most": one.most}}
                      for one in model.variables],
        "requirements": [{"name": one.name, "fields": {"each": one.each, "sum": one.sum, "side": one.side,
                                                       "bound": one.bound}} for one in model.requires],
        "goals": [{"name": one.name, "fields": {"sum": one.sum, "goal": one.goal}}
                  for one in model.measures if one.sum],
        "seconds": model.seconds,
    }  # fmt: skip


def limit(measure: str, at_most: object, bound: object) -> dict[str, object]:
    """A bound as a query: a number is one too."""
    return {"measure": measure, "side": -1 if at_most is None else 1,
            "sql": bound if isinstance(bound, str) else f"SELECT CAST('{bound!r}' AS DOUBLE)"}  # fmt: skip
