"""The engines by name, and the engine that a URL names.

To add an engine: a file here with its ``ENGINE``, and its name in ``NAMES``. One that SQLAlchemy reads needs no file:
see ``PARSERS``, ``WAREHOUSES`` and ``OWN`` in ``sqlalchemy.py``. One table of schemes for SQL and graphs comes from the
engines' own descriptions. Only the driver that is needed is imported.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path, PurePath
from typing import Literal
from urllib.parse import quote, unquote, urlsplit

from decisor.errors import SetupError
from decisor.sandbox.engine import Caps, Engine, EngineDatabase
from decisor.system.extras import find_plugins, missing_extra_error
from decisor.system.processes import make_path_absolute
from decisor.system.secrets import hide_password

NAMES = (
    "sqlite",
    "duckdb",
    "postgres",
    "mysql",
    "kglite",
    "bolt",
    "combine",
    "model",
    "spark",
    "trino",
    "clickhouse",
    "sqlalchemy",
)
OF_SQLALCHEMY = ("trino", "clickhouse")
"""Engines with a URL of their own that SQLAlchemy reads: keys of its ``OWN``."""
ELSEWHERE = {"model": "decisor.decision_models.worker.engine"}
"""An engine whose file lies in the room that it serves."""


@cache
def load_engine(name: str) -> Engine:
    """Return the engine with this name. Raises SetupError if there is none."""
    file, _, member = name.partition(":")
    if file not in NAMES and file in find_plugins("engines"):
        plugin: Engine = find_plugins("engines")[file].load()
        return plugin
    if file not in NAMES:
        raise SetupError(f"There is no engine {name!r}; there is {', '.join(NAMES)}.")
    if file in OF_SQLALCHEMY:
        return load_engine(f"sqlalchemy:{file}")
    value: Engine = import_module(ELSEWHERE.get(file, f"{__name__}.{file}")).ENGINE
    return value.member(member) if member and value.member else value


def open_engine_database(name: str, url: str, caps: Caps) -> EngineDatabase:
    """Open a database; only the driver that it needs is imported.

    Raises:
        SetupError: no such engine, its package is missing, or the database cannot be opened.
    """
    try:
        engine = load_engine(name)
        if caps.role and not engine.has_roles:
            raise SetupError(f"{engine.title} sets no role here: leave role out, or use an account of its own.")
        return engine.connect(url, caps)
    except ModuleNotFoundError as error:
        what = f"{load_engine(name).title} needs {error.name}"
        raise (
            missing_extra_error(what, load_engine(name).extra)
            if load_engine(name).extra
            else SetupError(f"{what}: install it.")
        ) from error


FILE_OPTION = re.compile(r"([?&](?:ssl(?:rootcert|cert|key|crl|crldir)|passfile|ssl_(?:ca|capath|cert|key))=)([^&#]+)")
SYSTEM = "system"
"""In the place of a file with certificates: those of the system."""


def find_engine(mark: str) -> Engine | None:
    """Find the engine with a scheme of URLs, or with an ending of files. Those after it are not imported.

    >>> find_engine("bolt+ssc").form, find_engine(".duckdb").name, find_engine("shop")
    ('cypher', 'duckdb', None)
    """
    return next((one for one in map(load_engine, NAMES) if mark in one.schemes or mark in one.endings), None)


def engine_of(url: str) -> Engine:
    """Return the engine that a URL names, or a path by its ending. Its ``form`` says which tool opens it.

    >>> engine_of("shop.duckdb").name, engine_of("postgresql+psycopg://me@host/shop").name, engine_of("neo4j+s://h").form
    ('duckdb', 'postgres', 'cypher')

    Raises:
        SetupError: it names no database that we know.
    """
    scheme, mark, _ = url.partition("://")
    if not mark:
        if one := find_engine(PurePath(url).suffix.lower()):
            return one
        endings = ", ".join(ending for one in map(load_engine, NAMES) for ending in one.endings)
        known = f"{example_urls('sql')}, a file ending in {endings}, or rows in files such as sales.csv"
        if "/" in url:
            raise SetupError(f"There is nothing at {hide_password(url)}. Check the path, or give {known}.")
        raise SetupError(f"{hide_password(url)} names no database. Give {known}.")
    scheme = scheme.lower()
    one = find_engine(scheme) or find_engine(scheme.partition("+")[0])
    if one is None and scheme in find_plugins("engines"):
        one = load_engine(scheme)
    if one is None:
        schemes = {name: its for its in map(load_engine, NAMES) for name in its.schemes}
        many = ", ".join(f"{name}+DIALECT://" for name, its in schemes.items() if its.member)
        plain = ", ".join(
            [*(f"{name}://" for name, its in schemes.items() if "+" not in name and not its.member), many]
        )
        near = get_close_matches(scheme, schemes, n=1)
        hint = f" Did you mean {near[0]}://?" if near else ""
        raise SetupError(f"There is no engine for {scheme}://.{hint} Known are {plain}.")
    if one.member:
        return one.member(scheme.partition("+")[2].partition("+")[0])
    # sqlite://shop.db would read shop.db as a host, and open no file at all.
    if one.file and (path := url.partition("://")[2]) and not path.startswith("/"):
        raise SetupError(f"A file takes three slashes: {scheme}:///{path}, not {scheme}://{path}.")
    return one


def parse_url(url: str) -> tuple[str, str]:
    """Return the engine's name, and the URL without a driver in the scheme (mysql+pymysql).

    >>> parse_url("shop.duckdb"), parse_url("mariadb+pymysql://me@host/shop"), parse_url("bolt+s://host")
    (('duckdb', 'duckdb:///shop.duckdb'), ('mysql', 'mysql://me@host/shop'), ('bolt', 'bolt+s://host'))

    Raises:
        SetupError: the URL names no database that we know.
    """
    one = engine_of(url)
    scheme, mark, rest = url.partition("://")
    if not mark:
        return one.name, f"{one.schemes[0]}:///{url}"
    scheme = scheme.lower()
    if one.form == "sql" and one.warehouse is None:
        scheme = one.schemes[0]
    return one.name, f"{scheme}://{rest}"


def example_urls(form: str) -> str:
    """Return the URLs of one form, as a person writes them.

    >>> example_urls("cypher")
    'kglite:///PATH or bolt://HOST'
    """
    texts = [
        f"{one.schemes[0]}:///PATH" if one.file else f"{one.schemes[0]}://HOST"
        for one in map(load_engine, NAMES)
        if one.form == form and one.schemes and one.warehouse is None and one.member is None
    ]
    return f"{', '.join(texts[:-1])} or {texts[-1]}"


def parse_url_options(url: str, allowed: frozenset[str]) -> dict[str, str]:
    """Return the options after ``?``.

    Raises SetupError for an unknown option: to ignore it may mean an unencrypted connection.

    >>> parse_url_options("mysql://host/shop?ssl_ca=/ca.pem", frozenset({"ssl_ca"}))
    {'ssl_ca': '/ca.pem'}
    """
    pairs = [part.partition("=") for part in urlsplit(url).query.split("&") if part]
    values = {unquote(name): unquote(value.replace("+", " ")) for name, _, value in pairs}
    if strange := sorted(values.keys() - allowed):
        are = f"there are {', '.join(sorted(allowed))}" if allowed else "there are none"
        raise SetupError(f"The URL of the database has no option {', '.join(strange)}; {are}.")
    return values


def query_language(url: str) -> Literal["sql", "cypher"]:
    """Return the language in which a database is queried.

    >>> query_language("shop.db"), query_language("bolt+ssc://host")
    ('sql', 'cypher')

    Raises:
        SetupError: the URL names no database that we know.
    """
    return "cypher" if engine_of(url).form == "cypher" else "sql"


def names_database(place: str) -> bool:
    """Return whether a place is a URL, or a file with the ending of a database.

    >>> names_database("shop.db"), names_database("reports/")
    (True, False)
    """
    return "://" in place or find_engine(PurePath(place).suffix.lower()) is not None


def make_paths_absolute(url: str) -> str:
    """Return a URL with absolute paths, for a worker has a working folder of its own.

    >>> make_paths_absolute("postgresql://me@host/shop?sslmode=verify-full&sslrootcert=/ca.pem")
    'postgresql://me@host/shop?sslmode=verify-full&sslrootcert=/ca.pem'
    """
    scheme, mark, path = url.partition(":///")
    if mark and (one := find_engine(scheme)) and one.file:
        return f"{scheme}:///{make_path_absolute(path)}"

    def option(match: re.Match[str]) -> str:
        path = unquote(match[2])
        return match[1] + (path if path == SYSTEM else quote(make_path_absolute(path)))

    return FILE_OPTION.sub(option, url)


def path_in_url(url: str) -> str:
    """Return the file that a URL names: relative, or absolute after a fourth slash.

    >>> path_in_url("sqlite:///shop.db"), path_in_url("kglite:////tmp/graph.kgl")
    ('shop.db', '/tmp/graph.kgl')
    """
    return url.partition(":///")[2]


MAGIC = {"sqlite": (0, b"SQLite format 3\0"), "duckdb": (8, b"DUCK")}
"""Where, and with which bytes, a file of an engine says what it is."""


def database_file(url: str) -> Path:
    """Return the file that a URL names.

    Raises:
        SetupError: there is none, or it is empty or of another kind.
    """
    scheme, path = url.partition("://")[0], Path(path_in_url(url))
    if not path.is_file():
        raise SetupError(f"There is no database file {path}. Check the path of --db ({scheme}:///PATH).")
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError as error:
        raise SetupError(f"Cannot read {path}: {error.strerror}.") from error
    if not head:
        raise SetupError(f"{path} is an empty file: the database has no tables.")
    # Its first bytes decide, not its ending, which a person chooses.
    kinds = [name for name, (at, magic) in MAGIC.items() if head[at:].startswith(magic)]
    if scheme in MAGIC and scheme not in kinds:
        other = f"It is a database of {load_engine(kinds[0]).title}: write {kinds[0]}:///{path}" if kinds else ""
        if not kinds and path.suffix.lower() in (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".xlsx"):
            other = f"A file of rows is named as it is: --db {path.name}"
        raise SetupError(f"{path} is no database of {load_engine(scheme).title}. {other}".strip())
    return path
