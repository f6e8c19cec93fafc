"""An old decision that was computed again, in words."""

from __future__ import annotations

from collections.abc import Iterator

from decisor.plurals import counted
from decisor.render.text import one_line
from decisor.session.verify import Verification


def verification_lines(one: Verification) -> Iterator[str]:
    """Whether it holds and why, and below it, indented, what changed."""
    yield f"{one.answer}: {one.state}. {one.why}"
    yield f"  {counted(one.records, 'cited record')} read again, {counted(len(one.changes), 'change')}."
    for change in one.changes:
        yield f"  [{change.id}] {change.before} -> {change.after or 'not there'}"
    for outcome in one.outcomes:
        yield f"  {outcome.id}: {outcome.before} -> {outcome.after or 'no candidate that may be chosen'}"
    for query in one.others:
        yield f"  Beside those that it cites, other rows: {one_line(query, 200)}"
    for fault in one.faults:
        yield f"  {fault}"
    for rule in one.rules:
        yield f"  rule {rule.name}: {rule.state}: {rule.why}"
