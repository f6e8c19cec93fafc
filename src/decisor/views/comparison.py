"""The compared choices of a decision, drawn as dots on one axis, and what would change the winner.

A chart here is a table with one drawn column: places are per cent of that column, so letters keep their size on a
phone, a screen reader reads the table, and it prints. The choices come from a decision model, else from the query that
ordered them; without either there is no chart. What a rule forbids is on the same axis, hollow, and so is what came
before the answer and was not chosen.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from decisor.parsing.figures import split_name, without_citations
from decisor.system.wording import format_count, turn_distance, turn_percent
from decisor.techniques.shared.compared import ComparedTable, find_compared_table, mentions_candidate
from decisor.trace.events import TraceEntry, iterate_actions
from decisor.types import Action, Decision, Goal, Ranking, Step, Study, Turn
from decisor.views.chart_drawing import round_steps
from decisor.views.markup import Html, join, tag

MOST_ROWS = 12
"""Choices that are drawn; more are counted."""
TODAY = frozenset({"today", "now", "current", "present", "baseline", "existing"})
"""Words in the name of a column that has the same value in each row: what is if nothing is done."""
SURE = 0.9
"""Share of trials below which the winner is too close to call."""
NOT_CHOSEN = "not chosen"
SENTENCE_END = re.compile(r"(?<=[.!?\]])\s+(?=[^\W\d_a-z]|[“\"'(\[])")
CURRENCY = re.compile(r"\s*([A-Z]{3}|[€$£¥%])(?![A-Za-z])")


@dataclass(frozen=True)
class PlottedChoice:
    """A compared candidate and its outcome."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    """90 % of the trials lie between ``low`` and ``high``; None if nothing was varied."""
    why: str = ""
    """Why it is not chosen, or may not be; '' for every other one."""


@dataclass(frozen=True)
class Comparison:
    """The choices of one decision, best first, those behind them that are not allowed."""

    measure: str
    unit: str
    goal: Goal
    choices: tuple[PlottedChoice, ...]
    today: float | None = None
    """Outcome if nothing is done; None if the data do not give it."""
    ranking: Ranking | None = None
    """The ranking by a decision model; None if a query compared them."""
    table: ComparedTable | None = None
    """The ordered result of a query; None if a decision model compared them."""

    @property
    def allowed(self) -> list[PlottedChoice]:
        return [choice for choice in self.choices if not choice.why]

    @property
    def best(self) -> PlottedChoice:
        return self.allowed[0]

    @property
    def is_unsure(self) -> bool:
        """Whether the stated spread of the inputs moves another one to the front too often."""
        share = self.ranking.robustness if self.ranking else None
        return share is not None and share < SURE

    @property
    def ties(self) -> list[str]:
        return [choice.name for choice in self.allowed if math.isclose(choice.value, self.best.value, rel_tol=1e-9)]

    @property
    def decimals(self) -> int:
        """Digits after the point of all values: none above 1,000, and enough to tell the first two apart."""
        values = [choice.value for choice in self.choices] + ([] if self.today is None else [self.today])
        if all(value == round(value) for value in values):
            return 0
        digits = 0 if max(map(abs, values)) >= 1_000 else 2
        first = [choice.value for choice in self.allowed[:2] if len(self.ties) == 1]
        while len(first) == 2 and digits < 8 and round(first[0], digits) == round(first[1], digits):
            digits += 1
        return digits

    def amount(self, value: float, signed: bool = False, unit: bool = False) -> str:
        """Format a value or, ``signed``, a difference, as all of this comparison are."""
        return f"{format_value(value, self.decimals, signed)}{f' {self.unit}' if unit and self.unit else ''}"

    def is_better(self, value: float, than: float) -> bool:
        return value > than if self.goal == "max" else value < than


def format_value(value: float, decimals: int, signed: bool = False) -> str:
    """Format a number with commas between thousands and a true minus.

    >>> format_value(-4203.4, 0, signed=True), format_value(10317.3, 0, signed=True), format_value(0.125, 2)
    ('−4,203', '+10,317', '0.12')
    """
    text = f"{value:{'+' if signed else ''},.{decimals}f}"
    return (text if text.strip("+-0.,") else text.lstrip("+-")).replace("-", "−")


def split_sentences(text: str) -> list[str]:
    """Split a text after the ends of its sentences.

    >>> split_sentences("It costs 4.5 [o1.r1]. Elm, e.g. the old one, costs 7.")
    ['It costs 4.5 [o1.r1].', 'Elm, e.g. the old one, costs 7.']
    """
    return [sentence for line in text.splitlines() for sentence in SENTENCE_END.split(line.strip()) if sentence]


def find_comparison(entries: Sequence[TraceEntry], decision: Decision) -> Comparison | None:
    """Return what a decision was compared with; None unless there are several choices with an outcome."""
    if decision.ranking is not None and not decision.ranking.is_read_off:
        return compare_ranking(decision.ranking)
    steps = [Step(Action(start.tool, start.input), result.observation) for start, result in iterate_actions(entries)]
    table = find_compared_table(decision.answer, steps)
    if table is not None:
        return compare_table(table, decision)
    return compare_ranking(decision.ranking) if decision.ranking is not None else None


def compare_ranking(ranking: Ranking) -> Comparison | None:
    options = [one for one in ranking.options if math.isfinite(one.outcome)]
    choices = [PlottedChoice(one.name, one.outcome, one.low, one.high) for one in options]
    forbidden = [
        PlottedChoice(one.name, one.outcome, why=one.why or f"ruled out by {' and '.join(one.rules) or 'its outcome'}")
        for one in ranking.excluded
        if one.outcome is not None and math.isfinite(one.outcome)
    ]
    if not choices or len(choices) + len(forbidden) < 2:
        return None
    return Comparison(ranking.measure, ranking.unit, ranking.goal, (*choices, *forbidden), ranking.today, ranking)


def compare_table(table: ComparedTable, decision: Decision) -> Comparison:
    """Compare by the rows of a query. Those before the answer are not chosen, for the reason that names them."""
    options = table.options
    before = [] if table.is_best else list(options[: table.place])
    choices = [PlottedChoice(one.name, one.outcome) for one in options if one not in before]
    if not before:
        # Of equally good ones the answer stands first.
        choices.sort(key=lambda choice: choice.name != options[table.place].name)
    choices += [
        PlottedChoice(one.name, one.outcome, why=reason_against(one.name, decision) or NOT_CHOSEN) for one in before
    ]
    unit = table.ranking().unit or unit_of_figures(table, decision)
    return Comparison(table.measure, unit, table.goal, tuple(choices), value_of_today(table), table=table)


def reason_against(name: str, decision: Decision) -> str:
    """Return the sentence of the reasons that names a candidate, without its citations; '' if none does."""
    sentences = [sentence for text in decision.reasons for sentence in split_sentences(text)]
    return next((without_citations(one) for one in sentences if mentions_candidate(one, name.casefold())), "")


def value_of_today(table: ComparedTable) -> float | None:
    """Return the value of doing nothing: a column named so that has one number in all rows."""
    for column in table.records[0].fields:
        values = {
            record.fields.get(column) for record in table.records if type(record.fields.get(column)) in (int, float)
        }
        if column != table.measure and len(values) == 1 and TODAY & set(split_name(column)):
            return float(values.pop())  # type: ignore[arg-type]
    return None


def unit_of_figures(table: ComparedTable, decision: Decision) -> str:
    """Return the unit that the reasons write after a value of the measure; '' if they write none."""
    rows = {record.id for record in table.records}
    shown = {f"{option.outcome:,.2f}" for option in table.options} | {
        f"{option.outcome:,.0f}" for option in table.options
    }
    for figure in decision.evidence.figures:
        if figure.support in rows and figure.text in shown:
            for text in (*decision.reasons, decision.runner_up):
                _, found, after = text.partition(figure.text)
                if found and (match := CURRENCY.match(after)):
                    return match[1]
    return ""


@dataclass(frozen=True)
class DotScale:
    """An axis with round ticks, from the first to the last of them."""

    ticks: tuple[float, ...]

    def at(self, value: float) -> str:
        """Return the place of a value in per cent of the axis."""
        low, high = self.ticks[0], self.ticks[-1]
        return f"{100 * (value - low) / (high - low):.2f}%"

    def label(self, value: float, signed: bool = False) -> str:
        step = self.ticks[1] - self.ticks[0]
        for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
            if step >= size and value:
                return f"{format_value(value / size, 0 if step % size == 0 else 1, signed)}{letter}"
        return format_value(value, max(0, -math.floor(math.log10(step) + 1e-9)), signed)

    def grid(self) -> list[Html]:
        return [upright("grid wide" if at % 2 else "grid", self.at(tick)) for at, tick in enumerate(self.ticks)]

    def axis(self, signed: bool = False) -> Html:
        return drawn(
            tag(
                "text",
                self.label(tick, signed),
                x=self.at(tick),
                y=17,
                text_anchor="middle",
                cls="wide" if at % 2 else None,
            )
            for at, tick in enumerate(self.ticks)
        )


def scale_around(values: Sequence[float]) -> DotScale:
    """Return the axis of round numbers around all values; it starts at 0 if they reach near to it.

    >>> scale_around([116151.0, 151729.0]).ticks
    (110000.0, 120000.0, 130000.0, 140000.0, 150000.0, 160000.0)
    """
    low, high = min(values), max(values)
    low = 0.0 if 0 < low < (high - low) / 2 else low
    high = 0.0 if (high - low) / -2 < high < 0 else high
    return DotScale(tuple(round_steps(low, high if high > low else low + (abs(low) / 5 or 1.0), 5)))


def drawn(marks: Iterator[Html] | Sequence[Html]) -> Html:
    return tag("td", tag("svg", *marks, aria_hidden="true"), cls="track")


def line(cls: str, x1: str, x2: str, y1: str = "50%", y2: str = "50%") -> Html:
    return tag("line", x1=x1, x2=x2, y1=y1, y2=y2, cls=cls)


def upright(cls: str, x: str, y1: str = "0", y2: str = "100%") -> Html:
    return line(cls, x, x, y1, y2)


def plot_html(title: str, note: str, table: Sequence[Html | None], legend: Sequence[Html] = ()) -> Html:
    return tag(
        "figure",
        tag("figcaption", tag("h2", title), tag("p", note, cls="soft")),
        tag("table", *table, cls="plot"),
        tag("p", *legend, cls="legend") if legend else None,
        cls="stack",
    )


def dot_plot_html(comparison: Comparison, before: Comparison | None = None) -> Html:
    """Return the choices as dots on one axis. before: the unchanged ones, a tick for each on the same axis."""
    shown = [*comparison.allowed[:MOST_ROWS], *[choice for choice in comparison.choices if choice.why][:MOST_ROWS]]
    if before is not None:
        # Rows keep their place while an input is moved.
        places = [choice.name for choice in before.choices]
        shown.sort(key=lambda choice: places.index(choice.name) if choice.name in places else len(places))
    was = {choice.name: choice.value for choice in before.choices} if before else {}
    values = [
        value for one in shown for value in (one.value, one.low, one.high, was.get(one.name)) if value is not None
    ]
    scale = scale_around([*values, *([] if comparison.today is None else [comparison.today])])
    today, rows = comparison.today, list[Html]()
    for choice in shown:
        marks = scale.grid()
        if today is not None:
            marks.append(upright("now", scale.at(today)))
        if choice.low is not None and choice.high is not None:
            marks.append(line("spread", scale.at(choice.low), scale.at(choice.high)))
        if choice.name in was and not math.isclose(was[choice.name], choice.value, rel_tol=1e-6):
            then = scale.at(was[choice.name])
            marks += [line("move", then, scale.at(choice.value)), upright("before", then, "32%", "68%")]
        marks.append(tag("circle", cx=scale.at(choice.value), cy="50%", r=6, cls="dot"))
        against = comparison.best.value if today is None else today
        is_best = choice.name in comparison.ties
        last = NOT_CHOSEN if comparison.table else "not allowed"
        last = (
            last if choice.why else "" if today is None and is_best else comparison.amount(choice.value - against, True)
        )
        # The reason of a sentence stands among what speaks against the decision.
        small = tag("small", choice.why) if choice.why and comparison.ranking else None
        cls = "out" if choice.why else "best" if is_best and not comparison.is_unsure else None
        cells = (
            tag("th", choice.name, small, scope="row"),
            drawn(marks),
            tag("td", comparison.amount(choice.value), cls="n"),
        )
        rows.append(tag("tr", *cells, tag("td", last, cls="n wide"), cls=cls))
    sign = (
        tag("text", f"today {comparison.amount(today)}", x=scale.at(today), y=20, text_anchor="middle")
        if today is not None
        else None
    )
    head = tag(
        "tr",
        tag("th", "Choice", scope="col"),
        tag(
            "th",
            tag("span", "Drawn", cls="hush"),
            tag("svg", sign, aria_hidden="true") if sign else None,
            scope="col",
            cls="track",
        ),
        tag("th", comparison.measure.replace("_", " "), scope="col", cls="n"),
        tag("th", "Against the best" if today is None else "Against today", scope="col", cls="n wide"),
    )
    foot = tag("tr", tag("td"), scale.axis(), tag("td"), tag("td", cls="wide"))
    left = len(comparison.choices) - len(shown)
    unit = f", {comparison.unit}" if comparison.unit else ""
    start = format_value(scale.ticks[0], 0 if scale.ticks[0] == round(scale.ticks[0]) else 2)
    note = f"{comparison.measure.replace('_', ' ').capitalize()}{unit}. The axis starts at {start}."
    note += f" {format_count(left, 'choice')} more {'is' if left == 1 else 'are'} not drawn." if left else ""
    legend = list(plot_legend(comparison, before is not None))
    return plot_html(
        plot_title(comparison), note, (tag("thead", head), tag("tbody", *rows), tag("tfoot", foot)), legend
    )


def plot_title(comparison: Comparison) -> str:
    """Return the finding: how clear the first place is, and what it is worth."""
    best, ties, today = comparison.best, comparison.ties, comparison.today
    if len(ties) > 1:
        return (
            f"{' and '.join(ties[:2])} are equally good" if len(ties) == 2 else f"{len(ties)} choices are equally good"
        )
    if comparison.ranking and comparison.ranking.near:
        return f"{best.name} of {comparison.ranking.near}"
    if today is not None:
        better = [one for one in comparison.allowed if comparison.is_better(one.value, today)]
        if len(better) > 1:
            return f"{format_count(len(better), 'choice').capitalize()} beat today; {best.name} by most"
        return f"Only {best.name} beats today" if better else "No choice beats today"
    if len(comparison.allowed) < 2:
        return f"Only {best.name} is allowed"
    following = comparison.allowed[1]
    lead = comparison.amount(abs(best.value - following.value), unit=True)
    return f"{best.name} leads {following.name} by {lead}"


def plot_legend(comparison: Comparison, with_before: bool) -> Iterator[Html]:
    """Yield the marks as they are drawn, with what each means."""
    dot = tag("circle", cx=14, cy=6, r=5, cls="dot")
    ranking = comparison.ranking
    yield legend_entry("computed" if ranking else "from the rows of the query", dot)
    if ranking and ranking.varied and any(one.low is not None for one in comparison.choices):
        yield legend_entry(
            f"90 % of the trials; varied: {name_inputs(ranking.varied)}", line("spread", "2", "26", "6", "6")
        )
    if any(one.why for one in comparison.choices):
        yield legend_entry("not allowed by a rule" if ranking else "before it in the rows, not chosen", dot, "out")
    if comparison.today is not None:
        yield legend_entry("today", upright("now", "14", "0", "12"))
    if with_before:
        yield legend_entry("before the change", upright("before", "14", "2", "10"))


def legend_entry(words: str, mark: Html, cls: str | None = None) -> Html:
    return tag("span", tag("svg", mark, aria_hidden="true"), words, cls=cls)


def turning_points_html(study: Study) -> Html | None:
    """Return how far each input may move, alone, before another choice wins; None without turning points."""
    inputs = list(dict.fromkeys(turn.input.removesuffix(", falling") for turn in study.turns))
    turns = [turn for turn in study.turns if turn.factor]
    if not inputs:
        return None
    scale = scale_around([-50.0, 100.0, *(turn_percent(turn) for turn in turns)])
    rows = []
    for name in inputs:
        own = [turn for turn in turns if turn.input.removesuffix(", falling") == name]
        marks = [*scale.grid(), upright("now", scale.at(0))]
        for turn in own:
            at = scale.at(turn_percent(turn))
            marks += [line("link", scale.at(0), at), upright("turn", at, "25%", "75%")]
        words = [
            tag("div", tag("b", f"{format_value(turn_percent(turn), 1, True)} %"), f" {describe_turn(study, turn)}")
            for turn in own
        ]
        cells = (
            tag("th", name_inputs([name]), scope="row"),
            drawn(marks),
            tag("td", join(*words) if words else "changes nothing"),
        )
        rows.append(tag("tr", *cells, cls=None if own else "out"))
    nearest = min(turns, key=turn_distance, default=None)
    title = "No input alone changes the winner"
    if nearest is not None:
        change = abs(turn_percent(nearest))
        title = (
            f"{name_inputs([nearest.input.removesuffix(', falling')])} must move {change:.3g} % to change the winner"
        )
    track = tag("th", tag("span", "Change, drawn", cls="hush"), scope="col", cls="track")
    head = tag("tr", tag("th", "Input", scope="col"), track, tag("th", "Turning point", scope="col"))
    foot = tag("tr", tag("td"), scale.axis(signed=True), tag("td"))
    note = f"One input at a time, in per cent, from half to twice. As the data are, {study.best} is best."
    return plot_html(title, note, (tag("thead", head), tag("tbody", *rows), tag("tfoot", foot)))


def name_inputs(inputs: Sequence[str]) -> str:
    """Write the columns of inputs as words; what is in brackets is a value and stays.

    >>> name_inputs(["offer.unit_cost 5 % by supplier", "offer.unit_cost (supplier T. B_1)"])
    'offer: unit cost 5 % by supplier; offer: unit cost (supplier T. B_1)'
    """
    parts = [name.partition(" (") for name in inputs]
    return "; ".join(head.replace(".", ": ", 1).replace("_", " ") + mark + rest for head, mark, rest in parts)


def describe_turn(study: Study, turn: Turn) -> str:
    why = f"; {study.best} then breaks {turn.why}" if turn.why else ""
    return f"{turn.winner} wins{why}" if turn.winner else f"nothing is allowed{why}"
