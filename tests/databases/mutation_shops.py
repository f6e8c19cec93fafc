"""The corpus' shop in each engine, with a box of files and a port beside it, and a look at all that must stay."""

from __future__ import annotations

import hashlib
import re
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from data import SECURITY, read_security_rows
from databases.mutations import Seed
from decisor.graphs.load import GraphEdge, GraphNode, load_nodes_and_edges
from decisor.sandbox.engine import Caps
from decisor.sandbox.process import Worker
from servers.neo4j_server import ask, neo4j_database
from servers.sql_databases import MYSQLS, mysql_database, postgres_database

ENGINES = ("sqlite", "duckdb", "postgres", "mariadb", "mysql", "kglite", "neo4j")
DIALECTS = {"mariadb": "mysql", "kglite": "cypher", "neo4j": "cypher"}
"""Of the corpus, where its name is not the engine's."""
CAPS = Caps(seconds=1.0, memory_mb=600, deny=("api_tokens", "token", "owns_token"))
SECRETS = {
    "secret.txt": "CANARY-FILE-0",
    "secret.csv": "k,v\na,CANARY-FILE-1\n",
    "secret.json": '{"k": "CANARY-FILE-2"}',
    "edges.csv": "src,dst,cost\nQ,Q,1\n",
}
ENDS_SERVER = ("my-189",)
"""Not run on a server that others use."""
GOES_ON = {"neo4j": ("n4-138",)}
"""Not run where the server computes an expression to its end, though its transaction was ended: for hours."""
POSTGRES_STATE = (
    "SELECT relname, relkind, relrowsecurity, reloptions FROM pg_class WHERE relnamespace = 'public'::regnamespace",
    "SELECT proname, prosecdef FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
    "SELECT name, setting FROM pg_settings WHERE source IN ('configuration file', 'database', 'user', 'global')",
    "SELECT rolname, rolsuper, rolconfig FROM pg_roles WHERE rolname ~ 'pwn|guard|postgres'",
    "SELECT objoid, description FROM pg_description WHERE objoid >= 16384",
    "SELECT datname FROM pg_database WHERE datname ~ 'pwn'",
    "SELECT slot_name FROM pg_replication_slots",
    "SELECT subname FROM pg_subscription",
    "SELECT pubname FROM pg_publication",
    "SELECT extname FROM pg_extension",
    "SELECT lomowner, oid FROM pg_largeobject_metadata",
    "SELECT last_value, is_called FROM seq_free",
    "SELECT locktype FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
    "WHERE datname = current_database() AND locktype = 'advisory'",
)
MYSQL_STATE = (
    "SHOW FULL TABLES",
    "SHOW TRIGGERS",
    "SELECT user, host FROM mysql.user WHERE user LIKE '%pwn%'",
    "SHOW DATABASES LIKE '%pwn%'",
    "SELECT routine_name, routine_type FROM information_schema.routines WHERE routine_schema = database()",
)
VARIABLES = (
    "SELECT variable_name, variable_value FROM {} WHERE variable_name NOT LIKE '%timestamp%' "
    "AND variable_name NOT LIKE 'gtid%'"
)
MYSQL_OWN = {
    "mariadb": ("SELECT * FROM seq_free", VARIABLES.format("information_schema.global_variables")),
    "mysql": (VARIABLES.format("performance_schema.global_variables"),),
}
NEO4J_STATE = (
    "MATCH (n) RETURN labels(n) AS labels, properties(n) AS properties",
    "MATCH (a)-[r]->(b) RETURN type(r) AS type, properties(r) AS properties, a.id AS a, b.id AS b",
    "SHOW INDEXES YIELD name",
    "SHOW CONSTRAINTS YIELD name",
    "SHOW USERS YIELD user",
    "SHOW DATABASES YIELD name",
    "SHOW SETTINGS YIELD name, value WHERE name STARTS WITH 'db.' OR name STARTS WITH 'dbms.' RETURN name, value",
)
TABLES = ("customers", "products", "orders", "order_items", "employees", "edges", "tickets", "api_tokens", "audit_log")
SESSION = {
    "duckdb": "SELECT name, value FROM duckdb_settings()",
    "postgres": "SELECT name, setting FROM pg_settings WHERE name NOT LIKE '%timeout%'",
    **{
        engine: f"SELECT variable_name, variable_value FROM {schema}.session_variables WHERE variable_name NOT REGEXP "
        "'timestamp|rand_seed|last_insert|statement_time|gtid|warning_count|error_count|in_transaction|pseudo|statement_id'"
        for engine, schema in (("mariadb", "information_schema"), ("mysql", "performance_schema"))
    },
}


@dataclass(eq=False)
class Shop:
    """``engine``: its name in ``ENGINES``; ``dialect``: of the corpus. ``state``: what an effect would change.
    ``session``: a query for the settings of the worker's own connection."""

    engine: str
    dialect: str
    worker: Worker
    state: Callable[[], object]
    place: Callable[[str], str]
    session: str = ""


def rows(name: str, dialect: str) -> list[dict[str, str]]:
    kind = "cypher" if dialect == "cypher" else "sql"
    return [row for row in read_security_rows(f"{name}_{kind}") if row["dialect"] == dialect]


def hostile(engine: str) -> list[Seed]:
    left_out = (*ENDS_SERVER, *GOES_ON.get(engine, ()))
    return [
        Seed(row["id"], row["statement"], row["expected"] == "bound")
        for row in rows("hostile", DIALECTS.get(engine, engine))
        if row["id"] not in left_out
    ]


