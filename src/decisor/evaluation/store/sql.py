"""A run store in SQL: the queries, for any database that keeps its promises (``Database``)."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from decisor.encoding import json_text
from decisor.errors import SetupError
from decisor.evaluation.store.protocol import Claim, Key, StoreError, Task, completion_of, outcome_of
from decisor.outcome import Outcome
from decisor.trace.events import Entry
from decisor.trace.file import file_text, read_text
from decisor.types import Completion, Usage, Value

KEY = "benchmark, case_id, technique, model, repeat"
WHOSE = "benchmark = ? AND case_id = ? AND technique = ? AND model = ? AND repeat = ?"
Cell = str | int | float | bytes | None
"""What a query of a store is given, and what a row holds."""
StoredRow = tuple[Any, ...]
MOST_TRACE_BYTES = 128 * 2**20
"""What a trace may inflate to."""
TABLES = ("about", "owners", "cases", "traces", "replies")


class Database(Protocol):
    """One connection to where the tables are, with a temporary table ``wanted (seq)``. Values stand at ``?``.

    ``skip``: what lets two processes that claim at once pass each other. ``in_order``: whoever sees a row sees all with
    lower numbers, now and later. Every method raises StoreError.
    """

    @property
    def name(self) -> str: ...

    @property
    def skip(self) -> str: ...

    @property
    def in_order(self) -> bool: ...

    def field(self, column: str, *names: str) -> str:
        """The SQL for what is under ``names`` in a column of JSON, as text or number."""
        ...

    def rows(self, query: str, values: Sequence[Cell] = ()) -> list[StoredRow]: ...

    def stream(self, query: str) -> Iterator[StoredRow]:
        """Row by row, never all in memory."""
        ...

    def many(self, query: str, values: Iterable[Sequence[Cell]]) -> None: ...

    def transaction(self) -> AbstractContextManager[None]: ...

    def take(self, number: int) -> bool:
        """Hold a lock of that number for as long as this process lives, however it ends. False where it is held."""
        ...

    def living(self, number: int) -> bool:
        """Whether somebody holds it."""
        ...

    def close(self) -> None:
        """Lets go of the lock too."""
        ...

    def interrupt(self) -> None:
        """End what waits for a server, from any thread: it raises StoreError, and so does all that follows."""
        ...


class SqlStore:
    """``owner``: this process's number, given when it first claims a case."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.owner: int | None = None
        self.depth = 0

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Nested ones join the outermost. Raises StoreError where it cannot be kept; then nothing of it is."""
        self.depth += 1
        try:
            if self.depth > 1:
                yield
            else:
                with self.db.transaction():
                    yield
        finally:
            self.depth -= 1

    def about(self) -> Mapping[str, Value]:
        with whole(self.db.name):
            rows = self.db.rows("SELECT name, value FROM about ORDER BY name")
            return {name: json.loads(value) for name, value in rows}

    def begin(self, about: Mapping[str, Value]) -> None:
        with self.transaction():
            settings = self.about()
            if settings:
                same_settings(settings, json.loads(json_text(about)), self.db.name)
                return
            keep = "INSERT INTO about VALUES (?, ?) ON CONFLICT DO NOTHING"
            self.db.many(keep, [(name, json_text(value)) for name, value in about.items()])

    def plan(self, tasks: Sequence[Task]) -> None:
        with self.transaction():
            add = f"INSERT INTO cases ({KEY}, content) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
            self.db.many(add, ((*task.key, task.content) for task in tasks))
            choose = f"INSERT INTO wanted SELECT seq FROM cases WHERE {WHOSE} ON CONFLICT DO NOTHING"
            self.db.many(choose, (task.key for task in tasks))
            chosen_rows = self.db.rows(f"SELECT {KEY}, content FROM wanted JOIN cases USING (seq)")
            contents = {tuple(row[:5]): row[5] for row in chosen_rows}
            for task in tasks:
                if task.content and contents[task.key] not in (task.content, ""):
                    raise SetupError(f"The case {task.key[1]} of {task.key[0]} is not what it was when {self.db.name} "
                                     "was begun: the data changed. Begin another store.")  # fmt: skip

    def claim(self) -> Claim | None:
        """Free ones first, in the order of the plan; then those of owners that died."""
        while self.owner is None:
            with self.transaction():
                number: int = self.db.rows("INSERT INTO owners DEFAULT VALUES RETURNING id")[0][0]
            self.owner = number if self.db.take(number) else None
        claim = CLAIM.format(skip=self.db.skip)
        with self.transaction():
            rows = self.db.rows(claim, (self.owner,))
            if not rows and self._free_the_dead():
                rows = self.db.rows(claim, (self.owner,))
        return Claim(tuple(rows[0][:5]), rows[0][5]) if rows else None

    def _free_the_dead(self) -> bool:
        owners = self.db.rows("SELECT DISTINCT owner FROM cases WHERE outcome IS NULL AND owner IS NOT NULL")
        dead = [number for (number,) in owners if number != self.owner and not self.db.living(number)]
        self.db.many(FREE, [(number,) for number in dead])
        return bool(dead)

    def left(self) -> int:
        return int(self.db.rows("SELECT count(*) FROM wanted JOIN cases USING (seq) WHERE outcome IS NULL")[0][0])

    def leave_out(self, benchmark: str, technique: str) -> int:
        with self.transaction():
            return len(self.db.rows(LEAVE_OUT, (benchmark, technique)))

    def release(self) -> None:
        if self.owner is not None:
            with self.transaction():
                self.db.many(FREE, [(self.owner,)])

    def finish(self, outcome: Outcome, entries: Sequence[Entry], fence: int | None = None) -> bool:
        lines = zlib.compress(file_text(entries).encode(), 1)
        with self.transaction():
            if fence is None:
                self.plan([Task(outcome.key)])
                fence = self.db.rows(f"SELECT fence FROM cases WHERE {WHOSE}", outcome.key)[0][0]
            keep = f"UPDATE cases SET outcome = ? WHERE {WHOSE} AND fence = ? AND outcome IS NULL RETURNING seq"
            rows = self.db.rows(keep, (json_text(outcome), *outcome.key, fence))
            if rows:
                trace = "INSERT INTO traces VALUES (?, ?) ON CONFLICT (seq) DO UPDATE SET lines = excluded.lines"
                self.db.many(trace, [(rows[0][0], lines)])
        return bool(rows)

    def reopen(self, states: Sequence[str]) -> int:
        state = self.db.field("outcome", "state")
        again = f"UPDATE cases SET outcome = NULL, owner = NULL WHERE {state} = ? RETURNING seq"
        with self.transaction():
            return sum(len(self.db.rows(again, (one,))) for one in states)

    def outcomes(self) -> list[Outcome]:
        return list(self.each_outcome())

    def each_outcome(self) -> Iterator[Outcome]:
        for *key, text in self.db.stream(f"SELECT {KEY}, outcome FROM cases WHERE outcome IS NOT NULL ORDER BY {KEY}"):
            with whole(self.db.name):
                outcome = outcome_of(text)
                if outcome.key != tuple(key):
                    raise ValueError(f"the outcome of {key[1]} is of another case")
            yield outcome

    def trace(self, key: Key) -> list[Entry]:
        find = f"SELECT lines FROM traces JOIN cases USING (seq) WHERE {WHOSE} AND outcome IS NOT NULL"
        with whole(self.db.name):
            rows = self.db.rows(find, key)
            return read_text(inflated(rows[0][0]).decode()) if rows else []

    def reply(self, key: str) -> Completion | None:
        rows = self.db.rows("SELECT body FROM replies WHERE key = ? AND usable = 1 ORDER BY seq LIMIT 1", (key,))
        with whole(self.db.name):
            return completion_of(rows[0][0]) if rows else None

    def keys_since(self, seq: int) -> tuple[int, list[str]] | None:
        if not self.db.in_order:
            return None
        rows = self.db.rows("SELECT seq, key FROM replies WHERE seq > ? AND usable = 1 ORDER BY seq", (seq,))
        return (rows[-1][0] if rows else seq), [key for _, key in rows]

    def keep_reply(self, key: str, reply: Completion, usable: bool = True) -> Completion:
        with self.transaction():
            earlier = self.reply(key) if usable else None
            keep = "INSERT INTO replies (key, usable, body) VALUES (?, ?, ?)"
            self.db.many(keep, [(key, int(usable), json_text(reply))])
        return earlier or reply

    def spent(self) -> Usage:
        names = ("calls", "prompt_tokens", "completion_tokens", "seconds", "cache_reads", "cache_writes", "dollars")
        parts = [f"CAST({self.db.field('body', 'usage', name)} AS DOUBLE PRECISION)" for name in names]
        sums = ", ".join(f"coalesce(sum({part}), 0)" for part in parts)
        query = f"SELECT {sums}, count(*) - count({parts[-1]}) FROM replies"
        calls, prompt, completion, seconds, reads, writes, dollars, unpriced = self.db.rows(query)[0]
        return Usage(int(calls), int(prompt), int(completion), None if unpriced else dollars, seconds,
                     cache_reads=int(reads), cache_writes=int(writes))  # fmt: skip

    def interrupt(self) -> None:
        self.db.interrupt()

    def close(self) -> None:
        """The cases that are held stay held until here; after it anybody may take them."""
        self.owner = None
        self.db.close()


@contextmanager
def whole(name: str) -> Iterator[None]:
    """What is read makes sense. Raises StoreError where it does not."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError, zlib.error) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise StoreError(f"The run store {name} is damaged ({why}). Take a copy of it from before, or begin another: "
                         "--store FILE.") from error  # fmt: skip


