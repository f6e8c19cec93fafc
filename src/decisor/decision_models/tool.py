"""The tool ``whatif``, the explanation of a decision model, and models that are Python functions.

``ModelTool`` takes an input as text, and answers with citable records. Nothing of it touches the database: a copy is
changed. ``explain_decision_model`` shows a model in plain words with real rows, which is what a person approves. A
person's own function gets the tables and gives candidates with outcomes.

A what-if of more than one changed column is a fragment of a model file, laid over the model. It may hold ``change``
(UPDATE, DELETE and INSERT on the copy, before anything is decided), ``[parameter]``, ``[table.NAME]``,
``[unknown.NAME]`` and ``[rule.NAME]``; what has a name of the model takes its place, the rest is added. The model with
the fragment is opened on the same copy of the data and ranked or solved beside the model without it. On a model of the
solver each question is solved again.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import numpy as np

from decisor.decision_models import analyses
from decisor.decision_models.analyses import (
    MAX_SHOWN,
    MOST,
    build_cited_records,
    compare_decisions,
    describe_turns,
    turn_rows,
)
from decisor.decision_models.candidates import explain_broken_rule, format_cells
from decisor.decision_models.client import OpenModel
from decisor.decision_models.optimize import (
    SOLVE_SECONDS,
    SolvedPlan,
    explain_no_plan,
    find_solved_turning_points,
    rank_or_explain,
    solve_model,
)
from decisor.decision_models.schema import (
    KEYS,
    DecisionModel,
    Measure,
    NamedTable,
    PartName,
    Rule,
    Scalar,
    Statements,
    Text,
    Unknown,
    raise_contradictions,
)
from decisor.decision_models.turning_points import HIGH, LOW
from decisor.errors import SetupError, ToolError
from decisor.parsing.cleaning import strip_fence
from decisor.parsing.whatif_request import WhatIfWish, parse_wish
from decisor.system.serialization import DocumentFormat
from decisor.system.structured_files import FileFault, TomlFile
from decisor.system.wording import format_amount, format_count
from decisor.types import BulkSource, Goal, Observation, Ranking, Value, WhatIf

if TYPE_CHECKING:
    from numpy.typing import NDArray


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


def describe_fragment(fragment: Fragment) -> str:
    """Describe a fragment by its statements and the texts of its rules."""
    rules = [rule.text or f"rule {rule.name}" for rule in fragment.rule.values()]
    parameters = [f"{name} = {value}" for name, value in fragment.parameter.items()]
    others = [f"{kind} {name}" for kind in ("table", "unknown") for name in getattr(fragment, kind)]
    return "; ".join([*filter(None, [" ".join(fragment.change.split())]), *parameters, *others, *rules])


def answer_solved_why(model: OpenModel, wish: WhatIfWish, seconds: float) -> Observation:
    """Answer why a row is in the best plan or not, by solving again with it out or in."""
    name, first = wish.text or " ".join(wish.candidates), model.model.first
    best = solve_best_plan(model, seconds)
    is_in = any(row.label.lower() == name.lower() for table in best.tables.values() for row in table.rows)
    other = solve_model(model, seconds=seconds, required=[(name, not is_in)])
    head = (
        f"{name} is {'' if is_in else 'not '}in the best plan ({format_amount(best.value, first.unit)} {first.name})."
    )
    side = "without" if is_in else "with"
    fields: dict[str, Value] = {"row": name, "in the best plan": is_in, f"{first.name} of the best": best.value}
    if other.status != "optimal":
        fields["effect"] = None
        return Observation(build_cited_records([fields]), f"{head} {side.title()} it: {explain_no_plan(model, other)}")
    effect = other.value - best.value
    fields |= {f"{first.name} {side} it": other.value, "effect": effect, "unit": first.unit}
    more, less = (
        [f"{table}: {row.label}" for table, rows in one.tables.items() for row in rows.rows if row.label not in labels]
        for one, labels in ((other, list_plan_labels(best)), (best, list_plan_labels(other)))
    )
    lines = [head, f"The best plan {side} it has {format_amount(other.value, first.unit)}: {effect:+,.6g}."]
    lines += [f"It takes {', '.join(more[:MAX_SHOWN])} instead."] if more else []
    lines += [f"It leaves out {', '.join(less[:MAX_SHOWN])}."] if less else []
    return Observation(build_cited_records([fields]), "\n".join(lines), total=1)


def list_plan_labels(plan: SolvedPlan) -> set[str]:
    return {row.label for table in plan.tables.values() for row in table.rows}


def solve_best_plan(model: OpenModel, seconds: float) -> SolvedPlan:
    """Solve the model on the unchanged data; raise ToolError if nothing fits."""
    best = solve_model(model, seconds=min(seconds, SOLVE_SECONDS))
    if best.status != "optimal":
        raise ToolError(explain_no_plan(model, best))
    return best


def answer_solved_turning_points(model: OpenModel, seconds: float) -> Observation:
    """Report how far each input has to move until another plan is best, by solving again."""
    if not model.model.inputs:
        raise ToolError("This model names no [input], so nothing can be turned; use `set TABLE.COLUMN = ...`.")
    best = solve_best_plan(model, seconds)
    turns = tuple(find_solved_turning_points(model, best, seconds))
    head = (
        f"{best.name()} is best now. Each input alone, from {LOW:g} to {HIGH:g} times its value, solved again until "
        "another plan is best:"
    )
    rows = turn_rows(turns)
    lines = [head, *describe_turns(model, turns, best.name())]
    return Observation(build_cited_records(rows[:MOST]), "\n".join(lines), truncated=len(rows) > MOST, total=len(rows))


def explain_decision_model(model: OpenModel) -> Iterator[str]:
    """Describe a decision model in lines for a person; raise ToolError if a statement fails."""
    file = model.model
    if file.choice:
        yield from show_row_choice(model)
    else:
        yield f"To decide: {file.decide}, by the solver."
        for unknown in file.unknowns:
            yield f"Unknown: {unknown.name}, {unknown.kind}, one for each row of: {join_sql_lines(unknown.per)}."
        for rule in file.rules:
            price = f", or it costs {rule.price.price} for each unit" if rule.price else ""
            yield f"Rule {rule.name}: {rule.text or rule.name} ({join_sql_lines(rule.test)}{price})"
    yield from show_certainty(model)


def show_row_choice(model: OpenModel) -> Iterator[str]:
    """Describe the choice, its effect for the middle candidate, the measures and the rules."""
    file, candidates = model.model, model.candidates
    count = len(candidates)
    middle, names = count // 2, [candidates.name(at) for at in (0, count - 1)]
    yield f"To decide: {file.decide}. {format_count(count, 'candidate')}, such as {' and '.join(dict.fromkeys(names))}."
    # What a choice does to real rows, by the middle candidate.
    name = candidates.name(middle)
    for _, table, rows, gone, first_gone, come, first_come in model.job(
        "effects", {"candidate": candidates.places[middle]}, 60
    ).rows:
        what = [f"{int(str(number)):,} {verb}" for number, verb in ((gone, "go"), (come, "come")) if number]
        examples = " -> ".join(
            format_cells(row) if isinstance(row, dict) else str(row) for row in (first_gone, first_come) if row
        )
        rows_in_all = format_count(int(str(rows)), "row")
        yield (
            f"For {name} it changes {table} ({rows_in_all}): {' and '.join(what) or 'nothing'}"
            f"{': ' if examples else ''}{examples}."
        )
    # The measures of this candidate, beside the present values and the books.
    outcomes, now = model.outcomes(), model.present()
    for at, measure in enumerate(file.measures):
        here, parts = float(outcomes.values[middle, at]), now[measure.name]
        at_present = "made of the choice" if parts is None else format_amount(sum(parts.values()), measure.unit)
        yield (
            f"Measured: {measure.name}, {measure.aim}. "
            f"For {name}: {format_amount(here, measure.unit)}. At present: {at_present}{format_books(measure)}."
        )
    # The rules, each with a candidate that breaks it.
    for rule in file.rules:
        if not rule.testable:
            yield f"Rule {rule.name}: {rule.text} Not tested: nothing in the data says it."
            continue
        if rule.price:
            yield f"Rule {rule.name}: {rule.text or rule.name} Breaking it costs {rule.price.price}."
            continue
        at = outcomes.rules.index(rule.name)
        broken = [int(place) for place in outcomes.candidates[outcomes.broken[:, at]]]
        example = ""
        if broken:
            why = explain_broken_rule(file, rule.name, outcomes.reasons.get((broken[0], rule.name)))
            example = f", such as {candidates.name(broken[0])}: {why}"
        words = rule.text or join_sql_lines(rule.test)
        yield f"Rule {rule.name}: {words} Broken by {len(broken):,} of {count:,}{example}."
    for scenario in file.scenarios:
        yield f"{'Open' if scenario.open else 'Scenario'} {scenario.name}: {scenario.open} {scenario.words}".strip()


def show_certainty(model: OpenModel) -> Iterator[str]:
    """Describe the varied inputs, the certain inputs, and the columns in no statement."""
    inputs = model.model.inputs
    varied = [f"{column.name} by {column.spread}" for column in model.model.varied]
    certain = [one.name for one in inputs if not one.spread]
    yield f"Uncertain: {', '.join(varied) or 'nothing'}."
    yield f"Taken as certain: {', '.join(certain) or 'all the rest'}."
    words = model.model.statement_words()
    unused = [
        f"{copy.name}.{column.name}"
        for copy in model.copies.values()
        for column in copy.columns
        if column.name.lower() not in words
    ]
    more = f" and {len(unused) - SHOWN} more" if len(unused) > SHOWN else ""
    yield f"In no statement: {', '.join(unused[:SHOWN]) or 'no column of these tables'}{more}."


def join_sql_lines(sql: str) -> str:
    return " ".join(sql.split())


SHOWN = 12
FORMS = """\
Input, one of:
- `rank`: all candidates, best first, with margin, robustness and what is ruled out (`rank scenario=NAME trials=200`)
- some candidates, separated by commas or as a JSON list: just these, beside the best of all
- `why NAME`: each rule with the rows that break it, each measure against the best
- `set TABLE.COLUMN = EXPRESSION where CONDITION`, `TABLE.COLUMN × 1.1`, `TABLE.COLUMN + 5 %`: the data changed so; \
several with semicolons
- a fragment of a model file in TOML: `change = "INSERT INTO ..."` (UPDATE, DELETE, INSERT), `[parameter]`, \
`[rule.NAME]` with text, rows and must, `[table.NAME]`, `[unknown.NAME]`: the decision with these added or changed
- `scenario NAME`; `scenarios`: all side by side, with the worst case
- `what would it take for NAME to win`; `turning points`: how far each input moves until another one wins
- `sensitivity`: which input moves the lead most; `pareto`: who is beaten by nobody in every measure
Nothing of it touches the database: a copy is changed. Each record can be cited."""


@dataclass(eq=False)
class ModelTool:
    """The tool ``whatif`` on an open decision model.

    Satisfies ``types.Tool``.
    """

    model: OpenModel
    words: str = ""
    """Description of the model, from ``describe_model``."""
    seconds: float = 120.0
    """Longest time for one input, unless ``rank`` names its own."""
    name: str = "whatif"
    base: analyses.BaseOutcomes | None = None
    """Outcomes on the unchanged data; None until an input needs them."""
    usual: Ranking | str | None = None
    """Ranking on the unchanged data, or why nothing fits; None until a fragment needs it."""

    def describe(self) -> str:
        return f"{self.words}\n{FORMS}".strip()

    @property
    def measure(self) -> str:
        return self.model.model.first.name

    @property
    def goal(self) -> Goal:
        return self.model.model.first.goal

    async def call(self, text: str) -> Observation:
        """Answer an input.

        Raises ToolError if the input cannot be read, names something unknown, or a statement fails.
        """
        # The methods of an open model block.
        return await asyncio.to_thread(self._answer, text)

    def start_clock(self, seconds: float) -> None:
        """Let every later computation end after ``seconds``."""
        self.model.deadline = time.monotonic() + seconds

    def _answer(self, text: str) -> Observation:
        self.start_clock(self.seconds)
        try:
            if is_fragment(text):
                # The decision with the fragment laid over the model, beside the decision without it.
                self.usual = self.usual or rank_or_explain(self.model, self.seconds)
                fragment = parse_fragment(text)
                variant = self.model.lay_over(lay_over(self.model.model, fragment))
                words, then = (
                    describe_fragment(fragment),
                    rank_or_explain(variant, self.seconds, changes=fragment.change),
                )
                answer = compare_decisions(variant, self.usual, then, words)
                return replace(answer, note=f"{words}\n{answer.note}")
            wish = self.wish(text)
            seconds = self.seconds if wish.seconds == float("inf") else wish.seconds
            self.start_clock(seconds)
            return self._answered(replace(wish, seconds=seconds))
        # TimeOver is a SetupError; an LLM gets it as an answer, and can ask for less.
        except SetupError as error:
            raise ToolError(str(error)) from error

    def wish(self, text: str) -> WhatIfWish:
        """Parse an input.

        Text of no other form names candidates, or a scenario alone; a candidate's own name comes first.
        """
        plain = text.strip().strip("`\"' ")
        # A candidate may be called like a command.
        if self.model.model.choice and analyses.find_candidate_or_none(self.model, plain) is not None:
            return WhatIfWish((plain,), text=plain)
        wish = parse_wish(text)
        scenarios = {one.name.lower(): one.name for one in self.model.model.scenarios}
        if wish.kind == "rank" and plain.lower() in scenarios:
            return WhatIfWish(kind="scenario", scenario=scenarios[plain.lower()])
        return wish

    def _answered(self, wish: WhatIfWish) -> Observation:
        model, seconds = self.model, wish.seconds
        if wish.kind == "rank" and not wish.candidates:
            return analyses.answer_rank(model, wish)
        if not model.model.choice:
            match wish.kind:
                case "change" | "scenario":
                    scenario, text, what = analyses.resolve_condition(model, wish)
                    now, then = rank_or_explain(model, seconds), rank_or_explain(model, seconds, scenario, text)
                    return compare_decisions(model, now, then, what)
                case "why":
                    return answer_solved_why(model, wish, seconds)
                case "turning points":
                    return answer_solved_turning_points(model, seconds)
            raise ToolError(
                "This model is for the solver: it takes `rank`, `why NAME`, `set TABLE.COLUMN = ...`, `scenario NAME`, "
                "`turning points` and fragments of a file."
            )
        # Later inputs compare with the same outcomes.
        self.base = base = self.base or analyses.compute_base_outcomes(model)
        match wish.kind:
            case "rank":
                return analyses.answer_comparison(model, base, wish)
            case "why":
                return analyses.answer_why(model, base, wish)
            case "change" | "scenario":
                return analyses.answer_change(model, base, wish)
            case "scenarios":
                return analyses.answer_scenarios(model, base)
            case "pareto":
                return analyses.answer_pareto(model, base)
            case "sensitivity":
                return analyses.answer_sensitivity(model, base, seconds)
            case "turning points":
                return analyses.answer_turning_points(model, base, None, seconds)
            case "reach":
                target = analyses.resolve_candidate(model, wish.text or " ".join(wish.candidates))
                return analyses.answer_turning_points(model, base, target, seconds)

    async def close(self) -> None:
        """Do nothing: whoever opened the model closes it."""


def describe_model(model: OpenModel) -> str:
    """Describe the decision, its measures, and its varied and certain inputs. It asks the worker for the candidates."""
    return "\n".join(model_description_lines(model))


def model_description_lines(model: OpenModel) -> Iterator[str]:
    file = model.model
    yield f"Computes what follows from a choice, on the decision model of this question: {join_sql_lines(file.decide)}."
    for at, one in enumerate(file.measures):
        unit, decides = (
            f" in {one.unit}" if one.unit else "",
            "; it decides" if not at and len(file.measures) > 1 else "",
        )
        yield f"- measure {one.name}{unit}, {one.aim}{format_books(one)}{decides}"
    if file.choice:
        yield f"- {candidates_line(model)}"
    for rule in file.rules:
        price = f" (breaking it costs {rule.price.price})" if rule.price else ""
        yield f"- rule {rule.name}: {join_sql_lines(rule.text or rule.test)}{price}"
    if file.scenarios:
        yield (
            "- scenarios: "
            f"{', '.join(f'{one.name} ({join_sql_lines(one.open or one.words)})' for one in file.scenarios)}"
        )
    spreads = [
        f"{one.name}{f' in {one.unit}' if one.unit else ''} by {one.spread}" for one in file.inputs if one.spread
    ]
    certain = [one.name for one in file.inputs if not one.spread]
    yield f"- uncertain: {', '.join(spreads) or 'nothing'}"
    yield f"- taken as certain: {', '.join(certain) or 'all the rest'}"
    tables = [f"{copy.name} ({', '.join(column.name for column in copy.columns)})" for copy in model.copies.values()]
    yield f"- columns that may be set: {'; '.join(tables[:SHOWN])}"


def format_books(measure: Measure) -> str:
    return "" if measure.now is None else f"; the books say {format_amount(measure.now, measure.unit)}"


def candidates_line(model: OpenModel) -> str:
    try:
        count = len(model.candidates)
        names = dict.fromkeys(model.candidates.name(at) for at in (0, count - 1))
    except ToolError as error:
        return f"candidates: cannot be computed ({error})"
    return f"{format_count(count, 'candidate')}, such as {' and '.join(names)}"


Tables: TypeAlias = "Mapping[str, Mapping[str, Sequence[Value]]]"
Function: TypeAlias = "Callable[[Tables], WhatIf | Mapping[str, float]]"
VECTOR = ("candidates", "outcomes")


@dataclass(frozen=True)
class FunctionModel:
    """A decision model computed by a person's function of the tables.

    Trials vary the decimals of the tables. Satisfies ``types.WhatIf``.
    """

    function: Function
    tables: Tables
    measure: str = "outcome"
    """Attribute of the function; 'outcome' without it."""
    goal: Goal = "min"
    """Attribute of the function; 'min' without it."""

    def values(self) -> Mapping[str, float]:
        """Call the function; raise ToolError if it fails or returns no mapping."""
        try:
            values = self.function(self.tables)
        # A person's function may raise anything.
        except Exception as error:
            raise ToolError(f"The function of the decision model fails: {type(error).__name__}: {error}") from error
        if not isinstance(values, Mapping):
            raise ToolError(f"The function of the decision model gives {type(values).__name__}, not a mapping.")
        return values

    def candidates(self) -> tuple[str, ...]:
        return tuple(map(str, self.values()))

    def outcomes(self, candidates: Sequence[str]) -> NDArray[np.float64]:
        """Return the outcomes, shape (len(candidates),). nan if the function gives None or has no such candidate."""
        values = {str(name): value for name, value in self.values().items()}
        outcomes = [values.get(name) for name in candidates]
        return np.array([np.nan if one is None else one for one in outcomes], dtype=np.float64)

    def varied(self, percent: float, rng: np.random.Generator) -> WhatIf:
        """Vary every column that holds decimals: each cell times 1 + U(-percent, percent)/100."""
        tables = {
            name: {column: vary_column(values, percent, rng) for column, values in columns.items()}
            for name, columns in self.tables.items()
        }
        return replace(self, tables=tables)


def vary_column(values: Sequence[Value], percent: float, rng: np.random.Generator) -> Sequence[Value]:
    if not any(isinstance(value, float) for value in values):
        return values
    factors = 1 + rng.uniform(-percent, percent, len(values)) / 100
    pairs = zip(values, factors.tolist(), strict=True)
    # The exact type counts, for True and False are instances of int.
    return [value * by if type(value) in (int, float) else value for value, by in pairs]


async def build_function_model(function: Any, source: BulkSource) -> WhatIf:
    """Call a function on all tables of ``source``, read unchanged, and return its model.

    If the function returns a WhatIf itself, that is the model, and its arrays are computed at once.

    Raises:
        SetupError: it cannot be called, or gives neither a mapping nor a WhatIf.
    """
    tables = await read_whole_tables(source)
    try:
        first = function(tables)
    except Exception as error:
        raise SetupError(f"The function of the decision model fails: {type(error).__name__}: {error}.") from error
    if all(hasattr(first, name) for name in VECTOR):
        model: WhatIf = first
        return model
    if not isinstance(first, Mapping):
        raise SetupError(f"The function of the decision model gives {type(first).__name__}, not a mapping or a WhatIf.")
    goal: Goal = "max" if getattr(function, "goal", "min") == "max" else "min"
    return FunctionModel(function, tables, str(getattr(function, "measure", "outcome")), goal)


async def read_whole_tables(source: BulkSource) -> Tables:
    """Read all tables of a source; raise SetupError if it lists none, or one is too large."""
    from decisor.decision_models.copies import Schema

    if not isinstance(source, Schema):
        raise SetupError("A function as a decision model needs a relational database (--db).")
    tables: dict[str, dict[str, Sequence[Value]]] = {}
    for one in source.tables:
        table = await source.fetch(f"SELECT * FROM {source.quoted(one.name)}")
        if table.truncated:
            raise SetupError(f"{one.name} is too large to read whole.")
        cells = list(zip(*table.rows, strict=True)) if table.rows else [()] * len(table.columns)
        tables[one.name] = dict(zip(table.columns, cells, strict=True))
    return tables
