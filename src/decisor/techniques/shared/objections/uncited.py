"""An answer that cites a row or passage which does not hold it, while one beside it does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from decisor.parsing.attribution import iterate_scalars
from decisor.types import Record

UNCITED = "{name} stands in {id}, which you do not cite, and in no record that you do."


def uncited(name: str, cited_ids: Sequence[str], records: Mapping[str, Record]) -> list[str]:
    """Return the records that hold the name, as a value or as words of their text, beside those that are cited (of
    the same
    observation), where no record that is cited holds it in any way.

    >>> rows = {id: Record(id, {"name": name}) for id, name in (("o1.r1", "Elm"), ("o1.r2", "Oak"))}
    >>> uncited("elm", ["o1.r2"], rows), uncited("elm", ["o1.r1"], rows), uncited("ash", ["o1.r2"], rows)
    (['o1.r1'], [], [])
    """
    plain = name.strip().casefold()
    cited = [records[id] for id in cited_ids if id in records]
    if not plain or not cited or any(plain in words_of(record) for record in cited):
        return []
    beside = {id.partition(".")[0] for id in cited_ids}
    return [id for id, record in records.items() if id.partition(".")[0] in beside and holds_name(record, plain)]


def holds_name(record: Record, plain: str) -> bool:
    if record.text:
        return re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", record.text.casefold()) is not None
    return any(plain == str(value).strip().casefold() for value in iterate_scalars(record.fields.values()))


def words_of(record: Record) -> str:
    return " ".join([record.text, *map(str, iterate_scalars(record.fields.values()))]).casefold()
