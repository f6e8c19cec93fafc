"""What holds here: an option, else the environment, else the folder's decisor.toml, else the person's, else a default.

A folder's file may be someone else's: until ``decisor config trust`` it gives files of its own folder and limits that
are lower than the person's, and nothing else. No file runs code, and none holds a secret.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from decisor.budget import Limits
from decisor.config.connection import Connection
from decisor.config.reading import FILE, LIMITS, ConfigFile, Origin, Scalar, as_places, limit, read_file
from decisor.errors import SetupError
from decisor.settings import TRUTH

VARIABLES = {"lm": "DECISOR_LM", "technique": "DECISOR_TECHNIQUE", "db": "DECISOR_DB", "history": "DECISOR_HISTORY"} | {
    f"limits.{name}": f"DECISOR_{name.upper()}" for name in LIMITS
}
DEFAULTS: Mapping[str, Scalar] = {"history": True}


@dataclass(frozen=True)
class Setting:
    """``where``: the file or the variable that says it."""

    value: Scalar
    origin: Origin
    where: str = ""


@dataclass(frozen=True)
class Config:
    """``files``: those that are there, the folder's first."""

    settings: Mapping[str, Setting] = field(default_factory=dict)
    connections: Mapping[str, Connection] = field(default_factory=dict)
    prices: Mapping[str, str] = field(default_factory=dict)
    files: tuple[ConfigFile, ...] = ()

    def text(self, name: str) -> str:
        """Of a setting that is a text; '' where nothing says it."""
        setting = self.settings.get(name)
        return str(setting.value) if setting else ""

    @property
    def keeps_history(self) -> bool:
        return bool(self.settings["history"].value)

    def limits(self, options: Limits) -> Limits:
        """Those of the options, and for the others what holds here."""

        def one(name: str) -> int | float | None:
            option, setting = getattr(options, name), self.settings.get(f"limits.{name}")
            return option if option is not None else setting.value if setting else None  # type: ignore[return-value]

        return Limits(**{name: one(name) for name in LIMITS})  # type: ignore[arg-type]

    def lm(self, option: str | None) -> str | None:
        """What to take for ``--lm``: itself, else what a file says; None where the environment decides. With the price
        of a file, where nothing else says one."""
        setting = self.settings.get("lm")
        spec = option or (str(setting.value) if setting and setting.origin != "environment" else None)
        price = self.prices.get(spec.split()[0].partition("@")[0]) if spec and spec.split() else None
        if spec is None or price is None or " price=" in spec or os.environ.get("DECISOR_PRICE"):
            return spec
        return f"{spec} price={price.replace(' ', '')}"

    def places(self, names: Iterable[str]) -> list[str | Connection]:
        """Connections for the names among them, the others as they are. A folder of that name is written ./NAME."""
        return [self.connections.get(name) or name for name in names]

    def connection(self, name: str) -> Connection:
        """Raises SetupError where there is none of that name."""
        if name not in self.connections:
            there = ", ".join(self.connections) or "none"
            raise SetupError(f"There is no connection {name}; there is {there}. See: decisor config")
        return self.connections[name]


def current(folder: Path | None = None) -> Config:
    """
    Raises:
        SetupError: a file or a variable cannot be used; the message has its name.
    """
    files = [read_file((folder or Path.cwd()) / FILE, "folder"), read_file(user_file(), "user")]
    return merged([file for file in files if file is not None], os.environ)


def user_file() -> Path:
    """``$XDG_CONFIG_HOME/decisor/decisor.toml``, or ``~/.config/decisor/decisor.toml``."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "decisor" / FILE


def merged(files: Sequence[ConfigFile], environ: Mapping[str, str]) -> Config:
    """The first file that says something says it; before them the environment."""
    settings = {name: Setting(value, "default") for name, value in DEFAULTS.items()}
    connections: dict[str, Connection] = {}
    prices: dict[str, str] = {}
    for file in reversed(files):
        settings |= {name: Setting(value, file.origin, str(file.path)) for name, value in file.settings.items()
                     if file.is_trusted or is_lower(value, settings.get(name))}  # fmt: skip
        own = file.connections.items()
        connections |= {name: one for name, one in own if file.is_trusted or name not in connections}
        prices |= file.prices
    for name, variable in VARIABLES.items():
        if text := environ.get(variable):
            settings[name] = Setting(from_text(name, variable, text), "environment", variable)
    return Config(settings, connections, prices, tuple(files))


def is_lower(value: Scalar, setting: Setting | None) -> bool:
    """Whether a file that is not trusted may say it: a limit not above the person's, or what they do not say."""
    if setting is None:
        return True
    return isinstance(value, int | float) and isinstance(setting.value, int | float) and value <= setting.value


def from_text(name: str, variable: str, text: str) -> Scalar:
    """Raises SetupError where a variable does not fit."""
    if name == "db":
        return tuple(place.replace('"', "") for place in re.findall(r'(?:"[^"]*"|\S)+', text))
    if name == "history":
        if text.lower() not in TRUTH:
            raise SetupError(f"{variable} is yes or no, not {text!r}.")
        return TRUTH[text.lower()]
    if name in ("lm", "technique"):
        return text
    try:
        return limit(name.removeprefix("limits."), float(text))
    except ValueError:
        raise SetupError(f"{variable} takes a number above 0, not {text!r}.") from None


def default_places(config: Config) -> tuple[str, ...]:
    """The data to ask where a person names none."""
    setting = config.settings.get("db")
    return as_places(setting.value) if setting else ()
