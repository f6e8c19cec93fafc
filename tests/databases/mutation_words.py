"""What the mutations put around, between and into the words of a statement. ``~`` is the statement."""

COMMENTS = (
    "/**/", "/* x */", "--\n", "-- '\n", "#\n", "//\n", "/*/* */*/", "/*!*/", "/*M!*/", "/*'*/", "--\r", "--\u2028",
)  # fmt: skip
"""For white space."""
MARKS = (
    "'", '"', "`", '\\', "/*", "*/", "--", ";", "(", ")", "$$", "[", "]", "\x00", ",", ".", "*", "@", ":", "{", "}",
    "#",
)  # fmt: skip
"""More or less, anywhere."""
SQL_NESTS = (
    "(~)", "((~))", "SELECT * FROM (~) t", "SELECT * FROM (~) AS customers", "WITH t AS (~) SELECT * FROM t",
    "SELECT (~)", "WITH t AS MATERIALIZED (~) SELECT * FROM t", "WITH RECURSIVE t AS (~) SELECT * FROM t",
    "~ UNION ALL SELECT 1", "SELECT 1 UNION ALL ~", "SELECT 1 UNION (~)", "~ EXCEPT SELECT 2",
    "SELECT 1 WHERE EXISTS (~)", "VALUES ((~))", "SELECT * FROM customers WHERE id IN (~)",
    "SELECT * FROM customers c, LATERAL (~) t", "EXPLAIN ~", "EXPLAIN ANALYZE ~", "EXPLAIN (ANALYZE) ~",
    "EXPLAIN QUERY PLAN ~", "EXPLAIN FORMAT=JSON ~", "ANALYZE ~", "DESCRIBE ~", "SUMMARIZE ~", "TABLE (~)",
    "FROM (~)", "PREPARE p AS ~", "EXECUTE IMMEDIATE '~'", "CALL (~)", "DO (~)", "COPY (~) TO STDOUT",
    "DECLARE c CURSOR FOR ~", "SELECT CASE WHEN true THEN (~) END", "SELECT [~]", "SELECT ARRAY(~)",
    "SELECT coalesce((~), 1)", "BEGIN; ~; COMMIT", "SELECT * FROM customers ORDER BY (~)",
    "SELECT * FROM customers LIMIT (~)", "SELECT count(*) FILTER (WHERE EXISTS (~))",
    "SELECT 1 FROM customers HAVING (~) > 0", "SET STATEMENT max_statement_time=0 FOR ~", "PIVOT (~) ON 1",
    "WITH t AS (SELECT 1) ~", "SELECT sum(1) OVER (ORDER BY (~)) FROM customers", "SELECT /*+ x */ * FROM (~) x",
    "SHOW ~", "SELECT * FROM query('~')", "CREATE TEMP TABLE t AS ~", "INSERT INTO edges ~", "SELECT 1; ~",
    "~; SELECT 1", "SELECT 'a;' ; ~",
)  # fmt: skip
CYPHER_NESTS = (
    "EXPLAIN ~", "PROFILE ~", "CALL { ~ } RETURN 1", "CALL () { ~ } RETURN 1", "RETURN 1 AS x UNION ~",
    "~ UNION RETURN 1 AS x", "RETURN EXISTS { ~ }", "RETURN COUNT { ~ }", "RETURN COLLECT { ~ }",
    "UNWIND [1] AS q WITH q ~", "WITH 1 AS q ~", "CYPHER 5 ~", "MATCH (z) WHERE EXISTS { ~ } RETURN 1",
    "MATCH (z) CALL (z) { ~ } RETURN 1", "FOREACH (q IN [1] | ~)", "~ ; RETURN 1", "RETURN 1 ; ~",
    "CYPHER runtime=slotted ~", "MATCH (z) WITH z ~", "OPTIONAL ~", "USE neo4j ~", "NEXT ~", "{ ~ }",
)  # fmt: skip
ENDS = (
    ";", ";;", "; ;", " ;--", ";/* x */", "--", "-- x", "/*", "#", ";\x00", "\x00", "\\g", "\\G", ";\n\n", "//",
    " --;", ";-- \n;",
)  # fmt: skip
"""Behind and before."""
NAMES = (
    "api_tokens", "sqlite_master", "sqlite_schema", "sqlite_temp_master", "information_schema.tables", "v_touch",
    "information_schema.columns", "information_schema.statistics", "information_schema.table_constraints",
    "pragma_table_info('api_tokens')", "pragma_table_list()", "dbstat", "pg_class", "pg_tables", "pg_attribute",
    "pg_stats", "pg_shadow", "pg_stat_activity", "pg_stat_user_tables", "pg_depend",
    "duckdb_secrets()", "duckdb_tables()", "duckdb_columns()", "duckdb_constraints()",
    "pragma_storage_info('api_tokens')",
    "mysql.user", "mysql.innodb_table_stats", "'/tmp/guardbox/secret.csv'", "read_text('/tmp/guardbox/secret.txt')",
)  # fmt: skip
"""For a table that may be read."""
CALLS = (
    "touch_audit('x')", "nextval('seq_free')", "pg_read_file('/tmp/guardbox/secret.txt')",
    "readfile('/tmp/guardbox/secret.txt')", "setval('seq_free', 9)", "load_extension('/tmp/guardbox/evil.so')",
    "load_file('/tmp/guardbox/secret.txt')", "lo_get(424242)", "getenv('HOME')", "get_lock('x', 0)",
    "set_config('transaction_read_only','off',false)", "(SELECT token FROM api_tokens LIMIT 1)",
    "pg_advisory_lock(7)", "query_to_xml('SELECT * FROM api_'||'tokens',true,true,'')",
    "(SELECT content FROM read_text('/tmp/guardbox/secret.txt'))", "@x := 1",
    "lo_import('/tmp/guardbox/secret.txt')", "next value for seq_free", "getvariable('x')", "c.touch_audit",
)  # fmt: skip
"""For a value of a row."""
