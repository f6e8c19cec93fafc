"""Amazon Redshift through its own dialect of SQLAlchemy: a time limit of the session's."""

from __future__ import annotations

from decisor.tools.databases.sandbox.dialect import Dialect
from decisor.tools.databases.sandbox.inspecting import INSPECTED
from decisor.tools.databases.sandbox.names import COMMON, words
from decisor.tools.databases.sandbox.warehouse import Warehouse
from decisor.tools.databases.sandbox.warehouse_engine import warehouse_engine

DIALECT = Dialect(
    name="redshift",
    queries=INSPECTED,
    plan="EXPLAIN",
    schemas=True,
    functions=COMMON
    | words(
        """add_months ascii bool_and bool_or btrim cbrt charindex chr convert_timezone date_cmp date_part date_trunc
    dateadd datediff decode dexp dlog1 dlog10 getdate greatest interval_cmp is_valid_json json_array_length
    json_extract_array_element_text json_extract_path_text last_day least left len listagg lpad median
    months_between next_day nvl nvl2 percentile_cont ratio_to_report regexp_instr regexp_replace regexp_substr
    replicate reverse right rpad split_part stddev_pop stddev_samp strpos strtol sysdate timezone to_hex
    translate trunc var_pop var_samp width_bucket"""
    ),
    closed=words("pg_catalog pg_internal pg_toast catalog_history"),
    reserved=("pg_", "stl_", "stv_", "svl_", "svv_", "svcs_", "sys_"),
    function_schemas=words("-"),
    checks_views=True,
    folds="lower",
    bare=r"[a-z_][a-z0-9_]*",
    other_catalogs=True,
    misspelt=(("table", "relation"), ("column", "column")),
)
ENGINE = warehouse_engine(
    "redshift",
    "Amazon Redshift",
    ("redshift",),
    DIALECT,
    Warehouse(
        package="sqlalchemy-redshift redshift-connector",
        opens=("SET statement_timeout TO {ms}",),
        begins=("SET TRANSACTION READ ONLY",),
        reads_only="SET TRANSACTION READ ONLY",
        ends="statement_timeout",
        number="SELECT pg_backend_pid()",
        kill="SELECT pg_cancel_backend({number})",
        role=(
            "CREATE USER decisor PASSWORD '...'; GRANT USAGE ON SCHEMA public TO decisor;",
            "GRANT SELECT ON ALL TABLES IN SCHEMA public TO decisor;",
        ),
    ),
)
