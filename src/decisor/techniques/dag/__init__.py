"""The experts of a reasoning DAG, one a file. Plan-RAG gives each a prompt of its own; each is a function of a run, so
any function of the same shape (``roles.py``) can stand in for it.
"""
