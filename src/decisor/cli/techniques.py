"""``decisor techniques``: what there is, and the settings of each."""

from __future__ import annotations

import inspect
import json
from dataclasses import Field, fields
from typing import Annotated, Any

import typer


def command(as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False) -> None:
    """List the techniques and their settings."""
    rows = [row_of(name, kind) for name, kind in table().items()]
    if as_json:
        print(json.dumps(rows))
        return
    for row in rows:
        settings = "  ".join(f"{setting['name']}={setting['default']}" for setting in row["settings"])
        print(f"{row['name']:<12} {row['about']}")
        if settings:
            print(f"{'':<12} -o {settings}")


def table() -> dict[str, type]:
    from decisor.techniques import TECHNIQUES, kind_of

    return {name: kind_of(name) for name in TECHNIQUES}


def row_of(name: str, kind: type) -> dict[str, Any]:
    """``about`` is the first sentence of the technique's module."""
    module = inspect.getmodule(kind)
    about = (inspect.getdoc(module) or "").split("\n\n")[0].replace("\n", " ")
    settings = [{"name": f.name, "default": f.default, "type": str(f.type)} for f in fields(kind) if settable(f)]
    return {"name": name, "about": about, "settings": settings}


def settable(setting: Field[Any]) -> bool:
    """What a text can say; the rest is set in Python only."""
    return isinstance(setting.default, str | int | float)
