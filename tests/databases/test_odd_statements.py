"""Odd but valid statements bring the same rows through the guard as on the server itself."""

import pytest

from decisor.sandbox.engines.mysql import DIALECT as MYSQL
from decisor.sandbox.engines.postgres import DIALECT as POSTGRES
from decisor.sandbox.sql_guard import SqlGuard
from servers.sql_databases import NAME, mysql_database, postgres_database

TABLES = [
    "CREATE TABLE t (id INT PRIMARY KEY, g VARCHAR(9), x NUMERIC(9, 2), d DATE)",
    "INSERT INTO t VALUES (1, 'a', 1.5, '2024-01-31'), (2, 'b', 2.5, '2024-02-29'), (3, 'a', NULL, '2024-03-31')",
]
BOTH = [
    "SELECT id FROM t ORDER BY id LIMIT 2 OFFSET 1",
    "VALUES (1, 'a'), (2, 'b')",
    "SELECT * FROM (VALUES (1, 'a'), (2, 'b')) v",
    "SELECT id FROM t WHERE (id, g) = (1, 'a')",
    "SELECT id FROM t WHERE (g, id) IN (SELECT g, max(id) FROM t GROUP BY g) ORDER BY 1",
    "SELECT id, sum(x) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t ORDER BY 1",
    "SELECT id, row_number() OVER w, lag(id, 1) OVER w FROM t WINDOW w AS (ORDER BY d DESC) ORDER BY 1",
    "SELECT id, ntile(2) OVER (ORDER BY id), first_value(g) OVER (ORDER BY id) FROM t ORDER BY 1",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT sum(i) FROM n",
    "WITH a AS (SELECT id FROM t), b AS (SELECT id FROM a WHERE id > 1) SELECT count(*) FROM b",
    "SELECT CASE g WHEN 'a' THEN 1 ELSE 0 END, count(*) FROM t GROUP BY 1 ORDER BY 1",
    "SELECT g, count(DISTINCT x), avg(x) FROM t GROUP BY g HAVING count(*) > 0 ORDER BY g",
    "SELECT id FROM t WHERE g LIKE 'a!%' ESCAPE '!' OR g LIKE '_' ORDER BY id",
    "SELECT 'it''s', ''",
    "SELECT id FROM t EXCEPT SELECT 2 ORDER BY 1",
    "(SELECT id FROM t ORDER BY id LIMIT 1) UNION ALL (SELECT id FROM t ORDER BY id DESC LIMIT 1)",
    "SELECT id FROM t INTERSECT SELECT 1",
    "SELECT d + INTERVAL '1' MONTH FROM t ORDER BY id",
    "SELECT EXTRACT(YEAR FROM d), EXTRACT(MONTH FROM d) FROM t ORDER BY id",
    "SELECT a.id, b.id FROM t a CROSS JOIN t b WHERE a.id < b.id ORDER BY 1, 2",
    "SELECT a.id FROM t a LEFT JOIN t b USING (id) WHERE b.x IS NULL",
    "SELECT id FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.g = a.g AND b.id <> a.id) ORDER BY id",
    "SELECT id FROM t WHERE x > ALL (SELECT 1) ORDER BY id",
    "SELECT COALESCE(x, 0), NULLIF(g, 'a') FROM t ORDER BY id",
    "SELECT id FROM t WHERE x IS NOT NULL AND NOT (g = 'b' AND id BETWEEN 5 AND 9) ORDER BY id",
    "SELECT CAST(id AS CHAR(3)), TRIM(BOTH 'x' FROM 'xax'), SUBSTRING('abc' FROM 2 FOR 1) FROM t ORDER BY id",
    "SELECT -+-id, 7 % 4, 2 * (3 + 1), 1e3 FROM t ORDER BY id",
    "SELECT /* a 'quote */ id -- and \"more\n FROM t ORDER BY id",
    "SELECT POSITION('b' IN 'abc'), CHAR_LENGTH(g), UPPER(g) FROM t ORDER BY id",
    "SELECT id FROM t ORDER BY g DESC, x IS NULL, id LIMIT 2",
]
OF_POSTGRES = [
    "SELECT id FROM t ORDER BY id LIMIT (SELECT 1 + 1) OFFSET 5 % 2",
    "SELECT id FROM t ORDER BY id OFFSET 1 ROWS FETCH NEXT 1 ROW ONLY",
    "SELECT id FROM t ORDER BY x NULLS FIRST FETCH FIRST 2 ROWS WITH TIES",
    "SELECT id FROM t ORDER BY id LIMIT ALL",
    "SELECT count(*) FILTER (WHERE g = 'a'), sum(x) FILTER (WHERE id > 1) FROM t",
    "SELECT t.id, l.m FROM t, LATERAL (SELECT max(id) m FROM t u WHERE u.g = t.g) l ORDER BY 1",
    "SELECT g, sum(id) FROM t GROUP BY GROUPING SETS ((g), ()) ORDER BY 1 NULLS LAST",
    "SELECT g, d, grouping(g), count(*) FROM t GROUP BY CUBE (g, d) ORDER BY 1 NULLS FIRST, 2 NULLS FIRST, 3",
    "SELECT g, count(*) FROM t GROUP BY ROLLUP (g) ORDER BY 1",
    "WITH a AS MATERIALIZED (SELECT * FROM t), b AS NOT MATERIALIZED (SELECT * FROM a) SELECT id FROM b ORDER BY 1",
    "SELECT '{\"a\": {\"b\": [1, 2]}}'::jsonb #>> '{a,b,1}', '{\"a\": 1}'::json ->> 'a', '[1]'::jsonb -> 0",
    "SELECT '{\"a\": 1}'::jsonb @> '{}'::jsonb, '{\"a\": 1}'::jsonb ? 'a', '{\"a\": 1}'::jsonb ?| ARRAY['b', 'a']",
    "SELECT jsonb_path_query_array('[1, 2, 3]', '$[*] ? (@ > 1)')",
    "SELECT ARRAY[1, 2, 3] @> ARRAY[2], (ARRAY[1, 2, 3])[2:3], 2 = ANY (ARRAY[1, 2]), array_length(ARRAY[1, 2], 1)",
    "SELECT array_agg(id ORDER BY id DESC), string_agg(g, ',' ORDER BY id) FROM t",
    "SELECT unnest(ARRAY[1, 2]), generate_series(1, 2)",
    "SELECT * FROM unnest(ARRAY['a', 'b']) WITH ORDINALITY AS u(v, n)",
    "SELECT DISTINCT ON (g) g, id FROM t ORDER BY g, id DESC",
    "SELECT d + '1 month'::interval, age(d, DATE '2024-01-01'), d - DATE '2024-01-01' FROM t ORDER BY id",
    "SELECT INTERVAL '1 day 2 hours' * 2, INTERVAL '90' MINUTE",
    'SELECT g FROM t ORDER BY g COLLATE "C" DESC, id',
    "SELECT E'a\\tb\\'c', $$it's$$, $q$a $$ b$q$, U&'\\0061'",
    "SELECT id FROM t WHERE g ILIKE 'A' AND g ~ '^[a-c]$' AND g !~* 'Z' AND g SIMILAR TO '(a|b)' ORDER BY id",
    "SELECT id, sum(x) OVER (ORDER BY id RANGE UNBOUNDED PRECEDING EXCLUDE TIES) FROM t ORDER BY 1",
    "SELECT id, sum(x) OVER (ORDER BY d RANGE BETWEEN '1 month' PRECEDING AND CURRENT ROW) FROM t ORDER BY 1",
    "SELECT id, count(*) OVER (ORDER BY g GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t ORDER BY 1",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id), mode() WITHIN GROUP (ORDER BY g) FROM t",
    "SELECT ROW(1, 'a') = ROW(1, 'a'), (t.*) IS NULL FROM t WHERE id = 1",
    "TABLE t ORDER BY id",
    "SELECT x::int::text || 'a', CAST(x AS double precision) FROM t ORDER BY id",
    "SELECT id FROM t WHERE g IS DISTINCT FROM 'a' AND (x > 1) IS TRUE",
    "SELECT d AT TIME ZONE 'UTC', date_trunc('month', d), to_char(d, 'YYYY-MM') FROM t ORDER BY id",
    "SELECT (SELECT array(SELECT id FROM t ORDER BY id)), id FROM t ORDER BY id",
    "WITH RECURSIVE n AS (SELECT 1 AS i UNION SELECT i + 1 FROM n WHERE i < 3) "
    "SEARCH DEPTH FIRST BY i SET o SELECT i FROM n ORDER BY o",
    "SELECT (d, d + 10) OVERLAPS (DATE '2024-01-30', DATE '2024-02-02') FROM t ORDER BY id",
    "SELECT overlay('abcd' PLACING 'xx' FROM 2 FOR 2), 'abc' ^@ 'a', 5 # 3, |/ 16.0, 2 ^ 3, 1 << 3",
    "SELECT id, g FROM ONLY t ORDER BY id",
    "SELECT id FROM t TABLESAMPLE SYSTEM (100) ORDER BY id",
    'SELECT "t"."id" AS "a ""b"" c" FROM "public"."t" ORDER BY 1',
    "SELECT * FROM t NATURAL JOIN (SELECT 1 AS id) q",
    "SELECT v.a, t.id FROM t JOIN (VALUES (1, 'x'), (2, 'y')) AS v(i, a) ON v.i = t.id ORDER BY 2",
    "SELECT B'101'::int, X'1F'::int",
    "SELECT regexp_replace('a1b2', '\\d', '', 'g'), (regexp_match('ab', '(a)(b)'))[2], split_part('a-b', '-', 2)",
    "SELECT * FROM jsonb_to_recordset('[{\"a\": 1}]') AS r(a int)",
    'SELECT * FROM json_each_text(\'{"a": 1, "b": null}\')',
    "SELECT id FROM t WHERE id = ANY ('{1,3}'::int[]) ORDER BY id",
    "SELECT GREATEST(1, NULL, 3), LEAST(2, 1), num_nulls(1, NULL)",
    "SELECT int4range(1, 5) @> 3, int4range(1, 5) * int4range(3, 9), lower(daterange('2024-01-01', '2024-02-01'))",
]
OF_MARIADB = [
    "SELECT id FROM t ORDER BY id LIMIT 1, 2",
    "SELECT id FROM t ORDER BY id LIMIT 18446744073709551615 OFFSET 1",
    "SELECT `t`.`id` AS `a b` FROM `t` ORDER BY 1",
    "SELECT \"it\"\"s\", 'it\\'s', 'a' 'b', 'a\\tb', _utf8mb4'x'",
    "SELECT g, GROUP_CONCAT(DISTINCT id ORDER BY id DESC SEPARATOR '; ') FROM t GROUP BY g ORDER BY g",
    "SELECT g, count(*) FROM t GROUP BY g WITH ROLLUP",
    "SELECT id <=> NULL, x IS NULL, 5 DIV 2, 5 MOD 3, 5 XOR 0, !0 FROM t ORDER BY id",
    "SELECT IF(id > 1, 'y', 'n'), IFNULL(x, 0), FIELD(g, 'b', 'a'), ELT(1, 'p', 'q') FROM t ORDER BY id",
    "SELECT d + INTERVAL 1 DAY, DATE_ADD(d, INTERVAL '1-2' YEAR_MONTH), TIMESTAMPDIFF(DAY, d, '2024-04-01') FROM t",
    "SELECT DATE_FORMAT(d, '%Y-%m'), YEAR(d), LAST_DAY(d), DAYOFWEEK(d) FROM t ORDER BY id",
    "SELECT id FROM t WHERE g REGEXP '^[a-c]$' AND g RLIKE 'a|b' AND BINARY g = 'a' ORDER BY id",
    "SELECT g COLLATE latin1_bin FROM t ORDER BY g COLLATE latin1_general_ci DESC, id",
    "SELECT JSON_EXTRACT('{\"a\": [1, 2]}', '$.a[1]'), JSON_UNQUOTE(JSON_EXTRACT('{\"a\": \"b\"}', '$.a'))",
    "SELECT JSON_VALUE('{\"a\": 1}', '$.a'), JSON_ARRAYAGG(id), JSON_OBJECTAGG(id, g) FROM t",
    "SELECT * FROM JSON_TABLE('[{\"a\": 1}, {\"a\": 2}]', '$[*]' COLUMNS (a INT PATH '$.a')) AS j ORDER BY a",
    "SELECT * FROM t a STRAIGHT_JOIN t b ON a.id = b.id ORDER BY 1",
    "SELECT id FROM t FORCE INDEX (PRIMARY) WHERE id > 1 ORDER BY id",
    "SELECT SQL_NO_CACHE id FROM t ORDER BY id",
    "SELECT CONVERT(id, CHAR), CONVERT(g USING utf8mb4), CAST(x AS SIGNED), CAST('3' AS UNSIGNED) FROM t ORDER BY id",
    "SELECT 0x41, X'41', b'101' + 0, TRUE, NULL FROM DUAL",
    "SELECT STD(x), VAR_SAMP(x), BIT_OR(id) FROM t",
    "SELECT id, MEDIAN(x) OVER (PARTITION BY g) FROM t ORDER BY id",
    "SELECT 1 WHERE 'a' = 'A'",
    "SELECT id FROM t PROCEDURE_LIKE ORDER BY id",
    "SELECT id # a comment\nFROM t ORDER BY id",
    "SELECT CONCAT_WS('-', g, id), LPAD(id, 3, '0'), SUBSTRING_INDEX('a.b.c', '.', 2), REPEAT(g, 2) FROM t ORDER BY id",
    "SELECT id FROM t ORDER BY id FETCH FIRST 2 ROWS ONLY",
    "SELECT a.id FROM t a NATURAL JOIN t b WHERE a.g IN ('a') AND (a.id, 'a') IN ((1, 'a'), (2, 'b'))",
    "SELECT count(*) FROM (SELECT DISTINCTROW g FROM t) q",
    "SELECT STR_TO_DATE('31.01.2024', '%d.%m.%Y'), UNIX_TIMESTAMP('2024-01-01') > 0, SEC_TO_TIME(90)",
]


