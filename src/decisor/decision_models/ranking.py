"""From a decision model to a ranking: best first, with ties, margin, robustness and exclusions.

``rank_model`` ranks the candidates of an open model, ``rank_what_if`` those of any other ``WhatIf``. Robustness is the
share of trials in which the best stays in front while the inputs vary. The Pareto front is the set of candidates that
no other one beats by every measure. Each open question is read the other way too, where a scenario says how.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from decisor.decision_models.candidates import explain_broken_rule, format_cells
from decisor.decision_models.client import MORE_SECONDS, OpenModel, TimeOver
from decisor.decision_models.copies import Copy
from decisor.decision_models.outcomes import Outcomes, measure_lead
from decisor.decision_models.schema import DecisionModel, list_deciding
from decisor.errors import ToolError
from decisor.system.wording import format_amount, format_count
from decisor.types import Excluded, Goal, MeasurePart, Option, Ranking, ScenarioOutcome, Value, WhatIf, Winner

if TYPE_CHECKING:
    from sqlglot import exp


EXCLUDED = 10
CONTENDERS = 50
FIRST = 16  # how many of the best are recomputed in each trial


def rank_what_if(model: WhatIf, percent: float = 5.0, trials: int = 200, *, seconds: float = float("inf")) -> Ranking:
    """Rank every allowed candidate of a model by its outcome, equal ones in data order. No options if none is allowed.

    Robustness varies each input by up to ``percent`` in ``trials`` trials and recomputes the best 50 candidates; it
    is the share of trials in which the best candidate, or one tied with it, stays in front. ``trials=0`` leaves it
    out, and so does a model of which nothing varies. After ``seconds`` it ends with what is known.
    """
    until = time.monotonic() + seconds
    every = model.candidates()
    outcomes = compute_outcomes_until(model, every, until)
    names = every[: len(outcomes)]
    costs = outcomes if model.goal == "min" else -outcomes
    allowed = np.flatnonzero(np.isfinite(outcomes))
    order = allowed[np.argsort(costs[allowed], kind="stable")]
    options = tuple(Option(names[at], float(outcomes[at])) for at in order)
    shut = np.flatnonzero(~np.isfinite(outcomes))
    ruled_out = tuple(
        Excluded(names[at], None, (), "it has no outcome" if np.isnan(outcomes[at]) else "its outcome is infinite")
        for at in shut[:EXCLUDED]
    )
    ties, margin, lead = measure_lead(outcomes[order])
    ranking = Ranking(
        model.measure,
        model.goal,
        options,
        tuple(option.name for option in options[:ties]),
        margin,
        lead=lead,
        compared=len(names),
        candidates=len(every),
        stopped="the limit of seconds is reached" if len(names) < len(every) else "",
        excluded_count=len(shut),
        excluded=ruled_out,
    )
    return _add_varied_trials(model, ranking, percent, trials, until) if options else ranking


def compute_outcomes_until(model: WhatIf, names: Sequence[str], until: float) -> NDArray[np.float64]:
    """Compute the outcomes of the candidates in order, as far as the time allows."""
    if until == float("inf"):
        return model.outcomes(names)
    parts: list[NDArray[np.float64]] = []
    # Ever larger parts: the clock is looked at often enough, and calls stay few.
    at, size = 0, FIRST
    while at < len(names) and time.monotonic() < until:
        parts.append(model.outcomes(names[at : at + size]))
        at, size = at + size, size * 2
    return np.concatenate(parts) if parts else np.zeros(0)


def _add_varied_trials(model: WhatIf, ranking: Ranking, percent: float, trials: int, until: float) -> Ranking:
    """Add how often each candidate comes first while the inputs vary."""
    rng = np.random.default_rng(0)
    contenders = [option.name for option in ranking.options[:CONTENDERS]]
    as_they_are = np.array([option.outcome for option in ranking.options[:CONTENDERS]])
    sign = 1 if model.goal == "min" else -1
    counts: Counter[str] = Counter()
    moved = False
    for _ in range(trials):
        if time.monotonic() >= until:
            break
        outcomes = sign * model.varied(percent, rng).outcomes(contenders)
        moved = moved or not np.array_equal(sign * outcomes, as_they_are)
        # For argmin a nan would be the smallest.
        outcomes[~np.isfinite(outcomes)] = np.inf
        none = bool(np.isinf(outcomes).all())
        counts["none allowed" if none else contenders[int(outcomes.argmin())]] += 1
    count = counts.total()
    if not moved:
        return ranking
    winners = tuple(Winner(name, times / count) for name, times in counts.most_common())
    stayed = sum(counts[name] for name in ranking.ties) / count
    return replace(ranking, robustness=stayed, varied_percent=percent, trials=count, winners=winners)


MIDDLE = (5.0, 95.0)
"""Percentiles: 90 % of the trials lie between them."""


def compute_outcome_ranges(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the range of 90 % of each candidate's outcomes, (n, t) -> (n, 2). n candidates in t trials; nan without
    an outcome.
    """
    ends = np.full((len(values), 2), np.nan)
    some = ~np.isnan(values).all(axis=1)
    if some.any():
        ends[some] = np.nanpercentile(values[some], MIDDLE, axis=1).T
    return ends


