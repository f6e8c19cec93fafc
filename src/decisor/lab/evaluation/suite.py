"""Suites from a TOML file or from the command line, and the plain table of a run.

    store = "run.db"
    benches = ["dqa data=data/dqa form=graph"]
    techniques = ["plan_rag", "iter_rag max_steps=20"]
    models = ["qwen3:8b@http://localhost:11434/v1"]
    repeats = 3
    seed = 7
    [limits]
    calls = 60

The table has no time of a clock, so a resumed run prints the same as an uninterrupted one. Its figures are those of a
report: both are made by ``lab/statistics.py``.

Outcomes are also written as JUnit XML, which CI servers read. A suite there is a technique with an LLM on a benchmark,
a test case one try at a case. A wrong answer and a run over its budget are failures, a crash is an error, an answer
that nobody could score is skipped.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from annotated_types import Ge, Gt, Le
from pydantic import AllowInfNan

from decisor.errors import SetupError
from decisor.lab.benchmark import Outcome, State, find_bench_class, open_bench
from decisor.lab.evaluation.outages import PATIENCE_SECONDS
from decisor.lab.evaluation.runner import CaseSample, Suite
from decisor.lab.statistics import STATES, SummaryRow, summarise_outcomes
from decisor.llms import choose
from decisor.llms.prices import price_of_llm
from decisor.llms.shared import Spending
from decisor.parsing.prompting import Asking, Calling, split_calling
from decisor.runtime.budget import Limits
from decisor.system.serialization import DocumentFormat, dataclass_values
from decisor.system.settings import (
    build_from_settings,
    label_with_settings,
    parse_settings,
    setting_fields,
    with_current_names,
)
from decisor.system.structured_files import FileFault, TomlFile, read_text_file
from decisor.system.text import clean_text
from decisor.techniques import asks_llm, build_technique, find_technique_class
from decisor.techniques.shared.judge import map_llm_settings
from decisor.techniques.shared.prompts_file import OWN, split_asking_settings
from decisor.types import LLM

NO_LLM = (
    "No LLM for {names}: --llm MODEL or MODEL@BASE_URL, or models = [...] in the suite. "
    "Without one there is -t exact and -t heuristic."
)


@dataclass(frozen=True)
class SuiteRequest:
    """A request for a suite as text: each name with its settings, as in ``"iter_rag max_steps=20"``.

    The fields are the keys of a suite file.
    """

    store: str = "run.db"
    benches: tuple[str, ...] = ()
    techniques: tuple[str, ...] = ("plan_rag",)
    models: tuple[str, ...] = ()
    repeats: Annotated[int, Ge(0)] = 1
    seed: Annotated[int, Ge(0)] | None = None
    limit_cases: Annotated[int, Ge(0)] | None = None
    share: Annotated[float, Gt(0), Le(1)] = 1.0
    ids: tuple[str, ...] = ()
    max_dollars: Annotated[float, Ge(0)] | None = None
    max_tokens: Annotated[int, Ge(0)] | None = None
    cases_at_once: Annotated[int, Ge(0)] = 8
    calls_at_once: Annotated[int, Ge(0)] = 32
    grace: Annotated[float, Ge(0)] = 10.0
    patience: Annotated[float, Ge(0), AllowInfNan()] = PATIENCE_SECONDS
    limits: Limits = field(default_factory=Limits)


SUITE_FILE = DocumentFormat(SuiteRequest, is_closed=True)


def read_suite(path: Path) -> SuiteRequest:
    """Read a suite file. Raise SetupError, with lines, if it cannot be read, or a key or value is unknown."""
    text = read_text_file(path, "a suite")
    try:
        file = TomlFile(text)
        request = file.decode(SUITE_FILE, "a suite")
        limits = dataclass_values(request.limits).items()
        if faults := [
            file.locate(("limits", name), f"is to be at least 0, not {most}")
            for name, most in limits
            if isinstance(most, int | float) and most < 0
        ]:
            raise FileFault(faults)
    except FileFault as error:
        raise SetupError(f"{path}: {error}") from error
    # A relative store lies beside its suite file, wherever the command is run.
    if "store" in file.content:
        return replace(request, store=str(path.parent / request.store))
    return request


def open_suite(request: SuiteRequest, environ: Mapping[str, str]) -> Suite:
    """Open everything that a request names, by label. Raise SetupError if something cannot be opened."""
    if not request.benches:
        raise SetupError('Name a benchmark: -b "dqa data=FOLDER". There is a list: decisor bench list')
    benches, loops = {}, {}
    for text in request.benches:
        name, settings = parse_suite_entry(text)
        benches[label_bench(text)] = open_bench(name, **settings)
    parts: dict[str, Mapping[str, LLM]] = {}
    callings: dict[str, Calling] = {}
    askings: dict[str, Asking] = {}
    for text in request.techniques:
        entry, name, settings = label_technique(text), *parse_suite_entry(text)
        calling, settings = split_calling(settings, "text")
        # Take out of the settings, in turn, what is no field of the technique.
        experts, settings = open_experts(name, settings, environ)
        asking, settings = split_asking_settings(find_technique_class(name), name, settings)
        entry += "".join(f" {part}_llm={llm.name}" for part, llm in experts.items())
        parts[entry] = experts
        callings[entry], askings[entry] = calling, asking
        # Trials of robustness say nothing about accuracy.
        loops[entry] = build_technique(name, **{"trials": "0", **settings} if name == "exact" else settings)
    # Techniques without an LLM need no model, so a suite of only these runs without any.
    alone = frozenset(name for name, loop in loops.items() if not asks_llm(loop))
    with_llm = [name for name in loops if name not in alone]
    models = open_models(request.models, environ) if with_llm else {}
    if with_llm and not models:
        raise SetupError(NO_LLM.format(names=", ".join(with_llm)))
    if request.max_dollars is not None:
        for name, llm in models.items():
            if price_of_llm(llm) is None:
                raise SetupError(f'max_dollars needs a price for {name}: --llm "{name} price=PROMPT,COMPLETION".')
    return Suite(
        benches=benches,
        techniques=loops,
        models=models,
        alone=alone,
        repeats=max(1, request.repeats),
        seed=request.seed,
        limits=request.limits,
        sample=CaseSample(request.limit_cases, request.share, request.ids),
        most=Spending(request.max_dollars, request.max_tokens),
        cases_at_once=max(1, request.cases_at_once),
        calls_at_once=max(1, request.calls_at_once),
        parts=parts,
        callings=callings,
        askings=askings,
        patience=request.patience,
    )


def open_suite_to_price(request: SuiteRequest, environ: Mapping[str, str]) -> Suite:
    """Open a suite that is priced and not run: an LLM without endpoint or key goes by its name."""
    try:
        return open_suite(request, environ)
    except SetupError:
        return open_suite(request, {"OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": "none", **environ})


def label_bench(text: str) -> str:
    """Return the label under which a store holds a benchmark: its name and what changes a case.

    >>> label_bench("dqa data=DIR form=graph limit=3"), label_bench("dqa form=sql")
    ('dqa form=graph', 'dqa')
    >>> label_bench("musique judge=gpt-4o@http://127.0.0.1:8080/v1")
    'musique judge=gpt-4o'
    """
    name, settings = parse_suite_entry(text)
    kind = find_bench_class(name)
    # The folder of the data is no part of the label, and need not be there.
    settings = {**({"data": "."} if "data" in setting_fields(kind) else {}), **settings}
    # A judge is its LLM, wherever that is reached: a suite goes on when the address has changed.
    named = {key: text.partition("@http")[0] for key, text in settings.items()}
    return label_with_settings(name, build_from_settings(kind, name, settings), named)


def label_technique(text: str) -> str:
    """Return the label under which a store holds a technique, but for the LLMs of its parts.

    >>> label_technique("plan_rag max_steps=15 replan=no"), label_technique("plan_rag preset=paper temperature=0.5")
    ('plan_rag replan=no', 'plan_rag temperature=0.5 preset=paper')
    """
    name, settings = parse_suite_entry(text)
    calling, settings = split_calling(settings, "text")
    kind = find_technique_class(name)
    llms = map_llm_settings(kind)
    given = {key: text for key, text in with_current_names(settings).items() if key not in llms}
    _, own = split_asking_settings(kind, name, given)
    fields = setting_fields(kind)
    others = [*([] if calling == "text" else [f"calling={calling}"])]
    others += [f"{key}={given[key]}" for key in OWN if key in given and key not in fields]
    return " ".join([label_with_settings(name, build_technique(name, **own), given), *others])


def open_experts(
    name: str, settings: Mapping[str, str], environ: Mapping[str, str]
) -> tuple[dict[str, LLM], dict[str, str]]:
    """Return the LLMs of a technique's parts, by part, and its other settings.

    ``DECISOR_PRICE`` does not apply to them; "critic_llm='MODEL@URL price=0.4,1.6'" sets a price.
    """
    experts: dict[str, LLM] = {}
    settings = with_current_names(settings)
    kinds = map_llm_settings(find_technique_class(name))
    for key in [key for key in settings if key in kinds]:
        llm = choose.choose_llm(settings[key], {**environ, "DECISOR_PRICE": ""}) if settings[key] else None
        if llm is None:
            raise SetupError(f"{key} takes MODEL or MODEL@URL, not {settings[key]!r}.")
        experts[kinds[key]] = llm
    return experts, {key: text for key, text in settings.items() if key not in kinds}


def open_models(specs: Sequence[str], environ: Mapping[str, str]) -> dict[str, LLM]:
    """Open the LLMs by name. "MODEL@URL price=0.4,1.6" gives an LLM a price of its own."""
    models: dict[str, LLM] = {}
    for text in specs or [""]:
        model = choose.choose_llm(text, environ)
        if model is None:
            continue
        if model.name in models:
            raise SetupError(f"There are two models named {model.name}. One store holds one of them.")
        models[model.name] = model
    return models


def parse_suite_entry(text: str) -> tuple[str, dict[str, str]]:
    """Parse a name with its settings.

    >>> parse_suite_entry("dqa data='my data' form=graph")
    ('dqa', {'data': 'my data', 'form': 'graph'})
    """
    try:
        name, *rest = shlex.split(text)
    except ValueError as error:
        raise SetupError(f"{text!r} is no name with settings, such as: iter_rag max_steps=20") from error
    return name, parse_settings(rest)


HEAD = (
    "benchmark",
    "technique",
    "model",
    "cases",
    *(state.replace("_", " ") for state in STATES),
    "accuracy %",
    "95 %",
    "calls",
    "tokens",
    "dollars",
)


def format_suite_table(outcomes: Iterable[Outcome]) -> str:
    """Format the table of a run as columns of text.

    States count outcomes: a case has one for each repeat. Accuracy: share of right ones among outcomes that were judged
    or ran over their budget; the other two states stand beside it. Calls and tokens are means over outcomes, dollars
    the sum.
    """
    # Only the fields that the table needs, so that any number of outcomes fits in memory.
    rows = summarise_outcomes(
        Outcome(one.benchmark, one.case, one.technique, one.model, one.repeat, one.state, usage=one.usage)
        for one in outcomes
    )
    ordered = sorted(rows, key=lambda row: (row.benchmark, row.technique, row.model))
    return "\n".join(format_columns([HEAD, *map(format_suite_cells, ordered)], 3))


def format_columns(rows: Sequence[Sequence[str]], left: int) -> list[str]:
    """Format rows as columns of text, the first ``left`` aligned to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    pads = [str.ljust if at < left else str.rjust for at in range(len(widths))]
    return [
        "  ".join(pad(cell, width) for pad, cell, width in zip(pads, row, widths, strict=True)).rstrip() for row in rows
    ]