def test_the_median_of_mariadb_keeps_its_words() -> None:
    checked = SqlGuard(MYSQL).check("SELECT MEDIAN(x) OVER (PARTITION BY g) AS m FROM t")
    assert checked == "SELECT MEDIAN(`x`) OVER (PARTITION BY `g`) AS `m` FROM `t`"


@pytest.mark.slow
def test_postgresql_brings_the_same_rows_through_the_guard() -> None:
    import psycopg

    with postgres_database(TABLES) as url, psycopg.connect(url, autocommit=True) as db:
        faults: list[tuple[str, object, object]] = []
        for query in [*BOTH, *OF_POSTGRES]:
            wanted = db.execute(query).fetchall()
            try:
                if (got := db.execute(SqlGuard(POSTGRES).check(query)).fetchall()) != wanted:
                    faults.append((query, got, wanted))
            except Exception as error:
                faults.append((query, error, wanted))
    assert not faults, "\n".join(map(str, faults))


@pytest.mark.slow
def test_mariadb_brings_the_same_rows_through_the_guard() -> None:
    import pymysql

    with mysql_database(TABLES) as _, pymysql.connect(host="127.0.0.1", port=3306, user="root", database=NAME) as db:
        faults: list[tuple[str, object, object]] = []
        with db.cursor() as cursor:
            for query in [*BOTH, *OF_MARIADB]:
                cursor.execute(query)
                wanted = cursor.fetchall()
                try:
                    cursor.execute(SqlGuard(MYSQL).check(query))
                    if (got := cursor.fetchall()) != wanted:
                        faults.append((query, got, wanted))
                except Exception as error:
                    faults.append((query, error, wanted))
    assert not faults, "\n".join(map(str, faults))
