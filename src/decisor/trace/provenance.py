"""Where a run is from: when, by whom, with which version, on which data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RowPolicy:
    """Of ``table`` only the rows that fulfil ``condition`` (SQL) were read; '' where that is not for who asks."""

    table: str
    condition: str


@dataclass(frozen=True, slots=True)
class DataSource:
    """A database, graph or place with documents, by the name that a model calls it. ``form``: sql, cypher or passages.
    ``place``: without user and password, '' where it is not for who asks. ``rows``, ``mask``: what of it was not for
    who asks; of the columns ``mask`` (table.column) only tokens were read, which one machine makes of ``seed``."""

    name: str
    form: str
    place: str = ""
    rows: tuple[RowPolicy, ...] = ()
    mask: tuple[str, ...] = ()
    seed: str = ""


@dataclass(frozen=True, slots=True)
class UsedFile:
    """A file as it was when the data were first asked. ``digest``: SHA-256 of its bytes, empty where it could not be
    read. ``text``: of a decision model. ``about``: the data that it is about."""

    path: str
    digest: str = ""
    text: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True)
class Provenance:
    """``at``: seconds since 1970, 0 where it is not known. ``by``: who asked. ``version``: of Decisor. ``tables``: only
    these might be read, all where it is empty; ``deny_tables``: these might not."""

    at: float = 0.0
    by: str = ""
    version: str = ""
    sources: tuple[DataSource, ...] = ()
    tables: tuple[str, ...] = ()
    deny_tables: tuple[str, ...] = ()
    definitions: tuple[UsedFile, ...] = ()
    model: UsedFile | None = None


UNKNOWN = Provenance()
