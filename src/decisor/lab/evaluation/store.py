"""The run store: finished cases with their traces, who works on which case, and every reply that was paid for.

A store is synchronous and belongs to one thread at a time; ``Writer`` puts one behind an event loop. One thread owns
it then, and jobs that come in meanwhile are stored together, so that a thousand replies a second cost a few syncs and
no wait of the loop. Everything from which a method has returned is on disk: it survives kill -9 and power loss.
"""

from __future__ import annotations

import asyncio
import json
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeVar

from decisor.errors import SetupError
from decisor.lab.benchmark import Outcome
from decisor.lab.evaluation.store_file import KEY, StoreError, StoreFile, open_store_file
from decisor.system.serialization import DocumentFormat, json_text
from decisor.trace.events import TraceEntry
from decisor.trace.file import format_trace_file, read_trace_text
from decisor.types import Completion, Usage, Value

Key = tuple[str, str, str, str, int]
"""Benchmark, case, technique, model, repeat: see ``Outcome.key``."""


@dataclass(frozen=True, slots=True)
class CaseTask:
    """A case that is to be run."""

    key: Key
    content: str = ""
    """Hash of question and gold, so that changed data are noticed; '' if not known."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A case that this process works on. Its outcome is accepted only while ``fence`` is the current one."""

    key: Key
    fence: int


OUTCOME = DocumentFormat(Outcome)
COMPLETION = DocumentFormat(Completion)
WHOSE = "benchmark = ? AND case_id = ? AND technique = ? AND model = ? AND repeat = ?"
MOST_TRACE_BYTES = 128 * 2**20
"""What a trace may inflate to."""


