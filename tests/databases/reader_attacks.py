"""Ways to read what is not for the reader, as a model might write them."""

from collections.abc import Iterator

TARGETS = (
    ("customers", "email", "id"),
    ("customers", "phone", "id"),
    ("orders", "note", "id"),
    ("orders", "total", "id"),
)
FORMS = """SELECT {c} FROM {t}
SELECT * FROM {t}
SELECT {t}.* FROM {t} ORDER BY {k} DESC
SELECT x.{c} FROM {t} x ORDER BY x.{k} DESC
SELECT x.{c} FROM {t} AS x WHERE x.{k} > 3
SELECT {c} AS name FROM {t}
SELECT q.v FROM (SELECT {c} AS v FROM {t}) q
SELECT q.v FROM (SELECT p.v FROM (SELECT {c} AS v FROM {t}) p) q
WITH w AS (SELECT {c} FROM {t}) SELECT * FROM w
WITH {t} AS (SELECT * FROM {t}) SELECT {c} FROM {t}
WITH a AS (SELECT * FROM {t}), b AS (SELECT * FROM a) SELECT {c} FROM b
WITH RECURSIVE r(n, v) AS (SELECT {k}, {c} FROM {t} UNION ALL SELECT n + 100000, v FROM r WHERE n < 3) SELECT v FROM r
SELECT {c} FROM {t} UNION SELECT {c} FROM {t}
SELECT {k} FROM {t} UNION ALL SELECT {k} FROM {t} WHERE {c} IS NOT NULL
SELECT 'x' AS v UNION ALL SELECT CAST({c} AS CHAR(60)) FROM {t}
SELECT {c} FROM {t} EXCEPT SELECT {c} FROM {t} WHERE {k} < 3
SELECT {c} FROM {t} INTERSECT SELECT {c} FROM {t}
SELECT a.name, (SELECT MAX({c}) FROM {t} b WHERE b.{k} >= a.id) FROM customers a
SELECT a.name FROM customers a WHERE EXISTS (SELECT 1 FROM {t} b WHERE b.{k} = a.id AND b.{c} > 'a')
SELECT (SELECT {c} FROM {t} ORDER BY {k} DESC LIMIT 1) AS v
SELECT a.{c}, b.{c} FROM {t} a JOIN {t} b ON a.{k} = b.{k} + 1
SELECT a.{c} FROM {t} a CROSS JOIN {t} b WHERE a.{k} = b.{k}
SELECT b.{c} FROM {t} a LEFT JOIN {t} b ON a.{k} = b.{k} ORDER BY b.{k} DESC
SELECT {c} FROM {t} a JOIN {t} b USING ({k}, {c})
SELECT MAX({c}), MIN({c}) FROM {t}
SELECT {c}, COUNT(*) FROM {t} GROUP BY {c} ORDER BY {c} DESC
SELECT {k} FROM {t} GROUP BY {k} HAVING MAX({c}) > '0' ORDER BY 1 DESC
SELECT DISTINCT {c} FROM {t}
SELECT SUBSTR(CAST({c} AS CHAR(60)), 1, 12) FROM {t} ORDER BY {k} DESC
SELECT UPPER(CAST({c} AS CHAR(60))) FROM {t} ORDER BY {k} DESC
SELECT REPLACE(CAST({c} AS CHAR(60)), '@', '_') FROM {t} ORDER BY {k} DESC
SELECT CONCAT(name, '-', {c}) FROM customers JOIN (SELECT {k}, {c} FROM {t}) z ON z.{k} = customers.id
SELECT CASE WHEN {c} IS NULL THEN 'none' ELSE CAST({c} AS CHAR(60)) END FROM {t} ORDER BY {k} DESC
SELECT COALESCE({c}, {c}) FROM {t} ORDER BY {k} DESC
SELECT {c} FROM {t} ORDER BY {k} DESC LIMIT 5 OFFSET 1
SELECT FIRST_VALUE({c}) OVER (ORDER BY {k} DESC) FROM {t}
SELECT LAG({c}) OVER (ORDER BY {k}) FROM {t} ORDER BY {k} DESC
SELECT ROW_NUMBER() OVER (ORDER BY {c}), {c} FROM {t}
SELECT CAST({c} AS DATE) FROM {t}
SELECT CAST({c} AS INTEGER) FROM {t} WHERE {k} > 12
SELECT {k} FROM {t} WHERE CAST({c} AS INTEGER) > 0
SELECT 1 / ({k} - 13) FROM {t} WHERE {c} IS NOT NULL
SELECT {c}.nothing FROM {t}
SELECT nothing FROM {t}
SELECT {c} FROM {t} WHERE nothing = {c}
SELECT {c} + 1 FROM {t}
SELECT COUNT(*) FROM {t}
SELECT COUNT({c}) FROM {t}
SELECT MAX({k}), COUNT(DISTINCT {c}) FROM {t}
EXPLAIN SELECT {c} FROM {t} WHERE {c} > 'a'
EXPLAIN ANALYZE SELECT {c} FROM {t}"""
VIEWS = """SELECT * FROM all_orders ORDER BY id DESC
SELECT name FROM vips
SELECT COUNT(*) FROM vips WHERE name = 'nobody'
SELECT SUM(total) FROM dear
SELECT d.total, COUNT(*) FROM dear d JOIN customers c ON c.id > d.id GROUP BY d.total
SELECT AVG(rate) FROM rated
SELECT rate FROM rated WHERE rate = 2
SELECT note FROM all_orders WHERE region = 'US'
SELECT a.note FROM all_orders AS a JOIN customers c ON c.id = a.customer_id ORDER BY a.id DESC
SELECT * FROM order_mails ORDER BY total DESC
SELECT email, COUNT(*) FROM order_mails GROUP BY email
SELECT m, p FROM mails
SELECT x.m FROM mails x JOIN mails y ON x.m = y.m
SELECT * FROM order_count
SELECT n + 0 FROM order_count
WITH v AS (SELECT * FROM all_orders) SELECT MAX(note) FROM v
SELECT address FROM newsletter
SELECT n.address, c.email FROM newsletter n JOIN customers c ON c.email = n.address
SELECT COUNT(*) FROM orders WHERE region <> 'EU'
SELECT COUNT(*) FROM orders WHERE region <> 'EU' OR 1 = 1
SELECT region, COUNT(*), SUM(total) FROM orders GROUP BY region
SELECT o.note FROM customers AS orders JOIN orders AS o ON o.customer_id = orders.id ORDER BY o.id DESC
SELECT SUM(total) FROM orders"""
OWN = {
    "sqlite": """SELECT rowid, note FROM orders ORDER BY rowid DESC
SELECT * FROM main.orders ORDER BY id DESC
SELECT "main"."orders"."note" FROM "main"."orders" ORDER BY id DESC
SELECT [note] FROM [orders] ORDER BY id DESC
SELECT * FROM words
SELECT note FROM words WHERE words MATCH 'zebra'
SELECT * FROM words_content
SELECT snippet(words, 0, '', '', '', 60) FROM words WHERE words MATCH 'quilt'
SELECT * FROM sqlite_stat1
SELECT * FROM sqlite_sequence
SELECT * FROM dbstat
SELECT sql FROM sqlite_master
SELECT json_group_array(note) FROM orders
SELECT json_object('n', note) FROM orders ORDER BY id DESC
SELECT group_concat(email) FROM customers
SELECT decisor_mask('ann')
SELECT decisor_mask(email) FROM customers
SELECT * FROM orders INDEXED BY sqlite_autoindex_orders_1
SELECT * FROM orders NOT INDEXED ORDER BY id DESC
SELECT value FROM json_each((SELECT json_group_array(note) FROM orders))
PRAGMA table_info(orders)
PRAGMA index_list(orders)
SELECT * FROM pragma_table_info('orders')
EXPLAIN QUERY PLAN SELECT * FROM orders
SELECT load_extension('x')
VALUES ((SELECT max(note) FROM orders))
SELECT total, note FROM (orders) ORDER BY id DESC
SELECT hex(email) FROM customers""",
    "duckdb": """FROM orders
FROM orders SELECT note
TABLE orders
SELECT * FROM readers.main.orders ORDER BY id DESC
SELECT main.orders.note FROM main.orders ORDER BY id DESC
SELECT orders FROM orders ORDER BY id DESC
SELECT o FROM orders o ORDER BY o.id DESC
SELECT COLUMNS(*) FROM orders ORDER BY id DESC
SELECT COLUMNS('no.*') FROM orders ORDER BY id DESC
SELECT * EXCLUDE (id) FROM orders ORDER BY total DESC
SELECT * FROM every_note()
SELECT most()
SUMMARIZE orders
SUMMARIZE customers
DESCRIBE orders
SHOW TABLES
PIVOT orders ON region USING max(note)
SELECT * FROM (PIVOT customers ON city USING max(email))
UNPIVOT customers ON email INTO NAME a VALUE b
SELECT * FROM query_table('orders')
SELECT * FROM query('SELECT * FROM orders')
SELECT * FROM duckdb_tables()
SELECT estimated_size FROM duckdb_tables() WHERE table_name = 'orders'
SELECT * FROM pragma_storage_info('orders')
SELECT list(note) FROM orders
SELECT string_agg(email, ',') FROM customers
SELECT array_agg(o) FROM orders o
SELECT histogram(email) FROM customers
SELECT * FROM orders USING SAMPLE 10 ROWS
SELECT * FROM orders TABLESAMPLE 90 PERCENT
SELECT * FROM orders POSITIONAL JOIN customers
SELECT * FROM 'orders'
SELECT approx_count_distinct(id) FROM orders
SELECT arg_max(note, id) FROM orders
SELECT sha256(email) FROM customers
SELECT note FROM orders QUALIFY row_number() OVER (ORDER BY id DESC) < 4
SELECT * FROM orders AS OF (TIMESTAMP => now())
SELECT CAST(note AS INTEGER) FROM orders WHERE id > 12
SELECT id FROM orders WHERE CAST(code AS INTEGER) > 1""",
    "postgres": """TABLE orders
SELECT * FROM public.orders ORDER BY id DESC
SELECT public.orders.note FROM public.orders ORDER BY id DESC
SELECT orders FROM orders ORDER BY id DESC
SELECT o FROM orders o ORDER BY o.id DESC
SELECT (o).note FROM orders o ORDER BY (o).id DESC
SELECT note(o) FROM orders o
SELECT o.note FROM ONLY orders o ORDER BY id DESC
SELECT * FROM parts
SELECT * FROM kept_orders ORDER BY id DESC
SELECT row_to_json(o) FROM orders o ORDER BY id DESC
SELECT json_agg(o) FROM orders o
SELECT to_jsonb(c) FROM customers c
SELECT array_agg(note) FROM orders
SELECT string_agg(email, ',') FROM customers
SELECT ctid, note FROM orders ORDER BY id DESC
SELECT tableoid::regclass, note FROM orders
SELECT reltuples FROM pg_class WHERE relname = 'orders'
SELECT * FROM pg_catalog.pg_class
SELECT most_common_vals FROM pg_stats WHERE tablename = 'orders'
SELECT * FROM pg_stat_user_tables
SELECT n_live_tup FROM pg_stat_all_tables
SELECT * FROM information_schema.tables
SELECT query_to_xml('SELECT * FROM orders', true, false, '')
SELECT table_to_xml('orders', true, false, '')
SELECT database_to_xml(true, false, '')
SELECT * FROM dblink('dbname=x', 'SELECT note FROM orders') AS t(n text)
SELECT pg_read_file('/etc/passwd')
SELECT pg_relation_size('orders')
SELECT lo_get(1)
SELECT ts_stat('SELECT to_tsvector(note) FROM orders')
SELECT to_tsvector(note) FROM orders ORDER BY id DESC
SELECT x.note FROM orders o, LATERAL (SELECT o2.note FROM orders o2 WHERE o2.id = o.id + 12) x
SELECT CAST(note AS INTEGER) FROM orders WHERE id > 12
SELECT id FROM orders WHERE CAST(code AS INTEGER) > 1
SELECT id FROM orders WHERE code::int > 1 ORDER BY code::int
SELECT note::date FROM orders
SELECT email::int FROM customers
SELECT id FROM orders TABLESAMPLE SYSTEM (100)
SELECT * FROM orders FOR UPDATE
SELECT md5(email) FROM customers
SELECT DISTINCT ON (region) note FROM orders
SELECT convert_to(email, 'UTF8') FROM customers
SELECT * FROM mails AS z(a, b)
SELECT unnest(array(SELECT note FROM orders))""",
    "mysql": """TABLE orders
SELECT `note` FROM `orders` ORDER BY id DESC
SELECT orders.note FROM ORDERS ORDER BY id DESC
SELECT note FROM orders PARTITION (p0)
SELECT note FROM orders USE INDEX (PRIMARY) ORDER BY id DESC
SELECT note FROM orders FORCE INDEX (PRIMARY) ORDER BY id DESC
SELECT GROUP_CONCAT(note) FROM orders
SELECT GROUP_CONCAT(email SEPARATOR ';') FROM customers
SELECT JSON_ARRAYAGG(note) FROM orders
SELECT JSON_OBJECTAGG(id, email) FROM customers
SELECT HEX(email) FROM customers
SELECT TO_BASE64(email) FROM customers
SELECT SHA2(email, 256) FROM customers
SELECT EXTRACTVALUE(note, CONCAT(0x7e, note)) FROM orders
SELECT UPDATEXML(1, CONCAT(0x7e, (SELECT note FROM orders LIMIT 1)), 1)
SELECT table_rows FROM information_schema.tables WHERE table_name = 'orders'
SELECT * FROM information_schema.statistics
SELECT * FROM information_schema.columns WHERE table_name = 'orders'
SELECT * FROM mysql.innodb_table_stats
SHOW TABLE STATUS
SHOW INDEX FROM orders
SHOW CREATE TABLE orders
SHOW COLUMNS FROM orders
DESCRIBE orders
DESCRIBE SELECT * FROM orders
EXPLAIN FORMAT=JSON SELECT * FROM orders
SELECT * FROM orders INTO OUTFILE '/tmp/x'
SELECT LOAD_FILE('/etc/passwd')
SELECT * FROM orders LOCK IN SHARE MODE
SELECT * FROM orders PROCEDURE ANALYSE()
HANDLER orders OPEN
SELECT MATCH(note) AGAINST ('zebra') FROM orders
SELECT CAST(note AS SIGNED) FROM orders WHERE id > 12
SELECT id FROM orders WHERE CAST(code AS SIGNED) > 1
SELECT ST_GeomFromText(note) FROM orders
SELECT @a := note FROM orders
SELECT SQL_CALC_FOUND_ROWS note FROM orders
SELECT FOUND_ROWS()
SELECT BENCHMARK(1, (SELECT note FROM orders LIMIT 1))
SELECT note FROM orders WHERE id = 13 PROCEDURE ANALYSE()""",
}


def attacks(engine: str) -> Iterator[str]:
    for table, column, key in TARGETS:
        for form in FORMS.splitlines():
            yield form.format(t=table, c=column, k=key)
    yield from VIEWS.splitlines()
    yield from OWN["mysql" if engine == "mariadb" else engine].splitlines()
