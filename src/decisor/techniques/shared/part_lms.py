"""Parts of a technique that may have an LM of their own: the judge of a search, the experts of a reasoning DAG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, get_type_hints

from decisor.run import Technique
from decisor.settings import settings_of, without_none
from decisor.techniques.plan_dag.roles import Experts, by
from decisor.types import LM

EXPERTS = {
    "planner": "plan",
    "dynamic": "resolve",
    "generator": "generate",
    "critic": "criticise",
    "relevance": "choose",
    "rewriter": "rewrite",
    "writer": "write_query",
    "aggregator": "aggregate",
}
"""What an expert is called, and its field in ``Experts``."""


@cache
def parts_of(kind: type) -> tuple[str, ...]:
    """The names of the parts of a technique that may have an LM of their own.

    >>> from decisor.techniques import kind_of
    >>> parts_of(kind_of("radagent")), parts_of(kind_of("plan_rag")), parts_of(kind_of("reasoning_dag"))[:2]
    (('judge',), (), ('planner', 'dynamic'))
    """
    hints = get_type_hints(kind)
    judges = [name for name in settings_of(kind) if without_none(hints[name]) is LM]
    return (*judges, *(EXPERTS if hints.get("experts") is Experts else ()))


def lm_settings(kind: type) -> dict[str, str]:
    """The settings that name an LM, and the part that each is for.

    >>> from decisor.techniques import kind_of
    >>> lm_settings(kind_of("radagent"))
    {'judge_lm': 'judge'}
    """
    return {f"{part}_lm": part for part in parts_of(kind)}


def with_lms(technique: Technique, lms: Mapping[str, LM]) -> Technique:
    """The technique, its parts asking these LMs. ``lms``: by a name that ``parts_of`` tells."""
    loop: Any = technique
    experts = {EXPERTS[name]: lm for name, lm in lms.items() if name in EXPERTS}
    other: dict[str, object] = {name: lm for name, lm in lms.items() if name not in EXPERTS}
    if experts:
        ours = loop.experts
        other["experts"] = replace(ours, **{name: by(lm, getattr(ours, name)) for name, lm in experts.items()})
    changed: Technique = replace(loop, **other)
    return changed
