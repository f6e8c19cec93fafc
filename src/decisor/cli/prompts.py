"""``decisor prompts``: a technique's prompts as a file that can be changed."""

from __future__ import annotations

from typing import Annotated

import typer


def command(technique: Annotated[str, typer.Argument(help="A name, or your own as module:Class.")]) -> None:
    """Print a technique's prompts as TOML. Changed, they are used with -o prompts=FILE; what is left out stays."""
    from decisor.techniques import kind_of
    from decisor.techniques.shared.prompts import as_toml, prompts_of

    print(as_toml(prompts_of(kind_of(technique))))
