"""Snowflake through its own dialect of SQLAlchemy: a time limit of the session's."""

from __future__ import annotations

from decisor.tools.databases.sandbox.dialect import Dialect
from decisor.tools.databases.sandbox.information_schema import information_schema
from decisor.tools.databases.sandbox.names import COMMON, words
from decisor.tools.databases.sandbox.warehouse import Warehouse
from decisor.tools.databases.sandbox.warehouse_engine import warehouse_engine

DIALECT = Dialect(
    name="snowflake",
    queries=information_schema("current_schema()", comments=True),
    plan="EXPLAIN USING JSON",
    schemas=True,
    functions=COMMON
    | words(
        """approx_top_k array_agg array_size boolor_agg booland_agg charindex div0 div0null endswith equal_null
    haversine iff insert is_null_value jarowinkler_similarity kurtosis listagg monthname dayname months_between
    next_day nvl2 object_agg object_construct object_keys parse_json previous_day ratio_to_report regexp_substr_all
    regr_slope rtrimmed_length skew strtok strtok_to_array timeadd timediff to_array to_boolean to_decimal
    to_double to_object to_time to_variant try_to_boolean try_to_date try_to_number try_to_timestamp typeof
    uniform width_bucket zeroifnull zipf"""
    ),
    closed=words("snowflake account_usage organization_usage"),
    function_schemas=words("-"),
    checks_views=True,
    folds="upper",
    bare=r"[A-Z_][A-Z0-9_$]*",
    other_catalogs=True,
    misspelt=(("table", "Object"), ("column", "invalid identifier")),
)
ENGINE = warehouse_engine(
    "snowflake",
    "Snowflake",
    ("snowflake",),
    DIALECT,
    Warehouse(
        package="snowflake-sqlalchemy",
        opens=("ALTER SESSION SET STATEMENT_TIMEOUT_IN_SECONDS = {seconds}",),
        ends="STATEMENT_TIMEOUT_IN_SECONDS",
        number="SELECT CURRENT_SESSION()",
        kill="SELECT SYSTEM$CANCEL_ALL_QUERIES({number})",
        role=(
            "CREATE ROLE decisor; GRANT USAGE ON WAREHOUSE compute TO ROLE decisor;",
            "GRANT USAGE ON DATABASE shop TO ROLE decisor; GRANT USAGE ON SCHEMA shop.public TO ROLE decisor;",
            "GRANT SELECT ON ALL TABLES IN SCHEMA shop.public TO ROLE decisor;",
            "GRANT SELECT ON ALL VIEWS IN SCHEMA shop.public TO ROLE decisor;",
            "CREATE USER decisor_reader PASSWORD = '...' DEFAULT_ROLE = decisor; "
            "GRANT ROLE decisor TO USER decisor_reader;",
        ),
    ),
)
