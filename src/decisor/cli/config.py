"""``decisor config``: which settings and connections hold here, and from where; never a secret."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from decisor.cli.console import console, print_json
from decisor.config.connection import Connection
from decisor.config.current import Config, current, user_file
from decisor.config.reading import FILE, Scalar
from decisor.config.trust import trust
from decisor.errors import SetupError

app = typer.Typer(help="Which settings and connections hold here, and from where.")
WIDTH = 160
NOT_PARTS = ("name", "url", "folder", "settings")


@app.callback(invoke_without_command=True)
def command(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Say which settings and connections hold here, and from where. No secret is shown."""
    if context.invoked_subcommand:
        return
    config = current()
    if as_json:
        print_json(as_object(config))
        return
    show(config)


@app.command("trust")
def trust_command(
    off: Annotated[bool, typer.Option("--off", help="Trust it no longer.")] = False,
) -> None:
    """Trust this folder's decisor.toml as it is: it may then set the LM, name servers, and use your secrets."""
    path = Path.cwd() / FILE
    if not path.is_file():
        raise SetupError(f"There is no {FILE} in this folder.")
    trust(path, None if off else path.read_bytes())
    print(f"{path} is {'not trusted' if off else 'trusted as it is; changed, it is not'}.", file=sys.stderr)
    show(current())


def as_object(config: Config) -> dict[str, object]:
    settings = {name: {"value": one.value, "origin": one.origin, "where": one.where}
                for name, one in config.settings.items()}  # fmt: skip
    connections = {
        name: {"url": one.url, **parts_of(one), "folder": one.folder} for name, one in config.connections.items()
    }
    files = [{"path": str(file.path), "origin": file.origin, "trusted": file.is_trusted, "left_out": file.left_out}
             for file in config.files]  # fmt: skip
    return {"settings": settings, "connections": connections, "prices": dict(config.prices), "files": files}


def show(config: Config) -> None:
    from rich.table import Table
    from rich.text import Text

    from decisor.render.text import one_line

    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for row in rows(config):
        table.add_row(*(Text(one_line(text, 200)) for text in row))
    console(WIDTH).print(table)
    for file in config.files:
        if file.left_out:
            print(f"{file.path} is not trusted, so it does not set {', '.join(file.left_out)}. Look at it; if it is "
                  "yours: decisor config trust", file=sys.stderr)  # fmt: skip
    if not config.files:
        print(f"There is no {FILE} in this folder, and no {user_file()}.", file=sys.stderr)


def rows(config: Config) -> Iterator[tuple[str, str, str]]:
    """What, its value, and where that is from."""
    for name, one in sorted(config.settings.items()):
        yield name, in_words(one.value), f"{one.origin}{f': {one.where}' if one.where else ''}"
    for name, connection in config.connections.items():
        yield f"connections.{name}", connection.url, connection.folder
        for part, value in parts_of(connection).items():
            if value:
                yield f"  {part}", ", ".join(value) if isinstance(value, tuple | dict) else str(value), ""
    for model, price in config.prices.items():
        yield f"prices.{model}", price, ""


def parts_of(connection: Connection) -> dict[str, object]:
    """All but the settings of somebody's own retriever, which may hold a secret."""
    return {part: value for part, value in asdict(connection).items() if part not in NOT_PARTS}


def in_words(value: Scalar) -> str:
    """
    >>> in_words(("sales", "sites.db")), in_words(True), in_words(40)
    ('sales, sites.db', 'yes', '40')
    """
    if isinstance(value, tuple):
        return ", ".join(value)
    return ("no", "yes")[value] if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