def find_pareto_front(values: NDArray[np.float64], goals: Sequence[Goal]) -> NDArray[np.bool_]:
    """Return whether each of n candidates is on the Pareto front, from values of shape (n, m).

    Then no candidate is as good by all measures and better by one. Equal ones stay together; one without an outcome
    (nan) is never on the front. It takes as many rounds as the front is long.

    >>> find_pareto_front(np.array([[1.0, 9.0], [2.0, 5.0], [2.0, 5.0], [3.0, 6.0], [np.nan, 0.0]]),
    ...     ("min", "min")).tolist()
    [True, True, True, False, False]
    """
    signs = np.array([1.0 if goal == "min" else -1.0 for goal in goals])
    places = np.flatnonzero(~np.isnan(values).any(axis=1))
    costs = values[places] * signs
    # In lexicographic order a candidate can only be beaten by one before it.
    order = np.lexsort(costs.T[::-1])
    left, at = order, 0
    while at < len(left):
        here = costs[left[at]]
        stays = (costs[left] < here).any(axis=1) | (costs[left] == here).all(axis=1)
        at = int(stays[: at + 1].sum())
        left = left[stays]
    on = np.zeros(len(values), dtype=np.bool_)
    on[places[left]] = True
    return on


def choose_contenders(outcomes: Outcomes, *more: int) -> list[int]:
    """Choose candidates that may win on changed data: the best allowed, the best ruled out, ``more``."""
    costs = outcomes.values[:, 0] if outcomes.measures[0].goal == "min" else -outcomes.values[:, 0]
    ruled_out = np.flatnonzero(outcomes.known & ~outcomes.allowed & np.isfinite(costs))
    nearest = ruled_out[np.argsort(costs[ruled_out], kind="stable")][:CONTENDERS]
    numbers = outcomes.candidates[[*outcomes.order()[:CONTENDERS], *nearest]].tolist()
    return sorted({*numbers, *more})


def explain_broken_rules(model: OpenModel, outcomes: Outcomes, place: int) -> list[str]:
    """Explain each rule that the candidate at a place breaks: "capacity: Ulm would hold 5 of 4"."""
    number = int(outcomes.candidates[place])
    reasons = {rule: outcomes.reasons.get((number, rule)) for rule in outcomes.rules_broken(place)}
    return [f"{rule}: {explain_broken_rule(model.model, rule, reason)}" for rule, reason in reasons.items()]


NAMED_CELLS = 3


def explain_no_outcome(model: OpenModel, candidate: int, value: float) -> str:
    """Explain why a candidate has no outcome, with the row and column that lacks a value."""
    first = model.model.first
    if math.isinf(value):
        return f"{first.name} is infinite: it divides by 0, or adds an infinite number"
    return f"{first.name} is NULL or not a number: {find_empty_cell(model, candidate) or 'there is no row to measure'}"


def find_empty_cell(model: OpenModel, candidate: int) -> str:
    """Find a cell without a number that the model names; '' if none.

    The chosen rows come first, then rows that share a value with them.
    """
    words = model.model.statement_words()
    table, rows = model.candidates.table, model.candidates.rows(candidate)
    for row in rows:
        if lacks := [name for name, cell in zip(table.columns, row, strict=True) if is_empty(cell)]:
            return f"{lacks[0]} is NULL in the chosen row {row_words(table.columns, row)}"
    own = {cell for row in rows for cell in row if isinstance(cell, str)}
    cells = [one for copy in model.copies.values() if (one := find_empty_cell_in_copy(copy, words, own))]
    return next((text for shared, text in sorted(cells, reverse=True)), "")


