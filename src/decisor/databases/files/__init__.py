"""Files as a database: CSV, JSON, Parquet, Excel, SQLite and DuckDB files are read once into a store of our own."""
