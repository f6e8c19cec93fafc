"""Which engine a URL names."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Literal
from urllib.parse import quote, unquote

from decisor.child_process import absolute
from decisor.errors import SetupError
from decisor.secrets import without_password

SQLITE = {".db", ".sqlite", ".sqlite3", ".db3"}
DUCKDB = {".duckdb", ".ddb"}
SCHEMES = {
    "sqlite": "sqlite",
    "duckdb": "duckdb",
    "postgresql": "postgres",
    "postgres": "postgres",
    "mysql": "mysql",
    "mariadb": "mysql",
    "kglite": "kglite",
    "arcadedb": "arcadedb",
    "bolt": "bolt",
    "bolt+s": "bolt",
    "bolt+ssc": "bolt",
    "neo4j": "bolt",
    "neo4j+s": "bolt",
    "neo4j+ssc": "bolt",
}
GRAPHS = {"kglite", "arcadedb", "bolt"}
DIALECTS = {"sqlite": "SQLite", "duckdb": "DuckDB", "postgres": "PostgreSQL", "mysql": "MySQL/MariaDB"}

FILE = re.compile(r"(sqlite|duckdb|kglite|arcadedb):///")
FILE_OPTION = re.compile(r"([?&](?:ssl(?:rootcert|cert|key|crl|crldir)|passfile|ssl_(?:ca|capath|cert|key))=)([^&#]+)")
SYSTEM = "system"
"""In the place of a file with certificates: those of the system."""


def parse_url(url: str) -> tuple[str, str]:
    """The engine, and the URL as it expects it: without a driver in the scheme (mysql+pymysql).

    >>> parse_url("shop.duckdb"), parse_url("mariadb+pymysql://me@host/shop")
    (('duckdb', 'duckdb:///shop.duckdb'), ('mysql', 'mysql://me@host/shop'))

    Raises:
        SetupError: the URL names no database that we know.
    """
    scheme, mark, rest = url.partition("://")
    if not mark:
        suffix = PurePath(url).suffix.lower()
        engine = "sqlite" if suffix in SQLITE else "duckdb" if suffix in DUCKDB else ""
        if not engine:
            raise SetupError(
                f"{without_password(url)} names no database. Give sqlite:///PATH, duckdb:///PATH, postgresql://... or mysql://..."
            )
        return engine, f"{engine}:///{url}"
    scheme = scheme.lower()
    engine = SCHEMES.get(scheme) or SCHEMES.get(scheme.split("+")[0], "")
    if not engine:
        known = ", ".join(f"{name}://" for name in SCHEMES if "+" not in name)
        raise SetupError(f"There is no engine for {scheme}://. Known are {known}.")
    if engine in ("postgres", "mysql"):
        scheme = "postgresql" if engine == "postgres" else "mysql"
    return engine, f"{scheme}://{rest}"


def query_language(url: str) -> Literal["sql", "cypher"]:
    """In which a database is asked.

    >>> query_language("shop.db"), query_language("bolt+ssc://host")
    ('sql', 'cypher')

    Raises:
        SetupError: the URL names no database that we know.
    """
    return "cypher" if parse_url(url)[0] in GRAPHS else "sql"


def names_database(place: str) -> bool:
    """Whether that is a URL, or a file with the ending of a database.

    >>> names_database("shop.db"), names_database("reports/")
    (True, False)
    """
    return "://" in place or PurePath(place).suffix.lower() in SQLITE | DUCKDB


def placed(url: str) -> str:
    """With absolute paths, for a worker has a working folder of its own.

    >>> placed("postgresql://me@host/shop?sslmode=verify-full&sslrootcert=/ca.pem")
    'postgresql://me@host/shop?sslmode=verify-full&sslrootcert=/ca.pem'
    """
    if (head := FILE.match(url)) is not None:
        return head[0] + absolute(url[head.end() :])

    def option(found: re.Match[str]) -> str:
        path = unquote(found[2])
        return found[1] + (path if path == SYSTEM else quote(absolute(path)))

    return FILE_OPTION.sub(option, url)
