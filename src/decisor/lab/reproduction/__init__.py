"""The papers' tables: what they print, what a table needs run, and ours laid out beside it."""
