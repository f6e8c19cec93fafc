"""Numbers quoted in an answer, and what supports each: a record, the question, or a calculation from such figures."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from decisor.replies.numbers import NumberMeaning, numbers_in, readings, written_numbers
from decisor.replies.written_calculations import written_calculations
from decisor.types import Figure, Record

CITATION = re.compile(r"[\[［【〔]\s*(o\d+(?:\.\w+)?(?:\s*[,;，；、]\s*o\d+(?:\.\w+)?)*)\s*[\]］】〕]")
"""Of records, such as [o2.r1], and of all records of an observation, such as [o2]."""
COMPUTED = "computed: "


@dataclass(frozen=True, slots=True)
class Operand:
    """A number that a calculation may start from. ``source``: its record."""

    value: float
    source: str

    def __str__(self) -> str:
        return f"{self.value:.7g} [{self.source}]"


def citations(text: str, records: Iterable[str] = ()) -> tuple[str, ...]:
    """Ids cited, each once, in order. An observation cited as a whole is those of ``records`` that are its own, itself
    where there are none.

    >>> citations("So it is b [o2.r1, o3.r4], not a [o2.r1].")
    ('o2.r1', 'o3.r4')
    >>> citations("By month [o1], not [o4].", ["o1.r1", "o1.r2", "o2.r1"])
    ('o1.r1', 'o1.r2', 'o4')
    """
    names = [name.strip() for group in CITATION.findall(text) for name in re.split("[,;，；、]", group)]
    whole: dict[str, list[str]] = {name: [] for name in names if "." not in name}
    for id in records if whole else ():
        if (owner := id.partition(".")[0]) in whole:
            whole[owner].append(id)
    return tuple(dict.fromkeys(id for name in names for id in whole.get(name) or [name]))


def without_citations(text: str) -> str:
    """
    >>> without_citations("krakow [o2.r3].")
    'krakow.'
    """
    return re.sub(r"(?<!\s)\s*" + CITATION.pattern, "", text).strip()


def check_figures(text: str, sources: Iterable[tuple[str, Sequence[float]]]) -> tuple[Figure, ...]:
    """Each number in ``text`` with the first source (its name, its numbers) that holds it, rounded as it is written, or
    else with the calculation that gives it from two figures of the text that a source holds.

    >>> check_figures("It rises from 10.5 to 12.3, by 17.5 %, not 99.", [("o1.r1", [12.34, 10.5])])[2:]
    (Figure(text='17.5 %', support='computed: 12.34 [o1.r1] / 10.5 [o1.r1] - 1'), Figure(text='99', support=''))
    """
    texts = written_numbers(CITATION.sub(" ", text))
    numbers_by_source = list(sources) if texts else []
    supports = {figure: held_by(figure, numbers_by_source) for figure in texts}
    quoted = [operand for operand in supports.values() if operand is not None]
    written = written_out(CITATION.sub(" ", text), supports)
    return tuple(
        Figure(figure, operand.source if operand else written.get(figure) or computed(figure, quoted))
        for figure, operand in supports.items()
    )


def written_out(text: str, supports: Mapping[str, Operand | None]) -> dict[str, str]:
    """Of results that the text computes itself, from figures that sources hold, how it does."""
    formulas: dict[str, str] = {}
    for one in written_calculations(text):
        sources = [supports.get(part) for part in one.operands]
        if all(sources) and fits_any(one.value, readings(one.result)):
            names = {
                part: f"{part} [{operand.source}]"
                for part, operand in zip(one.operands, sources, strict=True)
                if operand
            }
            formulas[one.result] = COMPUTED + " ".join(names.get(part, part) for part in one.parts)
    return formulas


def held_by(figure: str, sources: Iterable[tuple[str, Sequence[float]]]) -> Operand | None:
    """The first number of a source that the figure rounds."""
    percent = figure.endswith("%")
    meanings = readings(figure)
    for name, numbers in sources:
        for number in numbers:
            if any(fits(number, one) or (percent and fits(100 * number, one)) for one in meanings):
                return Operand(number, name)
    return None


def fits(number: float, reading: NumberMeaning) -> bool:
    """Whatever the sign: a text says "falls by 3" of -3."""
    return math.isfinite(number) and abs(abs(number) - abs(reading.value)) <= reading.room * (1 + 1e-9)


def computed(figure: str, quoted: Sequence[Operand]) -> str:
    """The calculation that gives the figure; '' where there is none."""
    meanings = readings(figure)
    for a, b in itertools.permutations(quoted, 2):
        for value, formula in results(a, b, figure.endswith("%")):
            if any(fits(value, one) for one in meanings):
                return COMPUTED + formula
    total = math.fsum(one.value for one in quoted)
    if len(quoted) > 2 and fits_any(total, meanings):
        return f"{COMPUTED}sum of {', '.join([*map(str, quoted[:5]), *(['...'] if len(quoted) > 5 else [])])}"
    return ""


def fits_any(number: float, meanings: Iterable[NumberMeaning]) -> bool:
    return any(fits(number, one) for one in meanings)


def results(a: Operand, b: Operand, percent: bool) -> Iterator[tuple[float, str]]:
    """What two numbers come to, and how that is written."""
    if percent:
        if b.value:
            yield 100 * a.value / b.value, f"{a} / {b}"
            yield 100 * (a.value / b.value - 1), f"{a} / {b} - 1"
        return
    if a.value >= b.value:
        yield a.value - b.value, f"{a} - {b}"
    if b.value:
        yield a.value / b.value, f"{a} / {b}"
        yield 100 * (a.value / b.value - 1), f"100 * ({a} / {b} - 1)"
    yield a.value + b.value, f"{a} + {b}"
    yield a.value * b.value, f"{a} * {b}"
    yield a.value * b.value / 100, f"{a} * {b} / 100"


def numbers_of(record: Record) -> list[float]:
    """All numbers of a record, those inside its texts too."""
    return [*numbers_in(record.fields), *(numbers_in(record.text) if record.text else ())]


def numbers_of_fields(record: Record) -> Iterator[tuple[str, float]]:
    """The numbers of a row that are numbers, with their columns."""
    for name, value in record.fields.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield name, float(value) if abs(value) < 1e300 else math.inf
