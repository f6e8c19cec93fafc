"""One set of questions over documents a file: its cases, its passages, and what is right in it.

``corpus``: an index, or JSON lines with id, title and text, instead of the set's own passages. ``mode``: how it is
searched (dense and hybrid embed every passage the first time). ``limit``: passages a search returns. ``judge``:
MODEL@URL of an LM that says, as the metric ``llm_eval``, whether an answer means the same as an accepted one.
"""
