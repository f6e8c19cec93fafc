"""The 19 checks of a decision model on its real rows.

Each finding names the line, the candidate and the rows. Check 1 is that every statement runs. Checks 2 to 5 look at
the numbers, the present values and the candidates that were worked by hand. Checks 6 to 13 change something and look
at the result. Checks 14 to 19 compute the same twice, and look at joins, a second model, the solver, the numbers in the
texts of rules and the arguments of functions. Checks on changed data end with the given seconds.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from decisor.decision_models.candidates import LIMIT, explain_broken_rule
from decisor.decision_models.client import MORE_SECONDS, OpenModel, TimeOver, find_changed_arguments
from decisor.decision_models.optimize import explain_no_plan, solve_model
from decisor.decision_models.outcomes import Outcomes
from decisor.decision_models.ranking import check_joint_outcomes, find_null_cells
from decisor.decision_models.schema import Input
from decisor.errors import ToolError
from decisor.system.structured_files import Finding
from decisor.system.wording import format_amount, format_count


@dataclass(frozen=True)
class CheckSubject:
    """An open model with the outcomes of its candidates on unchanged data."""

    model: OpenModel
    outcomes: Outcomes
    """Outcomes of all candidates; of very many, those of a sample."""
    until: float = float("inf")
    """Moment (``time.monotonic``) at which the checks end."""

    def name(self, place: int) -> str:
        return self.model.candidates.name(int(self.outcomes.candidates[place]))

    def rerun(self, **changes: object) -> Outcomes:
        """Compute the outcomes of the same candidates with something changed; raise TimeOver if cut off."""
        return self.outcomes_of(self.model, self.outcomes.candidates, **changes)

    def outcomes_of(self, model: OpenModel, candidates: Iterable[int], **changes: object) -> Outcomes:
        """Compute outcomes in the time that is left; raise TimeOver if cut off."""
        seconds = self.until - time.monotonic()
        outcomes = model.outcomes(candidates, most=0, seconds=seconds, **changes)  # type: ignore[arg-type]
        if outcomes.stopped:
            raise TimeOver(MORE_SECONDS)
        return outcomes


Check: TypeAlias = Callable[[CheckSubject], Iterable[Finding]]


def check_measure_numbers(subject: CheckSubject) -> Iterator[Finding]:
    model, outcomes = subject.model.model, subject.outcomes
    for at, measure in enumerate(model.measures):
        # What a rule excludes may have no number, such as days of stock without a sale.
        missing = np.flatnonzero(np.isnan(outcomes.values[:, at]) & ~outcomes.broken.any(axis=1))
        if len(missing):
            names = ", ".join(subject.name(int(place)) for place in missing[:3])
            words = (
                f"measure.{measure.name} gives no number for {format_count(len(missing), 'candidate')} of "
                f"{len(outcomes.candidates):,} that no rule excludes, such as {names}: there is no row, or a value is "
                "NULL (an empty join, a division by 0)"
            )
            yield Finding(2, model.line("measure", measure.name, "sql"), words)
    for part, words in find_null_cells(subject.model):
        yield Finding(2, model.line(*part.split(".")), f"{part}: {words}", "doubt")


def check_present_values(subject: CheckSubject) -> Iterator[Finding]:
    model = subject.model.model
    books = [one for one in model.measures if one.now is not None]
    values = subject.model.present() if books else {}
    for measure in books:
        parts, now = values.get(measure.name), measure.now
        value = None if parts is None else sum(parts.values())
        if now is not None and (value is None or not is_near_written(value, now)):
            measured = "nothing" if value is None else format_amount(value, measure.unit)
            words = (
                f"measure.{measure.name} measures {measured} at present; "
                f"the books say {format_amount(now, measure.unit)}"
            )
            yield Finding(3, model.line("measure", measure.name, "now"), words)


def check_worked_examples(subject: CheckSubject) -> Iterator[Finding]:
    """Check outcomes (check 4) and rules (check 5) of candidates that a person worked out."""
    model = subject.model.model
    for number, example in enumerate(model.examples, 1):
        line = model.line("example", str(number), "choice")
        try:
            candidate = subject.model.candidates.find(example.names)
        except ToolError as error:
            yield Finding(4, line, str(error))
            continue
        outcomes = subject.model.outcomes([candidate])
        name = subject.model.candidates.name(candidate)
        worked = [(measure, float(outcomes.of(measure)[0]), value) for measure, value in example.measure.items()]
        parts = {part: values for (measure, part), values in outcomes.parts.items() if measure == model.first.name}
        worked += [(part, float(parts[part][0]), value) for part, value in example.part.items()]
        for what, here, value in worked:
            if not is_near_written(here, value):
                words = (
                    f"for {name} the model gives {what} {format_amount(here)}; your example says {format_amount(value)}"
                )
                yield Finding(4, model.line("example", str(number), what), words)
        broken = {
            rule: outcomes.reasons.get((candidate, rule))
            for at, rule in enumerate(outcomes.rules)
            if outcomes.broken[0, at]
        }
        for rule in [] if example.breaks is None else [one.name for one in model.rules if not one.price]:
            wanted = rule in (example.breaks or ())
            if wanted != (rule in broken):
                why = f": {explain_broken_rule(model, rule, broken[rule])}" if rule in broken else ""
                words = (
                    f"for {name} rule {rule} is {'broken' if rule in broken else 'kept'}{why}; your example says "
                    f"it is {'broken' if wanted else 'kept'}"
                )
                yield Finding(5, model.line("example", str(number), "breaks"), words)


def is_near_written(value: float, written: float) -> bool:
    """Return whether a value is within half of the last digit that was written.

    >>> is_near_written(12.603, 12.6), is_near_written(12.7, 12.6), is_near_written(315499.744, 315499.74)
    (True, False, True)
    """
    exponent = Decimal(repr(written)).as_tuple().exponent
    # A float does not tell 12 from 12.00, so a whole number is taken as exact to cents.
    half = 0.5 * 10.0 ** min(0, int(exponent)) if isinstance(exponent, int) else 0.0
    whole = half if written != int(written) else 0.005
    return abs(value - written) <= max(whole * 1.001, 1e-6 * abs(written))


SHAKE = 1.07
FAR = (0.5, 2.0, 10.0)
UNIT = 7.0
UNEVEN = "(0.2 + 4 * ((rowid * 7919) % 101) / 100.0)"
"""Another factor for each row: weights that are all doubled would weigh the same."""
CENTS = ("cent", "cents", "ct")
"""Of any money."""
SMALL = "cost price expense spend wait delay risk loss waste distance time wage rent fee penalty emission shortage"
LARGE = "profit revenue value margin gain benefit income sales turnover utility reward served coverage satisfaction"


def have_close_outcomes(one: Outcomes, other: Outcomes) -> bool:
    return are_close(one.values, other.values) and bool((one.broken == other.broken).all())


def are_close(one: ArrayLike, other: ArrayLike) -> bool:
    return bool(np.allclose(one, other, rtol=1e-9, atol=1e-12, equal_nan=True))


def check_outcome_differs(subject: CheckSubject) -> Iterator[Finding]:
    """Check 6: report a first measure that is the same for every candidate."""
    model, values = subject.model.model, subject.outcomes.values
    for at, measure in enumerate(model.measures[:1]):
        column = values[:, at][~np.isnan(values[:, at])]
        if len(column) > 1 and are_close(column, column[0]):
            words = f"measure.{measure.name} is the same for every candidate: what is chosen does not reach it"
            yield Finding(6, model.line("measure", measure.name, "sql"), words)


def check_statement_effects(subject: CheckSubject) -> Iterator[Finding]:
    """Check 7: report each statement without which no outcome and no rule changes.

    It is tried on the unchanged data, and with every row of every input changed.
    """
    model = subject.model.model
    changes = scale_inputs(model.inputs, UNEVEN)
    counts = subject.model.statement_counts()
    for number in range(sum(counts)):
        try:
            if not have_close_outcomes(subject.rerun(skip=number), subject.outcomes):
                continue
            # A statement may do nothing only on the data as they are: it is tried on shaken data too.
            if changes and not have_close_outcomes(
                subject.rerun(skip=number, changes=changes), subject.rerun(changes=changes)
            ):
                continue
        except ToolError:
            continue  # what does not run without the statement needs it
        part, place, line = "change", number + 1, model.line("change")
        if number >= counts[0]:
            part, place, line = "recompute", number + 1 - counts[0], model.line("recompute", "sql")
        yield Finding(7, line, f"statement {place} of {part} changes no outcome and no rule")


def check_inputs(subject: CheckSubject) -> Iterator[Finding]:
    """Check 8 and 9: report inputs that move nothing, or move a measure the wrong way.

    Each input is made a little larger.
    """
    model = subject.model.model
    for column in model.inputs:
        line = model.line("input", column.name)
        shaken = subject.rerun(changes=scale_inputs([column], SHAKE))
        if have_close_outcomes(shaken, subject.outcomes):
            # A small change may stop short of a threshold, so larger and uneven ones are tried too.
            further = [*(scale_inputs([column], more) for more in FAR), scale_inputs([column], UNEVEN)]
            if not all(have_close_outcomes(subject.rerun(changes=changes), subject.outcomes) for changes in further):
                continue
            words = f'input "{column.name}" moves no outcome and no rule: use it, or write [input] whole without it'
            yield Finding(8, line, words)
            continue
        for name, wanted in [*((name, 1) for name in column.raises), *((name, -1) for name in column.lowers)]:
            at = subject.outcomes.names.index(name)
            step = shaken.values[:, at] - subject.outcomes.values[:, at]
            scale = np.abs(subject.outcomes.values[:, at])
            against = wanted * step < -1e-9 * np.where(np.isnan(scale), 0, scale)
            # Only what may be chosen counts: for what a rule excludes the facts need not hold.
            wrong = np.flatnonzero(against & ~subject.outcomes.broken.any(axis=1))
            word, way = ("raises", "falls") if wanted > 0 else ("lowers", "grows")
            if len(wrong):
                who = subject.name(int(wrong[0]))
                words = (
                    f'input "{column.name}" {word} {name}, says the file, but {name} {way} for {who}: mend it; '
                    f"where it may go either way, write [input] whole without {word}"
                )
                yield Finding(9, line, words)
            elif not np.nansum(np.abs(step)) > 0:
                yield Finding(9, line, f'input "{column.name}" {word} {name}, says the file, but {name} does not move')


def check_constants(subject: CheckSubject) -> Iterator[Finding]:
    """Check 8: report a spread that moves a value that is 1 by its meaning, such as EUR per EUR."""
    copies = {name.lower(): copy for name, copy in subject.model.copies.items()}
    for one in subject.model.model.inputs:
        copy = copies.get(one.table.lower())
        if not one.spread or copy is None:
            continue
        names = {one.column.lower(), base_unit(one.unit).lower()}
        cells = next(column.values for column in copy.columns if column.name.lower() == one.column.lower())
        for column in copy.columns:
            if any(cell == 1 and str(own).lower() in names for cell, own in zip(cells, column.values, strict=True)):
                word = base_unit(one.unit) or one.column.upper()
                words = (
                    f'the spread of input "{one.name}" moves 1 {word} per {word}, which is a constant: leave that '
                    f"row out of {copy.name} in [copy], and write coalesce({one.column}, 1)"
                )
                yield Finding(8, subject.model.model.line("input", one.name), words)
                break


def check_units(subject: CheckSubject) -> Iterator[Finding]:
    """Check 10: report a measure that does not scale with all inputs in its unit.

    These inputs are multiplied by seven. A function, and a parameter in that unit or in none, may be a constant that
    does not grow with them.
    """
    model = subject.model.model
    numbers = [name for name, value in model.parameters.items() if isinstance(value, int | float)]
    units = {base_unit(model.units.get(name, "")) for name in numbers}
    if model.functions or "" in units:
        return
    for at, measure in enumerate(model.measures):
        if units & {base_unit(measure.unit), *CENTS}:
            continue
        of_unit = [
            one
            for one in model.inputs
            if measure.name in (*one.raises, *one.lowers)
            and one.unit
            and base_unit(one.unit) in (base_unit(measure.unit), *CENTS)
        ]
        if not of_unit or not base_unit(measure.unit):
            continue
        scaled = subject.rerun(changes=scale_inputs(of_unit, UNIT))
        now = subject.outcomes.values[:, at]
        apart = ~np.isclose(scaled.values[:, at], UNIT * now, rtol=1e-6, equal_nan=True)
        if apart.any():
            # A number that appears or is lost has no distance: it is named only if nothing else is apart.
            distance = np.nan_to_num(np.abs(scaled.values[:, at] - UNIT * now), nan=0.0)
            place = int(np.argmax(np.where(apart, distance, -1.0)))
            names = ", ".join(one.name for one in of_unit)
            before, after = float(now[place]), float(scaled.values[place, at])
            if np.isnan(before) or np.isnan(after):
                grown = "a number, and was none" if np.isnan(before) else "no number any more"
            else:
                grown = f"{after / before:.4g} times as large" if before else "no longer 0"
            words = (
                f"with every input in {base_unit(measure.unit)} ({names}) {UNIT:g} times as large, {measure.name} of "
                f"{subject.name(place)} is {grown}: a column or a constant in that unit is missing in [input], or "
                "two units are mixed"
            )
            yield Finding(10, model.line("measure", measure.name, "unit"), words)


def check_rules(subject: CheckSubject) -> Iterator[Finding]:
    """Check 11: report rules that every candidate keeps or breaks, and a model that allows nothing."""
    model, broken = subject.model.model, subject.outcomes.broken
    for at, name in enumerate(subject.outcomes.rules):
        count = int(broken[:, at].sum())
        if count in (0, len(broken)) and len(broken):
            words = f"rule {name} is {'broken' if count else 'kept'} by every candidate"
            yield Finding(11, model.line("rule", name), words, "error" if count else "doubt")
    if len(broken) and not subject.outcomes.allowed.any():
        line = model.line("rule", model.rules[0].name) if model.rules else model.line("choice")
        yield Finding(11, line, "no candidate is allowed: every one breaks a rule or has no outcome")


def check_goals(subject: CheckSubject) -> Iterator[Finding]:
    """Check 12: report a goal that the name of its measure contradicts."""
    for measure in subject.model.model.measures:
        names = set(measure.name.lower().replace("_", " ").split())
        is_small, is_large = not names.isdisjoint(SMALL.split()), not names.isdisjoint(LARGE.split())
        if is_small != is_large and is_small == (measure.goal == "max"):
            extreme = "large" if is_small else "small"
            words = f"measure.{measure.name} is to be as {extreme} as possible, which its name does not suggest"
            yield Finding(12, subject.model.model.line("measure", measure.name, "goal"), words, "doubt")


def check_row_order(subject: CheckSubject) -> Iterator[Finding]:
    """Check 13: report outcomes that depend on the order of rows: LIMIT without ORDER BY, and ties."""
    model, outcomes = subject.model, subject.outcomes
    words = "depends on the order of rows: a LIMIT or a tie without ORDER BY"
    model.job("reverse", {}, 60)
    try:
        turned = subject.rerun()
    finally:
        model.job("reverse", {}, 60)
    for at, name in enumerate(turned.names):
        # Another order of a sum changes its last digits.
        if not np.allclose(turned.values[:, at], outcomes.values[:, at], rtol=1e-7, equal_nan=True):
            yield Finding(13, model.model.line("measure", name, "sql"), f"measure.{name} {words}")
    for at, name in enumerate(turned.rules):
        if (turned.broken[:, at] != outcomes.broken[:, at]).any():
            yield Finding(13, model.model.line("rule", name), f"rule {name} {words}")


def scale_inputs(inputs: Iterable[Input], factor: object) -> str:
    """Build UPDATE statements that multiply inputs by a factor, a number or SQL."""
    return "; ".join(f'UPDATE "{one.table}" SET "{one.column}" = "{one.column}" * {factor}' for one in inputs)


def base_unit(unit: str) -> str:
    """Return the first word of a unit.

    >>> base_unit("EUR/piece"), base_unit("EUR a month"), base_unit("")
    ('EUR', 'EUR', '')
    """
    words = unit.split("/")[0].split()
    return words[0] if words else ""


CLEAR = 1e-4
"""By so much of it an outcome differs that rows of seven digits can tell whose is right."""
COPIES, ON_COPIES = 20, 50
"""Copies whose inputs vary, and the candidates of each that are computed: these only leave a doubt."""
FEW = 50
"""Rows: a large table holds nearly every number somewhere."""
NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*(?![\w])")


def check_joint_computation(subject: CheckSubject) -> Iterator[Finding]:
    """Check 14: report outcomes that differ between joint computation and one by one."""
    try:
        check_joint_outcomes(subject.model, subject.outcomes)
    except ToolError as error:
        yield Finding(14, 0, str(error))


def check_joins(subject: CheckSubject) -> Iterator[Finding]:
    """Check 15: report joins that count rows several times or lose rows."""
    model = subject.model.model
    for part, left, right, what, rows in subject.model.job("joins", {}, 60).rows:
        line = model.line(*str(part).split("."))
        if what == "twice":
            words = f"{part} joins {left} to {right}, and neither tells its rows apart: rows are counted several times"
        else:
            table = left.split(".")[0]  # type: ignore[union-attr]
            words = f"{part} joins {left} to {right}: {format_count(int(str(rows)), 'row')} of {table} match none"
        yield Finding(15, line, words, "doubt")


@dataclass(frozen=True)
class Difference:
    """A difference between two models."""

    finding: Finding
    candidate: int | None = None
    """Number of a candidate that differs on the unchanged data; None if the models differ otherwise."""
    outcomes: tuple[float, float] = (0.0, 0.0)
    """Outcome of the candidate by both models."""
    allowed: tuple[bool, bool] = (True, True)
    """Whether each model allows the candidate."""


def check_second_model(subject: CheckSubject, other: OpenModel) -> Iterator[Finding]:
    """Check 16: report a difference to a second model of the same question."""
    if difference := find_model_difference(subject, other):
        yield difference.finding


def find_model_difference(subject: CheckSubject, other: OpenModel) -> Difference | None:
    """Find a difference between two models; None if they agree.

    The first measure and what is allowed, of all candidates on the unchanged data, decide. A difference on shaken
    copies, or in another measure or rule of the same name, only leaves a doubt.
    """
    model = subject.model.model
    if model.first.goal != other.model.first.goal:
        words = (
            f'by this model {model.first.name} is to be "{model.first.goal}", by the second "{other.model.first.goal}"'
        )
        return Difference(Finding(16, model.line("measure", model.first.name, "goal"), words))
    names = [subject.model.candidates.name(int(one)) for one in subject.outcomes.candidates]
    try:
        there = [other.candidates.find(name) for name in names]
    except ToolError as error:
        return Difference(Finding(16, model.line("choice"), f"the second model has other candidates: {error}"))
    line = model.line("measure", model.first.name)
    few = sorted({int(at) for at in np.linspace(0, len(names) - 1, min(len(names), ON_COPIES))})
    # Copy 0 is the unchanged data, on which a difference is certain.
    for number in range(COPIES + 1):
        places, changes = (few if number else range(len(names))), build_shaking_updates(subject, number)
        ours = [int(subject.outcomes.candidates[at]) for at in places]
        one = subject.outcomes_of(subject.model, ours, changes=changes) if number else subject.outcomes
        two = subject.outcomes_of(other, [there[at] for at in places], changes=changes)
        if not number:
            unchanged = two
        places_apart = find_differing_places(one, two)
        if not places_apart:
            continue
        place = places_apart[0] if number else choose_easiest_place(subject.model, (one, two), places_apart)
        values = (float(one.values[place, 0]), float(two.values[place, 0]))
        allowed = (bool(one.allowed[place]), bool(two.allowed[place]))
        words = (
            f"for {names[places[place]]} this model gives {format_compared_outcome(values[0], allowed[0])}, the second "
            f"{format_compared_outcome(values[1], allowed[1])}"
        )
        if number:
            words = f"as the data are both models say the same; where inputs vary, {words}"
            return Difference(Finding(16, line, words, "doubt"))
        return Difference(Finding(16, line, words), ours[place], values, allowed)
    return find_minor_difference(subject, unchanged, names)


def find_minor_difference(subject: CheckSubject, two: Outcomes, names: Sequence[str]) -> Difference | None:
    """Find a difference in a measure that does not decide, or in which rule shuts a candidate out."""
    one, model = subject.outcomes, subject.model.model
    for measure in [name for name in one.names[1:] if name in two.names]:
        first, second = one.of(measure), two.of(measure)
        if not np.allclose(first, second, rtol=1e-6, equal_nan=True):
            place = int(np.argmax(~np.isclose(first, second, rtol=1e-6, equal_nan=True)))
            both = f"{format_amount(float(first[place]))}, the second {format_amount(float(second[place]))}"
            words = f"measure.{measure} of {names[place]} is {both}"
            return Difference(Finding(16, model.line("measure", measure), words, "doubt"))
    for at, rule in enumerate(one.rules):
        apart = one.broken[:, at] != two.broken[:, two.rules.index(rule)] if rule in two.rules else np.zeros(1, bool)
        if apart.any():
            place = int(np.argmax(apart))
            words = (
                f"{names[place]} {'breaks' if one.broken[place, at] else 'keeps'} rule {rule}; not by the second model"
            )
            return Difference(Finding(16, model.line("rule", rule), words, "doubt"))
    return None


def find_differing_places(one: Outcomes, two: Outcomes) -> list[int]:
    """Return the places at which two outcomes of the same candidates differ, largest first.

    Rules count only if the numbers agree.
    """
    missing = np.isnan(one.values[:, 0]), np.isnan(two.values[:, 0])
    # Two models that give no outcome agree, and so do two that do not allow a candidate which only one can measure.
    alike = missing[0] & missing[1] | (missing[0] | missing[1]) & ~(one.allowed | two.allowed)
    first, second = np.where(alike, 0.0, one.values[:, 0]), np.where(alike, 0.0, two.values[:, 0])
    if np.allclose(first, second, rtol=1e-6):
        return [int(place) for place in np.flatnonzero(one.allowed != two.allowed)]
    distance = np.nan_to_num(np.abs(first - second), nan=np.inf)
    clear = distance > CLEAR * np.fmax(np.abs(first), np.abs(second))
    order = np.argsort(-distance, kind="stable")
    return [int(place) for place in order[clear[order]]] or [int(order[0])]


def choose_easiest_place(model: OpenModel, both: tuple[Outcomes, Outcomes], places: Sequence[int]) -> int:
    """Choose the place that is easiest to work out by hand.

    It has the fewest chosen rows, and then the most candidates of the same outcome: such candidates hardly touch the
    measure.
    """
    texts = [[f"{value:.9g}" for value in one.values[:, 0]] for one in both]
    counts = [Counter(one) for one in texts]

    def work(place: int) -> tuple[int, int]:
        rows = model.candidates.places[int(both[0].candidates[place])]
        return len(rows), -sum(count[one[place]] for one, count in zip(texts, counts, strict=True))

    return min(places, key=work)


def format_compared_outcome(value: float, allowed: bool) -> str:
    return f"{format_amount(value)}{'' if allowed else ', ruled out'}"


def build_shaking_updates(subject: CheckSubject, number: int) -> str:
    """Build UPDATE statements that multiply each row of the inputs by a factor from 0.8 to 1.2.

    Each copy has other factors; copy 0 has none.
    """
    if not number:
        return ""
    factor = f"(0.8 + 0.4 * ((rowid * {7919 + 2 * number} + {31 * number} + {{}}) % 101) / 100.0)"
    inputs = enumerate(subject.model.model.inputs)
    return "; ".join(scale_inputs([one], factor.format(at)) for at, one in inputs)


def check_solver(model: OpenModel) -> Iterator[Finding]:
    """Check 17: report a solver that fails, or whose sum differs from the SQL of the measure."""
    if model.model.choice:
        return
    try:
        plan = solve_model(model)
    except ToolError as error:
        yield Finding(17, model.model.line("measure", model.model.first.name), str(error))
        return
    if not plan.measures:
        yield Finding(17, model.model.line("rule"), explain_no_plan(model, plan))


def check_rule_numbers(model: OpenModel) -> Iterator[Finding]:
    """Check 18: report numbers of a rule's text that its query, the parameters and the cells lack."""
    file = model.model
    columns = [column for copy in model.copies.values() if copy.rows <= FEW for column in copy.columns]
    cells = {float(value) for column in columns for value in column.values if isinstance(value, int | float)}
    statements = file.statements()
    # A rule reads tables and parameters, such as the first day of a year.
    read = [sql for part, sql in statements.items() if part.startswith("table.")]
    cells |= {
        parse_text_number(text) for text in NUMBER.findall(" ".join([*read, *map(str, file.parameters.values())]))
    }
    for one in file.rules:
        if not one.testable:
            continue
        own = " ".join(sql for part, sql in statements.items() if part.startswith(f"rule.{one.name}."))
        own += f" {one.price.price if one.price else ''}"
        there = {parse_text_number(text) for text in NUMBER.findall(own)} | cells
        # 8 % of the text may be 0.08 in the query.
        there |= {value / 100 for value in there} | {value * 100 for value in there}
        for text in NUMBER.findall(one.text):
            if not any(abs(parse_text_number(text) - value) <= 1e-9 * max(1.0, abs(value)) for value in there):
                words = f"{text} in the text of rule.{one.name} stands in no query of it and in no cell"
                yield Finding(18, file.line("rule", one.name, "text"), words)


