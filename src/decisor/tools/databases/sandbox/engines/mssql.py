"""Microsoft SQL Server (and Azure SQL, Fabric) through SQLAlchemy's own dialect, with pyodbc or pymssql."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decisor.tools.databases.sandbox.dialect import Dialect
from decisor.tools.databases.sandbox.information_schema import information_schema
from decisor.tools.databases.sandbox.names import COMMON, words
from decisor.tools.databases.sandbox.warehouse import ASKED_ANOTHER_WAY, Warehouse
from decisor.tools.databases.sandbox.warehouse_engine import warehouse_engine

if TYPE_CHECKING:
    import sqlalchemy


def showplan(db: sqlalchemy.Connection, statement: str) -> list[tuple[object, ...]]:
    """The plan of a statement as XML: what is said in between is planned, and not run."""
    db.exec_driver_sql("SET SHOWPLAN_XML ON")
    try:
        return [tuple(row) for row in db.exec_driver_sql(statement)]
    finally:
        db.exec_driver_sql("SET SHOWPLAN_XML OFF")


DIALECT = Dialect(
    name="tsql",
    queries=information_schema("schema_name()", keys=True),
    plan=ASKED_ANOTHER_WAY,
    schemas=True,
    functions=COMMON
    | words(
        """ascii atn2 ceiling charindex checksum choose count_big dateadd datediff datefromparts datename datepart day
    datetimefromparts difference eomonth floor getdate getutcdate grouping grouping_id iif isdate isjson isnull
    isnumeric json_value left len month patindex replicate reverse right soundex space stdev stdevp str
    string_agg string_split stuff sysdatetime translate try_cast try_convert try_parse unicode var varp year"""
    ),
    closed=words("sys master msdb tempdb model guest"),
    reserved=("sys", "dm_"),
    function_schemas=words("-"),
    checks_views=True,
    other_catalogs=True,
    misspelt=(("table", "Invalid object name"), ("column", "Invalid column name")),
)
ENGINE = warehouse_engine(
    "mssql",
    "SQL Server",
    ("mssql",),
    DIALECT,
    Warehouse(
        package="pyodbc",
        opens=("SET LOCK_TIMEOUT {ms}",),
        number="SELECT @@SPID",
        plan=showplan,
        cancels=True,
        role=(
            "CREATE LOGIN decisor WITH PASSWORD = '...'; USE shop; CREATE USER decisor FOR LOGIN decisor;",
            "ALTER ROLE db_datareader ADD MEMBER decisor; DENY EXECUTE TO decisor; GRANT SHOWPLAN TO decisor;",
        ),
    ),
)
