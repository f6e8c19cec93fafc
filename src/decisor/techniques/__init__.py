"""Reasoning loops, one paper a file. The fields of a technique are its settings, on the command line too."""

from __future__ import annotations

import inspect
from dataclasses import is_dataclass
from difflib import get_close_matches
from importlib import import_module

from decisor.errors import SetupError
from decisor.runtime.run import Technique
from decisor.system.extras import find_plugins
from decisor.system.settings import build_from_settings, import_class

TECHNIQUES: dict[str, str] = {
    "agent": "agent:Agent",
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
    "furepa": "furepa:FuRePA",
    "model_first": "model_first:ModelFirst",
}
"""Name -> "module:class" in this package. A module is imported when its technique is named."""


def find_technique_class(name: str) -> type:
    """Find the class of a technique by its name, or by an import path ``module:Class``.

    >>> find_technique_class("plan_rag")
    <class 'decisor.techniques.plan_rag.PlanRAG'>

    Raises:
        SetupError: there is no such technique, or the path names something else.
    """
    if ":" in name:
        return check_technique_class(import_class(name), name)
    if name not in TECHNIQUES and name in find_plugins("techniques"):
        path = find_plugins("techniques")[name].value
        return check_technique_class(import_class(path), path)
    if name not in TECHNIQUES:
        close = get_close_matches(name.replace("-", "_").casefold(), TECHNIQUES, 1)
        names = f"There is {', '.join(TECHNIQUES)}, or one of your own as module:Class."
        hint = f"Did you mean {close[0]}? See: decisor techniques" if close else names
        raise SetupError(f"There is no technique {name!r}. {hint}")
    module, _, class_name = TECHNIQUES[name].partition(":")
    kind: type = getattr(import_module(f"decisor.techniques.{module}"), class_name)
    return kind


def build_technique(name: str, **settings: str) -> Technique:
    """Build a technique from text settings, as the command line gives them.

    ``--technique plan_rag -o max_steps=20 -o replan=no``.

    >>> build_technique("plan_rag", max_steps="20", replan="no")
    PlanRAG(max_steps=20, replan=False, order='ptaor', evidence='required', agree=1)
    >>> build_technique("plan_rag", steps="20")
    Traceback (most recent call last):
    decisor.errors.SetupError: plan_rag has no steps; it has max_steps, replan, order, evidence, agree.

    Raises:
        SetupError: there is no such technique or setting, or the value does not fit it.
    """
    loop: Technique = build_from_settings(find_technique_class(name), name, settings)
    return loop


def asks_llm(technique: Technique | type) -> bool:
    """Return whether a technique calls an LLM. One that does not has ``asks_llm: ClassVar[bool] = False`` in its class.

    >>> asks_llm(find_technique_class("exact")), asks_llm(build_technique("plan_rag"))
    (False, True)
    """
    return bool(getattr(technique, "asks_llm", True))


def check_technique_class(kind: type, path: str) -> type:
    """Raise SetupError with the defect if a class is no technique; else return the class."""
    call = inspect.getattr_static(kind, "__call__", None)
    if not inspect.iscoroutinefunction(call):
        raise SetupError(f"{path} is no technique: it lacks `async def __call__(self, question, run)`.")
    try:
        inspect.signature(call).bind("self", "question", "run")
    except TypeError as error:
        raise SetupError(f"{path} is no technique: its __call__ takes (question, run): {error}.") from error
    if not is_dataclass(kind) and "__init__" in vars(kind):
        raise SetupError(f"{path} is no dataclass: its fields would be its settings. Write @dataclass(frozen=True).")
    return kind
