"""What a person names: databases, graphs and documents, each with the name that a model calls it by."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from decisor.config.connection import Connection
from decisor.errors import SetupError
from decisor.max_scan import MaxScan
from decisor.secrets import redact, without_password
from decisor.session.tools import NO_TOOLS, Tools, ToolSpecs, split_all, tool_specs
from decisor.tools.databases.files.frames import FrameStore, is_frame, store_frames
from decisor.tools.databases.files.places import names_files
from decisor.tools.databases.sandbox.audit import Audit
from decisor.tools.databases.sandbox.policy import NO_POLICY, Policy
from decisor.tools.databases.sandbox.urls import query_language

SourceForm = Literal["sql", "cypher", "passages"]
Place: TypeAlias = "str | os.PathLike[str] | Connection"
Places: TypeAlias = "Place | Sequence[Place] | Mapping[str, object]"
Names: TypeAlias = "str | Sequence[str]"
NAMED = re.compile(r"([A-Za-z_]\w*)=(.+)", re.S)
RESERVED = ("whatif", "think", "decision_model", "person", "definitions", "combine")
"""Names of tools that are not a person's to give."""


@dataclass(frozen=True)
class Source:
    """One database, graph or place with documents. ``name``: what a model calls it. ``connection``: what a config file
    says of it, where it is named there. ``policy``: rows and columns of it that are not for who asks. ``audit``: where
    its queries are noted. ``max_scans``: what one query of it may read, beside what its connection says."""

    form: SourceForm
    place: str
    name: str
    connection: Connection | None = field(default=None, compare=False)
    policy: Policy = NO_POLICY
    audit: Audit | None = None
    max_scans: tuple[MaxScan, ...] = ()

    @property
    def label(self) -> str:
        """The place, for people: without a password."""
        return redact(self.place.rpartition("@")[2]) if "://" in self.place else without_password(self.place)


@dataclass(frozen=True)
class Sources:
    """Everything that a question is asked of. ``model``: a file with a decision model. Where ``tables`` (labels,
    relationship types) names some, no others may be read; ``deny_tables`` may be neither read nor seen. ``frames``:
    tables that a program handed over, gone with these sources. ``definitions``: the name of a database ('' for the
    only one) and a file of what words mean in it. ``who`` asks, where a program says it."""

    places: tuple[Source, ...] = ()
    tools: ToolSpecs = NO_TOOLS
    model: Path | None = None
    tables: tuple[str, ...] = ()
    deny_tables: tuple[str, ...] = ()
    frames: FrameStore | None = None
    definitions: tuple[tuple[str, Path], ...] = ()
    who: str = ""

    def __bool__(self) -> bool:
        return bool(self.places or self.tools.specs)

    @property
    def databases(self) -> tuple[Source, ...]:
        return tuple(source for source in self.places if source.form != "passages")

    @property
    def documents(self) -> tuple[Source, ...]:
        return tuple(source for source in self.places if source.form == "passages")


def sources_of(
    db: Places = (), graph: Places = (), docs: Places = (), tools: Tools = (),
    model: str | os.PathLike[str] | None = None, tables: Names = (), deny_tables: Names = (), definitions: Places = (),
) -> Sources:  # fmt: skip
    """From what a person named. Each may be one or several; ``NAME=PLACE`` gives one a name. ``db`` may be a DataFrame
    (pandas, polars, Arrow), or a mapping from names to such tables and to places.

    >>> [(source.form, source.name) for source in sources_of(db="sqlite:///sites.db", docs="reports/").places]
    [('sql', 'sql'), ('passages', 'passages')]
    >>> [source.name for source in sources_of(db=["sites.db", "rents=prices-2024.db"]).places]
    ['sites', 'rents']

    Raises:
        SetupError: two have one name, a URL names no database, or something is no tool.
    """
    db, frames = with_frames(db)
    texts: list[tuple[SourceForm, str | Connection]] = [(language_of(own_place(one)), one)
                                                  for one in (*each_of(db), *each_of(graph))]  # fmt: skip
    texts += [("passages", text) for text in each_of(docs)]
    count = Counter(form for form, _ in texts)
    sources = tuple(source_of(form, text, alone=count[form] == 1) for form, text in texts)
    check_names([source.name for source in sources])
    check_reserved([source.name for source in sources])
    model_file = Path(model) if model else None
    files = tuple((name, Path(place)) for name, place in map(place_of, names_in(definitions)))
    return with_connections(
        Sources(sources, tool_specs(tools), model_file, split_names(tables), split_names(deny_tables), frames, files)
    )


def with_connections(sources: Sources) -> Sources:
    """With what config files say may be read: a person's ``tables`` can only be fewer.

    Raises:
        SetupError: none of those that are named may be read.
    """
    tables, denied, files = list(sources.tables), list(sources.deny_tables), list(sources.definitions)
    for source in sources.databases:
        if source.connection is None:
            continue
        file = source.connection.definitions
        if file and not any(name in ("", source.name) for name, _ in sources.definitions):
            files.append((source.name, Path(source.connection.folder, file)))
        denied += [f"{source.name}.{name}" for name in split_names(source.connection.deny_tables)]
        allowed, own = split_names(source.connection.tables), tables_of(sources.tables, source, sources)
        if allowed and own and (beyond := [name for name in own if name.lower() not in map(str.lower, allowed)]):
            raise SetupError(f"{beyond[0]} may not be read: decisor.toml lets only {', '.join(allowed)} be read of "
                             f"{source.name}.")  # fmt: skip
        if allowed and not own:
            tables += [f"{source.name}.{name}" for name in allowed]
    return replace(sources, tables=tuple(tables), deny_tables=tuple(denied), definitions=tuple(files))


