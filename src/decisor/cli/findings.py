"""What a check complains about, printed: of decision models and of definitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from decisor.cli.console import print_json
from decisor.cli.exits import Exit

if TYPE_CHECKING:
    from decisor.finding import Finding


def print_findings(file: Path, findings: Sequence[Finding], as_json: bool) -> None:
    """Raises typer.Exit with 1 where one is an error."""
    if as_json:
        plain = [
            {key: value for key, value in asdict(one).items() if (key, value) != ("number", 0)} for one in findings
        ]
        print_json({"file": str(file), "findings": plain})
    else:
        for one in findings:
            print(one)
        print(f"{file}: {f'{len(findings)} to look at' if findings else 'nothing to complain about'}")
    if any(one.kind == "error" for one in findings):
        raise typer.Exit(Exit.FAILED)
