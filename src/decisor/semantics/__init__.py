"""Definitions of the words of a question: metrics, calendars, entities, values, readings, examples.

A definitions file belongs to a database. Definitions are shown with the data, compared with queries, and cited by
decisions. ``readings`` finds words of a question that could mean two things in these data: rules and an LLM notice
them, a person settles them.
"""
