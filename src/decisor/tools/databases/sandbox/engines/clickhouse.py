"""ClickHouse through SQLAlchemy (clickhouse-connect, or chDB in the worker process itself)."""

from __future__ import annotations

from decisor.tools.databases.sandbox.dialect import Dialect, Queries
from decisor.tools.databases.sandbox.names import COMMON, words
from decisor.tools.databases.sandbox.warehouse import Warehouse
from decisor.tools.databases.sandbox.warehouse_engine import warehouse_engine

OURS = "database NOT IN ('system', 'INFORMATION_SCHEMA', 'information_schema')"
NAMED = "if({0}database = currentDatabase(), '', concat({0}database, '.'))"
QUERIES = Queries(
    columns=f"""SELECT concat({NAMED.format("c.")}, c.table), t.engine LIKE '%View', c.name, c.type,
        c.type LIKE 'Nullable%', if(c.database = currentDatabase(), '', c.database), c.comment
        FROM system.columns AS c JOIN system.tables AS t ON t.database = c.database AND t.name = c.table
        WHERE c.{OURS}
        ORDER BY t.engine LIKE '%View', c.database <> currentDatabase(), c.database, c.table, c.position""",
    keys="SELECT '', '', '', '' WHERE 1 = 0",  # its primary key sorts, and is not unique
    tables=f"SELECT concat({NAMED.format('')}, name), comment, total_rows FROM system.tables WHERE {OURS}",
    # A table of such an engine reads another one, a file or a server.
    definitions=f"""SELECT name, multiIf(engine LIKE '%View', as_select, engine IN ('Merge', 'Distributed', 'Buffer',
        'Dictionary'), NULL, engine IN ('File', 'URL', 'S3', 'MySQL', 'PostgreSQL', 'ODBC', 'JDBC', 'HDFS', 'MongoDB',
        'Executable', 'ExecutablePool'), create_table_query, ''),
        if(engine LIKE '%View' OR engine IN ('File', 'URL', 'S3', 'MySQL', 'PostgreSQL', 'ODBC', 'JDBC', 'HDFS',
        'MongoDB', 'Executable', 'ExecutablePool'), 'view', 'table') FROM system.tables WHERE {OURS}""",
)
DIALECT = Dialect(
    name="clickhouse",
    queries=QUERIES,
    plan="EXPLAIN ESTIMATE",
    schemas=True,
    functions=COMMON
    | words(
        """adddays addhours addmonths addweeks addyears age any anylast argmax argmin arrayconcat arraycount
    arraydistinct arrayelement arrayexists arrayfilter arrayjoin arraymap arraymax arraymin arraysort arraysum
    avgweighted bitand bitor bitxor ceiling corr count countequal countif countsubstrings covarpop covarsamp
    datediff date_diff dateadd datename datesub datetrunc date_trunc empty endswith extract extractall formatdatetime
    fromunixtimestamp greatcircledistance greatest grouparray groupuniqarray has hasall hasany if indexof
    isfinite isinfinite isnan isnotnull isnull jsonextract jsonextractbool jsonextractfloat jsonextractint
    jsonextractraw jsonextractstring jsonhas jsonlength least length lengthutf8 like locate lower lowerutf8
    match max2 median medianexact min2 multiif notempty now now64 plus minus multiply divide intdiv modulo
    position positioncaseinsensitive quantile quantileexact quantiles quantiletdigest replaceall replaceone
    replaceregexpall replaceregexpone reverse round roundbankers rounddown simplelinearregression skewpop
    skewsamp splitbychar splitbystring startswith stddevpop stddevsamp stringjaccardindex subtractdays
    subtracthours subtractmonths subtractweeks subtractyears sumif summap sumwithoverflow timediff timeslot
    todate todate32 todatetime todatetime64 todayofmonth todayofweek todayofyear todecimal32 todecimal64
    tofloat32 tofloat64 tofloat64ornull tohour toint16 toint32 toint64 toint64ornull toint8 toisoweek toisoyear
    tolastdayofmonth tominute tomonday tomonth toquarter torelativedaynum tosecond tostartofday tostartofhour
    tostartofinterval tostartofminute tostartofmonth tostartofquarter tostartofweek tostartofyear tostring
    totypename touint16 touint32 touint64 touint8 tounixtimestamp toweek toyear toyearweek toyyyymm toyyyymmdd
    trimboth trimleft trimright tupleelement uniq uniqcombined uniqexact uniqhll12 upperutf8 varpop varsamp
    yesterday today nullif coalesce ifnull assumenotnull tonullable numbers sha256 avgif minif maxif"""
    ),
    catalogs={},
    closed=words("system information_schema"),
    function_schemas=words("-"),
    checks_views=True,
    token="concat('masked_', substring(lower(hex(SHA256(concat('{key}', toString({value}))))), 1, 16))",
    fence="LIMIT 9223372036854775807",
    misspelt=(("table", "Unknown table expression identifier"), ("column", "Unknown expression identifier")),
)
ENGINE = warehouse_engine(
    "clickhouse",
    "ClickHouse",
    ("clickhousedb", "clickhouse", "chdb"),
    DIALECT,
    Warehouse(
        package="clickhouse-connect[sqlalchemy]",
        role=(
            "CREATE USER decisor IDENTIFIED BY '...'",
            "    SETTINGS readonly = 2, max_execution_time = 60, cancel_http_readonly_queries_on_client_close = 1;",
            "GRANT SELECT ON shop.* TO decisor; GRANT SELECT ON system.tables TO decisor;",
            "GRANT SELECT ON system.columns TO decisor;",
        ),
        tried="ClickHouse 26.9 in the worker process (chDB); a server over HTTP never",
    ),
)
