"""Figures and periods in texts as people write them: $1.23M, 87EUR, 12 percent, a dozen, 05.03.2024, Q1 2024."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from decisor.parsing.figures import SPACES, WIDE, NumberMeaning, interpret_number

SCALES = {
    "thousand": 1e3,
    "tsd": 1e3,
    "k": 1e3,
    "million": 1e6,
    "millions": 1e6,
    "mio": 1e6,
    "mn": 1e6,
    "m": 1e6,
    "billion": 1e9,
    "billions": 1e9,
    "mrd": 1e9,
    "bn": 1e9,
    "b": 1e9,
    "trillion": 1e12,
}
"""What a word after a number multiplies it by. Letters alone only where they touch it."""
UNITS = {
    "USD": ("money", 1.0, "$ us$ usd dollar dollars"),
    "EUR": ("money", 1.0, "€ eur euro euros"),
    "GBP": ("money", 1.0, "£ gbp pound pounds"),
    "CHF": ("money", 1.0, "chf francs"),
    "JPY": ("money", 1.0, "¥ jpy yen"),
    "%": ("share", 1.0, "% percent pct prozent pp"),
    "s": ("time", 1.0, "sec secs second seconds"),
    "min": ("time", 60.0, "min mins minute minutes"),
    "h": ("time", 3600.0, "h hr hrs hour hours"),
    "d": ("time", 86400.0, "d day days"),
    "week": ("time", 604800.0, "week weeks"),
    "g": ("mass", 1.0, "g gram grams"),
    "kg": ("mass", 1e3, "kg kgs kilo kilos kilogram kilograms"),
    "t": ("mass", 1e6, "t ton tons tonne tonnes"),
    "m": ("length", 1.0, "metre metres meter meters"),
    "km": ("length", 1e3, "km kilometre kilometres kilometer kilometers"),
    "mi": ("length", 1609.344, "mile miles"),
    "kWh": ("energy", 1.0, "kwh"),
    "MWh": ("energy", 1e3, "mwh"),
    "l": ("volume", 1.0, "l litre litres liter liters"),
    "units": ("count", 1.0, "unit units piece pieces pcs"),
}
"""Dimension, size and spellings of a unit."""
UNIT_OF = {word: unit for unit, (_, _, words) in UNITS.items() for word in words.split()}
NUMBER_WORDS = {
    word: float(at)
    for at, word in enumerate(
        [
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
    )
}
NUMBER_WORDS |= {"dozen": 12.0, "twice": 2.0, "double": 2.0, "half": 0.5}
ORDINALS = {
    word: at
    for at, word in enumerate(
        ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"], 1
    )
}
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?"
    r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
BODY = (
    rf"(?:\d{{1,3}}(?:(?P<gap>[,.'\u2019 {SPACES}])\d{{3}})(?:(?P=gap)\d{{3}})*(?!\d)(?:[.,]\d+)?|\d+(?:[.,]\d+)?)"
    r"(?:[eE][-+]?\d{1,2}(?!\d))?"
)
AFTER = "|".join(sorted((re.escape(word) for word in UNIT_OF), key=len, reverse=True))
QUANTITY = re.compile(
    rf"(?<![\w.,'\u2019])(?P<before>(?:US)?[$€£¥]|(?i:USD|EUR|GBP|CHF|JPY))?[ {SPACES}]?"
    rf"(?P<sign>[-+\u2212](?=\d))?(?P<body>{BODY})"
    rf"(?:[ {SPACES}]?(?P<scale>(?i:thousand|millions?|billions?|trillion|mio\b\.?|mrd\b\.?|tsd|mn|bn))\b"
    rf"|(?P<letter>[kKmMB])(?=[^\w]|$)"
    rf"|(?P<wide>[万亿萬億]))?"
    rf"(?:[ {SPACES}-]?(?P<unit>per[ -]?cent(?:age points?)?|%[- ]?points?|kilowatt hours?|(?i:{AFTER}))"
    rf"(?![A-Za-z0-9_]))?"
    r"(?:(?<=\d)[xX×](?![\w]))?(?![0-9A-Za-z_])(?![.,:]\d)"
)
WORD = re.compile(rf"\b(?:{'|'.join(NUMBER_WORDS)})\b", re.I)
PERIOD = re.compile(
    rf"(?P<iso>\b(?:19|20)\d\d[-/]\d\d?[-/]\d\d?\b)|(?P<dot>\b\d\d?\.\d\d?\.(?:19|20)\d\d\b)"
    rf"|(?P<slash>\b\d\d?/\d\d?/(?:19|20)\d\d\b)"
    rf"|(?P<dmy>\b\d\d?(?:st|nd|rd|th|\.)?(?: of)? {MONTH}\.?,? (?:19|20)\d\d\b)"
    rf"|(?P<mdy>\b{MONTH}\.? \d\d?(?:st|nd|rd|th)?,? (?:19|20)\d\d\b)|(?P<my>\b{MONTH}\.?,?(?: of)? (?:19|20)\d\d\b)"
    r"|(?P<ym>\b(?:19|20)\d\d-(?:0[1-9]|1[0-2])\b(?!-))"
    r"|(?P<q>\b[Qq][1-4][ -/]?(?:of )?(?:19|20)\d\d\b)|(?P<yq>\b(?:19|20)\d\d[ -]?[Qq][1-4]\b)"
    r"|(?P<wq>\b(?:first|second|third|fourth|last) quarter (?:of|in) (?:19|20)\d\d\b)"
    r"|(?P<year>(?<![\d.,$€£-])(?:19|20)\d\d(?![\d%]|[.,]\d|-\d))"
)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A figure of a text with its unit."""

    text: str
    """As it is written, with its unit."""
    start: int
    end: int
    meanings: tuple[NumberMeaning, ...]
    """The numbers that it may stand for."""
    unit: str = ""
    """A key of ``UNITS``; '' where none is written."""
    is_word: bool = False
    """True if it is written in letters."""

    @property
    def digits(self) -> int:
        """Number of significant digits."""
        return len(re.sub(r"\D", "", self.text).lstrip("0"))

    @property
    def is_signed(self) -> bool:
        return self.text[0] in "+-\u2212"


