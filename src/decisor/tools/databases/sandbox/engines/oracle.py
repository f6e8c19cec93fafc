"""Oracle through SQLAlchemy's own dialect and python-oracledb: a transaction that only reads."""

from __future__ import annotations

from decisor.tools.databases.sandbox.dialect import Dialect, Queries
from decisor.tools.databases.sandbox.names import COMMON, words
from decisor.tools.databases.sandbox.warehouse import Warehouse
from decisor.tools.databases.sandbox.warehouse_engine import warehouse_engine

HERE = "sys_context('USERENV', 'CURRENT_SCHEMA')"
OURS = f"({{0}}owner = {HERE} OR {{0}}owner IN (SELECT username FROM all_users WHERE oracle_maintained = 'N'))"
NAMED = f"CASE WHEN {{0}}owner = {HERE} THEN '' ELSE {{0}}owner || '.' END || {{0}}"
VIEWS = "SELECT owner, view_name FROM all_views"
QUERIES = Queries(
    columns=f"""SELECT {NAMED.format("c.")}table_name, CASE WHEN v.view_name IS NULL THEN 0 ELSE 1 END, c.column_name,
        c.data_type, CASE WHEN c.nullable = 'Y' THEN 1 ELSE 0 END,
        CASE WHEN c.owner = {HERE} THEN '' ELSE c.owner END, coalesce(m.comments, '')
        FROM all_tab_columns c LEFT JOIN ({VIEWS}) v ON v.owner = c.owner AND v.view_name = c.table_name
        LEFT JOIN all_col_comments m ON m.owner = c.owner AND m.table_name = c.table_name
        AND m.column_name = c.column_name WHERE {OURS.format("c.")}
        ORDER BY CASE WHEN v.view_name IS NULL THEN 0 ELSE 1 END, CASE WHEN c.owner = {HERE} THEN 0 ELSE 1 END, c.owner,
        c.table_name, c.column_id""",
    keys=f"""SELECT {NAMED.format("c.")}table_name, c.column_name,
        CASE WHEN u.table_name IS NULL THEN '' ELSE {NAMED.format("u.")}table_name END, u.column_name
        FROM all_constraints k JOIN all_cons_columns c ON c.owner = k.owner AND c.constraint_name = k.constraint_name
        LEFT JOIN all_cons_columns u ON u.owner = k.r_owner AND u.constraint_name = k.r_constraint_name
        AND u.position = c.position WHERE k.constraint_type IN ('P', 'R') AND {OURS.format("c.")}""",
    tables=f"""SELECT {NAMED.format("t.")}table_name, '', t.num_rows FROM all_tables t WHERE {OURS.format("t.")}""",
    definitions=f"""SELECT t.table_name, '', 'table' FROM all_tables t WHERE {OURS.format("t.")}
        UNION ALL SELECT v.view_name, v.text_vc, 'view' FROM all_views v WHERE {OURS.format("v.")}""",
)
DIALECT = Dialect(
    name="oracle",
    queries=QUERIES,
    schemas=True,
    functions=COMMON
    | words(
        """add_months ascii bitand chr corr covar_pop covar_samp cume_dist decode floor greatest grouping_id instr
    last_day least listagg lnnvl median months_between nanvl next_day nvl nvl2 numtodsinterval numtoyminterval
    ratio_to_report regexp_instr regexp_replace regexp_substr remainder soundex stats_mode stddev_pop
    stddev_samp sysdate systimestamp to_dsinterval to_yminterval translate trunc var_pop var_samp width_bucket
   """
    ),
    closed=words("sys system xdb ctxsys mdsys outln"),
    reserved=("dba_", "cdb_", "v$", "gv$", "x$", "user$", "all_tab", "all_col", "all_view", "all_source", "all_objects",
              "all_users", "all_cons", "user_tab", "user_col", "user_view", "user_source", "user_objects"),
    function_schemas=words("-"),
    checks_views=True,
    folds="upper",
    bare=r"[A-Z][A-Z0-9_$#]*",
    misspelt=(("table", "table or view"), ("column", "invalid identifier")),
)  # fmt: skip
ENGINE = warehouse_engine(
    "oracle",
    "Oracle",
    ("oracle",),
    DIALECT,
    Warehouse(
        package="oracledb",
        begins=("SET TRANSACTION READ ONLY",),
        reads_only="SET TRANSACTION READ ONLY",
        cancels=True,
        role=(
            'CREATE USER decisor IDENTIFIED BY "..."; GRANT CREATE SESSION TO decisor;',
            "GRANT READ ON shop.orders TO decisor; -- for each table that questions need",
        ),
    ),
)