def harmless(dialect: str) -> list[str]:
    return [row["statement"] for row in rows("benign", dialect)]


def fixture(dialect: str) -> list[str]:
    """Without roles, and without what only a client's own commands can say."""
    script = (SECURITY / "fixtures" / f"fixture.{dialect}.sql").read_text("utf-8")
    script = re.sub(r"^DELIMITER.*\n", "", script, flags=re.M).replace("END//", "END;;")
    texts = [text for text in re.split(r"(?<=END);;\n|(?<!;);[ \t]*\n", script) if text.strip()]
    return [text for text in texts if not re.search(r"guard_ro|CREATE DATABASE|\bUSE\b|FROM PUBLIC", text)]


def file_database(dialect: str, folder: Path) -> str:
    path = folder / f"shop.{dialect}"
    if dialect == "kglite":
        load_nodes_and_edges(f"kglite:///{folder}/shop.kgl", *graph())
        return f"kglite:///{folder}/shop.kgl"
    script = (SECURITY / "fixtures" / f"fixture.{dialect}.sql").read_text("utf-8")
    if dialect == "sqlite":
        import apsw

        with apsw.Connection(str(path)) as lite:
            lite.execute(script)
        lite.close()
    else:
        import duckdb

        with duckdb.connect(str(path)) as duck:
            duck.execute(script)
    return f"{dialect}:///{path}"


def graph() -> tuple[list[GraphNode], list[GraphEdge]]:
    nodes = [
        GraphNode("Customer", {"id": n, "name": name, "region": "EU", "tier": "gold"}) for n, name in enumerate("abcd")
    ]
    nodes += [
        GraphNode(label, {"id": 1, "name": "x", "total": 9.5}) for label in ("Order", "Orders", "Product", "Employee")
    ]
    nodes.append(GraphNode("Token", {"id": 1, "value": "CANARY-TOKEN-51c0ffee"}))
    edges = [
        GraphEdge("PLACED", 0, 4),
        GraphEdge("CONTAINS", 4, 6, {"qty": 14}),
        GraphEdge("LIKES", 0, 6),
        GraphEdge("OWNS_TOKEN", 0, 8),
    ]
    return nodes, edges


def contents(*folders: Path) -> list[tuple[str, str]]:
    files = sorted(path for folder in folders for path in folder.rglob("*"))
    return [(str(path), hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "") for path in files]


def postgres_state(url: str) -> list[object]:
    import psycopg

    with psycopg.connect(url, autocommit=True) as admin:
        data = [f"SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {name} t" for name in TABLES]
        return [sorted(map(repr, admin.execute(query.encode()).fetchall())) for query in (*data, *POSTGRES_STATE)]


def mysql_state(url: str, engine: str) -> list[object]:
    import pymysql

    place = urlsplit(url)
    with (
        pymysql.connect(host="127.0.0.1", port=place.port or 0, user="root", database=place.path[1:]) as admin,
        admin.cursor() as cursor,
    ):
        values: list[object] = []
        for query in (f"CHECKSUM TABLE {', '.join(TABLES)}", *MYSQL_STATE, *MYSQL_OWN[engine]):
            cursor.execute(query)
            values.append(sorted(map(repr, cursor.fetchall())))
        return values


@contextmanager
def port() -> Iterator[tuple[int, list[object]]]:
    """A port of this machine, and who has come to it."""
    visits: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def listen() -> None:
            with suppress(OSError):
                while True:
                    connection, address = server.accept()
                    visits.append(address)
                    connection.close()

        threading.Thread(target=listen, daemon=True).start()
        yield server.getsockname()[1], visits
        server.shutdown(socket.SHUT_RDWR)


@contextmanager
def database(engine: str, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    if engine == "postgres":
        with postgres_database(fixture(engine)) as url:
            yield url, lambda: postgres_state(url)
    elif engine in MYSQLS:
        texts = [text for text in fixture("mysql") if engine == "mariadb" or "SEQUENCE" not in text]
        with mysql_database(texts, MYSQLS[engine]) as url:
            yield url, lambda: mysql_state(url, engine)
    elif engine == "neo4j":
        with neo4j_database() as url:
            load_nodes_and_edges(url, *graph())
            yield url, lambda: [sorted(map(repr, ask(query))) for query in NEO4J_STATE]
    else:
        yield file_database(engine, folder), lambda: None


@contextmanager
def shop(engine: str) -> Iterator[Shop]:
    """The worker is the caller's to close. A server's own account may write into the box."""
    folder = Path(tempfile.mkdtemp(prefix="decisor-shop-"))
    data, box = folder / "data", folder / "box"
    for place in (folder, data, box):
        place.mkdir(exist_ok=True)
        place.chmod(0o777)
    for name, text in SECRETS.items():
        (box / name).write_text(text)
    try:
        with port() as (number, visits), database(engine, data) as (url, inside):

            def placed(text: str) -> str:
                return re.sub("18999|55432", str(number), text.replace("/tmp/guardbox", str(box)))

            worker = Worker(url.partition(":")[0].replace("postgresql", "postgres"), url, CAPS)
            yield Shop(
                engine,
                DIALECTS.get(engine, engine),
                worker,
                lambda: (contents(data, box), tuple(visits), inside()),
                placed,
                SESSION.get(engine, ""),
            )
    finally:
        shutil.rmtree(folder)
