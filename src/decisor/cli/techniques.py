"""``decisor techniques``: what there is, and the settings of each."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Annotated, Any

import typer


def command(as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False) -> None:
    """List the techniques and their settings."""
    print_rows([row_of(name, kind) for name, kind in table().items()], as_json, "-o")


def print_rows(rows: Sequence[Mapping[str, Any]], as_json: bool, flag: str) -> None:
    if as_json:
        print(json.dumps(rows, default=str))
        return
    for row in rows:
        settings = "  ".join(f"{setting['name']}={setting['default']}" for setting in row["settings"])
        print(f"{row['name']:<12} {row['about']}")
        if settings:
            print(f"{'':<12} {flag} {settings}")


def table() -> dict[str, type]:
    from decisor.techniques import TECHNIQUES, kind_of

    return {name: kind_of(name) for name in TECHNIQUES}


def row_of(name: str, kind: type) -> dict[str, Any]:
    """``about`` is the first sentence of the module."""
    module = inspect.getmodule(kind)
    about = (inspect.getdoc(module) or "").split("\n\n")[0].replace("\n", " ")
    settings = [{"name": f.name, "default": shown(f), "type": str(f.type)} for f in fields(kind) if settable(f)]
    return {"name": name, "about": about, "settings": settings}


def settable(setting: Field[Any]) -> bool:
    """What a text can say; the rest is set in Python only."""
    needed = setting.default is MISSING and setting.default_factory is MISSING
    said = needed or isinstance(setting.default, str | int | float | Path | None)
    return said and setting.repr and setting.name != "name"


def shown(setting: Field[Any]) -> Any:
    """The default; '...' where there is none."""
    return "..." if setting.default is MISSING else setting.default
