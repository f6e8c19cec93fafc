"""Numbers and citations in an answer, and the support of each number.

Numbers are read in the forms that people write: 1,234.5 and 1.234,5 and 1 234,5, full-width digits, 3.2万. A number is
supported by a record, by the question, or by a calculation from supported figures. Calculations may be written out in
the answer (``31,000 + 2,100 + 14 * 150 = 35,200``), or are found from two figures.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from decisor.types import Figure, Record, Value

WIDE = {ord(wide): plain for wide, plain in zip("０１２３４５６７８９．，％－＋", "0123456789.,%-+", strict=True)}
SPACES = "\u00a0\u202f\u2009"
LETTER = "0-9A-Za-z_\u00c0-\u024f"
DIGITS = rf"\d{{1,3}}(?:(?P<gap>[,.'\u2019 {SPACES}])\d{{3}})(?:(?P=gap)\d{{3}})*(?!\d)(?:[.,]\d+)?|\d+(?:[.,]\d+)?"
TIMES = {"万": 1e4, "萬": 1e4, "亿": 1e8, "億": 1e8}
MOST = 200


@dataclass(frozen=True, slots=True)
class NumberMeaning:
    """A possible meaning of a written number."""

    value: float
    room: float
    """Half a unit of its last digit."""

    def times(self, factor: float) -> NumberMeaning:
        return NumberMeaning(self.value * factor, self.room * factor)


def written_numbers(text: str) -> tuple[str, ...]:
    """Return the numbers in a text as written, at most 200, without duplicates.

    >>> written_numbers("At level 12 the price falls by 3.5 % to 1,204.5 or 1.204,5 (building b7).")
    ('12', '3.5 %', '1,204.5', '1.204,5')
    >>> written_numbers("价格下降３.５元，约1.2万"), written_numbers("on 2024-01-03")
    (('3.5', '1.2万'), ('2024', '01', '03'))
    >>> written_numbers("key 4E801, 1e400, 12e3"), written_numbers("3.5kg for $1.2M, 4 thousand EUR; v1.10, 12abc")
    (('12e3',), ('3.5', '1.2M', '4 thousand'))
    """
    matches = (match.group().strip() for match in NUMBER.finditer(text.translate(WIDE)))
    return tuple(match for match in dict.fromkeys(matches) if "e" not in match.lower() or interpret_number(match))[
        :MOST
    ]


def interpret_number(text: str) -> tuple[NumberMeaning, ...]:
    """Return the possible meanings of one written number.

    Two if its only mark may be a decimal or a thousands mark; none if it is not finite.

    >>> (interpret_number("1,204.5"),
    ...     interpret_number("1.204,5") == interpret_number("1 204,5") == interpret_number("1,204.5"))
    ((NumberMeaning(value=1204.5, room=0.05),), True)
    >>> ([one.value for one in interpret_number("1.204")],
    ...     interpret_number("3,5 %")[0].value, interpret_number("2万")[0].value)
    ([1.204, 1204.0], 3.5, 20000.0)
    """
    if scaled := SCALED.search(text):
        size, unscaled = SCALES[scaled[1].lower().rstrip(".")], interpret_number(text[: scaled.start()])
        # Tables in millions hold 1.2 for "1.2 million", so the number as it stands is its second meaning.
        return (*(meaning.times(size) for meaning in unscaled), *unscaled)
    times = TIMES.get(text[-1:], 1.0)
    bare = (
        text.rstrip("% 万亿萬億" + SPACES)
        .replace("\u2212", "-")
        .translate({ord(space): None for space in SPACES + " '\u2019"})
    )
    mantissa, _, power = bare.lower().partition("e")
    scale = float(f"1e{power or 0}") * times
    meanings = (
        NumberMeaning(float(digits) * scale, 0.5 * 10.0 ** -len(digits.partition(".")[2]) * scale)
        for digits in list_decimal_forms(mantissa)
    )
    return tuple(one for one in meanings if math.isfinite(one.value) and math.isfinite(one.room))


def list_decimal_forms(digits: str) -> tuple[str, ...]:
    """Convert digits to a decimal point and no thousands marks, the likelier form first.

    Empty if the marks fit no number.

    >>> (list_decimal_forms("1.234,5"), list_decimal_forms("1,234"), list_decimal_forms("1.234"),
    ...     list_decimal_forms("12,50"), list_decimal_forms("1,234,567"), list_decimal_forms("1.2,3.4"))
    (('1234.5',), ('1234', '1.234'), ('1.234', '1234'), ('12.50',), ('1234567',), ())
    """
    marks = [char for char in digits if char in ".,"]
    if not marks:
        return (digits,)
    last = marks[-1]
    head, _, tail = digits.rpartition(last)
    # Two different marks: the last one is the decimal mark.
    if len(set(marks)) == 2:
        if last in marks[:-1]:
            return ()
        return (head.replace(marks[0], "") + "." + tail,)
    if len(marks) > 1:
        return (digits.replace(last, ""),)
    # One mark: three digits after it may be thousands. The likelier reading first: 1.234 a decimal, 1,234 thousands.
    decimal, whole = f"{head}.{tail}", head + tail
    if len(tail) != 3 or len(head.lstrip("+-")) > 3 or head.lstrip("+-") in ("", "0"):
        return (decimal,)
    return (decimal, whole) if last == "." else (whole, decimal)


def iterate_numbers(value: Value) -> Iterator[float]:
    """Iterate over the numbers of a value and of all values nested in it, those inside texts included."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        yield float(value) if abs(value) < 1e300 else math.inf
    elif isinstance(value, str):
        yield from (one.value for text in written_numbers(value) for one in interpret_number(text))
    else:
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from iterate_numbers(item)


