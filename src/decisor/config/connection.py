"""A database, graph or place with documents, by a name, with what of it may be read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from decisor.config.secret_names import named_secrets, refuse_password, with_secrets
from decisor.errors import SetupError
from decisor.max_scan import parse_max_scan
from decisor.settings import IMPORT_PATH

FILES = ("sqlite:///", "duckdb:///", "kglite:///")
PATTERN = re.compile(r"[*?\[]")
LISTS, TABLES, TEXTS = ("tables", "deny_tables"), ("mask", "rows", "settings"), ("url", "definitions", "max_scan")


@dataclass(frozen=True)
class Connection:
    """``url``: as for ``--db``, ``--graph`` or ``--docs``; secrets are named in it, as ``${NAME}``. Where ``tables``
    names some, no others may be read; ``deny_tables`` may be neither read nor seen. ``mask``: how a column is shown, by
    ``"table.column"``. ``rows``: a condition in SQL that the rows of a table fulfil, by the table. ``definitions``: a
    file with what words mean in these data. ``max_scan``: what one query may read, as ``--max-scan``;
    ``seconds``: how long it may run, 0 for what is usual. ``settings``: of a retriever that ``url`` names by its import
    path. ``folder``: what a path in ``url`` and ``definitions`` is relative to."""

    name: str
    url: str
    tables: tuple[str, ...] = ()
    deny_tables: tuple[str, ...] = ()
    mask: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, str] = field(default_factory=dict)
    definitions: str = ""
    max_scan: str = ""
    seconds: float = 0.0
    settings: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""

    @property
    def place(self) -> str:
        """With its secrets, and a path from where its file is.

        Raises:
            SetupError: a secret is not set.
        """
        return with_secrets(self.absolute)

    @property
    def absolute(self) -> str:
        """
        >>> Connection("sites", "sqlite:///sites.db", folder="/home/ann").absolute
        'sqlite:////home/ann/sites.db'
        >>> Connection("shop", "postgresql://ann@host/shop", folder="/home/ann").absolute
        'postgresql://ann@host/shop'
        """
        head = next((scheme for scheme in FILES if self.url.startswith(scheme)), "")
        if not self.folder or self.url.startswith("${") or ("://" in self.url and not head) or self.names_code:
            return self.url
        return head + str(Path(self.folder) / self.url[len(head) :])

    @property
    def names_code(self) -> bool:
        """Whether it is a retriever of somebody's own, ``module:Class``."""
        return bool(IMPORT_PATH.fullmatch(self.url)) and not Path(self.folder, self.url).exists()

    @property
    def file(self) -> Path | None:
        """The file or folder that it is, None where it is a server or code."""
        if self.names_code or ("://" in self.url and not self.url.startswith(FILES)):
            return None
        return Path(self.absolute.partition(":///")[2] or self.absolute)

    def is_within(self, folder: Path) -> bool:
        """Whether it is files below ``folder``, without a link that leads out of it, and takes nothing from the
        environment."""
        path, folder = self.file, folder.resolve()
        if path is None or named_secrets(self.url) or not path.resolve().is_relative_to(folder):
            return False
        if path.is_file():
            return True
        base = Path(PATTERN.split(str(path))[0])
        inside = (base if base.is_dir() else base.parent).rglob("*")
        return all(one.resolve().is_relative_to(folder) for one in inside if one.is_symlink())


def read_connection(name: str, values: object, folder: Path) -> Connection:
    """From its table in a file, or its URL alone.

    Raises:
        SetupError: it is none, or holds a password.
    """
    where = f"connections.{name}"
    if not name.isidentifier():
        raise SetupError(f"{where}: a name is letters, digits and _, and begins with no digit.")
    table: Any = {"url": values} if isinstance(values, str) else values
    if not isinstance(table, dict) or not isinstance(table.get("url"), str):
        raise SetupError(f'{where} needs a url: [{where}] url = "postgresql://me@host/shop"')
    known = [one.name for one in fields(Connection) if one.name not in ("name", "folder")]
    if unknown := [key for key in table if key not in known]:
        raise SetupError(f"{where} has no {unknown[0]}; there is {', '.join(known)}.")
    for key, value in table.items():
        check(f"{where}.{key}", key, value)
    parts: dict[str, Any] = {key: tuple(value) if key in LISTS else value for key, value in table.items()}
    connection = Connection(name, **parts, folder=str(folder))
    if connection.settings and not connection.names_code:
        raise SetupError(f'{where}.settings are for a retriever of your own: url = "module:Class".')
    return connection


def check(where: str, key: str, value: object) -> None:
    """Raises SetupError where a value does not fit, or holds a password."""
    is_table = isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
    is_list = isinstance(value, list) and all(isinstance(one, str) for one in value)
    if key in TABLES and not is_table:
        raise SetupError(f'{where} takes texts by name: {where} = {{ "table" = "..." }}')
    if key in LISTS and not is_list:
        raise SetupError(f'{where} takes a list of texts: {where} = ["orders", "customers"]')
    if key in TEXTS and not isinstance(value, str):
        raise SetupError(f"{where} takes a text.")
    if key == "seconds" and not (isinstance(value, int | float) and value is not True and value > 0):
        raise SetupError(f"{where} takes a number of seconds, more than 0.")
    if key == "url":
        refuse_password(where, str(value))
    if key == "max_scan":
        parse_max_scan(str(value))
