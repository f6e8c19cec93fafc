"""Errors, sorted by who reads them.

    Error
    ├── ModelMistake        the model reads it and tries again
    │   ├── ParseError      its reply is not in the form asked for
    │   └── ToolError       its query is refused, fails, or names no tool
    ├── BudgetExceeded      the run ends here; the harness records why
    ├── LLMError             the endpoint failed for good; the harness records why
    ├── OutageError         a database or an endpoint went away; the harness waits, or records why
    └── SetupError          the person reads it: a bad flag, key, file

Anything else is a bug, and is not caught.
"""

from __future__ import annotations

from decisor.types import Usage


class Error(Exception):
    """The root of all errors that this package raises on purpose."""

    spent: Usage = Usage()
    """Cost of the run that the error ended."""


class ModelMistake(Error):
    """A mistake that the model reads, to try again."""


class ParseError(ModelMistake):
    """A reply that is not in the form asked for. ``reason`` is one word for counting (empty, syntax, both, ...)."""

    def __init__(self, complaint: str, reason: str = "syntax") -> None:
        super().__init__(complaint)
        self.reason = reason


class ToolError(ModelMistake):
    """A query that is refused, fails, or names no tool. refused: the sandbox said no, nothing was run. outage: the
    database or service behind the tool cannot be reached, whatever is asked.
    """

    def __init__(self, complaint: str, refused: bool = False, outage: bool = False) -> None:
        super().__init__(complaint)
        self.refused = refused
        self.outage = outage


class BudgetExceeded(Error):
    """A limit that is reached, or that one more call would pass. limit: its name (calls, tokens, dollars, seconds,
    actions). why: given if the limit is not passed yet.
    """

    def __init__(self, limit: str, allowed: float, why: str = "") -> None:
        # "The limit of 1 call", not of "1 calls".
        unit = limit.removesuffix("s") if allowed == 1 else limit
        super().__init__(f"The limit of {allowed:g} {unit} is reached{f': {why}' if why else '.'}")
        self.limit = limit
        self.allowed = allowed


class LLMError(Error):
    """A failure of an endpoint to give a usable reply.

    ``permanent``: it will not answer any other question either (key, quota, model); a conversation that is too long
    or that its filter refuses is no such thing. ``used``: what its unusable replies have cost (tokens, no calls).
    """

    def __init__(self, complaint: str, kind: str = "protocol", permanent: bool = False, used: Usage = Usage()) -> None:
        super().__init__(complaint)
        self.kind = kind
        self.permanent = permanent
        self.used = used


class OutageError(Error):
    """An outage of a database or endpoint that a run needs. Another question would not fare better until it is back."""


class SetupError(Error):
    """An error that the person reads: one line, with the remedy."""
