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
"""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from decisor.errors import SetupError
from decisor.lab.benchmark import Outcome, open_bench
from decisor.lab.evaluation.outages import PATIENCE_SECONDS
from decisor.lab.evaluation.runner import Suite
from decisor.lab.statistics import STATES, SummaryRow, summarise_outcomes
from decisor.llms import choose
from decisor.parsing.prompting import Asking, Calling, split_calling
from decisor.runtime.budget import Limits
from decisor.system.serialization import DecodeError, DocumentFormat
from decisor.system.settings import label_with_settings, with_current_names
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
    repeats: int = 1
    seed: int | None = None
    limit_cases: int | None = None
    cases_at_once: int = 8
    calls_at_once: int = 32
    grace: float = 10.0
    patience: float = PATIENCE_SECONDS
    limits: Limits = field(default_factory=Limits)


SUITE = DocumentFormat(SuiteRequest, is_closed=True)


def read_suite(path: Path) -> SuiteRequest:
    """Read a suite file. Raise SetupError if it cannot be read, or a key or value is unknown."""
    try:
        values = tomllib.loads(path.read_text("utf-8"))
        request = SUITE.decode_value(values)
    except DecodeError as error:
        raise SetupError(f"{path}: {error}.") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SetupError(f"Cannot read the suite {path}: {getattr(error, 'strerror', None) or error}.") from error
    for name, value in {**vars(request), **asdict(request.limits)}.items():
        if isinstance(value, int | float) and value < 0:
            raise SetupError(f"{path}: {name} cannot be {value}.")
    # A relative store lies beside its suite file, wherever the command is run.
    is_relative = "store" in values and "://" not in request.store
    return replace(request, store=str(path.parent / request.store)) if is_relative else request


def open_suite(request: SuiteRequest, environ: Mapping[str, str]) -> Suite:
    """Open everything that a request names, by label. Raise SetupError if something cannot be opened."""
    if not request.benches:
        raise SetupError('Name a benchmark: -b "dqa data=FOLDER". There is a list: decisor bench list')
    benches, loops = {}, {}
    for text in request.benches:
        name, settings = parse_suite_entry(text)
        benchmark = open_bench(name, **settings)
        benches[label_with_settings(name, benchmark, settings)] = benchmark
    parts: dict[str, Mapping[str, LLM]] = {}
    callings: dict[str, Calling] = {}
    askings: dict[str, Asking] = {}
    for text in request.techniques:
        name, settings = parse_suite_entry(text)
        calling, settings = split_calling(settings, "text")
        # Take out of the settings, in turn, what is no field of the technique.
        experts, settings = open_experts(name, settings, environ)
        sayings = [f"{key}={settings[key]}" for key in OWN if key in settings]
        asking, settings = split_asking_settings(find_technique_class(name), name, settings)
        sayings = [saying for saying in sayings if saying.partition("=")[0] not in settings]
        loop = build_technique(name, **settings)
        # The label holds all that changes results: it is the key of outcomes in the store.
        others = [f"{part}_llm={llm.name}" for part, llm in experts.items()]
        others[:0] = [*([] if calling == "text" else [f"calling={calling}"]), *sayings]
        entry = " ".join([label_with_settings(name, loop, settings), *others])
        parts[entry] = experts
        callings[entry], askings[entry] = calling, asking
        # Trials of robustness say nothing about accuracy.
        loops[entry] = build_technique(name, **{"trials": "0", **settings}) if name == "exact" else loop
    # Techniques without an LLM need no model, so a suite of only these runs without any.
    alone = frozenset(name for name, loop in loops.items() if not asks_llm(loop))
    with_llm = [name for name in loops if name not in alone]
    models = open_models(request.models, environ) if with_llm else {}
    if with_llm and not models:
        raise SetupError(NO_LLM.format(names=", ".join(with_llm)))
    return Suite(
        benches=benches,
        techniques=loops,
        models=models,
        alone=alone,
        repeats=max(1, request.repeats),
        seed=request.seed,
        limits=request.limits,
        limit_cases=request.limit_cases,
        cases_at_once=max(1, request.cases_at_once),
        calls_at_once=max(1, request.calls_at_once),
        parts=parts,
        callings=callings,
        askings=askings,
        patience=request.patience,
    )


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
    return name, parse_setting_words(rest)


def parse_setting_words(words: Sequence[str]) -> dict[str, str]:
    """Parse settings of the form key=value.

    >>> parse_setting_words(["replan=no", "max_steps=20"])
    {'replan': 'no', 'max_steps': '20'}
    """
    pairs = [word.partition("=") for word in words]
    if wrong := [key for key, equals, _ in pairs if not (key and equals)]:
        raise SetupError(f"A setting is key=value, not {wrong[0]!r}.")
    return {key: value for key, _, value in pairs}


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
    lines = [HEAD, *map(format_suite_cells, ordered)]
    columns = [
        [cell.ljust(width) if at < 3 else cell.rjust(width) for cell in column]  # names, then numbers
        for at, column in enumerate(zip(*lines, strict=True))
        for width in [max(map(len, column))]
    ]
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


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
