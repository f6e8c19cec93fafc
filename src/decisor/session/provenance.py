"""Where a run is from, for its trace: what was read, by whom, and what was not for them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from decisor.decision_models.format import Model
from decisor.session.sources import Source, Sources
from decisor.trace.provenance import DataSource, Provenance, RowPolicy, UsedFile
from decisor.types import Tool
from decisor.version import __version__

LITERAL = re.compile(r"'(?:[^']|'')*'|(?<![\w.])\d+(?:\.\d+)?(?![\w.])")


def origin_of(sources: Sources, tools: Sequence[Tool], tells_places: bool) -> Provenance:
    """What is the same for all runs on these data, ``tools`` once they are open. ``tells_places``: whether who asks may
    know where they lie."""
    return Provenance(
        version=__version__,
        sources=tuple(source_of(one, tells_places) for one in sources.places),
        tables=sources.tables,
        deny_tables=sources.deny_tables if tells_places else (),
        definitions=tuple(used_file(path, tells_places, about=name) for name, path in sources.definitions),
        model=used_model(sources.model, tools, tells_places) if sources.model is not None else None,
    )


def source_of(source: Source, tells_place: bool) -> DataSource:
    """A connection is known by its name; where it lies stands in the config file. Who may not know that may not know
    the conditions either, which could name a table that is not theirs to see."""
    place = source.label if tells_place and source.connection is None else ""
    masks = source.policy.mask
    rows = tuple(RowPolicy(table, visible(condition, masks) if tells_place else "")
                 for table, condition in source.policy.rows)  # fmt: skip
    return DataSource(source.name, source.form, place, rows, masks, source.policy.seed if masks else "")


def visible(condition: str, masks: tuple[str, ...]) -> str:
    """Without values, where it is about a masked column.

    >>> visible("region = 'EU'", ("customers.email",)), visible("email <> 'a@b.c'", ("customers.email",))
    ("region = 'EU'", 'email <> ?')
    """
    columns = {name.rpartition(".")[2].strip('"`[]').lower() for name in masks}
    return LITERAL.sub("?", condition) if columns & set(re.findall(r"\w+", condition.lower())) else condition


def used_model(path: Path, tools: Sequence[Tool], tells_place: bool) -> UsedFile:
    """The decision model as it was opened."""
    file = used_file(path, tells_place)
    text = next(texts_of(tools), "")
    if text:
        return UsedFile(file.path, digest_of(text.encode()), text)
    return UsedFile(file.path, file.digest, path.read_text("utf-8", "replace") if file.digest else "")


def texts_of(tools: Sequence[Tool]) -> Iterator[str]:
    """Of the decision models among them."""
    for tool in tools:
        model = getattr(getattr(getattr(tool, "tool", tool), "model", None), "model", None)
        if isinstance(model, Model):
            yield model.text


def used_file(path: Path, tells_place: bool, about: str = "") -> UsedFile:
    try:
        digest = digest_of(path.read_bytes())
    except OSError:
        digest = ""
    return UsedFile(str(path) if tells_place else path.name, digest, about=about)


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
