"""What config files say, for a command: the connection of a name, and a line where a file is not the person's own."""

from __future__ import annotations

import sys

from decisor.config.connection import Connection
from decisor.config.current import Config, current
from decisor.render.text import one_line


def tell_folder_file(config: Config) -> None:
    """One line on standard error, where the folder has a decisor.toml: it may be someone else's."""
    for file in config.files:
        if file.origin != "folder":
            continue
        says = [*file.settings, *(f"connections.{name}" for name in file.connections)]
        line = f"decisor: {file.path.name} of this folder is used: {', '.join(says) or 'nothing of it'}"
        if file.left_out:
            line += f"; nobody trusts it, so it does not set {', '.join(file.left_out)} (decisor config)"
        print(one_line(line, 400), file=sys.stderr)


def place_named(name: str) -> str | Connection:
    """The connection of that name, else the place itself. Raises SetupError where a config file cannot be used."""
    config = current()
    place = config.places([name])[0]
    if isinstance(place, Connection):
        tell_folder_file(config)
    return place
