"""A plan before it is a graph: drafts of its nodes, their ids and tags in one form (``Q1.1``, ``<A1.1>``)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from decisor.errors import ParseError
from decisor.types import Value

ID = re.compile(r"[QA]?(\d{1,4}\.\d{1,4})", re.I)
NUMBERED = re.compile(r"[QA#]?(\d{1,4})", re.I)
TAG = re.compile(r"<A(\d{1,4}\.\d{1,4})>")
ANY_TAG = re.compile(r"<A(\d{1,4}\.\d{1,4})>|\{[AQ]?(\d{1,4}\.\d{1,4})\}", re.I)
NUMBERED_TAG = re.compile(r"#(\d{1,4})\b|<A?(\d{1,4})>|\{[AQ]?(\d{1,4})\}", re.I)
ANGLES = str.maketrans("⟨⟩〈〉‹›", "<><><>")


@dataclass(frozen=True, slots=True)
class Draft:
    """A node as it was written, ids and tags in one form (``Q1.1``, ``<A1.1>``)."""

    id: str
    query: str
    needs: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class Drafts:
    """``numbered``: ids were 1, 2, 3 (here Q1.0, Q2.0), which say nothing of depth. ``drop``: nodes taken back."""

    drafts: tuple[Draft, ...] = ()
    final: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    simple: bool = False
    numbered: bool = False


def tags_in(query: str) -> list[str]:
    """The parts whose answers a query holds.

    >>> tags_in("Is <A1.1> older than <A1.2>, at $1 or #2?")
    ['Q1.1', 'Q1.2']
    """
    return [f"Q{number}" for number in TAG.findall(query)]


def read_id(value: Value, numbered: bool, repairs: list[str]) -> str:
    if numbered and isinstance(value, int | str) and (match := NUMBERED.fullmatch(str(value).strip())):
        return f"Q{match[1]}.0"
    if not isinstance(value, str) or not (match := ID.fullmatch(value.strip())):
        raise ParseError("An id is a text like Q1.1.", "shape")
    if value.strip() != value or value[:1] in "qa":
        repairs.append("case")
    return f"Q{match[1]}"


def ids_of(value: Value, numbered: bool) -> tuple[str, ...]:
    """Ids where they can be read; what only helps to cut a plan is never an error."""
    ids = value if isinstance(value, list) else [value]
    shape = NUMBERED if numbered else ID
    matches = [shape.fullmatch(str(id).strip()) for id in ids if isinstance(id, str | int)]
    return tuple(f"Q{match[1]}{'.0' if numbered else ''}" for match in matches if match)


def canonical(query: str, numbered: bool) -> str:
    """Tags as ``<A1.1>``. ``#1`` is one only where parts are numbered; ``$1`` never is.

    >>> canonical("Is {1.1} under $1 or #1?", numbered=False)
    'Is <A1.1> under $1 or #1?'
    """
    shape = NUMBERED_TAG if numbered else ANY_TAG
    point = ".0" if numbered else ""
    return shape.sub(lambda tag: f"<A{next(filter(None, tag.groups()))}{point}>", query.translate(ANGLES).strip())