def find_empty_cell_in_copy(copy: Copy, words: set[str], own: set[str]) -> tuple[bool, str] | None:
    """Find the first empty cell of a table, and whether its row shares a value.

    A row that shares a value comes first. None if no cell is empty.
    """
    names = [column.name for column in copy.columns]
    read = [at for at, name in enumerate(names) if name.lower() in words]
    best = None
    for row in zip(*(column.values for column in copy.columns), strict=True):
        lacks = next((names[at] for at in read if is_empty(row[at])), "")
        shared = any(isinstance(cell, str) and cell in own for cell in row)
        if lacks and (best is None or shared):
            best = (shared, f"{copy.name}.{lacks} is NULL in the row {row_words(names, row)}")
            if shared:
                break
    return best


def find_null_cells(model: OpenModel) -> Iterator[tuple[str, str]]:
    """Find the NULL cells that a sum, mean, minimum or maximum of a measure or rule passes over.

    Where a statement says what is meant (coalesce, CASE, IS NULL), nothing is told.
    """
    from sqlglot import exp, parse_one

    chosen = model.candidates.table
    tables = {
        copy.name.lower(): {one.name.lower(): one.values for one in copy.columns} for copy in model.copies.values()
    }
    if choice := model.model.choice:
        cells_of_rows = zip(*chosen.rows, strict=True)
        tables[choice.name.lower()] = dict(zip(map(str.lower, chosen.columns), cells_of_rows, strict=False))
    for part, text in model.model.statements().items():
        # A condition of a rule, or the name of a table, is no query.
        if not part.startswith(("measure.", "rule.", "table.")) or not re.match(
            r"\s*(select|with|from|\()", text, re.I
        ):
            continue
        tree = parse_one(text, dialect="duckdb")
        names = {one.alias_or_name.lower(): one.name.lower() for one in tree.find_all(exp.Table)}
        tested = {
            one.name.lower()
            for test in tree.find_all(exp.Is, exp.Coalesce, exp.Case)
            for one in test.find_all(exp.Column)
        }
        seen: set[str] = set()
        for aggregate in tree.find_all(exp.Sum, exp.Avg, exp.Min, exp.Max):
            for column in aggregate.find_all(exp.Column):
                block = column.parent_select
                # The tables that the query itself reads, without those of inner queries.
                own = [one for one in tree.find_all(exp.Table) if one.parent_select is block]
                near = {one.alias_or_name.lower(): one.name.lower() for one in own}
                table = find_column_table(column, near or names, tables)
                cells = tables[table][column.name.lower()] if table else ()
                if (count := sum(map(is_empty, cells))) and column.name.lower() not in tested | seen:
                    seen.add(column.name.lower())
                    rows = f"rows of {table} whose {column.name} is NULL ({count:,} of {len(cells):,})"
                    hint = f"write coalesce({column.name}, ...), or mend the data"
                    yield part, f"{aggregate.sql('duckdb')} passes over {rows}: {hint}"


def find_column_table(column: exp.Column, names: Mapping[str, str], tables: Mapping[str, Mapping[str, object]]) -> str:
    """Return the table of a column; '' if that is not certain."""
    if column.table:
        there = [names.get(column.table.lower(), "")]
    else:
        there = [name for name in dict.fromkeys(names.values()) if column.name.lower() in tables.get(name, {})]
    return there[0] if len(there) == 1 and column.name.lower() in tables.get(there[0], {}) else ""


def is_empty(cell: Value) -> bool:
    # NaN arrives as text, for JSON has no such number.
    return cell is None or cell == "NaN"


def row_words(names: tuple[str, ...] | list[str], row: tuple[Value, ...]) -> str:
    cells = [f"{name} {cell}" for name, cell in zip(names, row, strict=True) if not is_empty(cell)]
    return ", ".join(cells[:NAMED_CELLS]) or "without values"


OPTIONS = 2_000
NEAREST = 10
SAMPLE = 3
ALIKE = 1e-7


