"""MySQL and MariaDB through PyMySQL: a READ ONLY transaction that is rolled back, a time limit of the server's own."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from sqlglot import Expr, exp

from decisor.errors import SetupError, ToolError
from decisor.sandbox.dialect import COMMON, NAME, Dialect, Queries, StatementForms, word_set
from decisor.sandbox.engine import Caps, ConnectionLost, Engine
from decisor.sandbox.engines import parse_url_options
from decisor.sandbox.sql_guard import SqlGuard, build_guard
from decisor.sandbox.wire import bind_parameters, build_capped_table
from decisor.types import Table, Value

if TYPE_CHECKING:
    import pymysql
    from pymysql.cursors import SSCursor

SQL_MODE = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION"
CONNECT_SECONDS = 10
CANCEL_SECONDS = 3
UNKNOWN_VARIABLE = 1193
OPTIONS = word_set("unix_socket ssl_ca ssl_cert ssl_key ssl_verify_cert ssl_verify_identity charset")
"""What may stand after ``?`` in a URL, as PyMySQL has it. ``charset`` is always utf8mb4."""
GARBLED = (UnicodeError, ValueError, IndexError, TypeError, AssertionError, struct.error)
"""What PyMySQL raises besides its own errors where bytes on the way were changed."""
OURS = "table_schema NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')"
PLACE = "table_schema, coalesce(table_schema = database(), FALSE)"


def sql_table_checksum(table: str, columns: str) -> str:
    """Return SQL that counts the rows of a catalog table for this database and sums their checksums."""
    marks = f"coalesce(sum(crc32(concat_ws('|', {columns}))), 0)"
    return (
        f"SELECT '{table}' AS part, count(*) AS number, {marks} AS marks "
        f"FROM information_schema.{table} AS t WHERE t.table_schema = database()"
    )


QUERIES = Queries(
    # Of an estimate of rows only its digits count: it is another at each look.
    fingerprint=" UNION ALL ".join(
        (
            sql_table_checksum(
                "columns",
                "t.table_name, t.ordinal_position, t.column_name, t.column_type, t.is_nullable, t.extra, "
                "t.column_comment",
            ),
            sql_table_checksum(
                "key_column_usage",
                "t.table_name, t.column_name, t.constraint_name, t.referenced_table_name, t.referenced_column_name",
            ),
            sql_table_checksum(
                "tables", "t.table_name, t.table_type, t.table_comment, length(coalesce(t.table_rows, 0))"
            ),
        )
    ),
    # MariaDB opens every table again for each column of a join with information_schema.tables.
    columns="""SELECT c.table_name, c.table_name IN (SELECT v.table_name FROM information_schema.views AS v
            WHERE v.table_schema = database()), c.column_name,
            concat(upper(c.data_type), substring(c.column_type, length(c.data_type) + 1)), c.is_nullable = 'YES',
            '', c.column_comment
            FROM information_schema.columns AS c
            WHERE c.table_schema = database() AND c.extra NOT LIKE '%INVISIBLE%'
            ORDER BY 2, c.table_name, c.ordinal_position""",
    keys="""SELECT table_name, column_name, coalesce(referenced_table_name, ''),
            coalesce(referenced_column_name, '') FROM information_schema.key_column_usage
            WHERE table_schema = database() AND (constraint_name = 'PRIMARY' OR referenced_table_name IS NOT NULL)""",
    tables="""SELECT table_name, CASE WHEN table_type LIKE '%VIEW' THEN '' ELSE table_comment END, table_rows
            FROM information_schema.tables WHERE table_schema = database()""",
    # The text of a view is empty where the account may not see it. A table of the engine MERGE reads others, which the
    # catalog does not name; one that reads another server or a file is no query's to read.
    definitions=f"""SELECT table_name, NULLIF(view_definition, ''), 'view', {PLACE}
        FROM information_schema.views WHERE {OURS}
        UNION ALL SELECT table_name, CASE WHEN upper(engine) = 'MRG_MYISAM' OR table_type = 'SEQUENCE' THEN NULL
        WHEN upper(engine) IN ('FEDERATED', 'CONNECT', 'SPIDER', 'S3', 'OQGRAPH', 'CASSANDRA') THEN engine ELSE '' END,
        CASE WHEN upper(engine) IN ('FEDERATED', 'CONNECT', 'SPIDER', 'S3', 'OQGRAPH', 'CASSANDRA') THEN 'view'
        ELSE 'table' END, {PLACE} FROM information_schema.tables WHERE {OURS} AND table_type NOT LIKE '%VIEW'""",
)


def rewrite_for_mysql(tree: Expr) -> Expr:
    """Rewrite REGEXP so that both servers know it, and drop the table DUAL. sqlglot writes REGEXP_LIKE, which MariaDB
    lacks.
    """
    for node in list(tree.find_all(exp.RegexpLike)):
        if not node.args.get("flag"):
            place = exp.Anonymous(this="REGEXP_INSTR", expressions=[node.this, node.expression])
            node.replace(exp.paren(exp.GT(this=place, expression=exp.Literal.number(0)), copy=False))
    for table_node in list(tree.find_all(exp.Table)):
        if table_node.name.lower() == "dual" and not table_node.db and isinstance(table_node.parent, exp.From):
            table_node.parent.pop()
    return tree


def keep_median(tree: Expr) -> Expr:
    """Keep MariaDB's MEDIAN(x) OVER (...), of which sqlglot would write a PERCENTILE_CONT that no server has."""
    for node in list(tree.find_all(exp.Median)):
        node.replace(exp.Anonymous(this="MEDIAN", expressions=[node.this]))
    return tree


