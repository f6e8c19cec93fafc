"""The machine of decision models, in the worker: a DuckDB in memory, on which a model's statements run."""