WRITTEN_NUMBER = r"\d(?:[\d.,']*\d)?"
ALIKE = str.maketrans("\u2212\u2013\u00d7\u00b7x:", "--***/")
MARK = r"[-+*/\u2212\u2013\u00d7\u00b7x:]"
WRITTEN = re.compile(rf"(?<![\d.,])({WRITTEN_NUMBER}(?:\s*{MARK}\s*{WRITTEN_NUMBER})+)\s*=\s*({WRITTEN_NUMBER})")


@dataclass(frozen=True, slots=True)
class WrittenCalculation:
    """A calculation that a text writes out."""

    parts: tuple[str, ...]
    """Numbers as written, and the marks between them."""
    result: str
    """The number after the equals sign, as written."""
    value: float
    """What the calculation gives."""

    @property
    def operands(self) -> tuple[str, ...]:
        return self.parts[::2]


def find_written_calculations(text: str) -> Iterator[WrittenCalculation]:
    """Find the calculations of a text that have a value; others are skipped.

    >>> [(one.parts, one.result, one.value)
    ...     for one in find_written_calculations("So 31,000 + 14 * 150 = 33,100 in all.")]
    [(('31,000', '+', '14', '*', '150'), '33,100', 33100.0)]
    """
    for left, result in WRITTEN.findall(text):
        parts = tuple(part.translate(ALIKE) for part in re.findall(rf"{WRITTEN_NUMBER}|{MARK}", left))
        try:
            yield WrittenCalculation(parts, result, evaluate_parts(parts))
        except (ZeroDivisionError, IndexError):  # The second: of a part that is no number, as 1.2,3.4.
            continue


def evaluate_parts(parts: tuple[str, ...]) -> float:
    """Compute products before sums, from left to right."""
    total, term = 0.0, interpret_number(parts[0])[0].value
    for mark, text in zip(parts[1::2], parts[2::2], strict=True):
        number = interpret_number(text)[0].value
        if mark == "*":
            term *= number
        elif mark == "/":
            term /= number
        else:
            total, term = total + term, number if mark == "+" else -number
    return total + term


CITATION = re.compile(r"[\[［【〔]\s*(o\d+(?:\.\w+)?(?:\s*[,;，；、]\s*o\d+(?:\.\w+)?)*)\s*[\]］】〕]")
"""Of records, such as [o2.r1], and of all records of an observation, such as [o2]."""
COMPUTED = "computed: "


@dataclass(frozen=True, slots=True)
class SourcedNumber:
    """A number that a calculation may start from, with the source that holds it."""

    value: float
    source: str

    def __str__(self) -> str:
        return f"{self.value:.7g} [{self.source}]"


