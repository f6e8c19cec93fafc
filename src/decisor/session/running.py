"""A run as a technique gets it: one LM, tools, one budget, one trace, which is heard and written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from decisor.budget import Budget, Limits
from decisor.errors import Error, SetupError
from decisor.private_file import open_private
from decisor.run import Run
from decisor.session.decide import NoLM, cost_line
from decisor.session.options import Options
from decisor.session.technique import Choice
from decisor.telemetry import telemetry
from decisor.tools.row_values import RowValues
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import Entry, RunUsage, Trace
from decisor.trace.file import TraceFile
from decisor.trace.writing import Writers
from decisor.types import Tool

Listener = Callable[[Entry], None]


@contextmanager
def running(
    tools: Sequence[Tool], choice: Choice, options: Options, after: int = 0, listeners: Sequence[Listener] = (),
    *, row_values: RowValues | None = None,
) -> Iterator[Run]:  # fmt: skip
    """Whatever ends it, the trace and the error say what it cost. ``after``: the number of an observation, after which
    those of this run are numbered. ``listeners``: who hears it beside those of the options."""
    path = options.get("trace")
    own = [options["on_event"]] if "on_event" in options else []
    with trace_to(Path(path) if path else None, [*listeners, *own]) as trace:
        trace.writers = Writers(options["on_text"]) if "on_text" in options else None
        env = Toolbox(tools, count(after + 1), approve=options.get("approve"),
                      row_values=row_values or RowValues())  # fmt: skip
        run = Run(choice.lm or NoLM(), env, Budget(options.get("limits", Limits())), trace, calling=choice.calling,
                  asking=choice.asking)  # fmt: skip
        try:
            yield run
        except BaseException as error:
            tell_cost(error, run)
            raise


def tell_cost(error: BaseException, run: Run) -> None:
    """In the trace, and with the error."""
    spent = run.budget.spent
    run.trace.add(RunUsage(spent))
    if isinstance(error, Error):
        error.spent = spent
    elif spent.calls:
        error.add_note(f"Before that: {cost_line(spent)}.")


@contextmanager
def trace_to(path: Path | None, listeners: Sequence[Listener]) -> Iterator[Trace]:
    """A trace that is heard, and written to a file where one is named.

    Raises:
        SetupError: the file cannot be written.
    """
    spans = telemetry()
    hears = [*listeners, *([spans.hear] if spans else [])]
    if path is None:
        yield Trace(listeners=hears)
        return
    try:
        file = open_private(path)
        trace_file = TraceFile(file)
    except OSError as error:
        raise SetupError(f"Cannot write the trace to {path}: {error.strerror}.") from error
    trace = Trace(listeners=[trace_file.write, *hears])
    try:
        yield trace
    finally:
        with suppress(OSError):  # told by the last write
            file.close()
        trace.fault = trace_file.fault