class RunStore:
    """A place that keeps the cases, traces and replies of a run, in an SQLite file.

    Order is by sequence number or by key, never by time.
    """

    def __init__(self, db: StoreFile) -> None:
        self.db = db
        self.owner: int | None = None  # number of this process, from its first claim on
        self.depth = 0

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Open a transaction; nested ones join the outermost.

        Raise StoreError if it cannot be stored; then nothing of it is.
        """
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
        """Return the settings of the suite, empty before the first run."""
        with report_damaged_store(self.db.name):
            rows = self.db.rows("SELECT name, value FROM about ORDER BY name")
            return {name: json.loads(value) for name, value in rows}

    def begin(self, about: Mapping[str, Value]) -> None:
        """Store the settings. Raise SetupError if the store was begun with other settings."""
        with self.transaction():
            settings = self.about()
            if not settings:
                keep = "INSERT INTO about VALUES (?, ?) ON CONFLICT DO NOTHING"
                self.db.many(keep, [(name, json_text(value)) for name, value in about.items()])
                return
        request = json.loads(json_text(about))
        changed = [
            f"{name} {json.dumps(settings.get(name))}, not {json.dumps(request.get(name))}"
            for name in dict.fromkeys([*settings, *request])
            if settings.get(name) != request.get(name)
        ]
        if changed:
            raise SetupError(
                f"{self.db.name} was begun with {'; '.join(changed)}. Use the same settings, or another --store."
            )

    def plan(self, tasks: Sequence[CaseTask]) -> None:
        """Add the tasks that are missing. ``claim`` and ``left`` are about the tasks that this process planned.

        Raises:
            SetupError: the content of a case changed.
        """
        with self.transaction():
            add = f"INSERT INTO cases ({KEY}, content) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
            self.db.many(add, ((*task.key, task.content) for task in tasks))
            choose = f"INSERT INTO wanted SELECT seq FROM cases WHERE {WHOSE} ON CONFLICT DO NOTHING"
            self.db.many(choose, (task.key for task in tasks))
            chosen_rows = self.db.rows(f"SELECT {KEY}, content FROM wanted JOIN cases USING (seq)")
            contents = {tuple(row[:5]): row[5] for row in chosen_rows}
            for task in tasks:
                if task.content and contents[task.key] not in (task.content, ""):
                    raise SetupError(
                        f"The case {task.key[1]} of {task.key[0]} is not what it was when {self.db.name} "
                        "was begun: the data changed. Begin another store."
                    )

    def claim(self) -> Claim | None:
        """Claim the next case that is neither finished nor held by a living process. None if there is none.

        Free ones come in the order of the plan, then those of dead owners.
        """
        if self.owner is None:
            with self.transaction():
                number: int = self.db.rows("INSERT INTO owners DEFAULT VALUES RETURNING id")[0][0]
            self.db.take(number)
            self.owner = number
        with self.transaction():
            rows = self.db.rows(CLAIM, (self.owner,))
            # Asking for locks is slow, so the dead are looked for only if nothing is free.
            if not rows:
                owners = self.db.rows("SELECT DISTINCT owner FROM cases WHERE outcome IS NULL AND owner IS NOT NULL")
                self.db.many(FREE, [one for one in owners if one[0] != self.owner and not self.db.living(one[0])])
                rows = self.db.rows(CLAIM, (self.owner,))
        return Claim(tuple(rows[0][:5]), rows[0][5]) if rows else None

    def left(self) -> int:
        """Count the planned cases that are not finished. Cases that others work on are included."""
        return int(self.db.rows("SELECT count(*) FROM wanted JOIN cases USING (seq) WHERE outcome IS NULL")[0][0])

    def leave_out(self, benchmark: str, technique: str) -> int:
        """Remove a technique's unfinished cases on a benchmark from this process's plan; return the count."""
        with self.transaction():
            return len(self.db.rows(LEAVE_OUT, (benchmark, technique)))

    def release(self) -> None:
        """Release every case that this process holds."""
        if self.owner is not None:
            with self.transaction():
                self.db.many(FREE, [(self.owner,)])

    def finish(self, outcome: Outcome, entries: Sequence[TraceEntry], fence: int | None = None) -> bool:
        """Store an outcome with its trace, in one transaction.

        Return False and store nothing if the case is finished already or ``fence`` is no longer current: another
        process took the case over.
        """
        lines = zlib.compress(format_trace_file(entries).encode(), 1)
        with self.transaction():
            # An outcome from elsewhere has no claim: it takes the fence that is current.
            if fence is None:
                self.plan([CaseTask(outcome.key)])
                fence = self.db.rows(f"SELECT fence FROM cases WHERE {WHOSE}", outcome.key)[0][0]
            # A late process has an old fence and changes no row: who took the case over keeps it.
            keep = f"UPDATE cases SET outcome = ? WHERE {WHOSE} AND fence = ? AND outcome IS NULL RETURNING seq"
            rows = self.db.rows(keep, (json_text(outcome), *outcome.key, fence))
            if rows:
                trace = "INSERT INTO traces VALUES (?, ?) ON CONFLICT (seq) DO UPDATE SET lines = excluded.lines"
                self.db.many(trace, [(rows[0][0], lines)])
        return bool(rows)

    def reopen(self, states: Sequence[str]) -> int:
        """Delete the outcomes in these states so that the cases are run again; return the count."""
        again = "UPDATE cases SET outcome = NULL, owner = NULL WHERE outcome ->> 'state' = ? RETURNING seq"
        with self.transaction():
            return sum(len(self.db.rows(again, (one,))) for one in states)

    def outcomes(self) -> list[Outcome]:
        """Return the outcome of every finished case, sorted by key."""
        return list(self.each_outcome())

    def each_outcome(self) -> Iterator[Outcome]:
        """Iterate over the outcomes without holding all of them in memory."""
        for *key, text in self.db.stream(f"SELECT {KEY}, outcome FROM cases WHERE outcome IS NOT NULL ORDER BY {KEY}"):
            with report_damaged_store(self.db.name):
                outcome = OUTCOME.decode(text)
                if outcome.key != tuple(key):
                    raise ValueError(f"the outcome of {key[1]} is of another case")
            yield outcome

    def trace(self, key: Key) -> list[TraceEntry]:
        """Return the entries of a finished case, empty if it is not finished."""
        find = f"SELECT lines FROM traces JOIN cases USING (seq) WHERE {WHOSE} AND outcome IS NOT NULL"
        with report_damaged_store(self.db.name):
            rows = self.db.rows(find, key)
            return read_trace_text(inflate_trace(rows[0][0]).decode()) if rows else []

    def reply(self, key: str) -> Completion | None:
        """Return the first usable reply that was stored for a request, None if there is none."""
        rows = self.db.rows("SELECT body FROM replies WHERE key = ? AND usable = 1 ORDER BY seq LIMIT 1", (key,))
        with report_damaged_store(self.db.name):
            return COMPLETION.decode(rows[0][0]) if rows else None

    def keys_since(self, seq: int) -> tuple[int, list[str]]:
        """Return the number of the latest reply and the keys of usable replies after number ``seq`` (0: all)."""
        rows = self.db.rows("SELECT seq, key FROM replies WHERE seq > ? AND usable = 1 ORDER BY seq", (seq,))
        return (rows[-1][0] if rows else seq), [key for _, key in rows]

    def claim_with_news(self, seq: int) -> tuple[Claim | None, tuple[int, list[str]]]:
        """Claim the next case and read the keys of replies after number ``seq``."""
        return self.claim(), self.keys_since(seq)

    def keep_reply(self, key: str, reply: Completion, usable: bool = True) -> Completion:
        """Store a reply that was paid for. Return the reply that counts: an earlier usable one if there is one."""
        with self.transaction():
            # Two processes may buy the same reply at once; both are charged, and the first is what counts for both.
            earlier = self.reply(key) if usable else None
            keep = "INSERT INTO replies (key, usable, body) VALUES (?, ?, ?)"
            self.db.many(keep, [(key, int(usable), json_text(reply))])
        return earlier or reply

    def spent(self) -> Usage:
        """Return the usage of all stored replies together."""
        names = ("calls", "prompt_tokens", "completion_tokens", "seconds", "cache_reads", "cache_writes", "dollars")
        parts = [f"body -> 'usage' ->> '{name}'" for name in names]
        sums = ", ".join(f"coalesce(sum({part}), 0)" for part in parts)
        query = f"SELECT {sums}, count(*) - count({parts[-1]}) FROM replies"
        calls, prompt, completion, seconds, reads, writes, dollars, unpriced = self.db.rows(query)[0]
        return Usage(
            int(calls),
            int(prompt),
            int(completion),
            None if unpriced else dollars,
            seconds,
            cache_reads=int(reads),
            cache_writes=int(writes),
        )

    def close(self) -> None:
        """Close the store. Cases that this process holds stay held until then; afterwards anybody may take them."""
        self.owner = None
        self.db.close()


def open_store(path: Path | str, create: bool = True, vfs: str | None = None) -> RunStore:
    """Open the store in a file. A missing one is made, unless ``create`` is false.

    Raises:
        SetupError: it cannot be opened, or is something else.
    """
    return RunStore(open_store_file(Path(path), create, vfs))


@contextmanager
def report_damaged_store(name: str) -> Iterator[None]:
    """Convert errors of reading to a StoreError that calls the store damaged."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError, zlib.error) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise StoreError(
            f"The run store {name} is damaged ({why}). Take a copy of it from before, or begin another: --store FILE."
        ) from error


