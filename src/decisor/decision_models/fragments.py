"""A what-if of more than one changed column: a fragment of a model file, laid over the model.

A fragment is TOML in the grammar of the file. It may hold ``change`` (UPDATE, DELETE and INSERT on the copy, before
anything is decided), ``[parameter]``, ``[table.NAME]``, ``[unknown.NAME]`` and ``[rule.NAME]``; what has a name of the
model takes its place, the rest is added. The model with the fragment is opened on the same copy of the data and ranked
or solved beside the model without it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from decisor.decision_models.analyses import compare_decisions
from decisor.decision_models.client import OpenModel
from decisor.decision_models.optimize import rank_or_explain
from decisor.decision_models.schema import (
    KEYS,
    DecisionModel,
    NamedTable,
    PartName,
    Rule,
    Scalar,
    Statements,
    Text,
    Unknown,
    raise_contradictions,
)
from decisor.errors import ToolError
from decisor.parsing.cleaning import strip_fence
from decisor.system.serialization import DocumentFormat
from decisor.system.structured_files import FileFault, TomlFile
from decisor.types import Observation, Ranking

PARTS = ("rule", "table", "unknown", "parameter")
START = re.compile(rf"(?:\[\s*(?:{'|'.join(PARTS)})\s*[.\]]|change\s*=|(?:{'|'.join(PARTS)})\.\w+)")


@dataclass(frozen=True)
class Fragment:
    """Parts that a what-if replaces in a model, or adds to it."""

    change: Statements = ""
    """UPDATE, DELETE, INSERT on the copy, before anything is decided."""
    parameter: Mapping[PartName, Scalar] = field(default_factory=dict)
    table: Mapping[PartName, NamedTable | Text] = field(default_factory=dict)
    unknown: Mapping[PartName, Unknown] = field(default_factory=dict)
    rule: Mapping[PartName, Rule] = field(default_factory=dict)


FRAGMENT = DocumentFormat(Fragment, is_closed=True, keys=KEYS)


class Named(Protocol):
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)


def is_fragment(text: str) -> bool:
    """Return whether a text is a fragment of a model file.

    >>> texts = ('[rule.two]\\nabsent = "x"', 'change = "DELETE FROM x"', '["a", "b"]', "set x.y = 3")
    >>> [is_fragment(text) for text in texts]
    [True, True, False, False]
    """
    return START.match(strip_fence(text)) is not None


def parse_fragment(text: str) -> Fragment:
    """Parse a fragment; raise ToolError with all faults and their lines."""
    try:
        toml = TomlFile(strip_fence(text))
        toml.name_sections("rule", "table", "unknown")
        return toml.decode(FRAGMENT, "a fragment of a decision model")
    except FileFault as error:
        raise ToolError(
            f"{error}. A fragment has change, [rule.NAME], [table.NAME], [unknown.NAME], [parameter]."
        ) from error


def lay_over(model: DecisionModel, fragment: Fragment) -> DecisionModel:
    """Return the model with the parts of a fragment; raise ToolError if they contradict each other."""
    if strange := fragment.parameter.keys() - model.parameters.keys():
        known = ", ".join(model.parameters) or "none"
        raise ToolError(f"There is no parameter {', '.join(sorted(strange))}; there is {known}.")
    tables = [t if isinstance(t, NamedTable) else NamedTable(name, t) for name, t in fragment.table.items()]
    whole = replace(
        model,
        parameters={**model.parameters, **fragment.parameter},
        tables=merge_by_name(model.tables, tables),
        unknowns=merge_by_name(model.unknowns, [*fragment.unknown.values()]),
        rules=merge_by_name(model.rules, [*fragment.rule.values()]),
    )
    try:
        raise_contradictions(whole)
    except FileFault as error:
        raise ToolError(str(error)) from error
    return whole


def merge_by_name(present: Sequence[N], added: Sequence[N]) -> tuple[N, ...]:
    """Put each added part in the place of that of its name, or after all."""
    new = {part.name: part for part in added}
    kept = [new.pop(part.name, part) for part in present]
    return (*kept, *new.values())


def answer_fragment(model: OpenModel, usual: Ranking | str, text: str, seconds: float) -> Observation:
    """Answer the decision with a fragment laid over the model, beside the decision without it.

    usual: the ranking without it, or why nothing fits. Raises ToolError if the fragment does not fit, or a statement
    fails.
    """
    fragment = parse_fragment(text)
    variant = model.lay_over(lay_over(model.model, fragment))
    words, then = describe_fragment(fragment), rank_or_explain(variant, seconds, changes=fragment.change)
    answer = compare_decisions(variant, usual, then, words)
    return replace(answer, note=f"{words}\n{answer.note}")


def describe_fragment(fragment: Fragment) -> str:
    """Describe a fragment by its statements and the texts of its rules."""
    rules = [rule.text or f"rule {rule.name}" for rule in fragment.rule.values()]
    parameters = [f"{name} = {value}" for name, value in fragment.parameter.items()]
    others = [f"{kind} {name}" for kind in ("table", "unknown") for name in getattr(fragment, kind)]
    return "; ".join([*filter(None, [" ".join(fragment.change.split())]), *parameters, *others, *rules])
