CREATE TABLE product AS SELECT * FROM (VALUES ('basic', 10.0, 900.0, 6.0), ('plus', 14.0, 500.0, 8.0),
    ('pro', 22.0, 200.0, 12.0)) t(product, price, units, cost);
CREATE TABLE elasticity AS SELECT * FROM (VALUES ('basic', 'basic', -3.4), ('basic', 'plus', 0.7), ('basic', 'pro', 0.1),
    ('plus', 'basic', 0.9), ('plus', 'plus', -3.2), ('plus', 'pro', 0.5), ('pro', 'basic', 0.1), ('pro', 'plus', 0.8),
    ('pro', 'pro', -2.6)) t(product, other, power);
CREATE TABLE step AS SELECT i / 100.0 AS share FROM (VALUES (90), (95), (100), (105), (110)) t(i);
CREATE TABLE shelf AS SELECT 1700.0 AS units;