def check_arguments(model: OpenModel) -> Iterator[Finding]:
    """Check 19: report values of functions that were given for other rows than those of today."""
    for change in find_changed_arguments(model):
        words = f"{change}: what it gives now is not known, so draft the model anew"
        yield Finding(19, model.model.line("function", change.function), words, "doubt")


def parse_text_number(text: str) -> float:
    """Parse a number with a comma or a point as its separator.

    >>> parse_text_number("1,200"), parse_text_number("2.5"), parse_text_number("2,5")
    (1200.0, 2.5, 2.5)
    """
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", text):
        return float(text.replace(",", ""))
    return float(text.replace(",", ".")) if text.count(",") + text.count(".") <= 1 else float(re.sub(r"[.,]", "", text))


SAMPLE = 2_000
CHECKS: tuple[Check, ...] = (
    check_measure_numbers,
    check_present_values,
    check_worked_examples,
    check_outcome_differs,
    check_statement_effects,
    check_inputs,
    check_constants,
    check_units,
    check_rules,
    check_goals,
    check_row_order,
    check_joint_computation,
    check_joins,
)


def check_model(model: OpenModel, second: OpenModel | None = None, seconds: float = float("inf")) -> Iterator[Finding]:
    """Run all checks of a decision model and yield each finding at once.

    Of more than 2,000 candidates a sample is computed. After ``seconds`` a finding says so, and the other checks on
    changed data are left out.

    Args:
        second: an independent model of the same question.
    """
    subject = None
    checks: list[Callable[[], Iterable[Finding]]] = [partial(check_solver, model), partial(check_arguments, model)]
    try:
        if model.model.choice:
            subject = build_subject(model, seconds)
            if subject.outcomes.stopped:
                yield report_time_over(subject, seconds)
                return
            checks = [*(partial(check, subject) for check in CHECKS), *checks]
            if second is not None:
                checks.insert(-1, partial(check_second_model, subject, second))
    except ToolError as error:
        yield report_failed_statement(error)
        return
    except TimeOver as error:
        checks = []
        yield Finding(1, 0, str(error).rstrip("."))
    # A check that fails does not end the others; only the time does.
    try:
        for check in checks:
            try:
                yield from check()
            except ToolError as error:
                yield report_failed_statement(error)
    except TimeOver as error:
        yield report_time_over(subject, seconds) if subject else Finding(1, 0, str(error).rstrip("."))
    yield from check_rule_numbers(model)


