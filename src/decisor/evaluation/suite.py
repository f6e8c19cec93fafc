"""From what was typed, in a TOML file or on the command line, to a suite.

store = "run.db"
benches = ["dqa data=data/dqa form=graph"]
techniques = ["plan_rag", "iter_rag max_steps=20"]
models = ["qwen3:8b@http://localhost:11434/v1"]
repeats = 3
seed = 7

[limits]
calls = 60
"""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

from decisor.asking import Asking
from decisor.benchmarks.protocol import bench
from decisor.budget import Limits
from decisor.calling import Calling, split_calling
from decisor.errors import SetupError
from decisor.evaluation.outages import PATIENCE_SECONDS
from decisor.evaluation.runner import Suite
from decisor.lms import choose
from decisor.settings import label
from decisor.techniques import asks_lm, kind_of, technique
from decisor.techniques.shared.part_lms import lm_settings
from decisor.techniques.shared.prompts import OWN, asking_of
from decisor.types import LM

NO_LM = (
    "No LM for {names}: --lm MODEL or MODEL@BASE_URL, or models = [...] in the suite. "
    "Without one there is -t exact and -t heuristic."
)


@dataclass(frozen=True)
class SuiteRequest:
    """Each name with its settings, as in ``"iter_rag max_steps=20"``. The fields are the keys of a suite file."""

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


def read_suite(path: Path) -> SuiteRequest:
    """Raises SetupError where the file cannot be read, or a key or value is none of a suite's."""
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SetupError(f"Cannot read the suite {path}: {getattr(error, 'strerror', None) or error}.") from error
    limits = values.pop("limits", {})
    check(path, "[limits]", limits, {one.name: (int, float) for one in fields(Limits)})
    check(path, "A suite", values, KINDS)
    for name in ("benches", "techniques", "models"):
        if name in values:
            values[name] = tuple(map(str, values[name]))
    if "store" in values and "://" not in values["store"]:
        values["store"] = str(path.parent / values["store"])
    return SuiteRequest(**values, limits=Limits(**limits))


Kinds = Mapping[str, type | tuple[type, ...]]
KINDS: Kinds = {
    "store": str, "benches": list, "techniques": list, "models": list, "repeats": int, "seed": int,
    "limit_cases": int, "cases_at_once": int, "calls_at_once": int, "grace": (int, float),
    "patience": (int, float),
}  # fmt: skip


def check(path: Path, what: str, table: object, kinds: Kinds) -> None:
    if not isinstance(table, dict):
        raise SetupError(f"{path}: {what} holds keys and values.")
    if unknown := table.keys() - kinds.keys():
        raise SetupError(f"{path}: {what} has no {', '.join(sorted(unknown))}; it has {', '.join(kinds)}.")
    for name, value in table.items():
        if not isinstance(value, kinds[name]) or isinstance(value, bool) or (isinstance(value, int) and value < 0):
            raise SetupError(f"{path}: {name} cannot be {value!r}.")


def suite_of(request: SuiteRequest, environ: Mapping[str, str]) -> Suite:
    """Everything opened, by its label. Raises SetupError where something cannot be."""
    if not request.benches:
        raise SetupError('Name a benchmark: -b "dqa data=FOLDER". There is a list: decisor bench list')
    benches, loops = {}, {}
    for text in request.benches:
        name, settings = read_entry(text)
        benchmark = bench(name, **settings)
        benches[label(name, benchmark, settings)] = benchmark
    parts: dict[str, Mapping[str, LM]] = {}
    callings: dict[str, Calling] = {}
    askings: dict[str, Asking] = {}
    for text in request.techniques:
        name, settings = read_entry(text)
        calling, settings = split_calling(settings, "text")
        experts, settings = experts_of(name, settings, environ)
        sayings = [f"{key}={settings[key]}" for key in OWN if key in settings]
        asking, settings = asking_of(kind_of(name), name, settings)
        sayings = [saying for saying in sayings if saying.partition("=")[0] not in settings]
        loop = technique(name, **settings)
        others = [f"{part}_lm={lm.name}" for part, lm in experts.items()]
        others[:0] = [*([] if calling == "text" else [f"calling={calling}"]), *sayings]
        entry = " ".join([label(name, loop, settings), *others])
        parts[entry] = experts
        callings[entry], askings[entry] = calling, asking
        # trials of robustness say nothing about accuracy
        loops[entry] = technique(name, **{"trials": "0", **settings}) if name == "exact" else loop
    alone = frozenset(name for name, loop in loops.items() if not asks_lm(loop))
    with_lm = [name for name in loops if name not in alone]
    models = models_of(request.models, environ) if with_lm else {}
    if with_lm and not models:
        raise SetupError(NO_LM.format(names=", ".join(with_lm)))
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


def experts_of(
    name: str, settings: Mapping[str, str], environ: Mapping[str, str]
) -> tuple[dict[str, LM], dict[str, str]]:
    """The LMs that parts of a technique have of their own, by part, and the other settings. ``DECISOR_PRICE`` is not
    theirs: "critic_lm='MODEL@URL price=0.4,1.6'" says it."""
    experts: dict[str, LM] = {}
    kinds = lm_settings(kind_of(name))
    for key in [key for key in settings if key in kinds]:
        lm = choose.lm(settings[key], {**environ, "DECISOR_PRICE": ""}) if settings[key] else None
        if lm is None:
            raise SetupError(f"{key} takes MODEL or MODEL@URL, not {settings[key]!r}.")
        experts[kinds[key]] = lm
    return experts, {key: text for key, text in settings.items() if key not in kinds}


def models_of(specs: Sequence[str], environ: Mapping[str, str]) -> dict[str, LM]:
    """By name; "MODEL@URL price=0.4,1.6" gives a model a price of its own."""
    models: dict[str, LM] = {}
    for text in specs or [""]:
        model = choose.lm(text, environ)
        if model is None:
            continue
        if model.name in models:
            raise SetupError(f"There are two models named {model.name}. One store holds one of them.")
        models[model.name] = model
    return models


def read_entry(text: str) -> tuple[str, dict[str, str]]:
    """A name and its settings.

    >>> read_entry("dqa data='my data' form=graph")
    ('dqa', {'data': 'my data', 'form': 'graph'})
    """
    try:
        name, *rest = shlex.split(text)
    except ValueError as error:
        raise SetupError(f"{text!r} is no name with settings, such as: iter_rag max_steps=20") from error
    return name, read_settings(rest)


def read_settings(words: Sequence[str]) -> dict[str, str]:
    """
    >>> read_settings(["replan=no", "max_steps=20"])
    {'replan': 'no', 'max_steps': '20'}
    """
    pairs = [word.partition("=") for word in words]
    if wrong := [key for key, equals, _ in pairs if not (key and equals)]:
        raise SetupError(f"A setting is key=value, not {wrong[0]!r}.")
    return {key: value for key, _, value in pairs}
