"""An index in PostgreSQL: where it is, and what its tables are.

    T            number, id, title, section, position, text     a row for each passage
    T_words      term, block, passages                          in which passages a term is, by blocks of numbers
    T_vectors    number, vector                                 by pgvector, where there are vectors
    T_documents  key, stamp, first, count                       what was indexed, and as which passages
    T_about      about, terms                                   one row: what the index is, and how many terms it holds

An entry of ``T_words.passages`` is a passage with this term as one bigint: number * 2^32 + times * 2^16 + length, with
how often the passage has the term, and how many terms it has in all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from decisor.errors import SetupError
from decisor.quoting import quoted
from decisor.secrets import without_password

SCHEMES = ("postgresql://", "postgres://")
NAME = re.compile(r"(?:\w{1,40}\.)?\w{1,40}")
ABOUT = "SELECT about::text AS about FROM {about}"


@dataclass(frozen=True)
class Tables:
    """Their names in SQL. ``schema``: '' for the default one."""

    name: str
    schema: str = ""

    def table(self, part: str = "") -> str:
        """
        >>> Tables("handbook", "hr").table("words"), Tables("handbook").table()
        ('"hr"."handbook_words"', '"handbook"')
        """
        own = quoted(f"{self.name}_{part}" if part else self.name)
        return f"{quoted(self.schema)}.{own}" if self.schema else own

    def sql(self, text: str) -> str:
        """With names in the places of {passages}, {words}, {vectors}, {documents} and {about}."""
        parts = {part: self.table(part) for part in PARTS[1:]}
        return text.format(passages=self.table(), **parts)


PARTS = ("", "words", "vectors", "documents", "about")


@dataclass(frozen=True)
class TablePlace:
    """``url``: of the database."""

    url: str
    tables: Tables

    def __str__(self) -> str:
        """Fit to be shown."""
        name = f"{self.tables.schema}.{self.tables.name}" if self.tables.schema else self.tables.name
        address, mark, options = without_password(self.url).partition("?")
        return f"{address}/{name}{mark}{options}"


def names_table(place: str) -> bool:
    return place.lower().startswith(SCHEMES)


def table_place(place: str) -> TablePlace:
    """
    >>> table_place("postgresql://me@host/shop/hr.handbook?sslmode=require")
    TablePlace(url='postgresql://me@host/shop?sslmode=require', tables=Tables(name='handbook', schema='hr'))

    Raises:
        SetupError: it names no table.
    """
    address, mark, options = place.partition("?")
    scheme, _, rest = address.partition("://")
    path = rest.rpartition("@")[2].partition("/")[2]
    database, _, table = path.partition("/")
    if not database or not NAME.fullmatch(table):
        raise SetupError(
            f"{without_password(place)} names no table of passages: write {scheme}://HOST/DATABASE/TABLE, or "
            "SCHEMA.TABLE, of letters, digits and _ (a database is named with --db)."
        )
    schema, _, name = table.rpartition(".")
    head = address[: len(address) - len(table) - 1]
    return TablePlace(f"{head}{mark}{options}", Tables(name, schema))


def not_ours(place: TablePlace, columns: list[str]) -> SetupError:
    """Of a table that something else made."""
    database = without_password(place.url)
    name = place.tables.name
    return SetupError(
        f"{place} is no index of passages: the table has the columns {', '.join(columns[:12])}, and an index has "
        f"number, id, title, section, position and text, beside {name}_words. To search its rows, index them: decisor "
        f"index {database} --table {name} --out {database.partition('?')[0]}/{name}_index (--text, --title and --id "
        "name the columns)."
    )
