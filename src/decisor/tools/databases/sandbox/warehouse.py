"""What is particular to a database that is read through SQLAlchemy, and which limits hold there."""

from __future__ import annotations

from dataclasses import dataclass

SECONDS = 60.0
"""That one query may run: a warehouse may have to wake up first."""


@dataclass(frozen=True, slots=True)
class Warehouse:
    """``package``: on PyPI, what brings its dialect of SQLAlchemy, with the driver; '' where the person knows it.
    ``opens``: statements once for a connection, ``begins``: before each query, with ``{seconds}``, ``{ms}`` and
    ``{rows}``, one more than may be read. ``reads_only``, ``ends``: what of these keeps it to reading, and what ends a
    query that is too long; '' where nothing does. ``number``: a query for the connection's own number, ``kill``: a
    statement that ends what runs on ``{number}``, from another connection; ``cancels``: its driver can do that by
    itself. ``role``: statements that make an account which only reads, for a person. ``tried``: on which real one it
    was run; '' where only its SQL was ever written. ``opening``: seconds that it may take to open.
    """

    package: str = ""
    opens: tuple[str, ...] = ()
    begins: tuple[str, ...] = ()
    reads_only: str = ""
    ends: str = ""
    number: str = ""
    kill: str = ""
    cancels: bool = False
    role: tuple[str, ...] = ()
    tried: str = ""
    opening: float = 60.0

    def layers(self, masks: bool, rows: bool, plan: str = "") -> tuple[str, ...]:
        """What holds, for people, a line each. ``masks``, ``rows``: whether masked columns and rows of a reader are
        kept to. ``plan``: of its dialect."""
        ends = f"by the server ({self.ends}), and by" if self.ends else "by"
        way = self.kill or ("by its driver" if self.cancels else "")
        given_up = f"ended on the server ({way})" if way else "the server is not asked to end it"
        ahead = f"told ahead by {plan}" if plan else "not told, so no limit is kept to"
        policy = {(True, True): "rows and masks are kept to", (True, False): "masks are kept to, rows are refused"}
        return (
            f"run on a real one: {self.tried}" if self.tried else "never run on a real one",
            "guard: one reading statement, each part of it on a list, written anew",
            f"reading only: {self.reads_only or 'by the rights of the account alone: use one that may only read'}",
            "rows, bytes, memory: by the worker process",
            f"seconds: {ends} the worker process, which is killed",
            f"a query that is given up: {given_up}",
            f"what a query reads (--max-scan): {ahead}",
            f"rows and columns of readers: {policy.get((masks, rows), 'refused')}",
        )
