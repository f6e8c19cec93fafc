"""Queries that run and do not mean what they seem to: a rule is a function on the parse tree of a checked query."""
