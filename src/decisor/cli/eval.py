"""decisor eval: run techniques x benchmarks x models into a run store, and go on where it was stopped."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
import time
from contextlib import redirect_stdout, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from decisor.cli.console import error_console, print_json
from decisor.plurals import counted

if TYPE_CHECKING:
    from decisor.evaluation.runner import Suite, Tally
    from decisor.evaluation.store.protocol import Store
    from decisor.evaluation.suite import SuiteRequest

Names = list[str] | None


def command(
    suite: Annotated[Path | None, typer.Argument(help="A suite in TOML; the options below go before it.")] = None,
    benches: Annotated[
        Names, typer.Option("-b", "--bench", help='"NAME key=value ...", see: decisor bench list')
    ] = None,
    techniques: Annotated[Names, typer.Option("-t", "--technique", help='"NAME key=value ..."')] = None,
    models: Annotated[
        Names, typer.Option("--lm", help='MODEL or MODEL@BASE_URL, or "... timeout=900 price=0.4,1.6"')
    ] = None,
    questions: Annotated[
        Path | None, typer.Option(help="Questions of your own, as decisor history export writes them.")
    ] = None,
    db: Annotated[Names, typer.Option("--db", metavar="URL", help="With --questions: the data, as for ask.")] = None,
    graph: Annotated[Names, typer.Option("--graph", metavar="URL", help="With --questions: a graph.")] = None,
    docs: Annotated[Names, typer.Option("--docs", metavar="PLACE", help="With --questions: documents.")] = None,
    store: Annotated[str | None, typer.Option(help="The run store: a file (run.db), or postgresql://...")] = None,
    repeats: Annotated[int | None, typer.Option(min=1, help="Run everything so many times (1).")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seeds what is sampled.")] = None,
    limit_cases: Annotated[int | None, typer.Option(min=1, help="So many of each benchmark, evenly by group.")] = None,
    limit_calls: Annotated[int | None, typer.Option(min=1, help="LM calls for one case.")] = None,
    limit_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens for one case.")] = None,
    limit_dollars: Annotated[float | None, typer.Option(min=0.0, help="Dollars for one case.")] = None,
    limit_seconds: Annotated[float | None, typer.Option(min=0.0, help="Seconds for one case.")] = None,
    limit_actions: Annotated[int | None, typer.Option(min=1, help="Actions (queries) for one case.")] = None,
    cases_at_once: Annotated[int | None, typer.Option(min=1, max=10_000, help="Cases at a time (8).")] = None,
    calls_at_once: Annotated[int | None, typer.Option(min=1, max=10_000, help="At one provider, at most.")] = None,
    grace: Annotated[float | None, typer.Option(min=0.0, help="Seconds for what is under way when stopped.")] = None,
    patience: Annotated[
        float | None, typer.Option(min=1.0, help="Seconds to wait for a database or an LM that went away (600).")
    ] = None,
    executor: Annotated[str, typer.Option(help="local, or ray: a Ray cluster, with a store in PostgreSQL.")] = "local",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes on the Ray cluster (one a core).")] = None,
    again: Annotated[Names, typer.Option(help="Run cases in this state again: crashed, wrong, ...")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The outcomes, one JSON object a line, not a table.")] = False,
) -> None:
    """Run techniques on benchmarks and keep everything in a run store. Stopped in any way, the same command goes on."""
    from decisor.errors import SetupError
    from decisor.evaluation.store.open import open_store
    from decisor.evaluation.suite import SuiteRequest, read_suite, suite_of

    named = [*(benches or ()), *own_bench(questions, {"db": db, "graph": graph, "docs": docs})]
    options: dict[str, Any] = {
        "benches": tuple(named), "techniques": tuple(techniques or ()), "models": tuple(models or ()),
        "store": store, "repeats": repeats, "seed": seed, "limit_cases": limit_cases, "cases_at_once": cases_at_once,
        "calls_at_once": calls_at_once, "grace": grace, "patience": patience,
    }  # fmt: skip
    limits = {"calls": limit_calls, "tokens": limit_tokens, "dollars": limit_dollars, "seconds": limit_seconds,
              "actions": limit_actions}  # fmt: skip
    request = read_suite(suite) if suite else SuiteRequest()
    request = replace(request, **{name: value for name, value in options.items() if value not in (None, ())})
    set_limits: dict[str, Any] = {name: value for name, value in limits.items() if value is not None}
    request = replace(request, limits=replace(request.limits, **set_limits))
    if executor not in ("local", "ray"):
        raise SetupError(f"--executor is local or ray, not {executor!r}.")
    to_run = suite_of(request, os.environ)
    if executor == "ray" and "://" not in request.store:
        raise SetupError("--executor ray needs a run store in PostgreSQL: --store postgresql://USER@HOST/DATABASE")
    opened = open_store(request.store)
    try:
        if again:
            opened.reopen(checked(again))
        code = (
            asyncio.run(watched(to_run, opened, request)) if executor == "local" else on_ray(opened, request, workers)
        )
        tell(opened, as_json)
    finally:
        opened.close()
    raise typer.Exit(code)


def own_bench(questions: Path | None, places: dict[str, Names]) -> list[str]:
    """As ``-b`` takes it. Raises SetupError where data are named without questions."""
    from decisor.errors import SetupError

    settings = {name: shlex.join(texts) for name, texts in places.items() if texts}
    if questions is None:
        if settings:
            raise SetupError(f"--{next(iter(settings))} goes with --questions FILE: a benchmark brings its own data.")
        return []
    return [shlex.join(["own", f"questions={questions}", *(f"{name}={text}" for name, text in settings.items())])]


def checked(states: list[str]) -> list[str]:
    from decisor.errors import SetupError
    from decisor.statistics.summary import STATES

    if unknown := set(states) - set(STATES):
        raise SetupError(f"--again is one of {', '.join(STATES)}, not {sorted(unknown)[0]}.")
    return states


async def watched(suite: Suite, store: Store, request: SuiteRequest) -> int:
    """Run with a bar on standard error; the exit code: 0, or 128 + the signal that stopped it."""
    from decisor.evaluation.runner import Stop, evaluate

    stop, codes, loop = Stop(request.grace), [0], asyncio.get_running_loop()

    def on_signal(code: int) -> None:
        codes[0] = code
        if not stop.stopping.is_set():
            print(f"decisor: stopping; what is under way has {stop.grace:g} s (again: at once)", file=sys.stderr)
        stop.ask()

    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, on_signal, 128 + one)
    began = time.monotonic()
    with Display() as display:
        tally = await evaluate(suite, store, stop, display.hear, say=display.say)
    paid = tally.usage
    cost = "" if not paid.calls else f"; {counted(paid.calls, 'call')} bought now, {dollars(paid.dollars)}"
    print(f"decisor: {tally.done} of {counted(tally.total, 'case')} in {time.monotonic() - began:.1f} s{cost}. "
          f"Store: {place(request.store)}", file=sys.stderr)  # fmt: skip
    if tally.done < tally.total:
        print("decisor: the same command goes on from here", file=sys.stderr)
    return codes[0]


def on_ray(store: Store, request: SuiteRequest, workers: int | None) -> int:
    """As ``watched``, on a Ray cluster. Stopped, it ends the workers; what they had bought is kept."""
    from decisor.evaluation.store.sql import SqlStore

    assert isinstance(store, SqlStore)
    from decisor.evaluation.ray_executor import evaluate_on_ray
    from decisor.evaluation.runner import Stop

    stop, codes = Stop(), [0]

    def on_signal(number: int, frame: object) -> None:
        codes[0] = 128 + number
        if not stop.stopping.is_set():
            print("decisor: stopping; the workers end, and what they have bought is kept", file=sys.stderr)
        stop.ask()

    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, on_signal)
    with redirect_stdout(sys.stderr), Display() as display:  # Ray prints what it has to say of its workers
        tally = evaluate_on_ray(request, store, workers, stop, display.hear)
    print(f"decisor: {tally.done} of {counted(tally.total, 'case')}. Store: {store.db.name}", file=sys.stderr)
    if tally.done < tally.total or codes[0]:
        print("decisor: the same command goes on from here", file=sys.stderr)
    return codes[0]


class Display:
    """On standard error: a progress bar with the time left, accuracy and cost so far, where that is a terminal; lines
    about what is left out or away always."""

    def __enter__(self) -> Display:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
        self.console = error_console()
        self.progress = Progress(*columns, console=self.console, disable=not sys.stderr.isatty(), transient=True)
        self.progress.__enter__()
        self.task = self.progress.add_task("", total=None)
        self.printed: set[tuple[str, str]] = set()
        return self

    def hear(self, tally: Tally) -> None:
        for pair in [pair for pair in tally.left_out if pair not in self.printed]:
            self.printed.add(pair)
            self.line(left_out(*pair, tally.left_out[pair]))
        self.progress.update(self.task, total=tally.total, completed=tally.done, description=standing(tally))

    def say(self, news: str) -> None:
        from decisor.render.text import one_line

        self.line(one_line(f"decisor: {news}", 400))

    def line(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def __exit__(self, *failure: object) -> None:
        with suppress(OSError):
            self.progress.__exit__(None, None, None)


def standing(tally: Tally) -> str:
    """
    >>> from decisor.evaluation.runner import Tally
    >>> from collections import Counter
    >>> standing(Tally(10, Counter(right=3, wrong=1, crashed=1)))
    '75.0 % right, 1 crashed, $0.00'
    """
    parts = [] if tally.accuracy is None else [f"{100 * tally.accuracy:.1f} % right"]
    parts += [f"{tally.states[name]} {name}" for name in ("over_budget", "unscored", "crashed") if tally.states[name]]
    return ", ".join([*parts, dollars(tally.usage.dollars)])


def left_out(benchmark: str, technique: str, why: str) -> str:
    """
    >>> left_out("game24", "rag", "It reads passages.")
    'decisor: rag on game24 is left out: It reads passages.'
    """
    from decisor.render.text import one_line

    return one_line(f"decisor: {technique} on {benchmark} is left out: {why}", 400)


def dollars(amount: float | None) -> str:
    return "price unknown" if amount is None else f"${amount:.2f}"


def tell(store: Store, as_json: bool) -> None:
    """The table of everything in the store; ``decisor report`` has more."""
    from decisor.evaluation.table import table

    if as_json:
        for outcome in store.each_outcome():
            print_json(outcome)
    else:
        print(table(store.each_outcome()))


def place(store: str) -> str:
    """Without user and password.

    >>> place("postgresql://me:secret@host/db"), place("run.db")
    ('postgresql://host/db', 'run.db')
    """
    from decisor.secrets import redact

    scheme, mark, rest = store.partition("://")
    return f"{scheme}://{redact(rest.rpartition('@')[2])}" if mark else store
