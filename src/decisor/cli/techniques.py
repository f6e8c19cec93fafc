"""``decisor techniques``: what there is, and the settings of each."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field
from typing import Annotated, Any, get_type_hints

import typer


def command(as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False) -> None:
    """List the techniques and their settings."""
    print_rows([row_of(name, kind) for name, kind in table().items()], as_json, "-o")


def print_rows(rows: Sequence[Mapping[str, Any]], as_json: bool, flag: str) -> None:
    if as_json:
        print(json.dumps(rows, default=str))
        return
    for row in rows:
        settings = "  ".join(f"{setting['name']}={in_words(setting['default'])}" for setting in row["settings"])
        print(f"{row['name']:<14} {row['about']}")
        if settings:
            print(f"{'':<14} {flag} {settings}")


def table() -> dict[str, type]:
    from decisor.techniques import TECHNIQUES, kind_of

    return {name: kind_of(name) for name in TECHNIQUES}


def row_of(name: str, kind: type) -> dict[str, Any]:
    """``about`` is the first sentence of the module. What only Python can set is left out."""
    from decisor.settings import sayable, settings_of
    from decisor.techniques.shared.part_lms import parts_of

    module = inspect.getmodule(kind)
    about = (inspect.getdoc(module) or "").split("\n\n")[0].replace("\n", " ")
    hints = get_type_hints(kind)
    options = [field for field in settings_of(kind).values() if sayable(hints[field.name])]
    settings = [{"name": one.name, "default": default_of(one), "type": type_name(one.type)} for one in options]
    settings += [{"name": f"{part}_lm", "default": None, "type": "MODEL[@URL]"} for part in parts_of(kind)]
    return {"name": name, "about": about, "settings": settings}


def type_name(kind: object) -> str:
    """
    >>> type_name("int | None"), type_name(bool)
    ('int | None', 'bool')
    """
    return kind.__name__ if isinstance(kind, type) else str(kind).removeprefix("typing.")


def default_of(setting: Field[Any]) -> Any:
    """The default; '...' where there is none."""
    return "..." if setting.default is MISSING else setting.default


def in_words(default: Any) -> str:
    """As ``-o`` takes it."""
    return {True: "yes", False: "no"}[default] if isinstance(default, bool) else str(default)
