"""The experts of a reasoning DAG and its nodes. Plan-RAG gives each a prompt of its own; each is a function of a run,
so any function of the same shape (``roles.py``) can stand in for it.
"""
