"""A run is kept while it runs: its trace line by line, and at its end what came of it.

What goes wrong with the history never ends a run: it may have been paid for. ``fault`` says what it was.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TextIO

from decisor.errors import Error, SetupError
from decisor.history.lock import lock
from decisor.history.past_run import Inputs, PastRun, State
from decisor.history.store import History
from decisor.private_file import open_private
from decisor.secrets import redact
from decisor.trace.events import ActionStart, Conclusion, Entry, LMCall, RunStart, RunUsage
from decisor.trace.file import TraceFile
from decisor.types import Question


@dataclass
class Keeping:
    """That a run is to be kept, in which history, whose it is, what was named for it, and which run it follows.
    ``number`` is set when the run begins; 0 where nothing was kept, and then ``fault`` may say why."""

    history: History = field(default_factory=History)
    owner: str = ""
    inputs: Inputs = field(default_factory=Inputs)
    before: int = 0
    number: int = 0
    fault: str = ""


def happens(entry: Entry) -> bool:
    """Whether a run in which this happened is worth keeping."""
    return isinstance(entry.event, LMCall | ActionStart)


def after(run: PastRun, entry: Entry) -> PastRun:
    """What is known of a run when this has happened too."""
    match entry.event:
        case RunStart() as event:
            return replace(run, question=event.question, technique=event.technique, lm=event.lm, tools=event.tools,
                           edit=event.edit)  # fmt: skip
        case Conclusion(decision=decision) if entry.span == 0:
            why = decision.reasons[-1] if decision.reasons and decision.stopped != "answered" else ""
            return replace(run, state=decision.stopped, answer=decision.answer, why=why)
        case RunUsage(usage=usage):
            return replace(run, usage=usage, entries=entry.id, seconds=entry.at)
        case _:
            return run


class Recording:
    """Hears a trace: ``write`` is a listener of it. The run is in the history from its RunStart on."""

    def __init__(self, keeping: Keeping) -> None:
        self.keeping = keeping
        self.run = PastRun(Question(""), keeping.inputs, owner=keeping.owner, began=time.time(), before=keeping.before)
        self.happened = False
        self.file: TextIO | None = None
        self.trace: TraceFile | None = None

    def begin(self) -> None:
        history = self.keeping.history
        try:
            number = history.begin(self.run)
            self.run = replace(self.run, number=number)
            self.file = open_private(history.trace_of(number))
            lock(self.file)
            self.trace = TraceFile(self.file)
            self.keeping.number = number
        except (SetupError, OSError) as error:
            self.fail(error)

    def write(self, entry: Entry) -> None:
        self.happened = self.happened or happens(entry)
        self.run = after(self.run, entry)
        if isinstance(entry.event, RunStart):
            self.begin()
        if self.trace is not None:
            self.trace.write(entry)

    def end(self, state: State = "failed", why: str = "") -> None:
        """``state`` and ``why`` of a run that came to no decision. One in which nothing happened is not kept."""
        if self.trace is None or self.file is None:
            return
        if self.trace.fault:
            self.keeping.fault = f"the trace of run {self.run.number} is not whole: {self.trace.fault}"
        if self.run.state == "running":
            self.run = replace(self.run, state=state, why=why)
        try:
            if self.happened or self.run.state not in ("failed", "interrupted"):
                self.keeping.history.write(self.run)
            else:
                self.keeping.history.delete([self.run.number], self.run.owner)
                self.keeping.number = 0
        except (SetupError, OSError) as error:
            self.fail(error)
        with suppress(OSError):  # told by the last write
            self.file.close()

    def fail(self, error: Exception) -> None:
        what = error.strerror if isinstance(error, OSError) else str(error)
        self.keeping.number, self.keeping.fault = 0, f"this run is not kept: {what}"
        self.trace = None
        if self.file is not None:
            with suppress(OSError):  # what could not be written
                self.file.close()


@contextmanager
def recorded(keeping: Keeping | None) -> Iterator[Sequence[Callable[[Entry], None]]]:
    """The listeners of a trace that is kept, until the block ends, in whatever way that ends; none where nothing is to
    be kept."""
    if keeping is None:
        yield ()
        return
    recording = Recording(keeping)
    try:
        yield [recording.write]
    except (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
        recording.end("interrupted", "It was interrupted.")
        raise
    except Error as error:
        recording.end("failed", redact(str(error)))
        raise
    except BaseException as error:
        recording.end("failed", f"It crashed: {type(error).__name__}.")
        raise
    else:
        recording.end()
