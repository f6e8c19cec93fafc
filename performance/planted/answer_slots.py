"""Templates of answers: what is true of a case in their places, or one thing of it that is not.

A template is text with places in braces: ``{a}`` is the name of the best candidate (``b``, ``c``, ``d`` the next,
``m`` one in the middle, ``z`` the last), ``{a.id}`` its row, ``{a.v:2}`` its figure in a spelling, ``{a.t}`` its count,
``{higher/lower}`` the direction. ``{a!}`` is a name that no lie takes, ``<this^that>`` a choice of words. A place knows
which lies can be told in it, and none of them is true of the case.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date

from planted.answer_worlds import OTHER_UNIT, Candidate, Case, Period

KINDS = ("figure", "unit", "scale", "rank", "row", "candidate", "period", "direction", "runner-up", "count")
PLACE = re.compile(r"\{([^{}]+)\}")
CHOICE = re.compile(r"<([^<>^]+(?:\^[^<>^]*)+)>")
NUMBER_WORDS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
]
ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
GROUPS = {
    "": (",", "."),
    "p": ("", "."),
    "e": (".", ","),
    "s": (" ", ","),
    "c": ("", ","),
    "'": ("'", "."),
    "n": ("\u202f", ","),
}
SCALES = {
    "M": (1e6, " million"),
    "m": (1e6, "M"),
    "B": (1e9, " billion"),
    "k": (1e3, "k"),
    "K": (1e3, " thousand"),
    "mn": (1e6, " mn"),
    "bn": (1e9, "bn"),
    "tsd": (1e3, "K"),
}
OTHER_SCALE = {
    " million": (" billion", " thousand"),
    "M": ("B", "k"),
    " billion": (" million", " trillion"),
    "k": ("M",),
    " thousand": (" million",),
    " mn": (" bn",),
    "bn": ("mn",),
    "K": ("M",),
}
AVERAGES = ("days_to_ship", "avg_minutes", "wait_days", "yield_pct")
SPELLING = re.compile(r"(?P<group>[pesc'n]?)(?P<scale>[MmBkK]|mn|bn|tsd)?(?P<digits>\d)(?P<after>.*)")


@dataclass(frozen=True)
class Phrasing:
    """One way to write an answer. ``needs`` are conditions of a case: symbol, periods, year, big, coarse."""

    name: str
    because: str
    final: str = "{a}"
    runner_up: str = "{b}, {b.v:2} {u}"
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lie:
    """An answer with one thing changed in it, and what was changed into what."""

    kind: str
    text: str
    was: str
    is_now: str


def fits(phrasing: Phrasing, case: Case) -> bool:
    """Whether the case has what the phrasing speaks of."""
    value = case.candidates[0].value
    conditions = {
        "symbol": bool(case.unit.symbol),
        "periods": abs(Facts(case, random.Random(0)).trend()) > 1,
        "year": bool(case.year),
        "times": case.goal == "max" and is_whole(value / case.candidates[-1].value),
        "big": min(row.value for row in case.candidates[:3]) >= 1e6,
        "billion": value >= 1e9,
        "thousands": min(row.value for row in case.candidates[:3]) >= 2e4 and value < 5e6,
        "short": value < 2000,
        "not percent": case.unit.code != "%",
        "few": len(case.candidates) <= 20,
        "max": case.goal == "max",
        "rates": case.noun not in ("offer", "tariff", "flat"),
        "clear last": case.candidates[-2].value != case.candidates[-1].value,
        "thousand": all(1e3 <= row.value < 1e6 for row in case.candidates[:3]),
        "hundreds": min(row.value for row in case.candidates[:3]) >= 100,
        "sums": case.column not in AVERAGES,
    }
    return all(conditions[need] for need in phrasing.needs)


def is_whole(ratio: float) -> bool:
    return abs(ratio - round(ratio)) < 0.05


def name(case: Case) -> str:
    return case.candidates[0].name


def write(phrasing: Phrasing, case: Case, seed: str) -> str:
    """The true answer."""
    return "".join(piece if isinstance(piece, str) else piece.text for piece in pieces(phrasing, case, seed))


def tell_lies(phrasing: Phrasing, case: Case, seed: str) -> Iterator[Lie]:
    """Every lie of the answer, one place each, in an order of the seed."""
    chance = random.Random(seed)
    whole = pieces(phrasing, case, seed)
    places = [(at, kind) for at, piece in enumerate(whole) if isinstance(piece, Place) for kind in piece.kinds]
    chance.shuffle(places)
    texts = [piece if isinstance(piece, str) else piece.text for piece in whole]
    for at, kind in places:
        place = whole[at]
        assert isinstance(place, Place)
        wrong = place.wrong(kind, chance, "".join(texts))
        if wrong is not None and wrong != place.text:
            yield Lie(kind, "".join([*texts[:at], wrong, *texts[at + 1 :]]), place.text, wrong)
    # Another candidate in the place of the runner-up, with its own figures and row: only the order is false.
    last = runner_up(phrasing, case, seed, chance.randrange(2, len(case.candidates)))
    true = runner_up(phrasing, case, seed, 1)
    if last != true:
        yield Lie("runner-up", "".join(texts)[: -len(true)] + last, true, last)


def pieces(phrasing: Phrasing, case: Case, seed: str) -> list[str | Place]:
    chance = random.Random(f"{seed} words")
    facts = Facts(case, chance)
    head = facts.pieces(f"Final answer: {phrasing.final}\nBecause: {phrasing.because}")
    return [*head, *facts.pieces(last_line(phrasing))]


def last_line(phrasing: Phrasing) -> str:
    return f"\nRunner-up: {phrasing.runner_up}" if phrasing.runner_up else ""


def runner_up(phrasing: Phrasing, case: Case, seed: str, rank: int) -> str:
    """The line of the runner-up, with the candidate of this rank (from 0) in its place."""
    chance = random.Random(f"{seed} words")
    facts = Facts(case, chance)
    facts.pieces(f"Final answer: {phrasing.final}\nBecause: {phrasing.because}")
    moved = replace(facts, second=rank)
    return "".join(piece if isinstance(piece, str) else piece.text for piece in moved.pieces(last_line(phrasing)))


@dataclass(frozen=True)
class Place:
    """A place of a template with its true text."""

    text: str
    kinds: tuple[str, ...]
    case: Case
    subject: object = None
    spelling: str = ""

    def wrong(self, kind: str, chance: random.Random, answer: str) -> str | None:
        """A text that is false here; None if there is none."""
        match kind, self.subject:
            case ("figure" | "scale" | "count", (float() | int()) as value):
                return wrong_number(value, self.spelling, kind, chance)
            case "unit", Spelled():
                return chance.choice(spelled_units(self.case, self.spelling))
            case "candidate", Candidate() as right:
                others = [row.name for row in self.case.candidates if is_apart(row, right)]
                others = [other for other in others if other not in self.text and self.text not in other]
                return chance.choice(others) if others else None
            case "row", (Candidate() | Period()) as right:
                return wrong_row(right, self.case, chance)
            case "rank", int() as rank:
                ranks = [at for at in range(1, min(len(self.case.candidates), 9) + 1) if at != rank]
                return spell_rank(chance.choice(ranks), self.spelling)
            case "direction", str() as other:
                return other
            case "period", date() as day:
                return wrong_day(day, self.spelling, chance)
            case "period", Period() as right:
                return wrong_period(right, self.spelling, self.case, chance)
            case "period", str() as year:
                return str(int(year) + chance.choice((-1, 1, 2)))
        return None


@dataclass(frozen=True)
class Spelled:
    """A unit in one of its spellings."""


@dataclass(frozen=True)
class Facts:
    """What can stand in the places of a template. ``second`` is the index of the candidate called ``b``."""

    case: Case
    chance: random.Random
    second: int = 1

    def pieces(self, template: str) -> list[str | Place]:
        while CHOICE.search(template):
            template = CHOICE.sub(lambda match: self.chance.choice(match[1].split("^")), template)
        parts = PLACE.split(template)
        return [self.place(part) if at % 2 else part for at, part in enumerate(parts) if part]

    def candidate(self, letter: str) -> Candidate:
        ranked = self.case.candidates
        values = [row.value for row in ranked]
        middle = next((at for at in range(len(ranked) // 2, 3, -1) if values.count(values[at]) == 1), 3)
        return ranked[{"a": 0, "b": self.second, "c": 2, "d": 3, "m": middle, "z": len(ranked) - 1}[letter]]

    def place(self, path: str) -> Place:
        """
        Raises:
            KeyError: if the path names nothing of a case.
        """
        case = self.case
        if "/" in path:
            above, below = path.removeprefix("trend ").split("/")
            first = self.trend() > 0 if path.startswith("trend ") else case.goal == "max"
            return Place(above if first else below, ("direction",), case, below if first else above)
        subject, _, spelling = path.partition(":")
        letter, _, attribute = subject.partition(".")
        if attribute == "" and letter.rstrip("!") in tuple("abcdmz"):
            row = self.candidate(letter.rstrip("!"))
            return Place(row.name, () if "!" in letter else ("candidate",), case, row)
        if subject in ("u", "U", "sym"):
            text = {"u": case.unit.code, "U": case.unit.word, "sym": case.unit.symbol}[subject]
            return Place(text, ("unit",), case, Spelled(), subject)
        if letter in tuple("abcdmz"):
            return self.candidate_place(self.candidate(letter), attribute, spelling)
        if letter in ("top", "low", "first", "last"):
            return self.period_place(self.period(letter), attribute, spelling)
        if subject == "year":
            return Place(case.year, ("period",), case, case.year)
        if subject in ("noun", "nouns", "label", "tally", "tallies"):
            words = {
                "noun": case.noun,
                "nouns": case.nouns,
                "label": case.label,
                "tally": case.tallies[0],
                "tallies": case.tallies[1],
            }
            return Place(words[subject], (), case)
        value, kinds = self.computed(subject)
        return Place(spell(value, spelling or "0"), kinds, case, value, spelling or "0")

    def candidate_place(self, row: Candidate, attribute: str, spelling: str) -> Place:
        case = self.case
        if attribute == "id":
            return Place(row.id, ("row",), case, row)
        if attribute == "t":
            return Place(spell(row.tally, spelling or "0"), ("count",), case, row.tally, spelling or "0")
        if attribute == "date":
            return Place(spell_day(row.seen, spelling), ("period",), case, row.seen, spelling)
        if attribute == "rank":
            rank = case.candidates.index(row) + 1
            return Place(spell_rank(rank, spelling), ("rank",), case, rank, spelling)
        total = sum(other.value for other in case.candidates)
        value = {"v": row.value, "share": row.value / total * 100, "per": row.value / row.tally}[attribute]
        kinds = ("figure",) if attribute == "share" else ("figure", "scale")
        return Place(spell(value, spelling), kinds, case, float(value), spelling)

    def computed(self, subject: str) -> tuple[float, tuple[str, ...]]:
        rows = self.case.candidates
        a, b, c, z = rows[0], rows[self.second], rows[2], rows[-1]
        values = [row.value for row in rows]
        figure = ("figure", "scale")
        known: Mapping[str, tuple[float, tuple[str, ...]]] = {
            "n": (len(rows), ("count",)),
            "others": (len(rows) - 1, ("count",)),
            "gap": (abs(a.value - b.value), figure),
            "gapc": (abs(a.value - c.value), figure),
            "gapz": (abs(a.value - z.value), figure),
            "lead": (abs(a.value - b.value) / b.value * 100, ("figure",)),
            "leadc": (abs(a.value - c.value) / c.value * 100, ("figure",)),
            "short": (abs(a.value - b.value) / a.value * 100, ("figure",)),
            "ratio": (max(a.value, z.value) / min(a.value, z.value), ("figure",)),
            "ratioc": (max(a.value, c.value) / min(a.value, c.value), ("figure",)),
            "total": (sum(values), figure),
            "mean": (sum(values) / len(values), figure),
            "both": (a.value + b.value, figure),
            "three": (sum(values[:3]), figure),
            "twoshare": ((a.value + b.value) / sum(values) * 100, ("figure",)),
            "remainder": (sum(values[3:]), figure),
            "beyond": (len(rows) - 3, ("count",)),
            "beaten": (len(rows) - 2, ("count",)),
            "rest": (sum(values[1:]) / (len(rows) - 1), figure),
            "restlead": (abs(a.value / (sum(values[1:]) / (len(rows) - 1)) - 1) * 100, ("figure",)),
            "indexb": (b.value / a.value * 100, ("figure",)),
            "indexc": (c.value / a.value * 100, ("figure",)),
            "indexz": (z.value / a.value * 100, ("figure",)),
            "threeshare": (sum(values[:3]) / sum(values) * 100, ("figure",)),
            "tallies": (sum(row.tally for row in rows), ("count",)),
            "moretallies": (abs(a.tally - b.tally), ("count",)),
            "over": (sum(value > sum(values) / len(values) for value in values), ("count",)),
            "growth": (abs(self.trend()), ("figure",)),
            "periods": (sum(row.name == a.name for row in self.case.periods), ("count",)),
        }
        return known[subject]

    def own_periods(self) -> list[Period]:
        return [row for row in self.case.periods if row.name == name(self.case)]

    def period(self, which: str) -> Period:
        rows = self.own_periods()
        ordered = sorted(rows, key=lambda row: row.value)
        return {"top": ordered[-1], "low": ordered[0], "first": rows[0], "last": rows[-1]}[which]

    def period_place(self, row: Period, attribute: str, spelling: str) -> Place:
        if attribute == "id":
            return Place(row.id, ("row",), self.case, row)
        if attribute == "v":
            return Place(spell(row.value, spelling), ("figure", "scale"), self.case, float(row.value), spelling)
        return Place(spell_period(row.label, spelling), ("period",), self.case, row, spelling)

    def trend(self) -> float:
        """Percent from the first period to the last."""
        rows = self.own_periods()
        return (rows[-1].value - rows[0].value) / rows[0].value * 100 if rows else 0.0


# Spellings of numbers, ranks, days and periods, and what is false in their place.


def spell(value: float, spelling: str) -> str:
    """
    >>> spell(1234567.891, "2"), spell(1234567.891, "e1"), spell(1234567.891, "M2"), spell(1234567.891, "k0")
    ('1,234,567.89', '1.234.567,9', '1.23 million', '1,235k')
    >>> spell(12, "w"), spell(12.34, "1%"), spell(4321, "~"), spell(12.34, "c1 %")
    ('twelve', '12.3%', '4,300', '12,3 %')
    >>> spell(39.6, "near"), spell(39.2, "near"), spell(0.4, "near"), spell(31415, "range")
    ('just under 40 %', 'just over 39 %', 'less than 1 %', 'between 31,000 and 32,000')
    """
    if spelling in ("w", "W"):
        text = NUMBER_WORDS[int(value)] if value == int(value) and 0 <= value <= 20 else f"{value:,.0f}"
        return text.capitalize() if spelling == "W" else text
    if spelling == "times":
        return {1: "as much as", 2: "twice", 3: "three times"}.get(round(value), f"{spell(round(value), 'w')} times")
    if spelling == "~":
        return f"{float(f'{value:.2g}'):,.{0 if abs(value) >= 10 else 1}f}"
    if spelling == "near":
        whole = math.floor(value)
        side = f"just over {whole}" if value - whole < 0.5 else f"just under {whole + 1}"
        return f"{side if value >= 1 else 'less than 1'} %"
    if spelling == "range":
        step = step_of(value, spelling)
        low = math.floor(round(value / step, 6)) * step
        digits = 0 if step >= 1 else 1
        return f"between {low:,.{digits}f} and {low + step:,.{digits}f}"
    form = SPELLING.fullmatch(spelling)
    assert form, spelling
    size, tail = SCALES[form["scale"]] if form["scale"] else (1.0, "")
    group, point = GROUPS[form["group"]]
    text = f"{value / size:,.{form['digits']}f}".replace(",", "\0").replace(".", point).replace("\0", group)
    return f"{text}{tail}{form['after']}"


def step_of(value: float, spelling: str) -> float:
    """The size of the last digit that is written."""
    if spelling in ("w", "W", "times", "near"):
        return 1.0
    if spelling in ("~", "range"):
        return 10.0 ** max(math.floor(math.log10(abs(value))) - 1, -1)
    form = SPELLING.fullmatch(spelling)
    assert form, spelling
    return float(10.0 ** -int(form["digits"]) * (SCALES[form["scale"]][0] if form["scale"] else 1.0))


def wrong_number(value: float, spelling: str, kind: str, chance: random.Random) -> str | None:
    """A number that is not this one, by more than rounding, in the same spelling."""
    right = spell(value, spelling)
    if kind == "scale":
        for tail, others in OTHER_SCALE.items():
            form = SPELLING.fullmatch(spelling)
            if form and form["scale"] and SCALES[form["scale"]][1] == tail:
                return right.replace(tail, chance.choice(others))
        wrong = value * chance.choice((0.001, 0.01, 0.1, 10, 100, 1000))
    elif kind == "count":
        wrong = value + chance.choice((-3, -2, -1, 1, 2, 3, 5, 9))
    else:
        moved = value * (1 + chance.choice((-1, 1)) * chance.choice((0.03, 0.08, 0.15, 0.3, 0.6)))
        near = value + chance.choice((-1, 1)) * chance.randint(3, 9) * step_of(value, spelling)
        wrong = chance.choice((moved, near, swapped_digits(value, chance)))
    step = step_of(value, spelling)
    least = 0.9 if kind == "count" or spelling == "times" else max(3 * step, 1e-5 * value)
    if wrong < step or abs(wrong - value) < least:
        return None
    return spell(wrong, spelling)


def swapped_digits(value: float, chance: random.Random) -> float:
    """The value with its first two digits, or one of them, otherwise: a slip of the pen."""
    digits = list(f"{value:.2f}")
    at = chance.randrange(min(3, len(digits)))
    if digits[at].isdigit():
        digits[at] = chance.choice([digit for digit in "123456789" if digit != digits[at]])
    return float("".join(digits))


def wrong_row(right: Candidate | Period, case: Case, chance: random.Random) -> str | None:
    """The id of a row that speaks of something else."""
    if isinstance(right, Candidate):
        ids = [row.id for row in case.candidates if is_apart(row, right)]
    else:
        ids = [row.id for row in case.periods if row.value != right.value]
    return chance.choice(ids) if ids else None


def is_apart(row: Candidate, right: Candidate) -> bool:
    """Whether no rounding makes one figure of the other."""
    return row.name != right.name and abs(row.value - right.value) > 0.1 * max(row.value, right.value)


def spelled_units(case: Case, spelling: str) -> list[str]:
    others = OTHER_UNIT[case.unit]
    if spelling == "sym":
        return [unit.symbol for unit in others if unit.symbol]
    return [unit.code if spelling == "u" else unit.word for unit in others]


def spell_rank(rank: int, spelling: str) -> str:
    """
    >>> spell_rank(2, "th"), spell_rank(3, "word"), spell_rank(2, "#"), spell_rank(1, "no")
    ('2nd', 'third', '#2', 'No. 1')
    """
    if spelling == "word":
        return ORDINALS[rank - 1] if rank <= 10 else spell_rank(rank, "th")
    if spelling == "th":
        ending = {1: "st", 2: "nd", 3: "rd"}.get(rank % 10 if rank % 100 not in (11, 12, 13) else 0, "th")
        return f"{rank}{ending}"
    return {"#": f"#{rank}", "no": f"No. {rank}"}.get(spelling, str(rank))


def spell_day(day: date, spelling: str) -> str:
    return {
        "": day.isoformat(),
        "long": f"{day.day} {MONTHS[day.month - 1]} {day.year}",
        "us": f"{MONTHS[day.month - 1][:3]} {day.day}, {day.year}",
        "dot": f"{day:%d.%m.%Y}",
        "my": f"{MONTHS[day.month - 1]} {day.year}",
        "slash": f"{day:%Y/%m/%d}",
    }[spelling]


def wrong_day(day: date, spelling: str, chance: random.Random) -> str:
    month = chance.choice([at for at in range(1, 13) if at != day.month])
    return spell_day(day.replace(month=month, day=min(day.day, 28)), spelling)


def spell_period(label: str, spelling: str) -> str:
    """
    >>> spell_period("2025-Q3", "of"), spell_period("2025-Q3", "words"), spell_period("2024", "of")
    ('Q3 2025', 'the third quarter of 2025', '2024')
    """
    year, _, quarter = label.partition("-Q")
    if not quarter:
        return label
    return {"": label, "of": f"Q{quarter} {year}", "words": f"the {ORDINALS[int(quarter) - 1]} quarter of {year}"}[
        spelling
    ]


def wrong_period(right: Period, spelling: str, case: Case, chance: random.Random) -> str | None:
    """Another period of the same candidate, with another value."""
    labels = [row.label for row in case.periods if row.name == right.name and row.value != right.value]
    return spell_period(chance.choice(labels), spelling) if labels else None