def rank_model(
    model: OpenModel,
    candidates: Iterable[int] | None = None,
    *,
    trials: int = 200,
    scenario: str = "",
    changes: str = "",
    seconds: float = float("inf"),
) -> Ranking:
    """Rank the candidates of an open model, best first by the first measure.

    Candidates that are ruled out have their reason. Robustness is how often the best stays in front in trials, in which
    the inputs vary as the file says, of the 50 best allowed candidates and the 50 nearest of those ruled out. After
    ``seconds`` it ends with the results so far. A sample is computed one by one too, and must agree.

    Raises:
        ToolError: a statement fails, or one by one gives other outcomes than all at once.
    """
    until = time.monotonic() + seconds
    outcomes = model.outcomes(candidates, scenario=scenario, changes=changes, seconds=seconds, most=1)

    def left() -> float:
        return until - time.monotonic()

    # Statements rewritten for all candidates must agree with those of the file.
    if not outcomes.stopped:
        check_joint_outcomes(model, outcomes, scenario, changes, left())
    ranking = rank_outcomes(model, outcomes)
    if not outcomes.stopped:
        notes = tuple(describe_unjudged_rows(model, outcomes, scenario, changes, left()))
        ranking = replace(ranking, left_out=(*ranking.left_out, *notes))
        ranking = add_today(model, ranking, outcomes, scenario, changes, left())
    if candidates is None and not scenario and not changes:
        ranking = replace(ranking, readings=tuple(compute_readings(model, outcomes, left())))
    varied = tuple(f"{column.name} {column.spread}" for column in model.model.varied)
    if not trials or not varied or not ranking.options:
        return ranking
    few = choose_contenders(outcomes)
    try:
        shaken = model.trials(few, trials, scenario=scenario, changes=changes, seconds=left())
    # Whatever the trials fail on, the ranking itself is finished.
    except (ToolError, TimeOver) as error:
        return replace(ranking, stopped=f"No trial was finished: {error}".rstrip("."))
    return replace(add_trials(model, ranking, shaken, varied), covered=describe_trial_coverage(outcomes, len(few)))


def describe_unjudged_rows(
    model: OpenModel, outcomes: Outcomes, scenario: str, changes: str, seconds: float
) -> Iterator[str]:
    """Say for which rows of the best candidate a rule compares with NULL: ``must`` is broken then, ``never`` is kept.

    If none is allowed, it is that of the excluded ones which would be best.
    """
    first = model.model.first
    order = outcomes.order()
    costs = outcomes.values[:, 0] * (1 if first.goal == "min" else -1)
    place = order[0] if len(order) else int(np.argmin(np.where(np.isfinite(costs), costs, np.inf)))
    candidate = int(outcomes.candidates[place])
    for name, reason in model.unjudged(candidate, scenario, changes, seconds).items():
        rule = model.model.rule(name)
        row = format_cells(reason.rows[0])
        more = f" (and {format_count(reason.count - 1, 'more row')})" if reason.count > 1 else ""
        yield (
            f"rule.{name}: {rule.must or rule.never} is NULL for {model.candidates.name(candidate)} in the row {row}"
            f"{more}, and counts as {'broken' if rule.must else 'kept'}: mend the data, or write coalesce"
        )


def describe_trial_coverage(outcomes: Outcomes, few: int) -> str:
    """Describe the candidates that the trials computed; '' if these are all."""
    allowed, known = int(outcomes.allowed.sum()), int(outcomes.known.sum())
    if few == known:
        return ""
    out = few - min(allowed, CONTENDERS)
    near = f" and the {out:,} nearest of those ruled out" if out else ""
    return f"Trials: the {min(allowed, CONTENDERS):,} best allowed{near}, of {known:,} candidates"


def rank_outcomes(model: OpenModel, outcomes: Outcomes) -> Ranking:
    """Rank computed outcomes, without trials."""
    names, first = model.candidates.name, model.model.first
    order = outcomes.order()
    values = outcomes.values[:, 0]
    options = tuple(Option(names(outcomes.candidates[at]), float(values[at])) for at in order[:OPTIONS])
    ties, margin, lead = outcomes.lead(order)
    near = order[: outcomes.near(order)]
    nearest = float(min(values[near], key=lambda value: value if first.goal == "min" else -value)) if len(near) else 0.0
    parts = [
        {part: float(of[at]) for (measure, part), of in outcomes.parts.items() if measure == first.name}
        for at in (*order[:1], *order[ties : ties + 1])
    ]
    shut = np.asarray(np.flatnonzero(outcomes.known & ~outcomes.allowed), dtype=np.int64)
    counts = {rule: int(outcomes.broken[shut, at].sum()) for at, rule in enumerate(outcomes.rules)}
    # A candidate that is shut out and breaks no rule has no outcome.
    counts["no outcome"] = int((~outcomes.broken[shut].any(axis=1)).sum())
    return Ranking(
        measure=first.name,
        goal=first.goal,
        options=options,
        ties=tuple(names(outcomes.candidates[at]) for at in order[:ties]),
        margin=margin,
        unit=first.unit,
        lead=lead,
        compared=int(outcomes.known.sum()),
        candidates=len(model.candidates),
        excluded_count=len(shut),
        excluded=tuple(find_nearest_excluded(model, outcomes, shut, options[0].outcome if options else None)),
        excluded_by={name: count for name, count in counts.items() if count},
        stopped=outcomes.stopped,
        left_out=tuple(f"{part}: {words}" for part, words in find_null_cells(model)),
        parts=compare_parts(first.name, parts[0], parts[1] if len(parts) > 1 else {}) if parts else (),
        near=describe_near(model.model, nearest, format_count(len(near), "candidate")) if len(near) > 1 else "",
    )


