"""Which of the passages that searches brought were put before the model. A technique may search more than it shows:
what a scorer passed over, or what was cut, helped nobody to an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from decisor.trace.events import ActionResult, Entry, LMCall, events_of
from decisor.types import Record

PROBE = 60
BARE = re.compile(r"\W+")


def read_ids(events: Sequence[Entry]) -> frozenset[str]:
    """The ids of the records that a prompt of the run holds, by id or by the beginning of their text. All of them where
    no model was asked."""
    prompts = [bare(message.content) for call in events_of(events, LMCall) for message in call.messages]
    records = [record for result in events_of(events, ActionResult) for record in result.observation.records]
    if not prompts:
        return frozenset(record.id for record in records)
    whole = "\n".join(dict.fromkeys(prompts))
    return frozenset(record.id for record in records if stands_in(record, whole))


def stands_in(record: Record, prompts: str) -> bool:
    probe = bare(record.text)[:PROBE].strip()
    return f" {bare(record.id)} " in prompts or bool(probe and probe in prompts)


def bare(text: str) -> str:
    """Words alone, however a prompt quotes them.

    >>> bare('[o1.r2] | "The \\\\"Loire\\\\" ends"')
    ' o1 r2 The Loire ends '
    """
    return f" {BARE.sub(' ', text).strip()} "
