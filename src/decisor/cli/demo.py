"""``decisor demo``: what Decisor does, on a made-up shop, in seconds and without a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    folder: Annotated[
        Path | None, typer.Option("--folder", metavar="FOLDER", help="New folder that keeps the demo's files.")
    ] = None,
) -> None:
    """Show a recorded run on sample data, the same decision computed, and its page. Needs no data, key or LLM."""
    from decisor.cli.output import output_console
    from decisor.demo.demo import run_demo

    run_demo(output_console(), folder)