def inflate_trace(lines: bytes) -> bytes:
    """Decompress a trace. Raise ValueError if it is cut off or larger than a trace may be."""
    inflate = zlib.decompressobj()
    # A few damaged or hostile bytes can inflate to gigabytes.
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
    ORDER BY seq LIMIT 1
)
RETURNING {KEY}, fence
"""


T = TypeVar("T")
TOGETHER = 500
Job = tuple[Callable[[RunStore], Any], asyncio.Future[Any]]
"""A call to the store, and the future that waits for its result."""
Delivery = tuple[asyncio.Future[Any], Any, Exception | None]
"""A future with the result or the error that it gets."""


class StoreJobs(Protocol):
    """Whoever does jobs on a run store: a thread of this process, or another process."""

    async def do(self, act: Callable[[RunStore], T]) -> T:
        """Return the result of ``act``, run in a transaction. Raise StoreError if it could not be kept."""
        ...

    async def close(self) -> None:
        """Wait until all submitted jobs are done."""
        ...


class Writer:
    """A store behind an event loop, with the keys of the replies that it holds.

    Everything from which ``do`` has returned is on disk. A submitted job is done even if nobody waits for it any more.
    """

    def __init__(self, jobs: StoreJobs) -> None:
        self.do, self.close = jobs.do, jobs.close
        self.hashes = set[int]()  # of the keys: 76 MiB for a million
        self.latest = 0

    async def look(self) -> None:
        """Read the keys of stored replies, also those of other processes. So not every reply must be looked up."""
        self._learn(await self.do(partial(RunStore.keys_since, seq=self.latest)))

    async def claim(self) -> Claim | None:
        """Claim the next case and read the keys of replies that others stored meanwhile."""
        claim, news = await self.do(partial(RunStore.claim_with_news, seq=self.latest))
        self._learn(news)
        return claim

    def _learn(self, news: tuple[int, list[str]]) -> None:
        self.latest = max(news[0], self.latest)
        self.hashes.update(map(hash, news[1]))

    async def reply(self, key: str) -> Completion | None:
        """Return the stored reply for a key, None if there is none.

        Known replies are those of the last look or claim and those stored here since.
        """
        # A hash that is known by chance costs one look into the store; an unknown one is certainly not there.
        if hash(key) not in self.hashes:
            return None
        return await self.do(partial(RunStore.reply, key=key))

    async def keep_reply(self, key: str, reply: Completion, usable: bool = True) -> Completion:
        # Before it is stored: a reader that looks too early finds nothing and asks, which is never wrong.
        self.hashes.add(hash(key))
        return await self.do(partial(RunStore.keep_reply, key=key, reply=reply, usable=usable))


class StoreThread:
    """A thread that owns a run store and does its jobs (``StoreJobs``). The store stays open when it is closed."""

    def __init__(self, store: RunStore) -> None:
        self.store = store
        self.jobs: SimpleQueue[Job | None] = SimpleQueue()
        self.loop = asyncio.get_running_loop()
        self.thread = threading.Thread(target=self._work, name="run store", daemon=True)
        self.thread.start()

    async def do(self, act: Callable[[RunStore], T]) -> T:
        done: asyncio.Future[T] = self.loop.create_future()
        self.jobs.put((act, done))
        return await done

    async def close(self) -> None:
        self.jobs.put(None)
        await asyncio.to_thread(self.thread.join)

    def _work(self) -> None:
        last = False
        while not last:
            batch = [self.jobs.get()]
            with suppress(Empty):
                # Jobs that came in meanwhile share one transaction, and so one sync to disk.
                while len(batch) < TOGETHER and batch[-1] is not None:
                    batch.append(self.jobs.get_nowait())
            last = batch[-1] is None
            jobs = [job for job in batch if job is not None]
            results = self._keep(jobs)
            with suppress(RuntimeError):  # the loop is gone
                self.loop.call_soon_threadsafe(deliver_results, results)

    def _keep(self, jobs: Sequence[Job]) -> list[Delivery]:
        """Run the jobs in one transaction, or each in its own if one of them fails by itself."""
        try:
            with self.store.transaction():
                return [(done, act(self.store), None) for act, done in jobs]
        # The store itself failed: trying each alone would fail as well.
        except StoreError as error:
            return [(done, None, error) for _, done in jobs]
        except Exception as error:
            # One job that fails rolled all others back: do each alone, so that only its caller hears of it.
            if len(jobs) == 1:
                return [(jobs[0][1], None, error)]
            return [delivery for job in jobs for delivery in self._keep([job])]


def deliver_results(results: Sequence[Delivery]) -> None:
    for done, result, error in results:
        if done.done():  # nobody waits for it any more
            continue
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)
