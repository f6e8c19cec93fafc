"""The databases, graphs and documents that a person names, each with the name that a model calls it by.

Names are checked here; nothing is opened.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from decisor.databases.files.store import FrameStore, is_frame, names_files, store_frames
from decisor.errors import SetupError
from decisor.runtime.budget import MaxScan
from decisor.sandbox.engine import NO_POLICY, Policy
from decisor.sandbox.engines import query_language
from decisor.sandbox.process import Audit
from decisor.session.config import Connection
from decisor.session.user_tools import NO_TOOLS, Tools, ToolSpecs, build_tool_specs, split_all_at_commas
from decisor.system.secrets import hide_password, redact

SourceForm = Literal["sql", "cypher", "passages"]
Place: TypeAlias = "str | os.PathLike[str] | Connection"
Places: TypeAlias = "Place | Sequence[Place] | Mapping[str, object]"
Names: TypeAlias = "str | Sequence[str]"
NAMED = re.compile(r"([A-Za-z_]\w*)=(.+)", re.S)
RESERVED = ("whatif", "think", "decision_model", "person", "definitions", "combine")
"""Names of tools that are not a person's to give."""


@dataclass(frozen=True)
class Source:
    """A database, graph or place with documents."""

    form: SourceForm
    place: str
    name: str
    """Name that a model calls it by."""
    connection: Connection | None = field(default=None, compare=False)
    """Entry in a config file; None if it has none."""
    policy: Policy = NO_POLICY
    """Rows and columns that are kept from the person who asks."""
    audit: Audit | None = None
    """File that notes its queries."""
    max_scans: tuple[MaxScan, ...] = ()
    """Limits on each query, beside its connection's."""
    role: str = ""
    """Role of the database that queries run in, with {user} or {group} until it is known who asks."""

    @property
    def label(self) -> str:
        """The place without a password, for people."""
        return redact(self.place.rpartition("@")[2]) if "://" in self.place else hide_password(self.place)


@dataclass(frozen=True)
class Sources:
    """The data and tools that a question is asked of."""

    places: tuple[Source, ...] = ()
    tools: ToolSpecs = NO_TOOLS
    model: Path | None = None
    """File with a decision model."""
    tables: tuple[str, ...] = ()
    """Tables, labels and relationship types; if not empty, no others may be read."""
    deny_tables: tuple[str, ...] = ()
    """Tables that may be neither read nor seen."""
    frames: FrameStore | None = None
    """Tables that a program handed over, gone with these sources."""
    definitions: tuple[tuple[str, Path], ...] = ()
    """Definitions files, each with the name of its database; '' for the only one."""
    who: str = ""
    """Person who asks, if a program says it."""

    def __bool__(self) -> bool:
        return bool(self.places or self.tools.specs)

    @property
    def databases(self) -> tuple[Source, ...]:
        return tuple(source for source in self.places if source.form != "passages")

    @property
    def documents(self) -> tuple[Source, ...]:
        return tuple(source for source in self.places if source.form == "passages")


def build_sources(
    db: Places = (),
    graph: Places = (),
    docs: Places = (),
    tools: Tools = (),
    model: str | os.PathLike[str] | None = None,
    tables: Names = (),
    deny_tables: Names = (),
    definitions: Places = (),
) -> Sources:
    """Build sources from the places and tools that a person named.

    Each may be one or several; ``NAME=PLACE`` gives one a name. db: may be a DataFrame (pandas, polars, Arrow), or a
    mapping from names to such tables and to places.

    >>> [(source.form, source.name) for source in build_sources(db="sqlite:///sites.db", docs="reports/").places]
    [('sql', 'sql'), ('passages', 'passages')]
    >>> [source.name for source in build_sources(db=["sites.db", "rents=prices-2024.db"]).places]
    ['sites', 'rents']

    Raises:
        SetupError: two have one name, a URL names no database, or something is no tool.
    """
    db, frames = replace_frames(db)
    places = [build_source(place) for place in (*iterate_places(db), *iterate_places(graph))]
    places += [build_source(place, "passages") for place in iterate_places(docs)]
    count = Counter(source.form for source in places)
    # The only source of a form is called by its form.
    sources = tuple(
        replace(source, name=source.name or (source.form if count[source.form] == 1 else name_from_place(source.place)))
        for source in places
    )
    check_unique_names([source.name for source in sources])
    check_reserved_names([source.name for source in sources])
    model_file = Path(model) if model else None
    files = tuple((name, Path(place)) for name, place in map(split_place_name, keep_text_names(definitions)))
    return apply_connections(
        Sources(
            sources, build_tool_specs(tools), model_file, split_names(tables), split_names(deny_tables), frames, files
        )
    )


def build_source(place: str | Connection, form: SourceForm | None = None) -> Source:
    """Build a source. Its name is '' if none was given. form: None for a database, graph or file."""
    if isinstance(place, Connection):
        name, url, connection = place.name, place.place, place
    else:
        (name, url), connection = split_place_name(place), None
    # Files are read into a database that is asked in SQL.
    form = form or ("sql" if names_files(url) else query_language(url))
    return Source(form, url, name, connection, role=connection.role if connection else "")


