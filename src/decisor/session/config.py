"""Resolve settings and connections: option > environment > folder > user > default.

A folder's ``decisor.toml`` may be someone else's: until ``decisor config trust`` it gives files of its own folder and
limits that are lower than the person's, and nothing else. Trust holds for a digest of the content, so a changed file
is not trusted. No file runs code, and none holds a secret: secrets are named, as ``${NAME}`` of the environment or
``${keyring:SERVICE/USER}``, and a written password is refused. A connection is a database, graph or place with
documents, known by a name, with the rules for reading it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args
from urllib.parse import quote

from annotated_types import Gt

from decisor.errors import SetupError
from decisor.runtime.budget import Limits, parse_max_scan
from decisor.system.secrets import hide_password
from decisor.system.serialization import SECTION_NAME, DecodeError, DocumentFormat, SectionName, format_json_path
from decisor.system.settings import IMPORT_PATH, TRUTH, current_name, read_variable
from decisor.system.storage import data_folder, lock_folder, make_private_folder, write_private

NAME = re.compile(r"\$\{([^{}]*)\}")
# The colon goes too: what is left of me:${PW}@host is me@host, which has no password to find.
WITH_COLON = re.compile(r":?\$\{[^{}]*\}")


def find_secret_names(text: str) -> list[str]:
    """Return the names of the secrets that a text refers to as ``${NAME}``.

    >>> find_secret_names("postgresql://me:${SALES_PASSWORD}@host/sales")
    ['SALES_PASSWORD']
    """
    return NAME.findall(text)


def fill_in_secrets(text: str) -> str:
    """Replace each ``${NAME}`` by its secret. A secret that is a part of an address is percent-encoded.

    Raises:
        SetupError: a name is not set.
    """
    # A secret that is the whole URL is taken unchanged: encoding would turn its :// into %3A%2F%2F.
    if NAME.fullmatch(text):
        return read_named_secret(text[2:-1])
    return NAME.sub(lambda match: quote(read_named_secret(match[1]), safe=""), text)


def read_named_secret(name: str) -> str:
    """Read a secret from the environment or the keyring; raise SetupError if it is not set."""
    if name.startswith("keyring:"):
        return read_keyring_secret(name.removeprefix("keyring:"))
    if not (value := os.environ.get(name)):
        raise SetupError(f"${{{name}}} is named in a file, and the environment variable {name} is not set.")
    return value


def read_keyring_secret(name: str) -> str:
    service, slash, user = name.partition("/")
    if not (service and slash and user):
        raise SetupError(f"A secret of the keyring is named ${{keyring:SERVICE/USER}}, not ${{keyring:{name}}}.")
    try:
        keyring = import_module("keyring")
    except ImportError as error:
        raise SetupError("Secrets of a keyring need another package: pip install 'decisor[keyring]'") from error
    try:
        value = keyring.get_password(service, user)
    except keyring.errors.KeyringError as error:
        raise SetupError(f"The keyring cannot be read: {error}") from error
    if not value:
        raise SetupError(f"The keyring has no secret for {service}/{user}: keyring set {service} {user}")
    return str(value)


def refuse_password(where: str, text: str) -> None:
    """Raise SetupError if a text contains a password or a key.

    >>> refuse_password("llm", "m@https://${KEY}@host/v1")
    >>> refuse_password("connections.shop.url", "postgresql://me:${PW}@host/shop?sslmode=require")
    >>> refuse_password("connections.shop.url", "postgresql://me:secret@host/shop")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    decisor.errors.SetupError: connections.shop.url holds a password. Put it into ... in its place: ${SHOP_PASSWORD}
    """
    plain = WITH_COLON.sub("", text)
    if hide_password(plain) != plain:
        parts = where.split(".")
        name = f"{parts[1].upper()}_PASSWORD" if len(parts) > 1 else "MY_PASSWORD"
        raise SetupError(
            f"{where} holds a password. Put it into an environment variable, and write its name in its "
            f"place: ${{{name}}}"
        )


FILES = ("sqlite:///", "duckdb:///", "kglite:///")
PATTERN = re.compile(r"[*?\[]")
FOLDER = "[folder]"
"""The key under which a connection holds the folder of its file; no person writes it."""


@dataclass(frozen=True)
class Connection:
    """A database, graph or place with documents, known by a name, with the rules for reading it."""

    name: Annotated[str, SectionName()]
    url: str
    """As for ``--db``, ``--graph`` or ``--docs``; secrets are named in it, as ``${NAME}``."""
    tables: tuple[str, ...] = ()
    """If not empty, no other tables may be read."""
    deny_tables: tuple[str, ...] = ()
    """Tables that may be neither read nor seen."""
    mask: Mapping[str, str] = field(default_factory=dict)
    """The way a column is shown, by ``"table.column"``."""
    rows: Mapping[str, str] = field(default_factory=dict)
    """By table, the condition in SQL that readable rows fulfil."""
    definitions: str = ""
    """File with the meaning of words in these data."""
    max_scan: str = ""
    """Limit of one query, as ``--max-scan``."""
    seconds: Annotated[float, Gt(0)] = 0.0
    """Time limit of one query, 0 for the usual one."""
    role: str = ""
    """Role of the database that queries run in, with {user} or {group} for who asks; '' for the account's own."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of a retriever that ``url`` names by its import path."""
    folder: Annotated[str, SectionName()] = ""
    """Base of relative paths in ``url`` and ``definitions``."""

    @property
    def place(self) -> str:
        """The URL with its secrets filled in, and an absolute path if it is a file.

        Raises:
            SetupError: a secret is not set.
        """
        return fill_in_secrets(self.absolute)

    @property
    def absolute(self) -> str:
        """The URL with its path made absolute if it is a file; secrets stay named.

        >>> Connection("sites", "sqlite:///sites.db", folder="/home/ann").absolute
        'sqlite:////home/ann/sites.db'
        >>> Connection("shop", "postgresql://ann@host/shop", folder="/home/ann").absolute
        'postgresql://ann@host/shop'
        """
        head = next((scheme for scheme in FILES if self.url.startswith(scheme)), "")
        # A named secret may be a whole URL, and a server's URL has no path here: neither is made absolute.
        if not self.folder or self.url.startswith("${") or ("://" in self.url and not head) or self.names_code:
            return self.url
        return head + str(Path(self.folder) / self.url[len(head) :])

    @property
    def names_code(self) -> bool:
        """Whether the URL names a person's own retriever, as ``module:Class``."""
        # A file whose name looks like module:Class is a file: code is imported only where there is none.
        return bool(IMPORT_PATH.fullmatch(self.url)) and not Path(self.folder, self.url).exists()

    @property
    def file(self) -> Path | None:
        """The file or folder that the URL names. None for a server or code."""
        if self.names_code or ("://" in self.url and not self.url.startswith(FILES)):
            return None
        return Path(self.absolute.partition(":///")[2] or self.absolute)

    def is_within(self, folder: Path) -> bool:
        """Return whether the connection reads only files below ``folder``.

        No link may lead out of the folder, and the URL may take nothing from the environment.
        """
        path, folder = self.file, folder.resolve()
        # A link may lead out of the folder, and ${NAME} may hold any path: look at the resolved path, and allow no
        # name.
        if path is None or find_secret_names(self.url) or not path.resolve().is_relative_to(folder):
            return False
        if path.is_file():
            return True
        # Of a pattern such as data/*.csv, look from the folder before its first wildcard.
        base = Path(PATTERN.split(str(path))[0])
        inside = (base if base.is_dir() else base.parent).rglob("*")
        return all(one.resolve().is_relative_to(folder) for one in inside if one.is_symlink())


