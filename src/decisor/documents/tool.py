"""The tool ``passages``, which finds pieces of documents, with retrievers for restricted readers and custom code.

``RestrictedRetriever`` applies a condition on path, folder, name, title and section before any document is shown.
``CustomRetriever`` runs a retriever of a person's own, named by its import path: ``--docs module:Class``.
"""

from __future__ import annotations

import asyncio
import inspect
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from pathlib import PurePosixPath
from typing import ClassVar

from decisor.errors import SetupError, ToolError
from decisor.sandbox.process import Audit, asker_of
from decisor.system.secrets import redact
from decisor.system.settings import build_from_settings, import_class
from decisor.system.text import clean_text, clean_value, quote_on_one_line
from decisor.types import Observation, Record, Retriever, Value

LONGEST = 2_000
FIELDS = ("title", "section")


async def close_nothing() -> None:
    """Close nothing; the default for a tool that holds nothing open."""


@dataclass(frozen=True)
class PassagesTool:
    """The tool ``passages``, which finds pieces of documents. A record has the passage's title and section as fields,
    its text, and as ``source`` the passage's own id, which stays the same from run to run. Satisfies ``types.Tool``."""

    retriever: Retriever
    limit: int = 10
    """Number of passages returned."""
    about: str = ""
    """Description of the documents in one line, for the LLM."""
    name: str = "passages"
    end: Callable[[], Awaitable[None]] = field(default=close_nothing)
    """Closes what the retriever holds."""
    audit: Audit | None = None
    """File where each search is noted; None for none."""
    is_restricted: bool = False
    """Whether some documents are not for everybody."""
    form: ClassVar[str] = "passages"

    def describe(self) -> str:
        return (
            f"Searches documents{f': {self.about}' if self.about else ''}.\n"
            "Input: what you look for, in plain words (names and the words a text about it would use).\n"
            f"Returns the {self.limit} best passages, best first, each with its title. Ask for one thing at a time."
        )

    def examples(self) -> Sequence[str]:
        return ()

    async def call(self, text: str) -> Observation:
        """Return the best passages for a query. Raise ToolError if the input has no words or the retriever fails."""
        query = " ".join(text.strip().strip("`\"'").split())
        if not query:
            raise ToolError("Say in words what you look for.")
        hits = await self.retriever.find(query[:LONGEST], self.limit)
        records = tuple(
            # The position is no evidence, and hidden characters are for nobody.
            replace(
                record,
                id=f"r{number}",
                source=record.id,
                fields={name: clean_value(value) for name, value in record.fields.items() if name in FIELDS},
                text=clean_text(record.text),
            )
            for number, record in enumerate(hits, 1)
        )
        if self.audit is not None:
            self.audit.write(self.name, query, asker_of(text), len(records))
        return Observation(records, "" if records else "No passage has any of these words: try others.")

    async def close(self) -> None:
        await self.end()


COLUMNS = ("path", "folder", "name", "title", "section")
FIRST, MOST = 4, 10_000
"""Factor over the wanted number of passages that is looked at first, and the most that are looked at."""


@dataclass(frozen=True)
class DocumentCondition:
    """Conditions on documents, all of which must hold."""

    texts: tuple[str, ...]
    """SQL on ``COLUMNS``, and on the fields of a custom retriever's records; missing values are NULL."""

    @cached_property
    def query(self) -> tuple[str, tuple[str, ...]]:
        """SQL query that returns one row if all conditions hold, and the names of its parameters.

        Raises SetupError if a text is not one condition.
        """
        import sqlglot
        from sqlglot import exp
        from sqlglot.errors import SqlglotError

        trees = []
        for text in self.texts:
            try:
                tree = sqlglot.parse_one(f"SELECT 1 WHERE ({text})", dialect="sqlite")
            except SqlglotError as error:
                raise SetupError(f"The condition {text!r} of documents does not parse.") from error
            where = tree.find(exp.Where)
            # A text such as "1) OR (1" would close our bracket and let everything through.
            if where is None or not isinstance(where.this, exp.Paren) or len(list(tree.find_all(exp.Query))) > 1:
                raise SetupError(f"The condition {text!r} of documents is not one condition.")
            trees.append(where.this)
        names = dict.fromkeys(column.name.lower() for tree in trees for column in tree.find_all(exp.Column))
        values = ", ".join(f'? AS "{name}"' for name in names) or "1 AS one"
        tests = " AND ".join(tree.sql(dialect="sqlite") for tree in trees)
        return f"SELECT 1 FROM (SELECT {values}) WHERE {tests}", tuple(names)

    def check(self) -> None:
        """Raise SetupError if the condition does not run."""
        self.among([{}])

    def among(self, all_values: Sequence[Mapping[str, Value]]) -> list[bool]:
        """Return for each set of values whether the condition holds."""
        query, names = self.query
        rows = [
            [value if isinstance(value := values.get(name), str | int | float) else None for name in names]
            for values in all_values
        ]
        # Values are bound, so nothing of a document is read as SQL.
        with closing(sqlite3.connect(":memory:")) as database:
            try:
                return [database.execute(query, row).fetchone() is not None for row in rows]
            except sqlite3.Error as error:
                raise SetupError(f"The condition {' AND '.join(self.texts)} of documents fails: {error}") from error

    def unknown(self) -> list[str]:
        """Return the column names of the condition that are not in ``COLUMNS``."""
        return [name for name in self.query[1] if name not in COLUMNS]