def find_citations(text: str, records: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the cited ids in order, without duplicates.

    A cited observation stands for its records among ``records``; it stays as it is if it has none there.

    >>> find_citations("So it is b [o2.r1, o3.r4], not a [o2.r1].")
    ('o2.r1', 'o3.r4')
    >>> find_citations("By month [o1], not [o4].", ["o1.r1", "o1.r2", "o2.r1"])
    ('o1.r1', 'o1.r2', 'o4')
    """
    names = [name.strip() for group in CITATION.findall(text) for name in re.split("[,;，；、]", group)]
    whole: dict[str, list[str]] = {name: [] for name in names if "." not in name}
    for id in records if whole else ():
        if (owner := id.partition(".")[0]) in whole:
            whole[owner].append(id)
    return tuple(dict.fromkeys(id for name in names for id in whole.get(name) or [name]))


BARE_ID = re.compile(r"(?<![\w.-])o\d+\.\w+")


def bracket_ids(text: str, records: Container[str]) -> str:
    """Write the ids of records as citations, for a text that cites without brackets.

    >>> bracket_ids("krakow (o2.r3), ahead of o2.r1 and o9.r9", ["o2.r1", "o2.r3"])
    'krakow ([o2.r3]), ahead of [o2.r1] and o9.r9'
    """
    return BARE_ID.sub(lambda match: f"[{match[0]}]" if match[0] in records else match[0], text)


def without_citations(text: str) -> str:
    """Remove all citations from a text.

    >>> without_citations("krakow [o2.r3].")
    'krakow.'
    """
    return re.sub(r"(?<!\s)\s*" + CITATION.pattern, "", text).strip()


def check_figures(text: str, sources: Iterable[tuple[str, Sequence[float]]]) -> tuple[Figure, ...]:
    """Find the support of each number in a text: the first source that holds it, or a calculation.

    A source is a name and its numbers. Numbers match as rounded in the text; a calculation starts from figures of the
    text that a source holds.

    >>> check_figures("It rises from 10.5 to 12.3, by 17.5 %, not 99.", [("o1.r1", [12.34, 10.5])])[2:]
    (Figure(text='17.5 %', support='computed: 12.34 [o1.r1] / 10.5 [o1.r1] - 1'), Figure(text='99', support=''))
    """
    texts = written_numbers(CITATION.sub(" ", text))
    numbers_by_source = list(sources) if texts else []
    supports = {figure: find_figure_source(figure, numbers_by_source) for figure in texts}
    # A calculation starts from figures that the text quotes. From all numbers of all rows some pair would give nearly
    # any figure.
    quoted = [operand for operand in supports.values() if operand is not None]
    written = find_supported_calculations(CITATION.sub(" ", text), supports)
    return tuple(
        Figure(figure, operand.source if operand else written.get(figure) or find_calculation(figure, quoted))
        for figure, operand in supports.items()
    )


def find_supported_calculations(text: str, supports: Mapping[str, SourcedNumber | None]) -> dict[str, str]:
    """Map each result that the text itself calculates from supported figures to its formula."""
    formulas: dict[str, str] = {}
    for one in find_written_calculations(text):
        sources = [supports.get(part) for part in one.operands]
        if all(sources) and rounds_to_any_reading(one.value, interpret_number(one.result)):
            names = {
                part: f"{part} [{operand.source}]"
                for part, operand in zip(one.operands, sources, strict=True)
                if operand
            }
            formulas[one.result] = COMPUTED + " ".join(names.get(part, part) for part in one.parts)
    return formulas


def find_figure_source(figure: str, sources: Iterable[tuple[str, Sequence[float]]]) -> SourcedNumber | None:
    """Find the first source number that a figure rounds. None if no source has one."""
    percent = figure.endswith("%")
    meanings = interpret_number(figure)
    for name, numbers in sources:
        for number in numbers:
            if any(
                rounds_to_reading(number, one) or (percent and rounds_to_reading(100 * number, one)) for one in meanings
            ):
                return SourcedNumber(number, name)
    return None


def rounds_to_reading(number: float, reading: NumberMeaning) -> bool:
    """Return whether a number rounds to a reading, whatever the sign: "falls by 3" may mean -3."""
    return math.isfinite(number) and abs(abs(number) - abs(reading.value)) <= reading.room * (1 + 1e-9)


def find_calculation(figure: str, quoted: Sequence[SourcedNumber]) -> str:
    """Find a calculation from quoted numbers that gives a figure. Empty if none does."""
    meanings = interpret_number(figure)
    for a, b in itertools.permutations(quoted, 2):
        for value, formula in iterate_calculations(a, b, figure.endswith("%")):
            if any(rounds_to_reading(value, one) for one in meanings):
                return COMPUTED + formula
    total = math.fsum(one.value for one in quoted)
    if len(quoted) > 2 and rounds_to_any_reading(total, meanings):
        return f"{COMPUTED}sum of {', '.join([*map(str, quoted[:5]), *(['...'] if len(quoted) > 5 else [])])}"
    return ""


def rounds_to_any_reading(number: float, meanings: Iterable[NumberMeaning]) -> bool:
    return any(rounds_to_reading(number, one) for one in meanings)


def iterate_calculations(a: SourcedNumber, b: SourcedNumber, percent: bool) -> Iterator[tuple[float, str]]:
    """Iterate over the values that two numbers can be combined to, each with its formula."""
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


def collect_record_numbers(record: Record) -> list[float]:
    """Return all numbers of a record, those inside its texts included."""
    return [*iterate_numbers(record.fields), *(iterate_numbers(record.text) if record.text else ())]


def iterate_numeric_fields(record: Record) -> Iterator[tuple[str, float]]:
    """Iterate over the numeric values of a row with their columns."""
    for name, value in record.fields.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield name, float(value) if abs(value) < 1e300 else math.inf


SCALES = {
    size: power
    for power, words in (
        (1e3, "thousand tsd k"),
        (1e6, "million millions mio mn m"),
        (1e9, "billion billions mrd bn b"),
        (1e12, "trillion"),
    )
    for size in words.split()
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
COUNTING = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
NUMBER_WORDS = {word: float(value) for value, word in enumerate(COUNTING.split())}
NUMBER_WORDS |= {"dozen": 12.0, "twice": 2.0, "double": 2.0, "half": 0.5}
NTHS = "first second third fourth fifth sixth seventh eighth ninth tenth"
ORDINALS = {word: number for number, word in enumerate(NTHS.split(), 1)}
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?"
    r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
SCALE_WORD = r"(?i:thousand|millions?|billions?|trillion|mio\b\.?|mrd\b\.?|tsd|mn|bn)"
BODY = rf"(?:{DIGITS})(?:[eE][-+]?\d{{1,2}}(?!\d))?"
AFTER = "|".join(sorted((re.escape(word) for word in UNIT_OF), key=len, reverse=True))
# The digits are atomic: without it "3.5kg" was read as 3, as the letter after 3.5 made the match give digits back.
NUMBER = re.compile(
    rf"(?<![{LETTER}.])[-+\u2212]?"
    rf"(?>{DIGITS})"
    rf"(?:[eE][-+]?\d{{1,3}})?"
    rf"(?:[ {SPACES}]?%|[万亿萬億]|[ {SPACES}]?{SCALE_WORD}(?!\w)|[kKmMB](?![{LETTER}]))?"
    rf"(?:(?![{LETTER}])|(?=(?:[xX×]|(?i:{AFTER}))(?!\w)))"
)
SCALED = re.compile(rf"[ {SPACES}]?({SCALE_WORD}|[kKmMB])$")
QUANTITY = re.compile(
    rf"(?<![\w.,'\u2019])(?P<before>(?:US)?[$€£¥]|(?i:USD|EUR|GBP|CHF|JPY))?[ {SPACES}]?"
    rf"(?P<sign>[-+\u2212](?=\d))?(?P<body>{BODY})"
    rf"(?:[ {SPACES}]?(?P<scale>{SCALE_WORD})\b"
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
    # One blank for each letter, so that places in the text stay the same.
    text = UNSPACED.sub(" ", text.translate(WIDE))
    for match in QUANTITY.finditer(text):
        size = SCALES.get((match["scale"] or match["letter"] or "").lower().rstrip("."), 1.0)
        hits = [meaning.times(size) for meaning in interpret_number(match["body"] + (match["wide"] or ""))]
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
            # 05.03. is day and month, 05/03/ month and day unless the first is above 12.
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
