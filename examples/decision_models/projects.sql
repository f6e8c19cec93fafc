CREATE TABLE project AS SELECT 'P' || lpad(i::VARCHAR, 2, '0') AS name, (20 + (i * 67) % 90)::DOUBLE AS cost,
    (15 + (i * 10473) % 140)::DOUBLE AS value, i % 4 AS people FROM range(1, 15) t(i);
CREATE TABLE excludes AS SELECT * FROM (VALUES ('P03', 'P09'), ('P05', 'P12')) t(one, other);
CREATE TABLE needs AS SELECT * FROM (VALUES ('P07', 'P02'), ('P13', 'P01')) t(one, before);
CREATE TABLE firm AS SELECT 260.0 AS budget, 9 AS people;
