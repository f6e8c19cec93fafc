"""BigQuery through its own dialect of SQLAlchemy. Its limits are those of the account."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decisor.tools.databases.sandbox.dialect import Dialect
from decisor.tools.databases.sandbox.information_schema import information_schema
from decisor.tools.databases.sandbox.names import COMMON, words
from decisor.tools.databases.sandbox.warehouse import ASKED_ANOTHER_WAY, Warehouse
from decisor.tools.databases.sandbox.warehouse_engine import warehouse_engine

if TYPE_CHECKING:
    import sqlalchemy


def dry_run(db: sqlalchemy.Connection, statement: str) -> list[tuple[object, ...]]:
    """How many bytes a statement would read, which is what is paid for."""
    from google.cloud.bigquery import QueryJobConfig

    client = getattr(db.connection, "_client")  # noqa: B009  BigQuery's own, behind the connection
    job = client.query(statement, job_config=QueryJobConfig(dry_run=True, use_query_cache=False))
    return [(job.total_bytes_processed,)]


DIALECT = Dialect(
    name="bigquery",
    queries=information_schema("@@dataset_id", there="INFORMATION_SCHEMA."),
    plan=ASKED_ANOTHER_WAY,
    schemas=True,
    functions=COMMON
    | words(
        """approx_count_distinct approx_quantiles approx_top_count array_concat array_length array_reverse
    array_to_string     bit_count byte_length countif date_from_unix_date edit_distance ends_with extract format_date
    format_datetime format_timestamp generate_array generate_date_array ieee_divide is_inf is_nan json_query
    json_value last_day logical_and logical_or normalize parse_date parse_datetime parse_numeric parse_timestamp
    range_bucket regexp_contains regexp_extract regexp_extract_all safe_add safe_divide safe_multiply
    safe_negate safe_subtract soundex split st_area st_asgeojson st_astext st_contains st_distance st_dwithin
    st_geogpoint st_within starts_with strpos timestamp_micros timestamp_millis timestamp_seconds
    timestamp_trunc to_json_string unix_date unix_millis unix_seconds"""
    ),
    catalogs={},
    reserved=("information_schema.",),  # sqlglot takes the two words for one name
    readable=words("information_schema.tables information_schema.columns information_schema.views"),
    function_schemas=words("-"),
    checks_views=True,
    quote="`",
    other_catalogs=True,
    misspelt=(("table", "Not found: Table"), ("column", "Unrecognized name")),
)
ENGINE = warehouse_engine(
    "bigquery",
    "BigQuery",
    ("bigquery",),
    DIALECT,
    Warehouse(
        package="sqlalchemy-bigquery",
        plan=dry_run,
        samples=False,
        role=(
            "gcloud iam service-accounts create decisor",
            "gcloud projects add-iam-policy-binding PROJECT --role roles/bigquery.jobUser "
            "--member serviceAccount:decisor@PROJECT.iam.gserviceaccount.com",
            "-- in SQL, once for each dataset:",
            "GRANT `roles/bigquery.dataViewer` ON SCHEMA shop "
            'TO "serviceAccount:decisor@PROJECT.iam.gserviceaccount.com";',
        ),
    ),
)
