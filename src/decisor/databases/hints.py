"""Help after a query that returned nothing or took too long: stored values near its literals, and advice.

The literals of a SQL statement are looked up by the rule ``unstored_value``, those of Cypher come from the graphs.
Stored values are read through the same checks as a query of the LLM.
"""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from decisor.databases.schema_search import Read
from decisor.errors import ToolError
from decisor.sandbox.engine import Caps
from decisor.system.text import fit_on_one_line, json_line
from decisor.types import Table, Value

SECONDS = 2.0
MAX_LITERALS = 4
MAX_VALUES = 5_000
SHOWN_VALUES = 3
SHOWN_CHARS = 60
TIMED_OUT = re.compile(
    r"ran for more than|tim(?:e|ed) ?out|time limit|max_(?:statement|execution)_time|interrupted", re.I
)
SLOW = (
    "Let it touch less: filter before joining, join on keys, aggregate each table by itself before joining them, and "
    "leave out cross products and paths of any length."
)


@dataclass(frozen=True, slots=True)
class ComparedLiteral:
    """A value that a query compares with stored ones."""

    value: str | float
    place: str
    """Name of the stored values for a person, such as table.column."""
    query: str
    """Reads the stored values, the nearest first if the value is a number."""
    part: bool = False
    """Whether a part of a stored value matches too, as with LIKE."""
    any_case: bool = False
    """Whether upper and lower case are equal."""


def advise_after_failure(complaint: str) -> str:
    """Return advice after a failed query, with a blank before it; '' if no advice is known.

    >>> (advise_after_failure("Stopped: the query ran for more than 20 s.")[:20],
    ...     advise_after_failure("no such column: x"))
    (' Let it touch less: ', '')
    """
    return f" {SLOW}" if TIMED_OUT.search(complaint) else ""


def is_empty_result(table: Table) -> bool:
    """Return whether a result has no row, or is the one row of a sum or count over no rows."""
    if len(table.rows) == 1:
        # SUM over no rows is NULL and COUNT is 0: such a row is as empty as none.
        return all(value is None or value == 0 for value in table.rows[0])
    return not table.rows


async def explain_empty_result(table: Table, literals: Sequence[ComparedLiteral], read: Read, caps: Caps) -> str:
    """Explain a result without rows: which of its literals is not stored, and which values are.

    Takes at most ``SECONDS``.
    """
    deadline = time.monotonic() + SECONDS
    complaints: list[str] = []
    stored = 0
    for literal in literals[:MAX_LITERALS]:
        left = deadline - time.monotonic()
        if left <= 0:
            break
        narrow = replace(caps, rows=MAX_VALUES, cell_chars=200, seconds=min(left, caps.seconds))
        try:
            values = [row[0] for row in (await read(literal.query, narrow)).rows]
        except ToolError:
            continue
        complaint = suggest_stored_values(literal, values)
        complaints += [complaint] if complaint else []
        stored += not complaint
    # Only if two or more literals are all stored can it be their combination that no row has.
    if stored > 1 and not complaints and not table.rows:
        complaints.append("Each value in the query is stored, but no row meets all of its conditions together.")
    return " ".join([*([] if table.rows else ["No rows."]), *dict.fromkeys(complaints)])


def suggest_stored_values(literal: ComparedLiteral, values: Sequence[Value]) -> str:
    """Name the nearest stored values if the literal is none of them; '' if it is stored.

    >>> suggest_stored_values(ComparedLiteral("man-o-war", "unit.name", ""), ["galleys", "manowars", "frigates"])
    'unit.name has no "man-o-war"; nearest: "manowars".'
    >>> (suggest_stored_values(ComparedLiteral("frig", "unit.name", "", part=True), ["frigates"]),
    ...     suggest_stored_values(ComparedLiteral("x", "unit.name", ""), []))
    ('', 'unit.name holds nothing.')
    """
    if not values:
        return f"{literal.place} holds nothing."
    if not isinstance(literal.value, str):
        numbers = [value for value in values if isinstance(value, int | float)]
        # The query brings the three nearest numbers: a stored one is among them.
        if literal.value in numbers or not numbers:
            return ""
        return f"{literal.place} has no {literal.value:.17g}; nearest: {', '.join(map(repr, numbers[:SHOWN_VALUES]))}."
    texts = [value for value in values if isinstance(value, str)]
    wish = literal.value.casefold() if literal.any_case else literal.value
    stored = [text.casefold() for text in texts] if literal.any_case else texts
    if not texts or wish in stored or (literal.part and any(wish in text for text in stored)):
        return ""
    near = nearest_texts(literal.value, texts)
    others = ", ".join(json_line(fit_on_one_line(text, SHOWN_CHARS)) for text in near or texts[:SHOWN_VALUES])
    more = "" if near or len(texts) <= SHOWN_VALUES else ", ..."
    what = f"{'nothing with' if literal.part else 'no'} {json_line(fit_on_one_line(literal.value, SHOWN_CHARS))}"
    return f"{literal.place} has {what}; {'nearest' if near else 'it has'}: {others}{more}."


def nearest_texts(text: str, texts: Iterable[str]) -> list[str]:
    """Return the texts nearest by their letters, else texts that contain the wish or lie in it.

    >>> nearest_texts("Café Oslo", ["cafe_oslo", "bar"]), nearest_texts("cloth", ["fine cloth", "iron"])
    (['cafe_oslo'], ['fine cloth'])
    """
    by_letters: dict[str, str] = {}
    for stored in texts:
        by_letters.setdefault(letters_only(stored), stored)
    wish = letters_only(text)
    close = difflib.get_close_matches(wish, by_letters, SHOWN_VALUES, 0.7)
    # One or two letters occur in nearly every text.
    if not close and len(wish) > 2:
        close = [key for key in by_letters if wish in key or (len(key) > 2 and key in wish)][:SHOWN_VALUES]
    return [by_letters[key] for key in close]


def letters_only(text: str) -> str:
    """Return a text in lower case with its letters and digits only."""
    return re.sub(r"[\W_]+", "", text).casefold()
