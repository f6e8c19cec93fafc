CREATE TABLE customer AS SELECT * FROM (VALUES ('Ahl', 5200.0, 0.10, 30), ('Brem', 9100.0, 0.05, 25), ('Cleve', 3900.0, 0.25, 20),
    ('Deich', 7600.0, 0.15, 45), ('Esch', 2800.0, 0.30, 15), ('Forst', 6400.0, 0.20, 35), ('Gries', 8800.0, 0.08, 40),
    ('Hagen', 4700.0, 0.12, 20)) t(name, margin, leaves, minutes);
CREATE TABLE note AS SELECT * FROM (VALUES ('Ahl', 'Asked for the contract; wants to cancel in spring.'),
    ('Brem', 'Happy with the new driver.'), ('Cleve', 'Please do not call us any more, write instead.'),
    ('Deich', 'Complained twice about late deliveries.'), ('Esch', 'Wants to cancel, a competitor is cheaper.'),
    ('Forst', 'Do not call before the audit is over.'), ('Gries', 'Complained about an invoice.'),
    ('Hagen', 'New buyer, does not know us yet.')) t(name, text);
CREATE TABLE team AS SELECT 90 AS minutes, 0.4 AS success, 0.3 AS cancels, 0.1 AS complains;
