"""Judges: functions from an answer to a verdict of an LLM, which is asked through a Run, so that every call is charged
and traced. A judge that cannot be read gives None: unscored, never wrong.

These see gold answers, and so only ever run after a decision, in this room.
"""