def describe_near(model: DecisionModel, best: float, candidates: str) -> str:
    """Describe how the next measure decided between candidates that are near to the best of the first measure."""
    first, *others = list_deciding(model.measures)
    decides = ", then ".join(f"the {'smallest' if one.goal == 'min' else 'largest'} {one.name}" for one in others)
    near = f"{candidates} within {first.within} of the best {first.name}, {format_amount(best, first.unit)}"
    return f"{near}: {decides} decides"


def compare_parts(
    measure: str, best: Mapping[str, float | None], other: Mapping[str, float | None]
) -> tuple[MeasurePart, ...]:
    """Return the parts of the best outcome beside those of another; none if there is only one."""
    if len(best) < 2:
        return ()
    return tuple(
        MeasurePart(part or measure, value, other.get(part)) for part, value in best.items() if value is not None
    )


def build_scenario_outcome(model: OpenModel, name: str, outcomes: Outcomes, usual: int | None) -> ScenarioOutcome:
    """Build the winner of a scenario, beside the present winner.

    usual: place of the present winner; None without one.
    """
    order = outcomes.order()
    best = model.candidates.name(int(outcomes.candidates[order[0]])) if len(order) else ""
    value = float(outcomes.values[order[0], 0]) if len(order) else None
    if usual is None:
        return ScenarioOutcome(name, best, value, None)
    if outcomes.allowed[usual]:
        return ScenarioOutcome(name, best, value, float(outcomes.values[usual, 0]), is_same=bool(outcomes.best[usual]))
    why = "; ".join(explain_broken_rules(model, outcomes, usual))
    if not why:
        why = explain_no_outcome(model, int(outcomes.candidates[usual]), float(outcomes.values[usual, 0]))
    return ScenarioOutcome(name, best, value, None, why)


NO_READING = "no scenario says what else it could mean"


def compute_readings(model: OpenModel, outcomes: Outcomes, seconds: float) -> Iterator[ScenarioOutcome]:
    """Compute who wins where each open question is read the other way, as a scenario says.

    outcomes: those of the present reading.
    """
    until, order = time.monotonic() + seconds, outcomes.order()
    best = int(order[0]) if len(order) else None
    for scenario in [one for one in model.model.scenarios if one.open]:
        try:
            left = until - time.monotonic()
            then = model.outcomes(outcomes.candidates.tolist(), scenario=scenario.name, most=1, seconds=left)
            yield build_scenario_outcome(model, scenario.open, check_not_stopped(then), best)
        # The ranking by the present reading is finished.
        except (ToolError, TimeOver) as error:
            yield describe_not_computed(scenario.open, str(error))
    yield from (describe_not_computed(question, NO_READING) for question in model.model.open)


def describe_not_computed(question: str, why: str) -> ScenarioOutcome:
    return ScenarioOutcome(question, "", None, None, why.rstrip("."), computed=False)


def check_not_stopped(outcomes: Outcomes) -> Outcomes:
    """Return complete outcomes; raise TimeOver if a limit cut them off."""
    if outcomes.stopped:
        raise TimeOver(MORE_SECONDS)
    return outcomes


def add_today(
    model: OpenModel, ranking: Ranking, outcomes: Outcomes, scenario: str, changes: str, seconds: float
) -> Ranking:
    """Add the outcome of what is chosen today, or of nothing, and its parts; the books' where neither is known.

    Raises ToolError if what is chosen today cannot be computed.
    """
    first = model.model.first
    try:
        parts = model.present(scenario, changes, seconds, outcomes).get(first.name)
    except TimeOver:
        parts = None
    except ToolError:
        if model.model.choices[0].now is not None:
            raise
        parts = None  # A model need not be able to measure that nothing is chosen.
    if parts is None or not math.isfinite(today := sum(parts.values())):
        return replace(ranking, today=None if scenario or changes else first.now)
    beside = tuple(replace(one, against=parts.get("" if one.name == first.name else one.name)) for one in ranking.parts)
    return replace(ranking, today=today, parts=beside)


