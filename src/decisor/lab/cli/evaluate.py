"""``decisor eval`` and ``decisor train``: techniques run on benchmarks, and parts of techniques learned from data.

``decisor eval`` runs techniques, benchmarks and models into a run store, and goes on from a stop. What ``decisor
train`` learns is saved without pickle.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
import time
from collections import defaultdict
from contextlib import redirect_stdout, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from decisor.cli.output import error_console, print_json
from decisor.cli.request_options import takes_request
from decisor.session.request import AskRequest, spell_option
from decisor.system.storage import check_writable
from decisor.system.wording import format_count
from decisor.types import Record, Usage, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.progress import TaskID

    from decisor.lab.benchmark import Outcome
    from decisor.lab.evaluation.runner import RowTally, Suite, Tally
    from decisor.lab.evaluation.store import RunStore
    from decisor.lab.evaluation.suite import SuiteRequest
    from decisor.lab.reproduction.tables import Estimate
    from decisor.lab.training import HopExample, MeasuredQueries


Names = list[str] | None


OWN_DATA = ("db", "graph", "docs", "model", "definitions", "tables", "deny_tables")


@takes_request(*OWN_DATA, note="With --questions: ")
def eval_command(
    request: AskRequest,
    suite: Annotated[Path | None, typer.Argument(help="A suite in TOML; the options below go before it.")] = None,
    benches: Annotated[
        Names, typer.Option("-b", "--bench", help='"NAME key=value ...", see: decisor bench list')
    ] = None,
    techniques: Annotated[Names, typer.Option("-t", "--technique", help='"NAME key=value ..."')] = None,
    models: Annotated[
        Names, typer.Option("--llm", help='MODEL or MODEL@BASE_URL, or "... timeout=900 price=0.4,1.6"')
    ] = None,
    questions: Annotated[
        Path | None, typer.Option(help="Questions of your own, as decisor history export writes them.")
    ] = None,
    untested: Annotated[
        bool, typer.Option("--untested", help="List kept questions that --questions lacks, with their gaps.")
    ] = False,
    junit: Annotated[Path | None, typer.Option(help="Write the outcomes as JUnit XML.")] = None,
    fail_under: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="Exit with 1 if fewer cases are right in every repeat: 0.9.")
    ] = None,
    store: Annotated[str | None, typer.Option(help="The run store, a file (run.db).")] = None,
    repeats: Annotated[int | None, typer.Option(min=1, help="Runs of every combination (1).")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of sampled replies.")] = None,
    limit_cases: Annotated[int | None, typer.Option(min=1, help="Cases of each benchmark, evenly by group.")] = None,
    share: Annotated[float | None, typer.Option(min=0.001, max=1.0, help="Share of each benchmark: 0.1.")] = None,
    ids: Annotated[Names, typer.Option("--ids", help="Only these cases, with commas or repeated.")] = None,
    max_dollars: Annotated[float | None, typer.Option(min=0.0, help="Dollars for the whole run.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens for the whole run.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask above one dollar.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would cost; run nothing.")] = False,
    limit_calls: Annotated[int | None, typer.Option(min=1, help="LLM calls for one case.")] = None,
    limit_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens for one case.")] = None,
    limit_dollars: Annotated[float | None, typer.Option(min=0.0, help="Dollars for one case.")] = None,
    limit_seconds: Annotated[float | None, typer.Option(min=0.0, help="Seconds for one case.")] = None,
    limit_actions: Annotated[int | None, typer.Option(min=1, help="Actions (queries) for one case.")] = None,
    cases_at_once: Annotated[int | None, typer.Option(min=1, max=10_000, help="Cases at a time (8).")] = None,
    calls_at_once: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="Maximum calls at once at one provider (32).")
    ] = None,
    grace: Annotated[
        float | None, typer.Option(min=0.0, help="Seconds to finish running cases when stopped (10).")
    ] = None,
    patience: Annotated[
        float | None, typer.Option(min=1.0, help="Seconds to wait for a database or an LLM that went away (600).")
    ] = None,
    executor: Annotated[str, typer.Option(help="local, or ray: a Ray cluster.")] = "local",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes on the Ray cluster (one a core).")] = None,
    again: Annotated[Names, typer.Option(help="Run cases in this state again: crashed, wrong, ...")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The outcomes, one JSON object a line, not a table.")] = False,
) -> None:
    """Run techniques on benchmarks and save everything in a run store.

    If it was stopped in any way, the same command goes on.
    """
    from decisor.errors import SetupError
    from decisor.lab.evaluation.store import open_store
    from decisor.lab.evaluation.suite import (
        SuiteRequest,
        format_suite_table,
        open_suite,
        open_suite_to_price,
        read_suite,
        write_junit_file,
    )
    from decisor.lab.reproduction.tables import estimate_suites, format_estimates
    from decisor.lab.statistics import STATES

    named = [*(benches or ()), *format_own_bench(questions, request)]
    if untested:
        print_untested_questions(questions)
        return
    if junit is not None:
        check_writable(junit, "Name another --junit file.")
    # Put the request together.
    options: dict[str, Any] = {
        "benches": tuple(named),
        "techniques": tuple(techniques or ()),
        "models": tuple(models or ()),
        "store": store,
        "repeats": repeats,
        "seed": seed,
        "limit_cases": limit_cases,
        "share": share,
        "ids": tuple(id for text in ids or () for id in text.split(",")),
        "max_dollars": max_dollars,
        "max_tokens": max_tokens,
        "cases_at_once": cases_at_once,
        "calls_at_once": calls_at_once,
        "grace": grace,
        "patience": patience,
    }
    limits = {
        "calls": limit_calls,
        "tokens": limit_tokens,
        "dollars": limit_dollars,
        "seconds": limit_seconds,
        "actions": limit_actions,
    }
    # Options given now override the file, a limit at a time.
    wanted = read_suite(suite) if suite else SuiteRequest()
    wanted = replace(wanted, **{name: value for name, value in options.items() if value not in (None, ())})
    set_limits: dict[str, Any] = {name: value for name, value in limits.items() if value is not None}
    wanted = replace(wanted, limits=replace(wanted.limits, **set_limits))
    if executor not in ("local", "ray"):
        raise SetupError(f"--executor is local or ray, not {executor!r}.")
    # Open the suite before the store: a mistyped name must not leave an empty store behind.
    to_run = (open_suite_to_price if dry_run else open_suite)(wanted, os.environ)
    estimates = estimate_suites([(wanted, to_run)], wanted.store)
    if dry_run:
        print(format_estimates(estimates), end="")
        return
    confirm_spending(estimates, yes, wanted.max_dollars)
    opened = open_store(wanted.store)
    try:
        if again:
            if unknown := set(again) - set(STATES):
                raise SetupError(f"--again is one of {', '.join(STATES)}, not {sorted(unknown)[0]}.")
            opened.reopen(again)
        # Run it, then print the table of all outcomes, those of earlier runs on the store too.
        code = (
            asyncio.run(run_suite_here(to_run, opened, wanted))[0]
            if executor == "local"
            else run_suite_on_ray(opened, wanted, workers)
        )
        if as_json:
            for outcome in opened.each_outcome():
                print_json(outcome)
        else:
            print(format_suite_table(opened.each_outcome()))
        if junit is not None:
            write_junit_file(opened.each_outcome(), junit)
        if fail_under is not None and not code:
            code = print_passed_share(opened.each_outcome(), fail_under)
    finally:
        opened.close()
    raise typer.Exit(code)


def print_passed_share(outcomes: Iterable[Outcome], least: float) -> int:
    """Print the share of cases that are right in every repeat; return 1 if it is below ``least``, else 0."""
    tries: dict[tuple[str, ...], list[bool]] = defaultdict(list)
    for one in outcomes:
        tries[one.benchmark, one.case, one.technique, one.model].append(one.state == "right")
    passed = sum(map(all, tries.values()))
    print(f"decisor: {passed} of {format_count(len(tries), 'case')} right in every repeat", file=sys.stderr)
    return int(passed < least * len(tries))


def print_untested_questions(questions: Path | None) -> None:
    """Print the questions of the history that a file lacks, with their gaps, and the costliest gap."""
    from decisor.history.recorder import read_questions
    from decisor.history.store import History
    from decisor.lab.own_questions import find_untested_questions, rank_gaps
    from decisor.session.run_setup import cost_line

    untested = find_untested_questions(History(), read_questions(questions) if questions else ())
    for one in untested:
        print(f"{one.text}\n    {format_count(one.runs, 'run')}, {cost_line(one.usage)}")
        for gap in one.gaps:
            print(f"    {gap}")
    for gap, runs, usage in rank_gaps(untested)[:1]:
        print(f"The costliest gap: {gap} ({format_count(runs, 'run')}, {cost_line(usage)}).")


ASKED_FROM_DOLLARS = 1.0
"""An estimate above this is confirmed by a person."""


def confirm_spending(estimates: Sequence[Estimate], yes: bool, max_dollars: float | None) -> None:
    """Ask a person at a terminal before more than a dollar is spent.

    Raises:
        SetupError: the answer is no, or there is nobody to ask and no ``--yes``.
    """
    from decisor.errors import SetupError
    from decisor.lab.reproduction.tables import format_estimates

    dollars = sum(one.dollars or 0.0 for one in estimates)
    if yes or min(dollars, dollars if max_dollars is None else max_dollars) <= ASKED_FROM_DOLLARS:
        return
    if not sys.stdin.isatty():
        raise SetupError(f"This costs about ${dollars:,.2f}. Write --yes to spend it, or --max-dollars 1.")
    print(format_estimates(estimates), end="", file=sys.stderr)
    if not typer.confirm(f"Spend about ${dollars:,.2f}?", err=True):
        raise SetupError("Nothing was run.")


def format_own_bench(questions: Path | None, data: AskRequest) -> list[str]:
    """Format your own questions as an entry of ``-b``. Raise SetupError if data are named without questions."""
    from decisor.errors import SetupError

    places = {name: (value,) if isinstance(value, str) else value for name, value in data.given.items()}
    settings = {name: shlex.join(texts) for name, texts in places.items() if name in OWN_DATA}
    if questions is None:
        if settings:
            raise SetupError(
                f"{spell_option(next(iter(settings)))} goes with --questions FILE: a benchmark brings its own data."
            )
        return []
    return [shlex.join(["own", f"questions={questions}", *(f"{name}={text}" for name, text in settings.items())])]


async def run_suite_here(suite: Suite, store: RunStore, request: SuiteRequest) -> tuple[int, Usage]:
    """Run a suite with a bar on standard error.

    Return 0, or 128 plus the signal that stopped it, and what was bought.
    """
    from decisor.lab.evaluation.runner import Stop, evaluate_suite

    stop, codes, loop = Stop(request.grace), [0], asyncio.get_running_loop()

    def on_signal(code: int) -> None:
        # A shell expects 128 plus the signal, as for a program that died of it.
        codes[0] = code
        if not stop.stopping.is_set():
            print(f"decisor: stopping; what is under way has {stop.grace:g} s (again: at once)", file=sys.stderr)
        stop.ask()

    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, on_signal, 128 + one)
    began = time.monotonic()
    with Display() as display:
        tally = await evaluate_suite(suite, store, stop, display.hear, say=display.say)
    paid = tally.usage
    cost = (
        "" if not paid.calls else f"; {format_count(paid.calls, 'call')} paid for now, {format_dollars(paid.dollars)}"
    )
    print(
        f"decisor: {tally.done} of {format_count(tally.total, 'case')} in {time.monotonic() - began:.1f} s{cost}. "
        f"Store: {store.db.name}",
        file=sys.stderr,
    )
    if tally.done < tally.total:
        print("decisor: the same command goes on from here", file=sys.stderr)
    return codes[0], paid


def run_suite_on_ray(store: RunStore, request: SuiteRequest, workers: int | None) -> int:
    """Run a suite on a Ray cluster; return the exit code as ``run_suite_here`` does.

    If it is stopped, it ends the workers; replies that they bought are kept.
    """
    from decisor.lab.evaluation.ray import evaluate_on_ray
    from decisor.lab.evaluation.runner import Stop

    stop, codes = Stop(), [0]

    def on_signal(number: int, frame: object) -> None:
        codes[0] = 128 + number
        if not stop.stopping.is_set():
            print("decisor: stopping; replies that were paid for are saved", file=sys.stderr)
        stop.ask()

    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, on_signal)
    with redirect_stdout(sys.stderr), Display() as display:  # Ray prints what it has to say of its workers
        tally = evaluate_on_ray(request, store, workers, stop, display.hear)
    print(f"decisor: {tally.done} of {format_count(tally.total, 'case')}. Store: {store.db.name}", file=sys.stderr)
    if tally.done < tally.total or codes[0]:
        print("decisor: the same command goes on from here", file=sys.stderr)
    return codes[0]


LINE_SECONDS = 30.0
"""Time between lines of progress where there is no terminal."""


class Display:
    """A progress display on standard error.

    On a terminal it is a table of techniques, LLMs and benchmarks with accuracy, cost so far and the time left, else a
    line now and then; lines about cases left out or services away are always printed.
    """

    def __enter__(self) -> Display:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        texts = [TextColumn("{task.description}", markup=False), TextColumn("{task.fields[words]}", markup=False)]
        columns = (texts[0], BarColumn(20), MofNCompleteColumn(), texts[1], TimeRemainingColumn())
        self.console = error_console()
        self.progress = Progress(*columns, console=self.console, disable=not sys.stderr.isatty(), transient=True)
        self.progress.__enter__()
        self.tasks: dict[str, TaskID] = {}
        self.printed: set[tuple[str, str]] = set()
        self.line_at = time.monotonic() + LINE_SECONDS
        return self

    def hear(self, tally: Tally) -> None:
        for pair in [pair for pair in tally.left_out if pair not in self.printed]:
            self.printed.add(pair)
            self.say(f"{pair[1]} on {pair[0]} is left out: {tally.left_out[pair]}")
        rows = {", ".join(key): row for key, row in tally.rows.items() if row.total}
        whole = replace(tally.whole, usage=tally.usage)
        # The last row is what this process pays for all others.
        for name, row in [*rows.items(), *([("all", whole)] if len(rows) != 1 else [])]:
            if name not in self.tasks:
                self.tasks[name] = self.progress.add_task(name, words="")
            self.progress.update(self.tasks[name], total=row.total, completed=row.done, words=format_progress(row))
        if self.progress.disable and time.monotonic() >= self.line_at:
            self.line_at = time.monotonic() + LINE_SECONDS
            self.say(f"{whole.done} of {format_count(whole.total, 'case')}, {format_progress(whole)}")

    def say(self, news: str) -> None:
        from decisor.system.text import clean_one_line

        text = clean_one_line(f"decisor: {news}", 400)
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def __exit__(self, *failure: object) -> None:
        # Standard error may be gone already, as after a closed pipe.
        with suppress(OSError):
            self.progress.__exit__(None, None, None)


def format_progress(row: RowTally) -> str:
    parts = [] if row.accuracy is None else [f"{100 * row.accuracy:.1f} % right"]
    others = ("over_budget", "unscored", "crashed")
    parts += [f"{row.states[name]} {name.replace('_', ' ')}" for name in others if row.states[name]]
    return ", ".join([*parts, format_dollars(row.usage.dollars)])


def format_dollars(amount: float | None) -> str:
    return "price unknown" if amount is None else f"${amount:.2f}"


MOST_FEATURES = 10
app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def train_root() -> None:
    """Train what techniques learn from data."""


@app.command("query-scorer")
def train_query_scorer(
    out: Annotated[Path, typer.Option(help="The folder to write: trees.npz and card.json.")],
    corpus: Annotated[Path, typer.Option(help="Passages as JSON lines: id, title, text (.gz too).")],
    questions: Annotated[
        Path, typer.Option(help="Questions as JSON lines: question, gold (ids of passages), decomposition ...")
    ],
    assess: Annotated[
        str, typer.Option(help="after or before: whether queries are scored after they are run.")
    ] = "after",
    seed: Annotated[int, typer.Option(help="Seed of candidates and trees.")] = 0,
) -> None:
    """Train the query scorer of furepa on measured retrieval ranks. Say how well it chooses on held-out questions.

    decisor train query-scorer --corpus corpus.jsonl --questions questions.jsonl --out scorer
    """
    from decisor.documents.passage import read_passages
    from decisor.errors import SetupError
    from decisor.lab.training import drop_hit_features, fit_query_scorer, read_hop_examples
    from decisor.techniques.shared.query_scorer import QueryScorer, count_splits_by_feature, save_query_scorer

    if assess not in ("before", "after"):
        raise SetupError(f"--assess is before or after, not {assess!r}.")
    passages = {one.id: Record(one.id, {"title": one.title}, one.text) for one in read_passages(corpus)}
    examples = read_hop_examples(questions, passages)
    if len(examples) < 10:
        raise SetupError(
            f"Only {len(examples)} of the questions have their gold passages in the corpus: at least 10 are needed."
        )
    candidates = asyncio.run(measure_with_progress(examples, passages, seed))
    candidates = drop_hit_features(candidates) if assess == "before" else candidates
    figures = measure_held_out(candidates, seed)
    scorer = fit_query_scorer(candidates, seed)
    card: dict[str, Value] = {
        "data": f"{questions.name} over {corpus.name}, {len(passages)} passages",
        "assess": assess,
        "questions": len(examples),
        "candidates": len(candidates.ranks),
        **figures,
        "splits": count_splits_by_feature(scorer),
    }
    save_query_scorer(QueryScorer(scorer.trees, scorer.rarity, card), out)
    for name, value in figures.items():
        print(f"{name.replace('_', ' ')}: {value}")
    splits = [f"{name} {count}" for name, count in count_splits_by_feature(scorer).items()]
    more = f" and {len(splits) - MOST_FEATURES} more" if len(splits) > MOST_FEATURES else ""
    print(f"splits by feature: {', '.join(splits[:MOST_FEATURES])}{more}")
    option = " -o assess=before" if assess == "before" else ""
    print(f"Wrote {out}. Use it with: decisor ask ... --technique furepa -o scorer={out}{option}")


async def measure_with_progress(examples: list[HopExample], passages: dict[str, Record], seed: int) -> MeasuredQueries:
    from rich.progress import Progress

    from decisor.documents.index import build_memory_index
    from decisor.documents.passage import Passage
    from decisor.lab.training import measure_queries

    index = build_memory_index(
        Passage(id, one.text, str(one.fields.get("title") or "")) for id, one in passages.items()
    )
    with Progress(console=error_console(), transient=True) as bar:
        task = bar.add_task("Running candidate queries", total=len(examples))
        return await measure_queries(examples, passages, index, seed, lambda count: bar.update(task, completed=count))


def measure_held_out(candidates: MeasuredQueries, seed: int) -> dict[str, Value]:
    """Return mean reciprocal ranks on every fifth question, by a scorer trained on the others."""
    from decisor.lab.training import evaluate_choices, fit_query_scorer

    # Questions are split, not candidates: those of one question share its passages.
    out = candidates.groups % 5 == 0
    part = candidates.where(out)
    choices = evaluate_choices(part, fit_query_scorer(candidates.where(~out), seed).trees.predict(part.rows))
    return {
        "held_out_questions": len(set(part.groups.tolist())),
        "held_out_mrr_chosen": round(float(choices.choice.mean()), 4),
        "held_out_mrr_first": round(float(choices.first.mean()), 4),
        "held_out_mrr_random": round(float(choices.random.mean()), 4),
        "held_out_mrr_best": round(float(choices.oracle.mean()), 4),
    }
