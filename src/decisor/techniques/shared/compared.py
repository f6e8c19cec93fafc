"""The table that compares the candidates: the last ordered result that holds the answer, read as a ranking.

A run without a decision model has its ranking too where one query computed all candidates, best first. Nothing is
guessed: the order must stand in the query, the column must be in that order in the rows, and the answer must be the
name of exactly one of them. An answer that is none of the names in the rows it cites is told which they are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from decisor.parsing.figures import iterate_numeric_fields, unit_of_column
from decisor.system.wording import format_amount
from decisor.techniques.shared.objections.check import NOT_A_NAME
from decisor.techniques.shared.objections.reading import is_key
from decisor.types import READ_OFF, Goal, Option, Ranking, Record, Step, Value

ORDER = re.compile(r"\border\s+by\s+([^,;]+)", re.I)
LIMITED = re.compile(r"\b(?:limit|fetch|top|skip|offset)\b", re.I)
RULED_OUT = re.compile(
    r"\b(?:not|no|never|cannot|closed|exclud\w+|ineligible|(?:leave|left|rule[ds]?|drop\w*) out|breaks?|violates?"
    r"|fails?|exceeds?|outside|too)\b|n't\b",
    re.I,
)
"""Words by which a sentence says that a candidate may not be chosen."""
HOME = "{name} is what all rows that you cite are about, so they do not choose it; the candidates are {others}."
UNSEEN = "{name} stands in no row that you were shown; the candidates are {others}."
NAMED = 3
"""Candidates that are named in an objection."""
LITERAL = re.compile(r"'((?:[^']|'')*)'")
PERIODS = {"year", "quarter", "month", "week", "day", "date"}
SLUG = re.compile(r"[a-z]+(?:_[a-z]+)*")
"""A name in small letters without blanks."""
TIED = 1e-9
"""Relative difference up to which two outcomes are equal, as in computed rankings."""


@dataclass(frozen=True)
class ComparedTable:
    """An ordered result with a candidate in each row, best first."""

    observation: str
    """Its name, such as o3."""
    measure: str
    """The column that it is ordered by."""
    goal: Goal
    records: Sequence[Record]
    options: Sequence[Option]
    """A candidate for each record."""
    total: int | None
    """Number of candidates; None where rows were cut and nobody counted them."""
    place: int
    """Place of the answer among the candidates, from 0."""

    @property
    def ties(self) -> list[str]:
        """Names of the best, several if their outcomes are equal."""
        best = self.options[0].outcome
        return [option.name for option in self.options if math.isclose(option.outcome, best, rel_tol=TIED)]

    def ranking(self) -> Ranking:
        """Return the table as a ranking."""
        best, ties = self.options[0].outcome, self.ties
        following = next((option.outcome for option in self.options[len(ties) :]), None)
        lead = None if following is None else abs(following - best)
        largest = max(abs(best), abs(following or 0.0))
        return Ranking(
            self.measure,
            self.goal,
            tuple(self.options),
            tuple(ties),
            margin=None if lead is None else lead / largest if largest else 0.0,
            lead=lead,
            unit=unit_of_column(self.measure),
            compared=len(self.options),
            candidates=self.total,
            method=f"{READ_OFF}{self.observation}, ordered by {self.measure}",
        )

    @property
    def is_best(self) -> bool:
        return self.options[self.place].name in self.ties

    def is_best_left(self, because: str) -> bool:
        """Return whether the reasons rule out, each by its name, all candidates that come before the answer."""
        return self.place > 0 and all(is_ruled_out(option.name, because) for option in self.options[: self.place])


def is_ruled_out(name: str, because: str) -> bool:
    """Return whether a sentence of the reasons says that a candidate may not be chosen."""
    sentences = [text for text in re.split(r"(?<=[.;!?\]])\s+|\n", because) if RULED_OUT.search(text)]
    return any(mentions_candidate(text, name.casefold()) for text in sentences)


def describe_runner_up(runner_up: str, because: str, ranking: Ranking) -> str:
    """Describe how the runner-up of an answer that is the best departs from the ranking.

    Empty if it is the next or as good, is no candidate, or the reasons rule out those before it.

    >>> sites = Ranking("cost", "min", (Option("Basel", 2.0), Option("Lyon", 3.0), Option("Bonn", 5.0)), unit="EUR")
    >>> describe_runner_up("Bonn, 5 EUR", "Basel costs 2 EUR, Lyon 3 EUR.", sites)
    'Bonn (5 EUR) is number 3 by cost; the next after Basel is Lyon (3 EUR).'
    >>> describe_runner_up("Bonn", "Lyon is closed.", sites), describe_runner_up("Lyon", "Basel is cheap.", sites)
    ('', '')
    """
    named = next(
        (at for at, one in enumerate(ranking.options) if mentions_candidate(runner_up, one.name.casefold())), 0
    )
    best, *between = ranking.options[:named] or ranking.options[:1]
    left = [one for one in between if not is_ruled_out(one.name, because)]
    if not left or math.isclose(left[0].outcome, ranking.options[named].outcome, rel_tol=TIED):
        return ""
    after, given = (
        f"{one.name} ({format_amount(one.outcome, ranking.unit)})" for one in (left[0], ranking.options[named])
    )
    return f"{given} is number {named + 1} by {ranking.measure}; the next after {best.name} is {after}."


def find_compared_table(name: str, steps: Sequence[Step]) -> ComparedTable | None:
    """Find the last ordered result with several candidates, one of which the answer names; None without one."""
    plain = name.strip().casefold()
    for step in reversed(steps):
        rows = step.observation.records
        if not plain or len(rows) < 2 or step.observation.error or step.observation.ranking is not None:
            continue
        candidates = next(find_candidate_names(plain, rows), None)
        ordered = find_order(step.action.input, rows)
        if candidates is None or ordered is None:
            continue
        (column, names, place), (measure, goal) = candidates, ordered
        if column == measure:
            continue
        options = [Option(text, float(row.fields[measure])) for text, row in zip(names, rows, strict=True)]  # type: ignore[arg-type]
        # A LIMIT of the query cuts without a word, so the number of candidates is not known then.
        total = None if LIMITED.search(step.action.input) else len(rows)
        total = step.observation.total if step.observation.truncated else total
        return ComparedTable(rows[0].id.partition(".")[0], measure, goal, rows, options, total, place)
    return None


def find_candidate_names(plain: str, rows: Sequence[Record]) -> Iterator[tuple[str, list[str], int]]:
    """Yield each column that names the rows, with the names and the place of the one that the answer is.

    An answer may say more behind the name, such as its figure: "Elm, 412 EUR", and may name no other.

    >>> rows = [Record("o1.r1", {"site": "Elm", "cost": 412}), Record("o1.r2", {"site": "Oak", "cost": 530})]
    >>> [next(find_candidate_names(text, rows), None) for text in ("oak, 530 eur", "elm, not oak", "elmwood")]
    [('site', ['Elm', 'Oak'], 1), None, None]
    """
    for column in rows[0].fields:
        values = [str(row.fields.get(column)).strip() for row in rows]
        folded = [value.casefold() for value in values]
        if len(set(folded)) < len(folded):
            continue
        named = [at for at, name in enumerate(folded) if name and (name == plain or mentions_candidate(plain, name))]
        exact = [at for at in named if folded[at] == plain]
        if exact or (len(named) == 1 and has_letters(folded) and plain.startswith(folded[named[0]])):
            yield column, values, (exact or named)[0]


def has_letters(names: Sequence[str]) -> bool:
    """Return whether each is a name and no number: an answer may begin with a count."""
    return all(re.search(r"[^\W\d_]", name) for name in names)


def find_order(query: str, rows: Sequence[Record]) -> tuple[str, Goal] | None:
    """Return the number column that a query orders its rows by, with its goal; None if it cannot be told.

    >>> rows = [Record("o1.r1", {"site": "oak", "cost": 90.0}), Record("o1.r2", {"site": "elm", "cost": 110.5})]
    >>> find_order("SELECT site, cost FROM sites ORDER BY cost", rows), find_order("SELECT site, cost FROM sites", rows)
    (('cost', 'min'), None)
    """
    text = query
    while (outer := re.sub(r"\([^()]*\)", " ", text)) != text:
        text = outer  # an order within a window or a subquery is not that of the rows
    found = ORDER.findall(text)
    if not found:
        return None
    key, columns = found[-1].split(), list(rows[0].fields)
    goal: Goal = "max" if any(word.casefold() == "desc" for word in key) else "min"
    name = key[0].rpartition(".")[2].strip('"`[]') if key else ""
    if name.isdigit() and 0 < int(name) <= len(columns):
        name = columns[int(name) - 1]
    named = [column for column in columns if column.casefold() == name.casefold()]
    # An expression is in no column by name: then only a column that alone is in strict order can be meant.
    strict = not named
    inside = [
        column for column in named or columns if is_in_order([row.fields.get(column) for row in rows], goal, strict)
    ]
    if len(inside) != 1 or (strict and len(rows) < 3) or is_key(inside[0]) or inside[0].casefold() in PERIODS:
        return None
    return inside[0], goal


def is_in_order(values: Sequence[Value], goal: Goal, strict: bool) -> bool:
    numbers = [float(value) for value in values if type(value) in (int, float)]  # type: ignore[arg-type]
    if len(numbers) < len(values) or not all(map(math.isfinite, numbers)):
        return False
    steps = [(after - before) * (1 if goal == "min" else -1) for before, after in pairwise(numbers)]
    return all(step > 0 if strict else step >= 0 for step in steps)


def explain_no_choice(name: str, cited: Collection[str], question: str, steps: Sequence[Step]) -> str:
    """Explain that an answer is none of the candidates that its cited lists name; empty if it may be one.

    It is the aim of the question (in each row, or only in the condition of each query), or in no row at all.
    """
    plain = name.strip().casefold()
    lists = [step for step in steps if len(step.observation.records) > 1 and is_list_of_rows(step, cited)]
    names = next(find_names(lists[-1].observation.records), None) if lists else None
    if not plain or names is None or any(distinguishes(plain, step, is_cited=step in lists) for step in steps):
        return ""
    others = ", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else "")
    if mentions_candidate(question, plain):
        is_home = all(mentions_candidate(step.action.input, plain) or holds_in_all(plain, step) for step in lists)
        return HOME.format(name=name, others=others) if is_home else ""
    queries = " ".join(text for step in steps for text in LITERAL.findall(step.action.input))
    rows = [row for step in steps for row in step.observation.records]
    shown = [
        question,
        queries,
        *(text for row in rows for text in (*row.fields, *map(str, row.fields.values()), row.text)),
    ]
    # A number beside numbered candidates may be a count.
    is_unseen = not all(map(str.isdigit, names)) and is_unseen_name(name, names, "\n".join(shown))
    return UNSEEN.format(name=name, others=others) if is_unseen else ""


def holds_in_all(plain: str, step: Step) -> bool:
    return all(plain in (str(value).casefold() for value in row.fields.values()) for row in step.observation.records)


def is_list_of_rows(step: Step, cited: Collection[str]) -> bool:
    return any(row.id in cited and not row.text for row in step.observation.records)


def find_names(rows: Sequence[Record]) -> Iterator[list[str]]:
    """Yield the values of each column of texts, then of each column of keys, in which no two rows are equal."""
    for column in sorted(rows[0].fields, key=is_key):
        kinds = (str, int) if is_key(column) else (str,)
        values = [row.fields.get(column) for row in rows]
        texts = [str(value).strip() for value in values if type(value) in kinds]
        if len(texts) == len(values) and len({text.casefold() for text in texts}) == len(texts):
            yield texts


def distinguishes(plain: str, step: Step, is_cited: bool) -> bool:
    """Return whether a result sets the name apart: some of its rows have it, or its one row and not its query."""
    rows = step.observation.records
    holders = [row for row in rows if row.text or any(is_part_of(plain, str(value)) for value in row.fields.values())]
    has_figures = any(True for row in rows for _ in iterate_numeric_fields(row))
    if not holders or not (is_cited or has_figures):
        return False
    return len(holders) < len(rows) or (len(rows) == 1 and not mentions_candidate(step.action.input, plain))


def is_part_of(plain: str, value: str) -> bool:
    """Return whether one of two names has the other in it, as words."""
    value = value.strip().casefold()
    return mentions_candidate(value, plain) or (len(value) > 2 and mentions_candidate(plain, value))


def is_unseen_name(name: str, names: Sequence[str], shown: str) -> bool:
    """Return whether a name is written as the others are, and was not shown.

    >>> [is_unseen_name(name, ["K-104", "Mill Lane"], "K-104 Mill Lane") for name in ("K-999", "Park Lane", "the lane")]
    [True, True, False]
    >>> [is_unseen_name(name, ["baltic_sea", "krakow"], "") for name in ("north_sea", "the north sea")]
    [True, False]
    """
    if NOT_A_NAME.fullmatch(name.strip()) or mentions_candidate(shown, name.strip().casefold()):
        return False
    if any(char.isdigit() for char in name):
        # A code is compared by its form: K-999 beside K-104, but no Q3 beside months.
        return re.sub(r"\d+", "0", name.strip()) in {re.sub(r"\d+", "0", other) for other in names}
    if all(map(SLUG.fullmatch, (name.strip(), *names))):
        return True
    words = re.findall(r"[^\W\d_]{3,}", name)
    is_name = 0 < len(words) <= 4 and all(word[0].isupper() for word in words)
    return is_name and any(not mentions_candidate(shown, word.casefold()) for word in words)


def mentions_candidate(text: str, plain: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", text.casefold()) is not None
