"""The provenance of a run, as its trace has it: data read, reader, definitions and decision model.

A reader who may not know where the data lie gets no places and no conditions.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from decisor.session.sources import Source, Sources
from decisor.trace.events import DataSource, Provenance, RowPolicy, UsedFile
from decisor.types import Tool
from decisor.version import __version__

if TYPE_CHECKING:
    from decisor.decision_models.tool import ModelTool

# Texts in quotes and numbers, but no digits that are part of a name.
LITERAL = re.compile(r"'(?:[^']|'')*'|(?<![\w.])\d+(?:\.\d+)?(?![\w.])")


def build_provenance(sources: Sources, tools: Sequence[Tool], tells_places: bool) -> Provenance:
    """Build the provenance that all runs on these data share. tools: the opened tools. tells_places: whether the person
    who asks may know where the data lie.
    """
    return Provenance(
        version=__version__,
        sources=tuple(build_data_source(source, tells_places) for source in sources.places),
        tables=sources.tables,
        deny_tables=sources.deny_tables if tells_places else (),
        definitions=tuple(build_used_file(path, tells_places, about=name) for name, path in sources.definitions),
        model=build_used_model(sources.model, tools, tells_places) if sources.model is not None else None,
    )


def build_data_source(source: Source, tells_place: bool) -> DataSource:
    """Build the provenance of a source.

    A connection is known by its name; its place stands in the config file. Without the right to know the place a person
    may not know the conditions either, which could name a table that is not theirs to see.
    """
    place = source.label if tells_place and source.connection is None else ""
    masks = source.policy.mask
    rows = tuple(
        RowPolicy(table, hide_masked_values(condition, masks) if tells_place else "")
        for table, condition in source.policy.rows
    )
    return DataSource(source.name, source.form, place, rows, masks, source.policy.seed if masks else "")


def hide_masked_values(condition: str, masks: tuple[str, ...]) -> str:
    """Replace the values of a condition by ``?`` if it is about a masked column.

    >>> (hide_masked_values("region = 'EU'", ("customers.email",)),
    ...     hide_masked_values("email <> 'a@b.c'", ("customers.email",)))
    ("region = 'EU'", 'email <> ?')
    """
    columns = {name.rpartition(".")[2].strip('"`[]').lower() for name in masks}
    return LITERAL.sub("?", condition) if columns & set(re.findall(r"\w+", condition.lower())) else condition


def build_used_model(path: Path, tools: Sequence[Tool], tells_place: bool) -> UsedFile:
    """Build the provenance of the decision model, as it was opened."""
    file = build_used_file(path, tells_place)
    # The text of the opened model goes before that of the file, which may have changed since.
    for tool in map(unwrap_model_tool, tools):
        if tool is not None:
            text = tool.model.model.text
            return UsedFile(file.path, digest_of_content(text.encode()), text)
    return UsedFile(file.path, file.digest, path.read_text("utf-8", "replace") if file.digest else "")


def unwrap_model_tool(tool: object) -> ModelTool | None:
    """Return the tool of a decision model, also within one that takes turns; None for any other tool."""
    from decisor.decision_models.tool import ModelTool

    # Not by SerializedTool: its module needs the definitions, which need this one.
    inside = getattr(tool, "tool", tool)
    return inside if isinstance(inside, ModelTool) else None


def build_used_file(path: Path, tells_place: bool, about: str = "") -> UsedFile:
    try:
        digest = digest_of_content(path.read_bytes())
    except OSError:
        digest = ""
    return UsedFile(str(path) if tells_place else path.name, digest, about=about)


def digest_of_content(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
