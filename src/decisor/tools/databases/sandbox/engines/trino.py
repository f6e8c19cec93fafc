"""Trino (and Starburst, Athena's engine) through its own dialect of SQLAlchemy: a time limit of the session's."""

from __future__ import annotations

from decisor.tools.databases.sandbox.dialect import Dialect
from decisor.tools.databases.sandbox.information_schema import information_schema
from decisor.tools.databases.sandbox.names import COMMON, words
from decisor.tools.databases.sandbox.warehouse import Warehouse
from decisor.tools.databases.sandbox.warehouse_engine import warehouse_engine

DIALECT = Dialect(
    name="trino",
    queries=information_schema("current_schema"),
    plan="EXPLAIN (TYPE IO, FORMAT JSON)",
    schemas=True,
    functions=COMMON
    | words(
        """all_match any_match approx_distinct approx_most_frequent approx_percentile arbitrary array_agg array_distinct
    array_intersect array_join array_max array_min array_position array_sort array_union bit_count bitwise_and
    bitwise_or bool_and bool_or cardinality cbrt ceil checksum codepoint contains contains_sequence corr
    count_if covar_pop covar_samp cosine_similarity current_timezone date_add date_diff date_format date_parse
    date_trunc day_of_month day_of_week day_of_year element_at entropy every filter flatten format_datetime
    format_number from_base from_iso8601_date from_iso8601_timestamp from_unixtime geometric_mean grouping
    hamming_distance histogram human_readable_seconds index infinity is_finite is_infinite is_nan
    json_array_contains json_array_get json_extract json_extract_scalar json_format json_parse json_size
    kurtosis last_day_of_month levenshtein_distance listagg localtime localtimestamp luhn_check map_agg
    map_concat map_entries map_filter map_from_entries map_keys map_union map_values max_by min_by month
    multimap_agg nan none_match normalize now numeric_histogram parse_datetime parse_duration quarter reduce
    reduce_agg regexp_extract regexp_extract_all regexp_position regexp_replace regexp_split regr_intercept
    regr_slope repeat reverse sequence shuffle skewness slice soundex split split_part split_to_map starts_with
    strpos timezone_hour timezone_minute to_base to_char to_iso8601 to_milliseconds to_unixtime transform
    translate try typeof unnest url_decode url_encode url_extract_host url_extract_parameter url_extract_path
    url_extract_query week week_of_year width_bucket wilson_interval_lower wilson_interval_upper with_timezone
    word_stem year_of_week yow zip zip_with"""
    ),
    closed=words("system jmx"),
    function_schemas=words("-"),
    checks_views=True,
    names_by_text=False,
    other_catalogs=True,
    token="'masked_' || substr(lower(to_hex(sha256(to_utf8('{key}' || CAST({value} AS VARCHAR))))), 1, 16)",
    fence="LIMIT 9223372036854775807",
    misspelt=(("table", "Table"), ("column", "Column")),
)
ENGINE = warehouse_engine(
    "trino",
    "Trino",
    ("trino",),
    DIALECT,
    Warehouse(
        package="trino[sqlalchemy]",
        begins=("SET SESSION query_max_run_time = '{seconds}s'",),
        ends="query_max_run_time",
        cancels=True,
        role=(
            "-- in the rules of the coordinator's file-based access control:",
            '{"catalogs": [{"user": "decisor", "catalog": "CATALOG", "allow": "read-only"}]}',
        ),
        tried="Trino 435",
    ),
)