def fold_dotted_i(tree: Expr) -> Expr:
    """Replace the letter İ in names by i. A server that keeps names in lower case reads it so, unlike Python."""
    keep_median(tree)
    for name in tree.find_all(exp.Identifier):
        name.set("this", name.name.replace("İ", "i"))
    return tree


DIALECT = Dialect(
    name="mysql",
    queries=QUERIES,
    functions=COMMON
    | word_set(
        """adddate addtime any_value bin bit_and bit_count bit_or bit_xor ceiling coercibility concat_ws conv
    convert_tz crc32 curdate curtime date_add date_format date_sub datediff day dayname dayofmonth dayofweek
    dayofyear elt export_set field find_in_set format_bytes format from_base64 from_days from_unixtime
    get_format group_concat grouping hour inet_aton inet_ntoa interval isnull json_arrayagg json_contains
    json_contains_path json_depth json_exists json_extract json_keys json_length json_merge_patch
    json_merge_preserve json_objectagg json_overlaps json_pretty json_query json_search json_unquote json_value
    json_detailed json_compact last_day left lcase localtime locate lpad make_set makedate maketime md5 median
    microsecond mid minute month monthname nvl nvl2 oct period_add period_diff position quarter regexp_instr
    regexp_replace regexp_substr right rpad sec_to_time second sha1 sha2 soundex space std stddev_pop
    stddev_samp str_to_date strcmp subdate substring_index subtime sysdate time time_format time_to_sec timediff
    timestampadd timestampdiff to_base64 to_days to_seconds ucase unix_timestamp utc_date utc_time utc_timestamp
    var_pop var_samp variance week weekday weekofyear weight_string year yearweek natural_sort_key
    percentile_cont percentile_disc"""
    ),
    plan="EXPLAIN FORMAT=TRADITIONAL",
    forms=StatementForms(
        explain=r"(EXPLAIN|DESCRIBE|DESC)(\s+FORMAT\s*=\s*(JSON|TRADITIONAL|TREE))?(?=\s)",
        about={
            rf"(DESCRIBE|DESC|EXPLAIN)\s+{NAME}": "DESCRIBE {name}",
            rf"SHOW\s+(FULL\s+)?(COLUMNS|FIELDS)\s+(FROM|IN)\s+{NAME}": "SHOW COLUMNS FROM {name}",
            rf"SHOW\s+(INDEX|INDEXES|KEYS)\s+(FROM|IN)\s+{NAME}": "SHOW INDEX FROM {name}",
            rf"SHOW\s+CREATE\s+TABLE\s+{NAME}": "SHOW CREATE TABLE {name}",
        },
        whole={r"SHOW\s+(FULL\s+)?TABLES": "SHOW TABLES"},
        linked="SHOW CREATE TABLE ",
    ),
    closed=frozenset({"mysql", "performance_schema", "sys"}),
    odd_text=(r"/\*\s*M?!", "comments that MySQL executes (/*! ... */) are not allowed."),
    checks_views=True,
    quote="`",
    names_by_text=True,
    prepare=keep_median,
    rewrite=rewrite_for_mysql,
    token="CONCAT('masked_', LEFT(SHA2(CONCAT('{key}', CAST({value} AS CHAR)), 256), 16))",
    fence="LIMIT 18446744073709551615",
    plain_forms=("DESCRIBE `", "SHOW COLUMNS FROM ", "SHOW TABLES"),
    misspelt=(("table", "Table"), ("column", "Unknown column")),
)