@dataclass(frozen=True, slots=True)
class Period:
    """A year or a part of one."""

    text: str
    start: int
    end: int
    year: int
    months: tuple[int, ...] = ()
    """Of a quarter three, of a year none."""
    day: int = 0

    def holds(self, part: Period) -> bool:
        """Return whether another period lies within this one."""
        return (
            self.year == part.year
            and (not self.months or (bool(part.months) and set(part.months) <= set(self.months)))
            and (not self.day or self.day == part.day)
        )


UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Letters of scripts that set figures without blanks."""


def find_quantities(text: str) -> list[Quantity]:
    """Find the figures of a text in order; periods and ordinals do not count.

    >>> [(one.text, one.meanings[0].value, one.unit) for one in find_quantities("$1.23M, 87EUR, 12 percent and 1'234")]
    [('$1.23M', 1230000.0, 'USD'), ('87EUR', 87.0, 'EUR'), ('12 percent', 12.0, '%'), ("1'234", 1234.0, '')]
    >>> [(one.text, one.meanings[0].value) for one in find_quantities("a dozen, three, 4.5 thousand, o1.r2, b7, 2nd")]
    [('dozen', 12.0), ('three', 3.0), ('4.5 thousand', 4500.0)]
    """
    figures = []
    text = UNSPACED.sub(" ", text.translate(WIDE))
    for match in QUANTITY.finditer(text):
        size = SCALES.get((match["scale"] or match["letter"] or "").lower().rstrip("."), 1.0)
        hits = [
            NumberMeaning(one.value * size, one.room * size)
            for one in interpret_number(match["body"] + (match["wide"] or ""))
        ]
        if size > 1 and "," in match["body"]:
            hits = hits[:1]  # 5,495 thousand: nobody writes three decimals before a word for a thousand.
        words = " ".join((match["unit"] or match["before"] or "").lower().split())
        unit = "kWh" if words.startswith("kilo") and "watt" in words else UNIT_OF.get(words, "")
        if words.startswith(("per", "%")):
            unit = "%"
        start = match.start() + len(match.group()) - len(match.group().lstrip())
        if hits:
            figures.append(Quantity(match.group().strip(), start, match.end(), tuple(hits), unit))
    for match in WORD.finditer(text):
        value = NUMBER_WORDS[match.group().lower()]
        meaning = (NumberMeaning(value, 0.0),)
        figures.append(Quantity(match.group(), match.start(), match.end(), meaning, is_word=True))
    return sorted(figures, key=lambda one: one.start)


def iterate_periods(text: str) -> Iterator[Period]:
    """Iterate over the dates, months, quarters and years of a text.

    >>> [(one.year, one.months, one.day)
    ...     for one in iterate_periods("05.03.2024, Q1 2024, May 2023, 3 April 2025, 2022")]
    [(2024, (3,), 5), (2024, (1, 2, 3), 0), (2023, (5,), 0), (2025, (4,), 3), (2022, (), 0)]
    """
    if not any(mark in text for mark in ("19", "20")):
        return
    for match in PERIOD.finditer(text):
        kind, numbers = match.lastgroup, [int(part) for part in re.findall(r"\d+", match.group())]
        name = re.search(MONTH, match.group())
        months: tuple[int, ...] = (MONTHS.index(name.group()[:3].lower()) + 1,) if name else ()
        year, day = max(numbers), 0
        if kind == "iso":
            months, day = (numbers[1],), numbers[2]
        elif kind in ("dot", "slash"):
            day, month = numbers[:2] if kind == "dot" or numbers[0] > 12 else reversed(numbers[:2])
            months = (month,)
        elif kind in ("dmy", "mdy"):
            day = min(numbers)
        elif kind == "ym":
            months = (numbers[1],)
        elif kind in ("q", "yq", "wq"):
            number = ORDINALS.get(match.group().split()[0].lower(), 4) if kind == "wq" else min(numbers)
            months = tuple(range(3 * number - 2, 3 * number + 1))
        yield Period(match.group(), match.start(), match.end(), year, months, day)


@lru_cache(maxsize=4096)
def unit_of_column(name: str) -> str:
    """Return the unit in the name of a column; empty if the name has none.

    >>> unit_of_column("revenue_usd"), unit_of_column("minutes_sold"), unit_of_column("throughput_t")
    ('USD', 'min', 't')
    """
    words = split_name(name)
    for at, word in enumerate(words):
        if word in UNIT_OF and (len(word) > 1 or at == len(words) - 1 > 0):
            return UNIT_OF[word]
    return ""


@lru_cache(maxsize=4096)
def split_name(name: str) -> tuple[str, ...]:
    """Split a name into lower-case words at case changes and marks.

    >>> split_name("UnitsInStock"), split_name("revenue_2024 (EUR)")
    (('units', 'in', 'stock'), ('revenue', '2024', 'eur'))
    """
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return tuple(word.lower() for word in re.findall(r"[^\W_]+|%", apart))
