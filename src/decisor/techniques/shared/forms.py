"""Of which form the tools at hand are, whatever they are called: databases and documents may be several."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from decisor.types import Environment


def forms_of(env: Environment) -> dict[str, str]:
    """Tool -> sql, cypher or passages; its own name where the environment does not tell (method ``forms``)."""
    forms: Callable[[], Mapping[str, str]] | None = getattr(env, "forms", None)
    known = forms() if forms is not None else {}
    return {name: known.get(name, name) for name in env.tools()}
