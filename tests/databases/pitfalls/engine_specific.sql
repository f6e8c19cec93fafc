-- inflating: sqlite duckdb postgres
SELECT SUM(o.total) FILTER (WHERE o.status = 'paid') FROM orders o JOIN order_items i ON i.order_id = o.id;
-- harmless: sqlite duckdb postgres
SELECT COUNT(*) FILTER (WHERE o.status = 'paid'), SUM(i.quantity) FILTER (WHERE o.status = 'paid') FROM orders o JOIN order_items i ON i.order_id = o.id;
-- harmless: duckdb
SELECT SUM(o.total) FROM orders o SEMI JOIN order_items i ON i.order_id = o.id;
-- harmless: duckdb
SELECT SUM(o.total) FROM orders o ANTI JOIN payments p ON p.order_id = o.id;
-- harmless: postgres mysql
SELECT SUM(c.credit), SUM(x.total) FROM customers c CROSS JOIN LATERAL (SELECT o.total FROM orders o WHERE o.customer_id = c.id ORDER BY o.placed DESC LIMIT 1) x;
-- harmless: postgres
SELECT SUM(x.total) FROM (SELECT DISTINCT ON (o.id) o.id, o.total FROM orders o JOIN order_items i ON i.order_id = o.id ORDER BY o.id, i.price) x;
-- inflating: postgres mysql
SELECT SUM(c.credit) FROM customers c CROSS JOIN LATERAL (SELECT o.total FROM orders o WHERE o.customer_id = c.id) x;
-- inflating: sqlite
SELECT TOTAL(o.total) FROM orders o JOIN order_items i ON i.order_id = o.id;
-- inflating: mysql
SELECT SUM(IF(o.status = 'paid', o.total, 0)) FROM orders o JOIN order_items i ON i.order_id = o.id;
-- harmless: mysql
SELECT SUM(o.status = 'paid') FROM orders o JOIN customers c ON c.id = o.customer_id;
-- inflating: duckdb
FROM orders o JOIN order_items i ON i.order_id = o.id SELECT SUM(o.total);
-- harmless: duckdb
SELECT SUM(f.total) FROM (SELECT o.id, o.total FROM orders o JOIN order_items i ON i.order_id = o.id QUALIFY ROW_NUMBER() OVER (PARTITION BY o.id ORDER BY i.line_no) = 1) f;
-- inflating: duckdb postgres
SELECT SUM(o.total) FROM orders o CROSS JOIN generate_series(1, 3) AS g(n);
-- harmless: duckdb postgres mysql
WITH RECURSIVE n(d) AS (SELECT 1 UNION ALL SELECT d + 1 FROM n WHERE d < 12) SELECT n.d, SUM(o.total) FROM n LEFT JOIN orders o ON EXTRACT(MONTH FROM o.placed) = n.d GROUP BY n.d;
-- inflating: sqlite
SELECT SUM(o.total) FROM orders o, json_each('[1, 2]') AS j;
-- inflating: postgres duckdb
SELECT SUM(o.total) FROM orders o CROSS JOIN LATERAL (SELECT i.price FROM order_items i WHERE i.order_id = o.id ORDER BY i.price LIMIT 2) x;
-- harmless: duckdb postgres
SELECT g.n, SUM(o.total) FROM generate_series(1, 4) AS g(n) LEFT JOIN orders o ON o.customer_id = g.n GROUP BY g.n;
