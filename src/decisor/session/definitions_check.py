"""A file of definitions, held against its database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from decisor.definitions.check import check
from decisor.definitions.parse import read
from decisor.finding import Finding
from decisor.session.opening import open_first
from decisor.session.sources import Place

if TYPE_CHECKING:
    from decisor.definitions.measure import Rows


async def check_file(file: Path, db: Place) -> list[Finding]:
    """What its checks say.

    Raises:
        SetupError: the file or the database cannot be read.
    """
    definitions = read(file)
    tool = await open_first(db)
    try:
        return await check(definitions, cast("Rows", tool))  # of a graph nothing is quoted
    finally:
        await tool.close()
