"""The runs for the tables of a paper: suites for ``decisor eval``, and their estimated cost.

Calls and tokens of a case are measured: on the outcomes of the same LLM that a store holds already, else by functions
that play a model (``lab/published/usage.toml``, made by ``performance/reproduce_usage.py``). A real model writes more
than they do, so an estimate from them is low.
"""

from __future__ import annotations

import os
import shlex
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

from decisor.errors import SetupError
from decisor.lab.benchmark import Outcome, find_bench_class, find_bench_data
from decisor.lab.evaluation.runner import Suite
from decisor.lab.evaluation.store import open_store
from decisor.lab.evaluation.suite import SuiteRequest, format_columns, parse_suite_entry
from decisor.lab.reproduction.papers import PaperTable
from decisor.lab.reproduction.tables import add_settings, drop_part_llms, is_model_of, select_label_parts
from decisor.lab.statistics import mean
from decisor.llms.prices import price_of_llm
from decisor.system.settings import setting_fields
from decisor.techniques import asks_llm, find_technique_class

LEAST_CASES = 5
"""From so many cases of a store on, its own usage counts."""


def plan_suites(
    tables: Iterable[PaperTable], request: SuiteRequest, data: Path | None, judge: str, settings: Mapping[str, str]
) -> list[SuiteRequest]:
    """Return the suites that fill tables, each technique on the benchmarks that it is needed for.

    Left out are cells that need a judge if there is none, and cells that need weights that no LLM has.

    Args:
        request: LLMs (none: only techniques that ask none), limits, store, settings of benchmarks (``benches``).
        data: folder of the released files, None for ``$DECISOR_DATA``.
        judge: MODEL@URL for the benchmarks that a judge scores; without one their cells stay unscored.
        settings: added to each technique that has them.
    """
    of_bench = dict(map(parse_suite_entry, request.benches))
    wanted: dict[tuple[str, float], dict[str, None]] = {}
    for table in tables:
        for cell in table.subjects():
            lacks_judge, models = cell.judge and not judge, [parse_suite_entry(model)[0] for model in request.models]
            own_weights = cell.model and cell.never and not any(is_model_of(cell.model, model) for model in models)
            for bench in cell.benches if cell.technique and not lacks_judge and not own_weights else ():
                key = complete_bench(bench, of_bench, data, judge), min(table.share, request.share)
                technique = add_settings(cell.technique, settings)
                if request.models or not asks_llm(find_technique_class(parse_suite_entry(technique)[0])):
                    wanted.setdefault(key, {})[technique] = None
    # Benchmarks with the same techniques are one suite.
    suites: dict[tuple[tuple[str, ...], float], list[str]] = {}
    for (bench, share), techniques in wanted.items():
        suites.setdefault((tuple(techniques), share), []).append(bench)
    return [
        replace(request, benches=tuple(benches), techniques=techniques, share=share)
        for (techniques, share), benches in suites.items()
    ]


def complete_bench(text: str, of_bench: Mapping[str, Mapping[str, str]], data: Path | None, judge: str) -> str:
    """Return a benchmark's entry with the settings of the command. Raise SetupError if they name other cases."""
    name, settings = parse_suite_entry(text)
    own = of_bench.get(name, {})
    if changed := [key for key in own if settings.get(key, own[key]) != own[key]]:
        raise SetupError(f"The table needs {name} {changed[0]}={settings[changed[0]]}, not {own[changed[0]]}.")
    judged = {"judge": judge} if judge and "judge" in setting_fields(find_bench_class(name)) else {}
    place = {} if data is None else {"data": str(find_bench_data(data, name))}
    return shlex.join([name, *(f"{key}={value}" for key, value in {**place, **judged, **settings, **own}.items())])


def find_dqa_folder(data: Path | None, benches: Sequence[str]) -> Path | None:
    """Return the folder of Decision QA, as ``-b "dqa data=DIR"``, ``--data`` or ``$DECISOR_DATA`` name it."""
    own = dict(map(parse_suite_entry, benches)).get("dqa", {}).get("data")
    shared = data or (Path(place) if (place := os.environ.get("DECISOR_DATA")) else None)
    return Path(own) if own else find_bench_data(shared, "dqa") if shared else None


