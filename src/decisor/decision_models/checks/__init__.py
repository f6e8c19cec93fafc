"""Checks of a decision model on its real rows: each names the line, the candidate and the rows."""
