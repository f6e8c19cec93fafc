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
-- inflating: duckdb postgres
SELECT c.country, SUM(SUM(o.total)) OVER (ORDER BY c.country) AS running FROM customers c JOIN orders o ON o.customer_id = c.id JOIN order_items i ON i.order_id = o.id GROUP BY c.country;
SELECT DISTINCT o.customer_id, SUM(o.total) OVER (PARTITION BY o.customer_id) AS spent FROM orders o JOIN order_items i ON i.order_id = o.id;
SELECT c.id, l.s FROM customers c CROSS JOIN LATERAL (SELECT SUM(o.total) AS s FROM orders o JOIN payments p ON p.order_id = o.id WHERE o.customer_id = c.id) l;
SELECT SUM(o.total) FROM orders o CROSS JOIN LATERAL (SELECT i.price FROM order_items i WHERE i.order_id = o.id) x;
SELECT o.status, c.country, SUM(o.total) FROM orders o JOIN customers c ON c.id = o.customer_id JOIN order_items i ON i.order_id = o.id GROUP BY GROUPING SETS ((o.status), (c.country), ());
SELECT c.country, SUM(o.total) FROM orders o JOIN customers c ON c.id = o.customer_id JOIN payments p ON p.order_id = o.id GROUP BY ROLLUP (c.country);
SELECT SUM(o.total) FILTER (WHERE o.status = 'paid') AS paid FROM orders o JOIN order_items i ON i.order_id = o.id;
SELECT COUNT(*) FILTER (WHERE o.status = 'paid') AS paid_orders FROM orders o JOIN order_items i ON i.order_id = o.id;
SELECT SUM(x.total) FROM (SELECT DISTINCT ON (i.order_id, i.product_id) o.id, o.total FROM orders o JOIN order_items i ON i.order_id = o.id ORDER BY i.order_id, i.product_id) x;
SELECT boss.name, SUM(boss.id) FROM staff boss JOIN staff one ON one.boss_id = boss.id GROUP BY boss.name;
SELECT SUM(p1.list_price) FROM products p1 JOIN products p2 ON p2.category_id = p1.category_id AND p2.id <> p1.id;
WITH spent AS (SELECT customer_id, SUM(total) AS s FROM orders GROUP BY customer_id), worked AS (SELECT customer_id, hours FROM tickets) SELECT AVG(spent.s) FROM spent JOIN worked ON worked.customer_id = spent.customer_id;
WITH spent AS (SELECT customer_id, SUM(total) AS s FROM orders GROUP BY customer_id) SELECT SUM(spent.s) FROM spent JOIN orders o ON o.customer_id = spent.customer_id;
SELECT MAX(t.s) FROM (SELECT c.country, SUM(c.credit) AS s FROM customers c LEFT JOIN tickets t ON t.customer_id = c.id GROUP BY c.country) t;
SELECT SUM(u.total) FROM (SELECT o.total, i.price FROM orders o JOIN order_items i ON i.order_id = o.id UNION ALL SELECT o.total, p.amount FROM orders o JOIN payments p ON p.order_id = o.id) u;
SELECT o.customer_id, SUM(o.total) AS s FROM orders o JOIN order_items i ON i.order_id = o.id GROUP BY o.customer_id QUALIFY ROW_NUMBER() OVER (ORDER BY SUM(o.total) DESC) = 1;
-- harmless: duckdb postgres
SELECT o.customer_id, SUM(SUM(i.price)) OVER (ORDER BY o.customer_id) AS running FROM orders o JOIN order_items i ON i.order_id = o.id GROUP BY o.customer_id;
SELECT o.id, SUM(o.total) OVER (PARTITION BY o.customer_id ORDER BY o.placed) AS running FROM orders o JOIN customers c ON c.id = o.customer_id;
SELECT SUM(f.total) FROM (SELECT o.id, o.total, ROW_NUMBER() OVER (PARTITION BY o.id ORDER BY i.line_no) AS n FROM orders o JOIN order_items i ON i.order_id = o.id) f WHERE f.n = 1;
SELECT SUM(o.total), SUM(l.pieces) FROM orders o CROSS JOIN LATERAL (SELECT SUM(i.quantity) AS pieces FROM order_items i WHERE i.order_id = o.id) l;
SELECT SUM(o.total) FROM orders o CROSS JOIN LATERAL (SELECT i.price FROM order_items i WHERE i.order_id = o.id ORDER BY i.price DESC LIMIT 1) x;
SELECT o.status, c.country, SUM(o.total) FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY GROUPING SETS ((o.status), (c.country), ());
SELECT p.category_id, SUM(i.quantity) FROM order_items i JOIN products p ON p.id = i.product_id GROUP BY ROLLUP (p.category_id);
SELECT SUM(i.price) FILTER (WHERE o.status = 'paid') AS paid FROM orders o JOIN order_items i ON i.order_id = o.id;
SELECT COUNT(DISTINCT o.id) FILTER (WHERE i.quantity > 1) AS n FROM orders o JOIN order_items i ON i.order_id = o.id;
SELECT SUM(x.total) FROM (SELECT DISTINCT ON (o.id) o.id, o.total FROM orders o JOIN order_items i ON i.order_id = o.id ORDER BY o.id, i.price DESC) x;
SELECT boss.name, COUNT(one.id) FROM staff boss JOIN staff one ON one.boss_id = boss.id GROUP BY boss.name;
SELECT AVG(one.id - boss.id) FROM staff one JOIN staff boss ON boss.id = one.boss_id;
WITH spent AS (SELECT customer_id, SUM(total) AS s FROM orders GROUP BY customer_id), worked AS (SELECT customer_id, SUM(hours) AS h FROM tickets GROUP BY customer_id) SELECT SUM(spent.s), SUM(worked.h) FROM spent LEFT JOIN worked ON worked.customer_id = spent.customer_id;
WITH lines AS (SELECT order_id, SUM(price) AS s FROM order_items GROUP BY order_id) SELECT c.country, SUM(o.total), SUM(l.s) FROM orders o JOIN lines l ON l.order_id = o.id JOIN customers c ON c.id = o.customer_id GROUP BY c.country;
SELECT SUM(o.total) FROM orders o WHERE EXISTS (SELECT 1 FROM order_items i WHERE i.order_id = o.id AND i.quantity > 2) AND o.customer_id IN (SELECT customer_id FROM tickets GROUP BY customer_id HAVING SUM(hours) > 3);
SELECT SUM(q.total) FROM (SELECT o.id, o.total FROM orders o JOIN order_items i ON i.order_id = o.id QUALIFY ROW_NUMBER() OVER (PARTITION BY o.id ORDER BY i.line_no) = 1) q;
