CREATE TABLE month AS SELECT * FROM (VALUES (1, 'April', 620.0), (2, 'May', 760.0), (3, 'June', 980.0), (4, 'July', 700.0))
    t(number, month, hours);
CREATE TABLE plant AS SELECT 5 AS people, 140.0 AS hours_each, 4200.0 AS wage, 45.0 AS overtime, 1800.0 AS hiring, 2500.0 AS leaving,
    0.2 AS most_overtime;
