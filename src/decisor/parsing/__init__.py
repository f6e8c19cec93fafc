"""Parsers of what LLMs write: pure, ``str -> T``, linear in the length, and a ParseError where it cannot be read.

``cleaning``: the first step for every reply. ``prompting`` and ``reply_form``: how a reply is asked for, and asked for
again. ``labelled``: labelled text and the moves of a search. ``unlabelled``: actions as JSON or queries, and the names
of tools. ``lenient_json``: forgiving JSON. ``toml_reply``: TOML files. ``plan``: a plan as a graph, repaired.
``figures``: numbers, units, periods and citations. ``attribution``: the document that an answer rests on.
``whatif_request``: the input of the tool ``whatif``.
"""
