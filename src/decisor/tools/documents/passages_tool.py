"""The tool ``passages``: finds pieces of documents for a model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from decisor.errors import ToolError
from decisor.outside import clean_text, clean_value
from decisor.tools.databases.sandbox.audit import Audit, asker_of
from decisor.types import Observation, Record, Retriever

LONGEST = 2_000
FIELDS = ("title", "section")


async def nothing() -> None:
    """Nothing is to be closed."""


@dataclass(frozen=True)
class PassagesTool:
    """``retriever`` finds; ``limit`` passages come back. ``about``: what the documents are, in a line for the model.

    A record has the passage's title and section as fields, its text, and as ``source`` the passage's own id, which
    stays the same from run to run. ``end`` closes what the retriever holds. ``audit``: where each search is noted.
    ``is_restricted``: some documents are not for everybody.
    Satisfies ``types.Tool``.
    """

    retriever: Retriever
    limit: int = 10
    about: str = ""
    name: str = "passages"
    end: Callable[[], Awaitable[None]] = field(default=nothing)
    audit: Audit | None = None
    is_restricted: bool = False
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
        """Raises ToolError where the input holds no words, or the retriever fails."""
        query = " ".join(text.strip().strip("`\"'").split())
        if not query:
            raise ToolError("Say in words what you look for.")
        hits = await self.retriever.find(query[:LONGEST], self.limit)
        records = tuple(present(record, f"r{number}") for number, record in enumerate(hits, 1))
        if self.audit is not None:
            self.audit.write(self.name, query, asker_of(text), len(records))
        return Observation(records, "" if records else "No passage has any of these words: try others.")

    async def close(self) -> None:
        await self.end()


def present(record: Record, id: str) -> Record:
    """As a model sees it: without its position, which is no evidence, and without what hides in a text."""
    fields = {name: clean_value(value) for name, value in record.fields.items() if name in FIELDS}
    return replace(record, id=id, source=record.id, fields=fields, text=clean_text(record.text))
