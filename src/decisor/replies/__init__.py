"""Parsers of what models write: pure, ``str -> T``, linear in the length, and a ParseError where it cannot be read.

``fields``: labelled text. ``jsons``: forgiving JSON. ``actions``: JSON actions and provider tool calls. ``plans``: plan
graphs. ``answers``: JSON answers. ``figures``: numbers and citations in an answer. ``text``: what all of them share.
"""