def names_in(names: Places) -> tuple[str, ...]:
    return tuple(text for text in each_of(names) if isinstance(text, str))


def split_names(names: Names) -> tuple[str, ...]:
    """Read names of tables or columns from a text or several: a comma joins names everywhere.

    >>> split_names("a.staff,b.staff"), split_names(["site", "a.staff, b.staff"])
    (('a.staff', 'b.staff'), ('site', 'a.staff', 'b.staff'))

    Raises:
        SetupError: a text names nothing, such as "," or a variable that is not set: it would close nothing.
    """
    if empty := [text for text in ([names] if isinstance(names, str) and names else names) if not split_all([text])]:
        raise SetupError(f"{empty[0]!r} names no table or column. Write TABLE or TABLE.COLUMN, or leave it out.")
    return tuple(split_all(names_in(names)))


def with_frames(db: Places) -> tuple[Places, FrameStore | None]:
    """DataFrames as a database of their own, beside the other places."""
    if not isinstance(db, Mapping):
        if not is_frame(db):
            return db, None
        db = {"data": db}
    tables = {name: value for name, value in db.items() if is_frame(value)}
    places = [f"{name}={value}" for name, value in db.items() if name not in tables]
    if not tables:
        return places, None
    frames = store_frames(tables)
    return [frames.url, *places], frames


def language_of(place: str) -> Literal["sql", "cypher"]:
    """Files are read into a database that is asked in SQL."""
    return "sql" if names_files(place) else query_language(place)


def tables_of(names: Sequence[str], source: Source, sources: Sources) -> list[str]:
    """Those of a source: ``NAME.TABLE`` is of the source with that name alone, any other name is of all.

    >>> sources = sources_of(db=["sites.db", "rents=prices.db"])
    >>> tables_of(["rents.price", "site", "public.town"], sources.places[0], sources)
    ['site', 'public.town']
    """
    heads = {other.name for other in sources.databases}
    parts = [(name.partition("."), name) for name in names]
    return [rest if head == source.name and dot else name for (head, dot, rest), name in parts
            if not dot or head == source.name or head not in heads]  # fmt: skip


def each_of(places: Places) -> Iterator[str | Connection]:
    if isinstance(places, str | os.PathLike | Connection):
        places = (places,)
    if not isinstance(places, Iterable):
        raise SetupError(f"{places!r} is no place: give a URL, a path, or several.")
    for place in places:
        if isinstance(place, Connection):
            yield place
            continue
        if not isinstance(place, str | os.PathLike):
            raise SetupError(f"{place!r} is no place: give a URL, a path, or several.")
        if text := os.fspath(place).strip():
            yield text


def place_of(text: str) -> tuple[str, str]:
    """The name that a person gave, or '', and the place.

    >>> place_of("rents=sqlite:///prices.db"), place_of("postgresql://host/shop?sslmode=require")
    (('rents', 'sqlite:///prices.db'), ('', 'postgresql://host/shop?sslmode=require'))
    """
    match = NAMED.fullmatch(text)
    return ("", text) if match is None or Path(text).exists() else (match[1], match[2])


def own_place(place: str | Connection) -> str:
    return place.place if isinstance(place, Connection) else place_of(place)[1]


def source_of(form: SourceForm, text: str | Connection, alone: bool) -> Source:
    """Where there is one of a form, it is called by its form; a connection by its name."""
    if isinstance(text, Connection):
        return Source(form, text.place, text.name, text)
    name, place = place_of(text)
    return Source(form, place, name or (form if alone else name_from(place)))


def name_from(place: str) -> str:
    """A word from the database's or the file's own name.

    >>> name_from("postgresql://me@host/sites"), name_from("data/prices 2024.db"), name_from("bolt://graphs:7687")
    ('sites', 'prices_2024', 'graphs')
    """
    parts = urlsplit(place) if "://" in place else None
    name = PurePath(parts.path if parts else place).stem
    if parts and not name:
        name = parts.hostname or parts.scheme
    return re.sub(r"\W+", "_", name).strip("_") or "data"


def check_reserved(names: Iterable[str]) -> None:
    """Raises SetupError where one is the name of a tool of our own."""
    if own := [name for name in names if name in RESERVED]:
        raise SetupError(f"{own[0]} is a name of decisor's own: give another, as NAME=URL, or leave it out.")


def check_names(names: Sequence[str]) -> None:
    """Raises SetupError where two tools have one name."""
    for name, count in Counter(names).items():
        if count > 1:
            raise SetupError(f"Two tools are called {name}: give one another name, as NAME=URL, or leave it out.")
