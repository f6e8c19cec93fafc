CREATE TABLE offer AS SELECT * FROM (VALUES ('Arvo', 'EUR', 7.90, 0.40, 9000, TRUE), ('Birk', 'EUR', 7.20, 0.60, 12000, FALSE),
    ('Cedo', 'USD', 7.80, 0.55, 15000, TRUE), ('Dorn', 'GBP', 6.50, 0.35, 11000, TRUE), ('Elva', 'USD', 8.10, 0.90, 20000, TRUE),
    ('Fjord', 'SEK', 79.0, 0.70, 10500, TRUE)) t(supplier, currency, price, freight, capacity, contract);
CREATE TABLE incident AS SELECT * FROM (VALUES ('Cedo', DATE '2026-02-03'), ('Cedo', DATE '2026-05-11'), ('Cedo', DATE '2026-06-30'),
    ('Arvo', DATE '2025-03-01'), ('Dorn', DATE '2026-01-20'), ('Fjord', DATE '2023-07-07')) t(supplier, day);
CREATE TABLE rate AS SELECT * FROM (VALUES ('EUR', 1.0), ('USD', 0.92), ('GBP', 1.16), ('SEK', 0.088)) t(currency, eur);
CREATE TABLE need AS SELECT 10000 AS pieces, 2 AS incidents, DATE '2025-10-01' AS since;
