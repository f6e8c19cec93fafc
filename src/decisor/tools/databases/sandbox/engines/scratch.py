"""The scratch copy of a decision model: no URL names it. It opens on JSON (``scratch_copy``)."""

from __future__ import annotations

from decisor.tools.databases.sandbox.engine import Caps, Database, Engine


def connect(url: str, caps: Caps) -> Database:
    """Raises SetupError where the tables do not fit into SQLite."""
    from decisor.tools.databases.sandbox import scratch_copy

    return scratch_copy.connect(url, caps)


ENGINE = Engine(name="scratch", title="scratch copy", schemes=(), form="jobs", connect=connect)