@dataclass(eq=False)
class Mysql:
    """A MySQL or MariaDB database with one connection, opened anew after it broke off."""

    url: str
    guard: SqlGuard
    db: pymysql.Connection
    role: str = ""
    """Role that every statement runs in; '' for that of the account."""

    def check(self, statement: str) -> str:
        return self.guard.check(statement)

    def run(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        import pymysql
        from pymysql.cursors import SSCursor

        if not self.db.open:
            try:
                self.db = open_mysql(self.url, role=self.role)
            except pymysql.Error as error:
                raise ToolError(f"MySQL/MariaDB cannot be reached: {error.args[-1]}", outage=True) from error
        clean = False
        cursor = SSCursor(self.db)
        try:
            self._begin(caps)
            cursor.execute(bind_parameters(statement, parameters, "%({})s"), dict(parameters) or None)
            result = build_capped_table([column[0] for column in cursor.description or ()], cursor, caps)
            # The server stops one row after the cap, so few rows are under way then; cut for its bytes, many may be.
            clean = not result.truncated or len(result.rows) == caps.rows
            return result
        except (pymysql.Error, *GARBLED) as error:
            code = error.args[0] if error.args else 0
            clean = isinstance(error, pymysql.Error) and is_server_error(code)
            if clean:
                raise ToolError(str(error.args[-1])) from error
            why = str(error.args[-1]) if error.args else ""
            raise ConnectionLost(f"The connection broke off: {why or type(error).__name__}") from error
        finally:
            self._end(cursor, clean)

    def close(self) -> None:
        import pymysql

        with contextlib.suppress(pymysql.Error):
            self.db.close()

    def cancel(self) -> None:
        other = open_mysql(self.url, CANCEL_SECONDS, self.role)
        with other, other.cursor() as cursor:
            # KILL takes no parameter; int() is the guard.
            cursor.execute(f"KILL QUERY {int(self.db.thread_id())}")

    def _begin(self, caps: Caps) -> None:
        """Set the limits and start a read-only transaction.

        The server stops one row after the cap, so that the remaining rows are soon drained.
        """
        import pymysql

        with self.db.cursor() as cursor:
            try:
                # MariaDB's name, in seconds; 0 would mean no limit.
                cursor.execute(f"SET SESSION max_statement_time = {max(0.01, caps.seconds)}")
            except pymysql.Error as error:  # MySQL's own name and unit
                if error.args[0] != UNKNOWN_VARIABLE:
                    raise
                cursor.execute(f"SET SESSION max_execution_time = {max(1, int(caps.seconds * 1000))}")
            # A wait for a lock ends before the query's own time, so that the message tells of the lock.
            lock = max(1, int(caps.seconds * 0.8))
            cursor.execute(
                f"SET SESSION sql_select_limit = {caps.rows + 1}, lock_wait_timeout = {lock}, "
                f"innodb_lock_wait_timeout = {lock}"
            )
            cursor.execute("START TRANSACTION READ ONLY")

    def _end(self, cursor: SSCursor, clean: bool) -> None:
        """Roll back, or drop a connection with many bytes under way instead of draining it."""
        import pymysql

        if not clean:
            self.db._force_close()
            cursor.connection = cursor._result = None
            return
        with contextlib.suppress(pymysql.Error):
            cursor.close()
            self.db.rollback()


def is_server_error(code: object) -> bool:
    """Return whether a complaint is the server's own, so that the connection is whole.

    Codes of the client are from 2000 to 2999.

    >>> is_server_error(1146), is_server_error(3636), is_server_error(2013)
    (True, True, False)
    """
    return isinstance(code, int) and code >= 1000 and not 2000 <= code < 3000


def open_mysql(url: str, seconds: int = CONNECT_SECONDS, role: str = "") -> pymysql.Connection:
    """Open a connection to MySQL or MariaDB.

    Raises SetupError if the URL has an unknown option, or the role is another one's.
    """
    import pymysql

    parts, settings = urlsplit(url), parse_url_options(url, OPTIONS)
    # Accepted since other tools write it, and always utf8mb4 here.
    settings.pop("charset", None)
    place = {} if "unix_socket" in settings else {"host": parts.hostname or "127.0.0.1"}
    verify = {
        name: parse_truth_option(name, settings.pop(name)) for name in list(settings) if name.startswith("ssl_verify_")
    }
    database = unquote(parts.path.lstrip("/"))
    try:
        db = pymysql.connect(
            **place,
            **settings,
            **verify,
            port=parts.port or 3306,
            user=unquote(parts.username or "root"),
            password=unquote(parts.password or ""),
            # The account itself may see no database: it is chosen in the role.
            database=None if role else database or None,
            charset="utf8mb4",
            connect_timeout=seconds,
            read_timeout=seconds,
            local_infile=False,
            sql_mode=SQL_MODE,
            autocommit=True,
        )
    except OSError as error:  # a file of certificates
        raise SetupError(
            f"MySQL/MariaDB cannot be reached: {error.strerror or error} {error.filename or ''}"
        ) from error
    if role:
        with db.cursor() as cursor:
            cursor.execute(f"SET ROLE `{role.replace('`', '``')}`")
            cursor.execute("SELECT CURRENT_ROLE()")
            found = cursor.fetchone()
        # A role `none` or `all` would be none and all of the account's; MySQL adds the host.
        if found not in ((role,), (f"`{role}`@`%`",)):
            db.close()
            raise SetupError(f"MySQL/MariaDB cannot be read in the role {role!r:.80}. See docs/access.md, Roles.")
        db.select_db(database)
    # PyMySQL's read_timeout, which was for opening, would cut off any longer query.
    db._read_timeout = None  # a query has the limit of its caps, and the parent's clock
    return db


def parse_truth_option(name: str, text: str) -> bool:
    """Parse an option of the URL that is true or false. Raises SetupError if it is neither.

    >>> parse_truth_option("ssl_verify_cert", "true")
    True
    """
    if text.lower() not in ("true", "1", "false", "0"):
        raise SetupError(f"The option {name} of the URL is true or false, not {text}.")
    return text.lower() in ("true", "1")


def connect_mysql(url: str, caps: Caps) -> Mysql:
    """Open a MySQL or MariaDB database. Raises SetupError if the server does not answer or refuses the account."""
    import pymysql
    import sqlglot.dialects.mysql  # noqa: F401  warm: the first query should not pay for it

    try:
        db = open_mysql(url, role=caps.role)

        def rows(query: str) -> list[tuple[object, ...]]:
            with db.cursor() as cursor:
                cursor.execute(query)
                return list(cursor.fetchall())

        # Only such a server folds İ in a table's name to i: unfolded, a denied table could be named past the list.
        lower = rows("SELECT @@lower_case_table_names")[0][0]
        dialect = replace(DIALECT, prepare=fold_dotted_i) if lower else DIALECT
        guard = build_guard(dialect, caps, rows)
    except pymysql.Error as error:
        raise SetupError(f"MySQL/MariaDB cannot be reached: {error.args[-1]}") from error
    return Mysql(url, guard, db, caps.role)


ENGINE = Engine(
    name="mysql",
    title="MySQL/MariaDB",
    schemes=("mysql", "mariadb"),
    form="sql",
    connect=connect_mysql,
    server=True,
    probe="SELECT 1",
    dialect=DIALECT,
    has_roles=True,
)
