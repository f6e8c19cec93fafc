"""The scratch copy of a decision model on DuckDB: no URL names it. It opens on JSON (``models.machine``)."""

from __future__ import annotations

from decisor.tools.databases.sandbox.engine import Caps, Database, Engine


def connect(url: str, caps: Caps) -> Database:
    """Raises SetupError where the tables do not fit, or a statement of the model is refused."""
    from decisor.tools.databases.sandbox.models import machine

    return machine.connect(url, caps)


ENGINE = Engine(name="model", title="decision model", schemes=(), form="jobs", connect=connect)
