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
from typing import Any

from decisor.benchmarks.protocol import bench
from decisor.budget import Limits
from decisor.errors import SetupError
from decisor.evaluation.runner import Suite
from decisor.lms.choose import lm_with_price
from decisor.settings import label
from decisor.techniques import asks_lm, kind_of, technique
from decisor.techniques.shared.part_lms import lm_settings
from decisor.types import LM

NO_LM = (
    "{names} need an LM: --lm MODEL or MODEL@BASE_URL, or models = [...] in the suite. "
    "Without one there is -t exact and -t heuristic."
)


@dataclass(frozen=True)
class Wanted:
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
    limits: Limits = field(default_factory=Limits)


def read_suite(path: Path) -> Wanted:
    """Raises SetupError where the file cannot be read, or a key or value is none of a suite's."""
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SetupError(f"Cannot read the suite {path}: {error}") from error
    limits = found.pop("limits", {})
    check(path, "[limits]", limits, {one.name: (int, float) for one in fields(Limits)})
    check(path, "A suite", found, KINDS)
    for name in ("benches", "techniques", "models"):
        if name in found:
            found[name] = tuple(map(str, found[name]))
    if "store" in found and "://" not in found["store"]:
        found["store"] = str(path.parent / found["store"])
    return Wanted(**found, limits=Limits(**limits))


KINDS: Mapping[str, Any] = {
    "store": str, "benches": list, "techniques": list, "models": list, "repeats": int, "seed": int,
    "limit_cases": int, "cases_at_once": int, "calls_at_once": int, "grace": (int, float),
}  # fmt: skip


def check(path: Path, what: str, found: Any, kinds: Mapping[str, Any]) -> None:
    if not isinstance(found, dict):
        raise SetupError(f"{path}: {what} holds keys and values.")
    if unknown := found.keys() - kinds.keys():
        raise SetupError(f"{path}: {what} has no {', '.join(sorted(unknown))}; it has {', '.join(kinds)}.")
    for name, value in found.items():
        if not isinstance(value, kinds[name]) or isinstance(value, bool) or (isinstance(value, int) and value < 0):
            raise SetupError(f"{path}: {name} cannot be {value!r}.")


def suite_of(wanted: Wanted, environ: Mapping[str, str]) -> Suite:
    """Everything made and named. Raises SetupError where something cannot be."""
    if not wanted.benches:
        raise SetupError('Name a benchmark: -b "dqa data=FOLDER". There is a list: decisor bench list')
    benches, loops = {}, {}
    for text in wanted.benches:
        name, settings = read_entry(text)
        made = bench(name, **settings)
        benches[label(name, made, settings)] = made
    parts: dict[str, Mapping[str, LM]] = {}
    for text in wanted.techniques:
        name, settings = read_entry(text)
        experts, settings = experts_of(name, settings, environ)
        made_loop = technique(name, **settings)
        named = " ".join([label(name, made_loop, settings), *(f"{part}_lm={lm.name}" for part, lm in experts.items())])
        parts[named] = experts
        # trials of robustness say nothing about accuracy
        loops[named] = technique(name, **{"trials": "0", **settings}) if name == "exact" else made_loop
    alone = frozenset(name for name, loop in loops.items() if not asks_lm(loop))
    asking = [name for name in loops if name not in alone]
    models = models_of(wanted.models, environ) if asking else {}
    if asking and not models:
        raise SetupError(NO_LM.format(names=", ".join(asking)))
    return Suite(
        benches, loops, models, alone, max(1, wanted.repeats), wanted.seed, wanted.limits, wanted.limit_cases,
        max(1, wanted.cases_at_once), max(1, wanted.calls_at_once), parts,
    )  # fmt: skip


def experts_of(
    name: str, settings: Mapping[str, str], environ: Mapping[str, str]
) -> tuple[dict[str, LM], dict[str, str]]:
    """The LMs that parts of a technique have of their own, by part, and the other settings. ``DECISOR_PRICE`` is not
    theirs: "critic_lm='MODEL@URL price=0.4,1.6'" says it."""
    experts: dict[str, LM] = {}
    kinds = lm_settings(kind_of(name))
    for key in [key for key in settings if key in kinds]:
        lm = lm_with_price(settings[key], {**environ, "DECISOR_PRICE": ""}) if settings[key] else None
        if lm is None:
            raise SetupError(f"{key} takes MODEL or MODEL@URL, not {settings[key]!r}.")
        experts[kinds[key]] = lm
    return experts, {key: text for key, text in settings.items() if key not in kinds}


def models_of(specs: Sequence[str], environ: Mapping[str, str]) -> dict[str, LM]:
    """By name; "MODEL@URL price=0.4,1.6" gives a model a price of its own."""
    models: dict[str, LM] = {}
    for text in specs or [""]:
        made = lm_with_price(text, environ)
        if made is None:
            continue
        if made.name in models:
            raise SetupError(f"There are two models named {made.name}. One store holds one of them.")
        models[made.name] = made
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