def inflated(lines: bytes) -> bytes:
    """Raises ValueError where that is more than a trace may be."""
    inflate = zlib.decompressobj()
    text = inflate.decompress(lines, MOST_TRACE_BYTES)
    if not inflate.eof:
        raise ValueError(f"a trace is cut off, or more than {MOST_TRACE_BYTES >> 20} MB")
    return text


FREE = "UPDATE cases SET owner = NULL WHERE outcome IS NULL AND owner = ?"
LEAVE_OUT = """
DELETE FROM wanted WHERE seq IN (SELECT seq FROM cases WHERE benchmark = ? AND technique = ? AND outcome IS NULL)
RETURNING seq
"""
CLAIM = f"""
UPDATE cases SET owner = ?, fence = fence + 1
WHERE seq = (
    SELECT seq FROM cases WHERE outcome IS NULL AND owner IS NULL AND seq IN (SELECT seq FROM wanted)
    ORDER BY seq LIMIT 1 {{skip}}
)
RETURNING {KEY}, fence
"""


def same_settings(settings: Mapping[str, Value], request: Mapping[str, Value], where: str) -> None:
    """Raises SetupError naming what differs."""
    changed = [
        f"{name} {json.dumps(settings.get(name))}, not {json.dumps(request.get(name))}"
        for name in dict.fromkeys([*settings, *request])
        if settings.get(name) != request.get(name)
    ]
    if changed:
        raise SetupError(f"{where} was begun with {'; '.join(changed)}. Use the same settings, or another --store.")
