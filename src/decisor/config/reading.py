"""A config file, read and checked: what it says, and what of it is left out because nobody has looked at it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from decisor.config.connection import Connection, read_connection
from decisor.config.secret_names import refuse_password
from decisor.config.trust import is_trusted
from decisor.errors import SetupError

FILE = "decisor.toml"
Scalar: TypeAlias = "str | int | float | bool | tuple[str, ...]"
Origin = Literal["option", "environment", "folder", "user", "default"]
LIMITS = {"calls": int, "tokens": int, "dollars": float, "seconds": float, "actions": int}
ANYWHERE = ("db", *(f"limits.{name}" for name in LIMITS))
"""Settings that a folder's file may have though it is not trusted."""
MOST_BYTES = 2**20


@dataclass(frozen=True)
class ConfigFile:
    """``settings``: lm, technique, db, history, limits.calls and so on. ``prices``: of models, as of ``price=``.
    ``left_out``: what it says and may not, as it is not trusted."""

    path: Path
    origin: Origin
    is_trusted: bool = True
    settings: Mapping[str, Scalar] = field(default_factory=dict)
    connections: Mapping[str, Connection] = field(default_factory=dict)
    prices: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


def read_file(path: Path, origin: Origin) -> ConfigFile | None:
    """None where there is none.

    Raises:
        SetupError: it cannot be read, or says what nothing is.
    """
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            content = file.read(MOST_BYTES)
    except OSError as error:
        raise SetupError(f"Cannot read {path}: {error.strerror}.") from error
    try:
        values = tomllib.loads(content.decode("utf-8-sig"))
        config = parse(values, path, origin)
    except (ValueError, RecursionError, SetupError) as error:
        raise SetupError(f"{path}: {error}") from error
    return config if origin == "user" or is_trusted(path, content) else without_trust(config)


def parse(values: dict[str, Any], path: Path, origin: Origin) -> ConfigFile:
    settings: dict[str, Scalar] = {}
    tables = {name: values.pop(name, {}) for name in ("connections", "limits", "prices")}
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise SetupError(f"{name} is a table: [{name}]")
    for name, value in values.items():
        settings[name] = setting(name, value)
    for name, value in tables["limits"].items():
        settings[f"limits.{name}"] = limit(name, value)
    if wrong := [name for name, price in tables["prices"].items() if not isinstance(price, str)]:
        raise SetupError(f'prices takes dollars per million tokens as text: "{wrong[0]}" = "0.4,1.6"')
    folder = path.resolve().parent
    connections = {name: read_connection(name, value, folder) for name, value in tables["connections"].items()}
    return ConfigFile(path, origin, True, settings, connections, tables["prices"])


def setting(name: str, value: object) -> Scalar:
    """Raises SetupError where there is no such setting, or it does not fit."""
    if name == "db" and isinstance(value, str | list):
        places = [value] if isinstance(value, str) else value
        for place in places:
            refuse_password("db", str(place))
        return tuple(map(str, places))
    if name in ("lm", "technique") and isinstance(value, str):
        refuse_password(name, value)
        return value
    if name == "history" and isinstance(value, bool):
        return value
    known = {"lm": "a text", "technique": "a text", "db": "a name of a connection, or several", "history": "a truth"}
    if name in known:
        raise SetupError(f"{name} takes {known[name]}, not {value!r}.")
    there = ", ".join([*known, "[limits]", "[prices]", "[connections.NAME]"])
    raise SetupError(f"There is no setting {name}; there is {there}.")


def limit(name: str, value: object) -> Scalar:
    if name not in LIMITS:
        raise SetupError(f"limits has no {name}; there is {', '.join(LIMITS)}.")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise SetupError(f"limits.{name} takes a number above 0, not {value!r}.")
    if LIMITS[name] is int and value != int(value):
        raise SetupError(f"limits.{name} takes a whole number, not {value!r}.")
    return int(value) if LIMITS[name] is int else float(value)


def without_trust(config: ConfigFile) -> ConfigFile:
    """With its limits and with files of its own folder; without an LM, a server, a price, a secret, or code."""
    folder = config.path.resolve().parent
    settings = {name: value for name, value in config.settings.items() if name in ANYWHERE}
    own = {name: one for name, one in config.connections.items() if one.is_within(folder) and is_below(one, folder)}
    if any(place not in own for place in as_places(settings.get("db"))):
        settings.pop("db")
    left_out = [*(name for name in config.settings if name not in settings), *(["prices"] if config.prices else []),
                *(f"connections.{name}" for name in config.connections if name not in own)]  # fmt: skip
    return ConfigFile(config.path, config.origin, False, settings, own, {}, tuple(left_out))


def is_below(connection: Connection, folder: Path) -> bool:
    """Whether its definitions are of the folder too."""
    return (folder / connection.definitions).resolve().is_relative_to(folder)


def as_places(value: Scalar | None) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()
