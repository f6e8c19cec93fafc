"""A record of a decision as a file: written, read, held against its schema and its own digests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from decisor.decision_record.approving import standing
from decisor.decision_record.digests import digest_of, part_digests, row_digest
from decisor.decision_record.format import FORMAT, DecisionRecord
from decisor.decision_record.page import page_of
from decisor.decision_record.schema import record_from
from decisor.encoding import finite
from decisor.errors import SetupError
from decisor.outside import one_line
from decisor.private_file import write_private

MOST_BYTES = 256 * 2**20
SIGN = re.compile(rb'"format"\s*:\s*"decisor decision record')


@dataclass(frozen=True)
class RecordFile:
    """``faults``: what in it is not as it was when it was made."""

    record: DecisionRecord
    faults: tuple[str, ...] = ()


def text_of(record: DecisionRecord) -> str:
    """As JSON."""
    text = json.dumps(finite(record), ensure_ascii=False, indent=2, allow_nan=False)
    return text.encode("utf-8", "replace").decode() + "\n"


def save(record: DecisionRecord, path: str | PathLike[str]) -> None:
    """Write it as JSON, or where the name ends with ``.html`` as one page.

    Raises:
        SetupError: the file cannot be written.
    """
    path = Path(path)
    text = page_of(record) if path.suffix in (".html", ".htm") else text_of(record)
    try:
        write_private(path, text)
    except OSError as error:
        raise SetupError(f"Cannot write {path}: {error.strerror}.") from error


def is_record(path: Path) -> bool:
    """Whether it begins like one."""
    try:
        with path.open("rb") as file:
            return SIGN.search(file.read(4096)) is not None
    except OSError:
        return False


def read_record(path: Path) -> RecordFile:
    """Raises SetupError where it cannot be read or does not meet the schema."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise SetupError(f"{path} is too large for the record of a decision.")
        return checked(json.loads(path.read_bytes(), object_pairs_hook=each_once), str(path))
    except OSError as error:
        raise SetupError(f"Cannot read {path}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise SetupError(f"{path} is no JSON of a record: {one_line(str(error), 200)}") from error


def each_once(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """An object; ValueError where a name stands twice, of which two readers could take one each."""
    names = dict(pairs)
    if len(names) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return names


def checked(plain: object, where: str = "This") -> RecordFile:
    """Raises SetupError where it does not meet the schema, with the place."""
    if not isinstance(plain, Mapping) or plain.get("format") != FORMAT:
        version = plain.get("format") if isinstance(plain, Mapping) else None
        hint = f" of this version ({FORMAT})" if isinstance(version, str) else ""
        raise SetupError(f"{where} is no record of a decision{hint}. Make one: decisor show last --record FILE")
    record = record_from(plain, where)
    return RecordFile(record, tuple(faults_of(record, plain)))


def faults_of(record: DecisionRecord, plain: Mapping[str, Any]) -> Iterator[str]:
    """Which part, which row and which approval is not as it was."""
    content = plain["content"]
    digests = part_digests(content)
    changed = [name for name, digest in digests.items() if record.digests.get(name) != digest]
    for name in changed:
        yield f"{name} was changed after the record was made: its digest is another."
    if set(record.digests) != set(digests):
        yield "Digests are not those of the parts of the content."
    if digest_of(content) != record.digest:
        yield "The digest is not that of the content."
    elif record.run_digest and record.run_digest != digest_of([record.digest, record.run]):
        yield "The number of the run was changed after the record was made."
    for query in record.content.evidence.queries:
        yield from (
            f"The row {row.id} was changed after the record was made."
            for row in query.rows
            if row_digest(row.fields, row.text) != row.digest
        )
    for one in record.approvals:
        match standing(one, digest_of(content)):
            case "changed":
                yield f"The approval by {one.by} was changed after it was made."
            case "of another content":
                yield f"{one.by} approved another content of this record (digest {one.content[:12]}…), on {one.at}."
            case "holds" | "refused" | "withdrawn":
                pass
