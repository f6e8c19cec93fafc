"""Parsers of what models write: pure, ``str -> T``, linear in the length, and a ParseError where it cannot be read.

``cleaning``: what every reply goes through first. ``tool_names``: which tool is meant. ``labelled``: labelled text.
``lenient_json``: forgiving JSON, by ``json_reader``. ``json_actions``: actions and provider tool calls as JSON.
``moves``: the next move of a search. ``plan_reply``: a plan, from the form that it
was written in (``plan_forms``, ``plan_drafts``) to a ``plan_graph``, mended by ``plan_repair``. ``figures``: numbers
and citations in an answer. ``attribution``: which document an answer rests on.
"""
