"""A draft of definitions of a database, by its schema and rows, and by an LM where there is one."""

from __future__ import annotations

from collections.abc import Mapping

from decisor.budget import Budget, Limits
from decisor.definitions.draft import draft
from decisor.definitions.write import Import
from decisor.errors import ParseError, SetupError
from decisor.run import Run
from decisor.session.lms import LMs
from decisor.session.opening import open_first
from decisor.session.sources import Place
from decisor.types import LM


async def draft_definitions(db: Place, lm: LM | str | None = None, limits: Limits = Limits()) -> Import:
    """``lm``: as ``ask`` takes it; "none" for the schema and the rows alone.

    Raises:
        SetupError: it is no SQL database, or cannot be opened.
        LMError: the endpoint failed for good.
    """
    tool = await open_first(db)
    lms = LMs()
    try:
        if tool.form != "sql":
            raise SetupError("Definitions are drafted of SQL databases.")
        first = await draft(tool, tool.tables)
        model = await lms.get(lm)
        if model is None:
            return Import(first)
        from decisor.definitions.draft_lm import improved
        from decisor.tools.toolbox import Toolbox

        run = Run(model, Toolbox([tool]), Budget(limits))
        try:
            return await improved(first, tool, tool.describe(), run)
        except ParseError as error:
            return Import(first, [f"what the LM wrote could not be read: {error}"])
    finally:
        await lms.close()
        await tool.close()


def counts(whole: Import) -> Mapping[str, int]:
    """How many of each kind."""
    names = ("metrics", "dimensions", "entities", "joins", "calendars", "values", "readings")
    return {name: len(group) for name in names if (group := getattr(whole.definitions, name))}