def compare_models(model: OpenModel, other: OpenModel, seconds: float) -> Difference | None:
    """Run check 16 alone on two models. Raises ToolError if a statement of one of them does not run."""
    subject = build_subject(model, seconds)
    try:
        if subject.outcomes.stopped:
            raise TimeOver(MORE_SECONDS)
        return find_model_difference(subject, other)
    except TimeOver:
        return Difference(report_time_over(subject, seconds))


def report_time_over(subject: CheckSubject, seconds: float) -> Finding:
    took = f"{int(subject.outcomes.known.sum()):,} candidates take {subject.outcomes.seconds:.1f} s"
    how = f", as they are computed {subject.outcomes.execution}" if subject.outcomes.execution else ""
    return Finding(1, 0, f"{seconds:.0f} s were over before all checks were made: {took}{how}", "doubt")


def report_failed_statement(error: ToolError) -> Finding:
    """Return a failed statement as a finding of check 1. Its message has the line already."""
    return Finding(1, 0, str(error).rstrip("."))


def build_subject(model: OpenModel, seconds: float = float("inf")) -> CheckSubject:
    """Compute the outcomes that the checks compare; raise ToolError if a statement does not run.

    The statements of the scenarios are run too.
    """
    until = time.monotonic() + seconds
    count = len(model.candidates)
    if count > LIMIT:
        raise ToolError(f"choice: {count:,} candidates are too many to enumerate; they are for the solver.")
    numbers = np.unique(np.linspace(0, count - 1, min(count, SAMPLE)).astype(int)).tolist()
    # One candidate, one by one, runs each statement as the file has it.
    model.outcomes(numbers[:1], one_by_one=True)
    for scenario in model.model.scenarios:
        model.outcomes(numbers[:1], scenario=scenario.name, one_by_one=True)
    return CheckSubject(model, model.outcomes(numbers, most=1, seconds=seconds), until)
