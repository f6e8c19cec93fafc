"""The papers' tables: published figures, the runs that a table needs, and our figures beside them."""
