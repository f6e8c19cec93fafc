CREATE TABLE warehouse AS SELECT * FROM (VALUES ('Basel', 41000.0, 2600), ('Genua', 38000.0, 2100), ('Lyon', 52000.0, 3000),
    ('Mainz', 33000.0, 1900), ('Linz', 29000.0, 1500), ('Ulm', 31000.0, 2000), ('Metz', 27000.0, 1500)) t(name, rent, capacity);
CREATE TABLE customer AS SELECT i AS id, 20 + (i * 37) % 90 AS units FROM range(100) t(i);
CREATE TABLE lane AS SELECT c.id AS customer, w.name AS warehouse,
    2.0 + (c.id * 131 + ascii(w.name) * 17 + ascii(substr(w.name, 2, 1)) * 59) % 900 / 100.0 AS cost FROM customer c, warehouse w;