CONNECTION = DocumentFormat(Connection, is_closed=True, keys={"name": SECTION_NAME, "folder": FOLDER})


def read_connection(name: str, values: object, folder: Path) -> Connection:
    """Build a connection from its table in a config file, or from a URL alone.

    Raises:
        SetupError: it is none, or holds a password.
    """
    where = f"connections.{name}"
    if not name.isidentifier():
        raise SetupError(f"{where}: a name is letters, digits and _, and begins with no digit.")
    table: Any = {"url": values} if isinstance(values, str) else values
    if not isinstance(table, dict) or not isinstance(table.get("url"), str):
        raise SetupError(f'{where} needs a url: [{where}] url = "postgresql://me@host/shop"')
    try:
        connection = CONNECTION.decode_value({**table, SECTION_NAME: name, FOLDER: str(folder)})
    except DecodeError as error:
        raise SetupError(
            "; ".join(f"{format_json_path((where, *path))} {words}" for path, words in error.faults)
        ) from error
    refuse_password(f"{where}.url", connection.url)
    if connection.max_scan:
        parse_max_scan(connection.max_scan)
    if connection.settings and not connection.names_code:
        raise SetupError(f'{where}.settings are for a retriever of your own: url = "module:Class".')
    return connection


def path_of_trusted_files() -> Path:
    return data_folder() / "trusted.json"


