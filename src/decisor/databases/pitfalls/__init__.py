"""Queries that run and do not mean what they seem to: one rule, one file, each on the parse tree of a checked query."""
