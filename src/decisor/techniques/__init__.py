"""Reasoning loops, one paper a file. The fields of a technique are its settings, on the command line too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from decisor.errors import SetupError
from decisor.types import Technique

TECHNIQUES: dict[str, str] = {
    "plan_rag": "plan_rag:PlanRAG",
    "iter_rag": "iter_rag:IterRAG",
    "single_rag": "single_rag:SingleRAG",
    "reasoning_dag": "reasoning_dag:ReasoningDAG",
    "exact": "exact:Exact",
    "heuristic": "heuristic:Heuristic",
    "vanilla": "vanilla:Vanilla",
    "rag": "rag:RAG",
    "self_ask": "self_ask:SelfAsk",
    "ircot": "ircot:IRCoT",
    "iter_retgen": "iter_retgen:IterRetGen",
    "react": "react:ReAct",
    "self_rag": "self_rag:SelfRAG",
    "rq_rag": "rq_rag:RQRAG",
    "radagent": "radagent:RadAgent",
    "cot": "cot:CoT",
    "best_of_n": "best_of_n:BestOfN",
    "reflexion": "reflexion:Reflexion",
    "bfs": "bfs:BFS",
    "dfs": "dfs:DFS",
    "dfsdt": "dfsdt:DFSDT",
    "tot": "tot:ToT",
    "lats": "lats:LATS",
    "auto": "auto:Auto",
    "furepa": "furepa:FuRePA",
}
"""Name -> "module:class" in this package. A module is imported when its technique is named."""

WITHOUT_LM = ("exact", "heuristic")
"""Those that ask no LM."""


def kind_of(name: str) -> type:
    """Raises SetupError where there is no such technique."""
    if name not in TECHNIQUES:
        raise SetupError(f"There is no technique {name!r}; there is {', '.join(TECHNIQUES)}.")
    module, _, kind = TECHNIQUES[name].partition(":")
    found: type = getattr(import_module(f"decisor.techniques.{module}"), kind)
    return found


def technique(name: str, **settings: str) -> Technique:
    """From the command line: ``--technique plan_rag -o max_steps=20 -o replan=no``.

    >>> technique("plan_rag", max_steps="20", replan="no")
    PlanRAG(max_steps=20, replan=False, order='ptaor')
    >>> technique("plan_rag", steps="20")
    Traceback (most recent call last):
    decisor.errors.SetupError: plan_rag has no steps; it has max_steps, replan, order.

    Raises:
        SetupError: there is no such technique or setting, or the value does not fit it.
    """
    made: Technique = build(kind_of(name), name, settings)
    return made


def build(kind: type, name: str, settings: Mapping[str, str]) -> Any:
    """A frozen dataclass from its settings as text. ``name``, and what its repr leaves out, are no settings.

    Raises:
        SetupError: there is no such setting, one is missing, or a value does not fit it.
    """
    known = {field.name: field for field in fields(kind) if field.repr and field.name != "name"}
    hints = get_type_hints(kind)
    if unknown := settings.keys() - known.keys():
        there = ", ".join(key for key in known if sayable(hints[key])) or "no settings"
        raise SetupError(f"{name} has no {', '.join(sorted(unknown))}; it has {there}.")
    values = {key: read(known[key], hints[key], text) for key, text in settings.items()}
    needed = [key for key, one in known.items() if one.default is MISSING and one.default_factory is MISSING]
    if missing := [key for key in needed if key not in values]:
        raise SetupError(f"{name} needs {', '.join(missing)}: write {name} {missing[0]}=...")
    return kind(**values)


def label(name: str, made: Any, settings: Mapping[str, str]) -> str:
    """The name with those of ``settings`` that are not what they would be anyway. ``data``, and fields whose metadata
    say ``unlabelled``, are left out: they change which cases there are, or where they are, and nothing of a case.

    >>> label("plan_rag", technique("plan_rag", replan="no", max_steps="15"), {"max_steps": "15", "replan": "no"})
    'plan_rag replan=no'
    """
    defaults = {one.name: one.default for one in fields(made) if not one.metadata.get("unlabelled")}
    told = [f"{key}={settings[key]}" for key in defaults
            if key in settings and key != "data" and getattr(made, key) != defaults[key]]  # fmt: skip
    return " ".join([name, *told])


def read(field: Field[Any], kind: Any, text: str) -> Any:
    """A setting from its text, by the type of its field: where None is the default, by the other type.

    Raises:
        SetupError: the text does not fit, or the setting is an object that only Python can give.
    """
    if not sayable(kind):
        raise SetupError(f"{field.name} can only be set from Python.")
    if get_origin(kind) in (Union, UnionType) and text.casefold() in ("", "none"):
        return None
    kind = without_none(kind)
    if kind is Path:
        return Path(text).expanduser()
    if get_origin(kind) is Literal:
        if text not in (choices := get_args(kind)):
            raise SetupError(f"{field.name} is one of {', '.join(map(str, choices))}, not {text!r}.")
        return text
    if kind is bool:
        if (word := text.casefold()) not in TRUTH:
            raise SetupError(f"{field.name} is yes or no, not {text!r}.")
        return TRUTH[word]
    if kind in (int, float):
        try:
            number: int | float = kind(text)
        except ValueError as error:
            raise SetupError(f"{field.name} is a number, not {text!r}.") from error
        if number < 0 and not field.metadata.get("below_zero"):
            raise SetupError(f"{field.name} cannot be below 0.")
        return number
    return text


def sayable(kind: Any) -> bool:
    """Whether a text can say a setting of this type; the rest is set in Python."""
    kind = without_none(kind)
    return kind in (str, int, float, bool, Path) or get_origin(kind) is Literal


def without_none(kind: Any) -> Any:
    """The other type of an optional one.

    >>> without_none(int | None), without_none(str)
    (<class 'int'>, <class 'str'>)
    """
    others = [one for one in get_args(kind) if one is not NoneType]
    return others[0] if get_origin(kind) in (Union, UnionType) and len(others) == 1 else kind


TRUTH = {"yes": True, "true": True, "1": True, "on": True, "no": False, "false": False, "0": False, "off": False}