def split_document_path(path: str) -> dict[str, Value]:
    """Split a path into the fields path, folder and name.

    >>> split_document_path("hr/pay/2024.md")
    {'path': 'hr/pay/2024.md', 'folder': 'hr/pay', 'name': '2024.md'}
    """
    folder = str(PurePosixPath(path).parent)
    return {"path": path, "folder": "" if folder == "." else folder, "name": PurePosixPath(path).name}


@dataclass(frozen=True)
class RestrictedRetriever:
    """A retriever that returns only records that fulfil a condition. Satisfies ``types.Retriever``."""

    retriever: Retriever
    condition: DocumentCondition

    async def find(self, query: str, limit: int = 10) -> tuple[Record, ...]:
        # More are looked at than are wanted, since the condition drops some.
        wide = limit * FIRST
        while True:
            hits = tuple(await self.retriever.find(query, wide))
            values = [
                {name.lower(): value for name, value in hit.fields.items()} | split_document_path(hit.source or hit.id)
                for hit in hits
            ]
            shown = tuple(compress(hits, self.condition.among(values)))
            if len(shown) >= limit or len(hits) < wide or wide >= MOST:
                return shown[:limit]
            wide *= FIRST


@dataclass(frozen=True, eq=False)
class CustomRetriever:
    """A retriever of the user's own code, named by its import path.

    The code is trusted; the LLM only writes the query. Its exceptions, and calls longer than ``seconds``, are reported
    to the LLM. Satisfies ``types.Retriever``.
    """

    retriever: Retriever
    name: str
    seconds: float = 30.0

    @property
    def about(self) -> str:
        """First line of the retriever's docstring, for the LLM."""
        return (inspect.getdoc(type(self.retriever)) or "").partition("\n")[0].strip().rstrip(".")

    async def find(self, query: str, limit: int = 10) -> tuple[Record, ...]:
        try:
            async with asyncio.timeout(self.seconds):
                records = tuple(await self.retriever.find(query, limit))
        except TimeoutError as error:
            raise ToolError(f"{self.name} took longer than {self.seconds:g} s.", outage=True) from error
        except ToolError:
            raise
        except Exception as error:
            why = redact(f"{type(error).__name__}: {quote_on_one_line(str(error))}")
            raise ToolError(f"{self.name} failed: {why}", outage=isinstance(error, OSError)) from error
        if strange := [record for record in records if not isinstance(record, Record)]:
            raise ToolError(f"{self.name} gave {type(strange[0]).__name__} where a Record is due.")
        return records[:limit]

    async def close(self) -> None:
        """Close the retriever if it has a ``close``."""
        close = getattr(self.retriever, "close", None)
        if callable(close) and inspect.isawaitable(ending := close()):
            await ending


def open_custom_retriever(path: str, settings: Mapping[str, str] = {}, folder: str = "") -> CustomRetriever:
    """Create the object that ``module:Class`` names, from a module in ``folder`` first.

    Its fields are its settings. Only for paths that a person typed.

    Raises:
        SetupError: there is no such class, it cannot be made with these settings, or it finds nothing.
    """
    kind = import_class(path, folder)
    if not inspect.iscoroutinefunction(getattr(kind, "find", None)):
        raise SetupError(f"{path} is no retriever: it needs async def find(self, query, limit) to give Records.")
    try:
        return CustomRetriever(build_from_settings(kind, path, settings), path)
    except SetupError:
        raise
    except Exception as error:
        why = redact(f"{type(error).__name__}: {error}")
        raise SetupError(f"{path}() cannot be made: {why}. It is made with its settings alone.") from error
