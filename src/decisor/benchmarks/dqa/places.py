"""Where the world of a question lies on a server: a database or a labelled graph of its own, kept from run to run.

Before a database is asked, all of it is read and compared with the question's dump: one that holds another world, or
half of one, is refused.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast
from urllib.parse import urlencode, urlsplit, urlunsplit

from decisor.benchmarks.dqa.opening import open_database
from decisor.benchmarks.dqa.spark import drop_spark
from decisor.errors import SetupError, ToolError
from decisor.secrets import without_password
from decisor.types import BulkSource, Tool

if TYPE_CHECKING:
    from decisor.benchmarks.dqa.worlds import World
    from decisor.decision_models.building import BuildingData
    from decisor.decision_models.locating import LocatingData

PREFIX = "decisor_dqa_"
CLOSE = 1e-4
"""Numbers that differ by less are the same: the release's own tables keep them with six digits."""
WAITS, WAIT_SECONDS = 60, 0.5


def own_place(url: str, key: str) -> str:
    """The URL of a world's own place on a server; '' where the URL names one database, or a file.

    >>> own_place("mysql://root@localhost:3306", "ab12"), own_place("sqlite:///trade.db", "ab12")
    ('mysql://root@localhost:3306/decisor_dqa_ab12', '')
    >>> own_place("bolt://neo4j:secret@localhost", "ab12"), own_place("bolt://localhost/trade", "ab12")
    ('bolt://neo4j:secret@localhost?label=decisor_dqa_ab12', '')
    """
    parts = urlsplit(url)
    scheme = parts.scheme.partition("+")[0]
    if parts.path.strip("/").partition(";")[0] or "label=" in parts.query:
        return ""
    if scheme in ("bolt", "neo4j"):
        return urlunsplit(parts._replace(query=urlencode({"label": PREFIX + key})))
    if scheme in ("mysql", "mariadb", "postgresql", "postgres"):
        return urlunsplit(parts._replace(path=f"/{PREFIX}{key}"))
    if scheme in ("sc", "spark"):
        return urlunsplit(parts._replace(path=f"/{PREFIX}{key}{parts.path.lstrip('/')}"))
    return ""


async def settle(place: str, world: World, fresh: bool) -> Tool:
    """The tool for a world in its own place: what is there is used, unless ``fresh``; else it is loaded.

    Raises:
        SetupError: the place holds something else, or the server cannot be used.
    """
    from decisor.benchmarks.dqa.load import load_world

    if fresh:
        await asyncio.to_thread(drop, place)
    try:
        await load_world(world.data, place)
    except SetupError as error:  # it is there; or the account may only read
        return await as_it_is(place, world, error)
    return await open_database(place)


async def as_it_is(place: str, world: World, error: SetupError) -> Tool:
    """The tool, where the place holds the world. Raises SetupError: ``error`` where nothing is there."""
    for _ in range(WAITS):
        if tool := await holding(place, world):
            return tool
        if "already exists" not in str(error):
            raise error
        await asyncio.sleep(WAIT_SECONDS)  # another process may be loading it
    raise SetupError(f"{without_password(place)} holds half of a world: --fresh loads it anew.") from error


async def holding(place: str, world: World) -> Tool | None:
    """The tool, None where nothing is there. Raises SetupError where it is another world."""
    try:
        tool = await open_database(place)
    except SetupError:
        return None
    data = await content(cast(BulkSource, tool), world)
    if data is not None and same(data, world.data):
        return tool
    await tool.close()
    if data is None or not any(tables(data)):
        return None
    raise SetupError(f"{without_password(place)} holds another world than its name says: --fresh loads it anew.")


async def content(source: BulkSource, world: World) -> LocatingData | BuildingData | None:
    """The world in a database, None where it has no such tables."""
    from decisor.decision_models import building, locating

    read = locating.read if isinstance(world.data, locating.LocatingData) else building.read
    try:
        return await read(source)
    except (SetupError, ToolError):
        return None


async def check(source: BulkSource, world: World, url: str) -> None:
    """Raises SetupError, in one line, where a database that is to be asked holds another world."""
    data = await content(source, world)
    if data is None or not same(data, world.data):
        kind = "another world than" if data is not None and any(tables(data)) else "not the world that"
        raise SetupError(
            f"{without_password(url)} holds {kind} the question is about ({world.dump.name}). Name a server without a "
            "database, such as mysql://HOST or bolt://HOST, and each world is loaded into a place of its own."
        )


def same(one: LocatingData | BuildingData, other: LocatingData | BuildingData) -> bool:
    """Whether they have the same rows, in any order, and numbers to four digits."""
    return all(
        len(left) == len(right) and all(map(alike, sorted(left, key=words), sorted(right, key=words)))
        for left, right in zip(tables(one), tables(other), strict=True)
    )


def tables(data: LocatingData | BuildingData) -> list[Sequence[tuple[object, ...]]]:
    from decisor.decision_models.locating import LocatingData

    if isinstance(data, LocatingData):
        return [data.countries, data.nodes, data.flows, data.powers]
    return [data.goods, data.buildings, data.supply, data.demand]


def words(row: tuple[object, ...]) -> str:
    """What names a row: all but its measures."""
    return repr([cell for cell in row if not isinstance(cell, float)])


def alike(row: tuple[object, ...], other: tuple[object, ...]) -> bool:
    """
    >>> alike(("a", 1.0), ("a", 1.00001)), alike(("a", 1.0), ("a", 2.0)), alike(("a",), ("b",))
    (True, False, False)
    """
    return all(
        math.isclose(cell, there, rel_tol=CLOSE, abs_tol=CLOSE)
        if isinstance(cell, float) and isinstance(there, float)
        else cell == there
        for cell, there in zip(row, other, strict=True)
    )


def drop(place: str) -> None:
    """Removes a world's own place, where it is there. Raises SetupError where the server does not do it."""
    parts = urlsplit(place)
    name = parts.path.strip("/")
    if not name:
        from decisor.tools.databases.graph_load import drop_labelled

        drop_labelled(place)
    elif parts.scheme in ("sc", "spark"):
        drop_spark(place)
    elif parts.scheme.startswith("postgres"):
        drop_postgres(place, name)
    else:
        drop_mysql(place, name)


def drop_postgres(place: str, name: str) -> None:
    import psycopg

    try:
        server = urlunsplit(urlsplit(place)._replace(path="/postgres"))
        with psycopg.connect(server, autocommit=True) as admin:
            quoted = psycopg.sql.Identifier(name)
            admin.execute(psycopg.sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(quoted))
    except psycopg.Error as error:
        raise SetupError(f"Cannot drop {without_password(place)}: {' '.join(str(error).split())}") from error


def drop_mysql(place: str, name: str) -> None:
    import pymysql

    from decisor.tools.databases.sandbox.engines.mysql import open_connection

    try:
        with open_connection(urlunsplit(urlsplit(place)._replace(path=""))) as admin, admin.cursor() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS `{name.replace('`', '``')}`")
    except pymysql.Error as error:
        raise SetupError(f"Cannot drop {without_password(place)}: {error.args[-1]}") from error