def find_nearest_excluded(
    model: OpenModel, outcomes: Outcomes, shut: NDArray[np.int64], best: float | None
) -> Iterator[Excluded]:
    """Find the excluded candidates with the best outcomes, best first. Each has its gain over the best allowed one."""
    sign = 1 if model.model.first.goal == "min" else -1
    values = outcomes.values[:, 0]
    order = sorted(shut, key=lambda at: (not np.isfinite(values[at]), sign * values[at]))
    for at in order[:NEAREST]:
        candidate, value = int(outcomes.candidates[at]), float(values[at])
        rules = outcomes.rules_broken(at)
        why = "; ".join(
            explain_broken_rule(model.model, rule, outcomes.reasons.get((candidate, rule))) for rule in rules
        )
        outcome = value if np.isfinite(value) else None
        gain = None if outcome is None or best is None else sign * (best - value)
        yield Excluded(
            model.candidates.name(candidate), outcome, rules, why or explain_no_outcome(model, candidate, value), gain
        )


def add_trials(model: OpenModel, ranking: Ranking, shaken: Outcomes, varied: tuple[str, ...]) -> Ranking:
    """Add the result of trials to a ranking. Trials that a limit cut off do not count."""
    whole = shaken.known.all(axis=0)
    places = shaken.winners()[whole]
    trials = int(whole.sum())
    if not trials:
        return replace(ranking, stopped=ranking.stopped or explain_missing_trials(shaken, 0))
    counts = Counter(model.candidates.name(int(shaken.candidates[at])) if at >= 0 else "none allowed" for at in places)
    winners = tuple(Winner(name, count / trials) for name, count in counts.most_common())
    varied = (*varied, shaken.note) if shaken.note else varied
    stayed = sum(one.share for one in winners if one.name in ranking.ties)
    middle = compute_outcome_ranges(np.where(shaken.allowed, shaken.values[:, 0], np.nan)[:, whole])
    ranges = dict(zip(model.candidates.names(shaken.candidates), middle.tolist(), strict=True))
    options = tuple(
        replace(option, low=low, high=high) if not math.isnan(low) else option
        for option in ranking.options
        for low, high in [ranges.get(option.name, (math.nan, math.nan))]
    )
    return replace(
        ranking,
        options=options,
        robustness=stayed,
        trials=trials,
        varied=varied,
        winners=winners,
        stopped=ranking.stopped or explain_missing_trials(shaken, trials),
    )


def explain_missing_trials(shaken: Outcomes, trials: int) -> str:
    """Explain why there are no more trials; '' if all were computed."""
    if not shaken.stopped:
        return ""
    why = f", and candidates are computed {shaken.execution}" if shaken.execution else ""
    return f"{shaken.stopped} after {trials} of {shaken.known.shape[-1]} trials{why}"


def check_joint_outcomes(
    model: OpenModel, outcomes: Outcomes, scenario: str = "", changes: str = "", seconds: float = float("inf")
) -> None:
    """Check that a sample computed one by one has the same outcomes and broken rules.

    It checks as many as the seconds allow. Raises ToolError on a difference.
    """
    if not outcomes.batched or not len(outcomes.candidates):
        return
    order = outcomes.order()
    places = sorted({0, len(outcomes.candidates) - 1, *(int(at) for at in order[:1])})[:SAMPLE]
    sample = [int(outcomes.candidates[at]) for at in places]
    single = model.outcomes(sample, scenario=scenario, changes=changes, most=0, one_by_one=True, seconds=seconds)
    for at, place in enumerate(places):
        if not single.known[at]:
            return
        same = np.allclose(single.values[at], outcomes.values[place], rtol=ALIKE, atol=1e-9, equal_nan=True)
        if not same or (single.broken[at] != outcomes.broken[place]).any():
            name = model.candidates.name(sample[at])
            raise ToolError(
                f"{name} is {single.values[at].tolist()} alone and {outcomes.values[place].tolist()} among all "
                "candidates: a statement depends on the order of rows (LIMIT, first, ties); add ORDER BY."
            )
