"""Databricks (Unity Catalog) through its own dialect of SQLAlchemy: a time limit of the session's."""

from __future__ import annotations

from decisor.tools.databases.sandbox.dialect import INFORMATION_SCHEMA, Dialect
from decisor.tools.databases.sandbox.engines.alchemy import FILES
from decisor.tools.databases.sandbox.information_schema import information_schema
from decisor.tools.databases.sandbox.names import COMMON, words
from decisor.tools.databases.sandbox.warehouse import Warehouse
from decisor.tools.databases.sandbox.warehouse_engine import warehouse_engine

FUNCTIONS = COMMON | words(
    """add_months aggregate any_value approx_percentile array array_contains array_distinct array_join array_max
    array_min array_position array_size array_sort bool_and bool_or bround cardinality ceil collect_list
    collect_set conv corr count_if covar_pop covar_samp crc32 date_add date_diff date_format date_from_unix_date
    date_part date_sub date_trunc datediff dayofmonth dayofweek dayofyear element_at elt endswith exists explode
    filter find_in_set flatten forall from_json from_unixtime get_json_object grouping grouping_id
    histogram_numeric inline isnan isnotnull isnull json_object_keys kurtosis last_day levenshtein listagg
    locate make_date make_timestamp map map_keys map_values max_by md5 min_by mode months_between next_day nvl
    nvl2 percentile percentile_approx pmod posexplode quarter regexp_extract regexp_extract_all regexp_replace
    regr_slope repeat reverse rint sequence sha1 sha2 size skewness slice sort_array soundex split split_part
    stack startswith std stddev_pop string_agg struct substring_index timestampdiff to_json to_unix_timestamp
    transform translate trunc try_add try_cast try_divide try_subtract try_to_number try_to_timestamp typeof
    unix_date unix_timestamp var_pop var_samp weekday weekofyear width_bucket zip_with"""
)
"""Those of Spark SQL."""
DIALECT = Dialect(
    name="databricks",
    queries=information_schema("current_schema()", comments=True, keys=True),
    plan="EXPLAIN COST",
    schemas=True,
    functions=FUNCTIONS,
    catalogs={**INFORMATION_SCHEMA, **FILES},
    closed=words("system"),
    function_schemas=words("-"),
    checks_views=True,
    quote="`",
    other_catalogs=True,
    token="concat('masked_', left(sha2(concat('{key}', CAST({value} AS STRING)), 256), 16))",
    misspelt=(("table", "table or view"), ("column", "name")),
)
ENGINE = warehouse_engine(
    "databricks",
    "Databricks",
    ("databricks",),
    DIALECT,
    Warehouse(
        package="databricks-sqlalchemy",
        opens=("SET STATEMENT_TIMEOUT = {seconds}",),
        ends="STATEMENT_TIMEOUT",
        cancels=True,
        role=(
            "GRANT USE CATALOG ON CATALOG main TO `decisor`;",
            "GRANT USE SCHEMA, SELECT ON SCHEMA main.shop TO `decisor`;",
        ),
        opening=300.0,
    ),
)
