"""``decisor techniques``: what there is, and the settings of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from decisor.cli.console import print_json

if TYPE_CHECKING:
    from decisor.session.catalogue import TechniqueRow


def command(as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False) -> None:
    """List the techniques and their settings."""
    from decisor.session.catalogue import techniques

    print_rows(techniques(), as_json, "-o")


def print_rows(rows: Sequence[TechniqueRow], as_json: bool, flag: str) -> None:
    if as_json:
        print_json([as_object(row) for row in rows])
        return
    for row in rows:
        settings = "  ".join(f"{setting.name}={in_words(setting.default)}" for setting in row.settings)
        print(f"{row.name:<14} {row.about}")
        if settings:
            print(f"{'':<14} {flag} {settings}")


def as_object(row: TechniqueRow) -> dict[str, object]:
    settings = [{"name": one.name, "default": one.default, "type": one.type} for one in row.settings]
    return {"name": row.name, "about": row.about, "settings": settings}


def in_words(default: object) -> str:
    """As ``-o`` takes it."""
    return {True: "yes", False: "no"}[default] if isinstance(default, bool) else str(default)
