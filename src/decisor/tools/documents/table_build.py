"""Building and updating an index in PostgreSQL, in one transaction: who reads it sees it as it was until the end.

Anew it is built beside the one that is there, in tables of its own, which take its names at the end. An update takes
out and puts in what changed. One that is killed, or fails, changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from decisor.cache import stamp_of
from decisor.errors import SetupError
from decisor.extras import needs
from decisor.secrets import redact, secrets_in
from decisor.tools.documents.embedder import Embedder
from decisor.tools.documents.index_files import About
from decisor.tools.documents.passage import Passage
from decisor.tools.documents.table_index import about_in
from decisor.tools.documents.table_place import ABOUT, PARTS, TablePlace, Tables, not_ours, table_place
from decisor.tools.documents.table_store import TableStore
from decisor.tools.documents.update import Changes, Document, Progress, Updater, apart, each_alone, take_all

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[object, ...]]

CREATE = """CREATE TABLE {passages} (number integer NOT NULL, id text NOT NULL, title text NOT NULL,
    section text NOT NULL, position integer NOT NULL, text text NOT NULL);
CREATE TABLE {words} (term text COLLATE "C" NOT NULL, block integer NOT NULL, passages bigint[] NOT NULL);
CREATE TABLE {documents} (key text NOT NULL, stamp bytea NOT NULL, first integer NOT NULL, count integer NOT NULL);
CREATE TABLE {about} (about jsonb NOT NULL, terms bigint NOT NULL)"""
READERS = """SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
    FROM pg_class AS c, aclexplode(c.relacl) AS a
    WHERE c.oid = to_regclass(%s) AND a.privilege_type = 'SELECT' AND a.grantee <> c.relowner"""


def build_table(
    passages: Iterable[Passage], place: str, language: str = "english", embedder: Embedder | None = None
) -> Changes:
    """As ``build_index``, in the table that ``postgresql://HOST/DATABASE/TABLE`` names. Raises SetupError."""
    return update_table(each_alone(passages), table_place(place), About(language=language), embedder)[0]


def update_table(
    documents: Iterable[Document],
    place: TablePlace,
    about: About,
    embedder: Embedder | None = None,
    fresh: bool = False,
    progress: Progress = lambda key, passages: None,
    may_be_empty: bool = True,
) -> tuple[Changes, int]:
    """As ``index_build.update``, in a table; and the bytes of the index.

    Raises:
        SetupError: the server does not answer or refuses, the table is somebody else's, or another builder is at work.
    """
    about = replace(about, embedder=embedder.name if embedder else "")
    with connecting(place) as db:
        lock_of(db, place)
        before = about_there(db, place, fresh)
        why = apart(before, about) if before else ""
        tables = place.tables
        if before is None or why:
            before, tables = None, replace(tables, name=f"{tables.name}_next")
            run(db, tables.sql(CREATE))
        about = replace(about, next_number=before.next_number if before else 0, width=before.width if before else 0)
        store = TableStore(db, tables, about, embedder, before is None)
        with closing(store):
            updater = Updater(store, about.next_number)
            take_all(updater, documents, progress)
            about = store.finish(updater.number)
        changes = updater.changes(about)
        if not changes.passages and not may_be_empty:
            db.rollback()
            return Changes(unread=changes.unread, skipped=changes.skipped), 0
        if before is None:
            switch(db, tables, place.tables)
        size = size_of(db, place.tables)
        db.commit()
        store.forget_vectors()
        return replace(changes, anew=why), size


@contextmanager
def connecting(place: TablePlace) -> Iterator[Connection]:
    with needs("psycopg", "postgres"):
        import psycopg

    try:
        with psycopg.connect(place.url, connect_timeout=10, application_name="decisor", client_encoding="UTF8") as db:
            yield db
    except psycopg.Error as error:
        why = redact(" ".join(str(error).split()), secrets_in(place.url))
        raise SetupError(f"No index can be made in {place}: {why}. Nothing of it was changed.") from error


def run(db: Connection, statements: str) -> None:
    db.execute(statements.encode())


def lock_of(db: Connection, place: TablePlace) -> None:
    """Until the end of the transaction. Raises SetupError where another builder has it."""
    key = stamp_of(place.tables.table())[:8]
    got = db.execute("SELECT pg_try_advisory_xact_lock(%s)", (int.from_bytes(key, "big", signed=True),)).fetchone()
    if got != (True,):
        raise SetupError(f"{place} is being built by another process: wait for it to end.")


def about_there(db: Connection, place: TablePlace, fresh: bool = False) -> About | None:
    """What can be updated; None where there is nothing, or it is built ``fresh``. Raises SetupError where something
    else made a table of this name."""
    tables = place.tables
    if exists(db, tables.table("about")):
        row = None if fresh else db.execute(tables.sql(ABOUT).encode()).fetchone()
        return about_in(str(row[0]), place) if row else None
    for part in PARTS:
        if exists(db, tables.table(part)):
            columns = db.execute(f"SELECT * FROM {tables.table(part)} LIMIT 0".encode()).description or ()
            raise not_ours(place, [column.name for column in columns])
    return None


def exists(db: Connection, table: str) -> bool:
    return db.execute("SELECT to_regclass(%s) IS NOT NULL", (table,)).fetchone() == (True,)


def switch(db: Connection, new: Tables, old: Tables) -> None:
    """The new tables take the names of the old ones, and whoever could read these can read those."""
    for part in PARTS:
        if not exists(db, new.table(part)):
            continue
        for (reader,) in db.execute(READERS, (old.table(part),)).fetchall():
            run(db, f"GRANT SELECT ON {new.table(part)} TO {reader}")
    for part in PARTS:
        run(db, f"DROP TABLE IF EXISTS {old.table(part)}")
        if exists(db, new.table(part)):
            run(db, f"ALTER TABLE {new.table(part)} RENAME TO {replace(old, schema='').table(part)}")


def size_of(db: Connection, tables: Tables) -> int:
    """In bytes, with all that belongs to it."""
    row = db.execute(
        "SELECT sum(pg_total_relation_size(to_regclass(name))) FROM unnest(%s::text[]) AS name",
        ([tables.table(part) for part in PARTS],),
    ).fetchone()
    return int(str(row[0])) if row and row[0] is not None else 0
