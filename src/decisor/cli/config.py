"""``decisor config``, ``techniques`` and ``prompts``: active settings and connections, techniques, and their prompts.

Each setting comes with its origin, and no secret is shown. A technique's prompts are printed as a file that can be
changed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decisor.cli.output import output_console, print_json
from decisor.errors import SetupError
from decisor.session.config import FILE, Config, Connection, resolve_config, trust_config_file, user_config_file
from decisor.system.extras import PLUGINS, find_plugins

if TYPE_CHECKING:
    from decisor.session.run_setup import TechniqueRow


app = typer.Typer(help="Show active settings and connections.")
WIDTH = 160
NOT_PARTS = ("name", "url", "folder", "settings")


@app.callback(invoke_without_command=True)
def config_command(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Show the active settings and connections, and where each is set. Secrets are not shown."""
    # typer calls this callback before each subcommand too.
    if context.invoked_subcommand:
        return
    config = resolve_config()
    if as_json:
        print_json(config_as_object(config))
        return
    print_config(config)


@app.command("trust")
def trust_command(off: Annotated[bool, typer.Option("--off", help="Stop trusting it.")] = False) -> None:
    """Trust this folder's decisor.toml: it may then set the LLM, name servers and use your secrets.

    The trust ends when the file changes.
    """
    path = Path.cwd() / FILE
    if not path.is_file():
        raise SetupError(f"There is no {FILE} in this folder.")
    trust_config_file(path, None if off else path.read_bytes())
    print(f"{path} is {'not trusted' if off else 'trusted until it changes'}.", file=sys.stderr)
    print_config(resolve_config())


def config_as_object(config: Config) -> dict[str, object]:
    settings = {
        name: {"value": one.value, "origin": one.origin, "where": one.where} for name, one in config.settings.items()
    }
    connections = {
        name: {"url": one.url, **list_connection_fields(one), "folder": one.folder}
        for name, one in config.connections.items()
    }
    files = [
        {"path": str(file.path), "origin": file.origin, "trusted": file.is_trusted, "left_out": file.left_out}
        for file in config.files
    ]
    return {"settings": settings, "connections": connections, "prices": dict(config.prices), "files": files}


def print_config(config: Config) -> None:
    from rich.table import Table
    from rich.text import Text

    from decisor.system.text import clean_one_line

    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for row in list_config_rows(config):
        table.add_row(*(Text(clean_one_line(text, 200)) for text in row))
    output_console(WIDTH).print(table)
    for file in config.files:
        if file.left_out:
            print(
                f"{file.path} is not trusted, so it does not set {', '.join(file.left_out)}. Look at it; if it is "
                "yours: decisor config trust",
                file=sys.stderr,
            )
    if not config.files:
        print(f"No config file: neither {FILE} in this folder nor {user_config_file()}.", file=sys.stderr)


def list_config_rows(config: Config) -> Iterator[tuple[str, str, str]]:
    """Yield the name, value and origin of each setting, connection field and price."""
    for name, one in sorted(config.settings.items()):
        yield name, format_setting_value(one.value), f"{one.origin}{f': {one.where}' if one.where else ''}"
    for name, connection in config.connections.items():
        yield f"connections.{name}", connection.url, connection.folder
        for part, value in list_connection_fields(connection).items():
            if value:
                yield f"  {part}", ", ".join(value) if isinstance(value, tuple | dict) else str(value), ""
    for model, price in config.prices.items():
        yield f"prices.{model}", price, ""


def list_connection_fields(connection: Connection) -> dict[str, object]:
    """Return the fields of a connection other than its name, URL and folder.

    The settings of a custom retriever may hold a secret and are left out.
    """
    return {part: value for part, value in asdict(connection).items() if part not in NOT_PARTS}


def format_setting_value(value: object) -> str:
    """Format the value of a setting for a person.

    >>> format_setting_value(("sales", "sites.db")), format_setting_value(True), format_setting_value(40)
    ('sales, sites.db', 'yes', '40')
    """
    if isinstance(value, tuple):
        return ", ".join(value)
    return ("no", "yes")[value] if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def techniques_command(
    name: Annotated[str, typer.Argument(help="One technique, with its differences from the paper.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False,
) -> None:
    """List the techniques and their settings."""
    from decisor.session.run_setup import list_technique_rows
    from decisor.techniques import find_technique_class
    from decisor.techniques.shared.presets import PAPER_PRESETS, find_deviations

    if name:
        find_technique_class(name)
    print_rows([row for row in list_technique_rows() if not name or row.name == name], as_json, "-o")
    if not name or as_json:
        return
    if preset := PAPER_PRESETS.get(name):
        print(f"{'':<14} preset=paper sets " + "  ".join(f"{key}={text}" for key, text in preset.settings.items()))
        print("".join(f"{'':<14} preset=paper leaves out the prompt {prompt}\n" for prompt in preset.left_out), end="")
    print("".join(f"{'':<14} Not as in the paper: {line}\n" for line in find_deviations(name)), end="")


def plugins_command(as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False) -> None:
    """List the parts that other installed packages add: techniques, engines, LLMs, retrievers, benchmarks."""
    parts = [(group, part) for group in PLUGINS for part in find_plugins(group).values()]
    rows = [
        {"group": group, "name": part.name, "value": part.value, "package": part.dist.name if part.dist else ""}
        for group, part in parts
    ]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        print(f"{row['group']:<12} {row['name']:<16} {row['value']} ({row['package']})")
    if not rows:
        print("No plugins are installed. A package adds parts by these entry points:", file=sys.stderr)
        for group, what in PLUGINS.items():
            print(f"  decisor.{group:<12} {what}", file=sys.stderr)


def print_rows(rows: Sequence[TechniqueRow], as_json: bool, flag: str) -> None:
    if as_json:
        settings = {
            row.name: [{"name": one.name, "default": one.default, "type": one.type} for one in row.settings]
            for row in rows
        }
        print_json([{"name": row.name, "about": row.about, "settings": settings[row.name]} for row in rows])
        return
    for row in rows:
        line = "  ".join(f"{setting.name}={format_setting_value(setting.default)}" for setting in row.settings)
        print(f"{row.name:<14} {row.about}")
        if line:
            print(f"{'':<14} {flag} {line}")


def prompts_command(technique: Annotated[str, typer.Argument(help="Technique, or your own as module:Class.")]) -> None:
    """Print a technique's prompts as TOML. Use a changed copy by -o prompts=FILE; prompts left out stay."""
    from decisor.techniques import find_technique_class
    from decisor.techniques.shared.prompts_file import format_prompts_file, list_prompts

    print(format_prompts_file(list_prompts(find_technique_class(technique))))