@dataclass(frozen=True)
class CaseUsage:
    """The mean usage of a case."""

    calls: float
    prompt_tokens: float
    completion_tokens: float


@dataclass(frozen=True)
class Estimate:
    """Cost of the open cases of a technique on a benchmark with an LLM."""

    bench: str
    technique: str
    model: str
    cases: int
    usage: CaseUsage | None
    """Of one case; None if it was never measured."""
    dollars: float | None
    """Of all; None if usage or price is not known."""
    source: str
    """Where the usage is from: this store, scripted replies, or nothing."""


@cache
def read_measured_usage() -> Mapping[tuple[frozenset[str], str], CaseUsage]:
    """Read the usage of scripted replies, by benchmark and technique."""
    rows = tomllib.loads(files("decisor.lab").joinpath("published", "usage.toml").read_text("utf-8"))["usage"]
    return {
        (select_label_parts(bench), technique): CaseUsage(calls, prompt, completion)
        for bench, technique, calls, prompt, completion in rows
    }


def measure_usage(outcomes: Sequence[Outcome]) -> CaseUsage:
    """Return the mean usage of outcomes, without what judges cost."""
    return CaseUsage(
        mean(one.usage.calls for one in outcomes),
        mean(one.usage.prompt_tokens for one in outcomes),
        mean(one.usage.completion_tokens for one in outcomes),
    )


def estimate_suite(suite: Suite, outcomes: Iterable[Outcome]) -> list[Estimate]:
    """Estimate the remaining cost of a suite, given the outcomes in its store.

    Techniques that ask no LLM cost nothing and are left out.
    """
    finished: dict[tuple[str, str, str], list[Outcome]] = {}
    for one in outcomes:
        finished.setdefault((one.benchmark, one.technique, one.model), []).append(one)
    estimates = []
    for label, bench in suite.benches.items():
        ids = {case.id for case in suite.sample.draw(bench.cases())}
        for technique in suite.techniques:
            for model in () if technique in suite.alone else suite.models:
                done = finished.get((label, technique, model), [])
                left = suite.repeats * len(ids) - sum(one.case in ids for one in done)
                source, usage = "this store", measure_usage(done) if len(done) >= LEAST_CASES else None
                if usage is None:
                    usage = read_measured_usage().get((select_label_parts(label), drop_part_llms(technique)))
                    source = "scripted replies" if usage else "not measured"
                price, cases = price_of_llm(suite.models[model]), max(0, left)
                dollars = None if cases else 0.0
                if price is not None and usage is not None:
                    dollars = cases * price.dollars(round(usage.prompt_tokens), round(usage.completion_tokens))
                estimates.append(Estimate(label, technique, model, cases, usage, dollars, source))
    return estimates


def estimate_suites(opened: Sequence[tuple[SuiteRequest, Suite]], place: str) -> list[Estimate]:
    """Estimate the remaining cost of suites, given their store."""
    outcomes = []
    if Path(place).exists():
        with closing(open_store(place, create=False)) as store:
            outcomes = store.outcomes()
    return [estimate for _, suite in opened for estimate in estimate_suite(suite, outcomes)]


def format_estimates(estimates: Sequence[Estimate]) -> str:
    """Format estimates as columns: calls, tokens and dollars of each technique, and the sum."""
    rows = [("benchmark", "technique", "LLM", "cases", "calls", "tokens", "dollars", "measured by")]
    for one in estimates:
        calls = tokens = "not known"
        if one.usage is not None:
            calls = f"{one.cases * one.usage.calls:,.0f}"
            tokens = f"{one.cases * (one.usage.prompt_tokens + one.usage.completion_tokens):,.0f}"
        dollars = "not known" if one.dollars is None else f"{one.dollars:,.2f}"
        rows.append((one.bench, one.technique, one.model, str(one.cases), calls, tokens, dollars, one.source))
    total, unknown = sum(one.dollars or 0.0 for one in estimates), any(one.dollars is None for one in estimates)
    lines = format_columns(rows, len(rows[0]))
    lines.append(f"{'At least ' if unknown else 'About '}${total:,.2f}, without judges and simulators.")
    if any(one.source == "scripted replies" for one in estimates):
        lines.append("Scripted replies are short: an LLM writes more, and a wrong query costs a call.")
    return "\n".join(lines) + "\n"