def read_trusted_files() -> dict[str, str]:
    """Read the paths of the trusted config files, each with a digest of its trusted content."""
    try:
        values = json.loads(path_of_trusted_files().read_text("utf-8"))
    except (OSError, ValueError):
        # A list that cannot be read trusts nothing.
        return {}
    return {str(key): str(value) for key, value in values.items()} if isinstance(values, dict) else {}


def digest_of_config(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def trust_config_file(path: Path, content: bytes | None) -> None:
    """Record that a person trusts a config file with this content.

    ``content`` None takes the trust back. Raises SetupError if it cannot be recorded.
    """
    try:
        make_private_folder(data_folder())
        # Two processes that change the list at once would lose one of the changes.
        with lock_folder(path_of_trusted_files()):
            files = {name: value for name, value in read_trusted_files().items() if name != str(path.resolve())}
            if content is not None:
                files[str(path.resolve())] = digest_of_config(content)
            write_private(path_of_trusted_files(), json.dumps(files, indent=1))
    except OSError as error:
        raise SetupError(f"Cannot write {path_of_trusted_files()}: {error.strerror}.") from error


FILE = "decisor.toml"
Scalar: TypeAlias = "str | int | float | bool | tuple[str, ...]"
Origin = Literal["option", "environment", "folder", "user", "default"]
LIMITS = {"calls": int, "tokens": int, "dollars": float, "seconds": float, "actions": int}
ANYWHERE = ("db", *(f"limits.{name}" for name in LIMITS))
"""Settings that a folder's file may have though it is not trusted."""
MOST_BYTES = 2**20


@dataclass(frozen=True)
class ConfigFile:
    """A config file that was read and checked."""

    path: Path
    origin: Origin
    is_trusted: bool = True
    settings: Mapping[str, Scalar] = field(default_factory=dict)
    """Values by their keys in the file: llm, limits.calls, tools.auth and so on."""
    connections: Mapping[str, Connection] = field(default_factory=dict)
    prices: Mapping[str, str] = field(default_factory=dict)
    """Prices of models, as in ``price=``."""
    left_out: tuple[str, ...] = ()
    """Names of the entries that are ignored because the file is not trusted."""


def read_config_file(path: Path, origin: Origin) -> ConfigFile | None:
    """Read and check a config file; return None if there is no such file.

    Of a folder's file that is not trusted only the permitted entries are returned.

    Raises:
        SetupError: it cannot be read, or says what nothing is.
    """
    try:
        if not path.is_file():
            return None
        # The file may be anybody's: read no more than 1 MiB of it.
        with path.open("rb") as file:
            content = file.read(MOST_BYTES)
    except OSError as error:
        raise SetupError(f"Cannot read {path}: {error.strerror}.") from error
    try:
        # utf-8-sig drops the byte order mark that some editors write.
        values = tomllib.loads(content.decode("utf-8-sig"))
        config = parse_config(values, path, origin)
    # tomllib recurses into nested arrays, so a hostile file can exhaust the stack.
    except (ValueError, RecursionError, SetupError) as error:
        raise SetupError(f"{path}: {error}") from error
    is_trusted = origin == "user" or read_trusted_files().get(str(path.resolve())) == digest_of_config(content)
    return config if is_trusted else restrict_untrusted_config(config)


def parse_config(values: dict[str, Any], path: Path, origin: Origin) -> ConfigFile:
    settings: dict[str, Scalar] = {}
    tables = {name: values.pop(name, {}) for name in ("connections", "limits", "prices", "tools")}
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise SetupError(f"{name} is a table: [{name}]")
    for name, value in [*values.items(), *((f"tools.{key}", value) for key, value in tables["tools"].items())]:
        # Files of earlier releases say lm for llm.
        settings[current_name(name)] = check_config_setting(current_name(name), value)
    for name, value in tables["limits"].items():
        settings[f"limits.{name}"] = check_config_limit(name, value)
    if wrong := [name for name, price in tables["prices"].items() if not isinstance(price, str)]:
        raise SetupError(f'prices takes dollars per million tokens as text: "{wrong[0]}" = "0.4,1.6"')
    folder = path.resolve().parent
    connections = {name: read_connection(name, value, folder) for name, value in tables["connections"].items()}
    return ConfigFile(path, origin, True, settings, connections, tables["prices"])


TEXT, CHOICE, SEVERAL, YES_OR_NO = "a text", "one of {}", "a text, or several", "true or false"
SETTINGS = {
    "llm": TEXT,
    "technique": TEXT,
    "db": SEVERAL,
    "history": YES_OR_NO,
    "readings": CHOICE,
    "tools.auth": SEVERAL,
    "tools.base_url": TEXT,
    "tools.methods": SEVERAL,
    "tools.row_values": CHOICE,
}
"""What each setting takes."""


def words_of_setting(name: str) -> tuple[str, ...]:
    """Return the words that a setting is one of; () for any text."""
    if SETTINGS[name] != CHOICE:
        return ()
    # Most commands read no such setting, and need none of this.
    from decisor.semantics.readings import Readings
    from decisor.tools.row_values import RowValuePolicy

    return get_args(Readings if name == "readings" else RowValuePolicy)


def check_config_setting(name: str, value: object) -> Scalar:
    """Check and convert a setting; raise SetupError if it is unknown or its value does not fit."""
    check_key("setting", name, (*SETTINGS, "[limits]", "[prices]", "[connections.NAME]"))
    kind, choices = SETTINGS[name], words_of_setting(name)
    texts: list[Any] = value if isinstance(value, list) and kind == SEVERAL else [value]
    if kind == YES_OR_NO and isinstance(value, bool):
        return value
    if kind == YES_OR_NO or not all(isinstance(text, str) and text in (choices or [text]) for text in texts):
        raise SetupError(f"{name} takes {kind.format(', '.join(choices))}, not {value!r:.100}.")
    for text in texts:
        refuse_password(name, text)
    return tuple(texts) if kind == SEVERAL else texts[0]


def check_key(what: str, name: str, known: Sequence[str]) -> None:
    """Raise SetupError if a key of a config file is unknown, with the one that was likely meant."""
    if name not in known:
        near = get_close_matches(name, known, 1)
        hint = f"Did you mean {near[0]}?" if near else f"There is {', '.join(known)}."
        raise SetupError(f"There is no {what} {name}. {hint}")


def check_config_limit(name: str, value: object) -> Scalar:
    check_key("setting", f"limits.{name}", [f"limits.{limit}" for limit in LIMITS])
    # bool is an int in Python: true would be a limit of 1.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise SetupError(f"limits.{name} takes a number above 0, not {value!r}.")
    if LIMITS[name] is int and value != int(value):
        raise SetupError(f"limits.{name} takes a whole number, not {value!r}.")
    return int(value) if LIMITS[name] is int else float(value)


def restrict_untrusted_config(config: ConfigFile) -> ConfigFile:
    """Return the part of a config file that holds without trust.

    Its limits and files of its own folder stay; an LLM, a server, a price, a secret and code are left out.
    """
    folder = config.path.resolve().parent
    settings = {name: value for name, value in config.settings.items() if name in ANYWHERE}
    # The definitions of a connection lie in the folder too.
    own = {
        name: connection
        for name, connection in config.connections.items()
        if connection.is_within(folder) and (folder / connection.definitions).resolve().is_relative_to(folder)
    }
    # A place that is none of these connections could be a server: then nothing is asked by default.
    if (places := settings.get("db")) and isinstance(places, tuple) and not own.keys() >= set(places):
        settings.pop("db")
    left_out = [
        *(name for name in config.settings if name not in settings),
        *(["prices"] if config.prices else []),
        *(f"connections.{name}" for name in config.connections if name not in own),
    ]
    return ConfigFile(config.path, config.origin, False, settings, own, {}, tuple(left_out))


VARIABLES = {
    "llm": "DECISOR_LLM",
    "technique": "DECISOR_TECHNIQUE",
    "db": "DECISOR_DB",
    "history": "DECISOR_HISTORY",
} | {f"limits.{name}": f"DECISOR_{name.upper()}" for name in LIMITS}
DEFAULTS: Mapping[str, Scalar] = {"history": True}


@dataclass(frozen=True)
class ResolvedSetting:
    """The value of a setting and its origin."""

    value: Scalar
    origin: Origin
    where: str = ""
    """The file or the variable that sets it."""


@dataclass(frozen=True)
class Config:
    """The settings, connections and prices that hold here."""

    settings: Mapping[str, ResolvedSetting] = field(default_factory=dict)
    connections: Mapping[str, Connection] = field(default_factory=dict)
    prices: Mapping[str, str] = field(default_factory=dict)
    files: tuple[ConfigFile, ...] = ()
    """Config files that exist, the folder's first."""

    @property
    def value_of_key(self) -> Mapping[str, Scalar]:
        return {key: setting.value for key, setting in self.settings.items()}

    def text(self, name: str) -> str:
        """Return a setting as text, '' if it is not set."""
        setting = self.settings.get(name)
        return str(setting.value) if setting else ""

    @property
    def keeps_history(self) -> bool:
        return bool(self.settings["history"].value)

    @property
    def default_places(self) -> tuple[str, ...]:
        """Places to ask if a person names none."""
        setting = self.settings.get("db")
        return setting.value if setting and isinstance(setting.value, tuple) else ()

    def limits(self, options: Limits) -> Limits:
        """Return the limits of the options; the settings fill the missing ones."""
        missing = [name for name in LIMITS if getattr(options, name) is None and f"limits.{name}" in self.settings]
        own: dict[str, Any] = {name: self.settings[f"limits.{name}"].value for name in missing}
        return replace(options, **own)

    def llm(self, option: str | None) -> str | None:
        """Return the LLM to use: the option, else the setting of a file.

        None leaves the choice to the environment. The price of a config file is added if nothing else gives one.
        """
        setting = self.settings.get("llm")
        spec = option or (str(setting.value) if setting and setting.origin != "environment" else None)
        # A spec is MODEL[@URL] with settings after it; prices are by MODEL alone.
        price = self.prices.get(spec.split()[0].partition("@")[0]) if spec and spec.split() else None
        if spec is None or price is None or " price=" in spec or os.environ.get("DECISOR_PRICE"):
            return spec
        return f"{spec} price={price.replace(' ', '')}"

    def places(self, names: Iterable[str]) -> list[str | Connection]:
        """Replace names of connections by the connections; other places stay.

        A folder of the same name is written ./NAME.
        """
        return [self.connections.get(name) or name for name in names]

    def connection(self, name: str) -> Connection:
        """Return the connection of a name; raise SetupError if there is none."""
        if name not in self.connections:
            there = ", ".join(self.connections) or "none"
            raise SetupError(f"There is no connection {name}; there is {there}. See: decisor config")
        return self.connections[name]


def resolve_config(folder: Path | None = None) -> Config:
    """Read the config files of the folder and of the person, and the environment.

    Raises:
        SetupError: a file or a variable cannot be used; the message has its name.
    """
    files = [read_config_file((folder or Path.cwd()) / FILE, "folder"), read_config_file(user_config_file(), "user")]
    return merge_config_files([file for file in files if file is not None], os.environ)


def user_config_file() -> Path:
    """Return the path of the person's config file.

    It is ``$XDG_CONFIG_HOME/decisor/decisor.toml``, or ``~/.config/decisor/decisor.toml``.
    """
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "decisor" / FILE


def merge_config_files(files: Sequence[ConfigFile], environ: Mapping[str, str]) -> Config:
    """Merge config files and the environment.

    The environment wins, then the first file that sets a value; an untrusted file may only add values or lower limits.
    """
    settings = {name: ResolvedSetting(value, "default") for name, value in DEFAULTS.items()}
    connections: dict[str, Connection] = {}
    prices: dict[str, str] = {}
    # The last file has the lowest precedence, so it goes first and the others replace its values.
    for file in reversed(files):
        settings |= {
            name: ResolvedSetting(value, file.origin, str(file.path))
            for name, value in file.settings.items()
            if file.is_trusted or may_set_untrusted(value, settings.get(name))
        }
        # A file that is not trusted must not take over the name of a person's own connection.
        own = file.connections.items()
        connections |= {name: one for name, one in own if file.is_trusted or name not in connections}
        prices |= file.prices
    for name, variable in VARIABLES.items():
        if text := read_variable(environ, variable):
            settings[name] = ResolvedSetting(parse_config_variable(name, variable, text), "environment", variable)
    return Config(settings, connections, prices, tuple(files))


def may_set_untrusted(value: Scalar, setting: ResolvedSetting | None) -> bool:
    """Return whether a file that is not trusted may set a value.

    It may if the value is not set yet, or is a limit not above the person's.
    """
    if setting is None:
        return True
    return isinstance(value, int | float) and isinstance(setting.value, int | float) and value <= setting.value


def parse_config_variable(name: str, variable: str, text: str) -> Scalar:
    """Convert the text of an environment variable to a setting; raise SetupError if it does not fit."""
    if name == "db":
        # Spaces stand between places; a path with a space is in double quotes.
        return tuple(place.replace('"', "") for place in re.findall(r'(?:"[^"]*"|\S)+', text))
    if name == "history":
        if text.lower() not in TRUTH:
            raise SetupError(f"{variable} is yes or no, not {text!r}.")
        return TRUTH[text.lower()]
    if name in ("llm", "technique"):
        return text
    try:
        return check_config_limit(name.removeprefix("limits."), float(text))
    except ValueError:
        raise SetupError(f"{variable} takes a number above 0, not {text!r}.") from None
