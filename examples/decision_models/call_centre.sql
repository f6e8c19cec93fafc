CREATE TABLE hour AS SELECT h, 20 + 70 * exp(-((h - 11.5) * (h - 11.5)) / 8.0) AS calls FROM range(8, 18) t(h);
CREATE TABLE desk AS SELECT 24.0 AS wage, 5.0 AS minutes, 20.0 AS patience;