def format_suite_cells(row: SummaryRow) -> tuple[str, ...]:
    dollars = row.usage.dollars
    return (
        row.benchmark,
        row.technique,
        row.model,
        str(row.cases),
        *(str(row.states[state]) for state in STATES),
        "-" if row.accuracy is None else f"{100 * row.accuracy:.1f}",
        "-" if row.interval is None else f"{100 * row.interval.low:.1f}-{100 * row.interval.high:.1f}",
        f"{row.usage.calls / row.outcomes:.1f}",
        f"{row.usage.tokens / row.outcomes:,.0f}",
        "unknown" if dollars is None else f"{dollars:.4f}",
    )


TAGS: dict[State, str] = {"wrong": "failure", "over_budget": "failure", "crashed": "error", "unscored": "skipped"}
COUNTS = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def write_junit_file(outcomes: Iterable[Outcome], path: Path) -> None:
    """Write outcomes as a JUnit XML file; OSError if it cannot be written."""
    parts: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        parts[f"{outcome.benchmark}, {outcome.technique}, {outcome.model}"].append(outcome)
    every = [outcome for part in parts.values() for outcome in part]
    root = Element("testsuites", {"name": "decisor", **count_tests(every)})
    for name, part in parts.items():
        suite = SubElement(root, "testsuite", {"name": clean_text(name), **count_tests(part)})
        for outcome in part:
            add_test_case(suite, outcome)
    indent(root)
    ElementTree(root).write(path, "utf-8", xml_declaration=True)


def count_tests(part: Sequence[Outcome]) -> dict[str, str]:
    counts = {name: str(sum(TAGS.get(one.state) == tag for one in part)) for name, tag in COUNTS.items()}
    return {"tests": str(len(part)), **counts, "time": f"{sum(one.seconds for one in part):.3f}"}


def add_test_case(suite: Element, outcome: Outcome) -> None:
    name = f"{outcome.case} ({outcome.repeat + 1})" if outcome.repeat else outcome.case
    case = SubElement(suite, "testcase", name=clean_text(name), time=f"{outcome.seconds:.3f}")
    case.set("classname", clean_text(f"{outcome.benchmark}.{outcome.technique}"))
    if tag := TAGS.get(outcome.state):
        fault = SubElement(case, tag, message=clean_text(outcome.failure or outcome.state.replace("_", " ")))
        gold = f" (right: {', '.join(outcome.gold)})" if outcome.gold else ""
        fault.text = clean_text("\n".join([f"Answer: {outcome.text or 'none'}{gold}", *outcome.reasons]))
        if tag != "skipped":
            fault.set("type", outcome.state)
