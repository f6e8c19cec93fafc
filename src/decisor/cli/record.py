"""``decisor record``: the record of a decision as a page, and the schema of such records."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from decisor.errors import SetupError


def command(
    file: Annotated[Path | None, typer.Argument(metavar="RECORD.json", help="A file of --record.")] = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write it as one page.")] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of records.")] = False,
) -> None:
    """Show the record of a decision as one page, or print the JSON Schema that records meet. Records are made by
    decisor ask --record, decisor show N --record and decisor trace FILE --record."""
    if schema:
        from decisor.decision_record.schema import published

        print(published(), end="")
        return
    if file is None or html is None:
        raise SetupError("Write: decisor record RECORD.json --html PAGE.html, or decisor record --schema")
    from decisor.decision_record.read import read_record, save

    document = read_record(file)
    for fault in document.faults:
        print(f"decisor: {fault}", file=sys.stderr)
    save(document.record, html)