def apply_connections(sources: Sources) -> Sources:
    """Apply the tables, denied tables and definitions of config files. A person's ``tables`` can only name fewer.

    Raises:
        SetupError: none of the named tables may be read.
    """
    tables, denied, files = list(sources.tables), list(sources.deny_tables), list(sources.definitions)
    for source in sources.databases:
        if source.connection is None:
            continue
        file = source.connection.definitions
        # A file that a person names goes before that of the connection.
        if file and not any(name in ("", source.name) for name, _ in sources.definitions):
            files.append((source.name, Path(source.connection.folder, file)))
        denied += [f"{source.name}.{name}" for name in split_names(source.connection.deny_tables)]
        allowed, own = split_names(source.connection.tables), tables_of_source(sources.tables, source, sources)
        # Engines fold the case of names in different ways, so it does not count here.
        if allowed and own and (beyond := [name for name in own if name.lower() not in map(str.lower, allowed)]):
            raise SetupError(
                f"{beyond[0]} may not be read: decisor.toml lets only {', '.join(allowed)} be read of {source.name}."
            )
        if allowed and not own:
            tables += [f"{source.name}.{name}" for name in allowed]
    return replace(sources, tables=tuple(tables), deny_tables=tuple(denied), definitions=tuple(files))


def keep_text_names(names: Places) -> tuple[str, ...]:
    return tuple(text for text in iterate_places(names) if isinstance(text, str))


def split_names(names: Names) -> tuple[str, ...]:
    """Read names of tables or columns from a text or several: a comma joins names everywhere.

    >>> split_names("a.staff,b.staff"), split_names(["site", "a.staff, b.staff"])
    (('a.staff', 'b.staff'), ('site', 'a.staff', 'b.staff'))

    Raises:
        SetupError: a text names nothing, such as "," or a variable that is not set: it would close nothing.
    """
    if empty := [
        text for text in ([names] if isinstance(names, str) and names else names) if not split_all_at_commas([text])
    ]:
        raise SetupError(f"{empty[0]!r} names no table or column. Write TABLE or TABLE.COLUMN, or leave it out.")
    return tuple(split_all_at_commas(keep_text_names(names)))


def replace_frames(db: Places) -> tuple[Places, FrameStore | None]:
    """Replace DataFrames by a database of their own, beside the other places."""
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


def tables_of_source(names: Sequence[str], source: Source, sources: Sources) -> list[str]:
    """Return the names that are of a source.

    ``NAME.TABLE`` is of the source with that name alone, any other name is of all.

    >>> sources = build_sources(db=["sites.db", "rents=prices.db"])
    >>> tables_of_source(["rents.price", "site", "public.town"], sources.places[0], sources)
    ['site', 'public.town']
    """
    heads = {other.name for other in sources.databases}
    parts = [(name.partition("."), name) for name in names]
    return [
        rest if head == source.name and dot else name
        for (head, dot, rest), name in parts
        if not dot or head == source.name or head not in heads
    ]


def iterate_places(places: Places) -> Iterator[str | Connection]:
    # A text is iterable too: it is one place, not its letters.
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


def split_place_name(text: str) -> tuple[str, str]:
    """Split a text NAME=PLACE into the name, or '', and the place.

    >>> split_place_name("rents=sqlite:///prices.db"), split_place_name("postgresql://host/shop?sslmode=require")
    (('rents', 'sqlite:///prices.db'), ('', 'postgresql://host/shop?sslmode=require'))
    """
    match = NAMED.fullmatch(text)
    # A file with = in its name is a file.
    return ("", text) if match is None or Path(text).exists() else (match[1], match[2])


def name_from_place(place: str) -> str:
    """Return a word from the name of a database or file.

    >>> name_from_place("postgresql://me@host/sites"), name_from_place("data/prices 2024.db"), name_from_place("bolt://graphs:7687")
    ('sites', 'prices_2024', 'graphs')
    """
    parts = urlsplit(place) if "://" in place else None
    name = PurePath(parts.path if parts else place).stem
    # bolt://HOST names no database, so the host gives the name.
    if parts and not name:
        name = parts.hostname or parts.scheme
    return re.sub(r"\W+", "_", name).strip("_") or "data"


def check_reserved_names(names: Iterable[str]) -> None:
    """Raise SetupError if a name is reserved for one of Decisor's own tools."""
    if own := [name for name in names if name in RESERVED]:
        raise SetupError(f"{own[0]} is a name of decisor's own: give another, as NAME=URL, or leave it out.")


def check_unique_names(names: Sequence[str]) -> None:
    """Raise SetupError if two tools have the same name."""
    for name, count in Counter(names).items():
        if count > 1:
            raise SetupError(f"Two tools are called {name}: give one another name, as NAME=URL, or leave it out.")
