"""Numbers quoted in an answer, and whether what it cites holds them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from decisor.types import Figure, Record, Value

NUMBER = re.compile(r"(?<![\w.])[-\u2212]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d{1,3})?(?:\s?%)?(?![\w])")
CITATION = re.compile(r"\[\s*(o\d+\.\w+(?:\s*[,;]\s*o\d+\.\w+)*)\s*\]")
MAX_FIGURES = 200


def citations(text: str) -> tuple[str, ...]:
    """Ids cited, each once, in order.

    >>> citations("So it is b [o2.r1, o3.r4], not a [o2.r1].")
    ('o2.r1', 'o3.r4')
    """
    ids = (name.strip() for group in CITATION.findall(text) for name in re.split("[,;]", group))
    return tuple(dict.fromkeys(ids))


def without_citations(text: str) -> str:
    """
    >>> without_citations("krakow [o2.r3].")
    'krakow.'
    """
    return re.sub(r"(?<!\s)\s*" + CITATION.pattern, "", text).strip()


def written_numbers(text: str) -> tuple[str, ...]:
    """The numbers in a text, as written.

    >>> written_numbers("At level 12 [o1.r3] the price falls by 3.5 % to 1,204.5 (building b7).")
    ('12', '3.5 %', '1,204.5')
    """
    texts = (match.group().strip() for match in NUMBER.finditer(CITATION.sub(" ", text)))
    return tuple(dict.fromkeys(texts))[:MAX_FIGURES]


def check_figures(text: str, sources: Iterable[tuple[str, Sequence[float]]]) -> tuple[Figure, ...]:
    """Each number in ``text`` with the first source (its name, its numbers) that holds it, rounded as it is written.

    >>> check_figures("It rises to 12.3, not 99.", [("o1.r1", [12.34])])
    (Figure(text='12.3', support='o1.r1'), Figure(text='99', support=''))
    """
    numbers_by_source = list(sources)
    return tuple(Figure(figure, support_of(figure, numbers_by_source)) for figure in written_numbers(text))


def support_of(figure: str, sources: Iterable[tuple[str, Sequence[float]]]) -> str:
    percent = figure.endswith("%")
    bare = figure.rstrip("% ").replace(",", "").replace("\u2212", "-")
    value = float(bare)
    mantissa, _, power = bare.lower().partition("e")
    room = 0.5 * 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2])) * (1 + 1e-9)
    for name, numbers in sources:
        for number in numbers:
            near = abs(abs(number) - abs(value)) <= room or (percent and abs(abs(100 * number) - abs(value)) <= room)
            if math.isfinite(number) and near:
                return name
    return ""


def numbers_of(record: Record) -> list[float]:
    """All numbers of a record, those inside its texts too."""
    return [*numbers_in(record.fields), *numbers_in(record.text)]


def numbers_in(value: Value) -> Iterator[float]:
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        yield float(value) if abs(value) < 1e300 else math.inf
    elif isinstance(value, str):
        yield from (float(text.rstrip("% ").replace(",", "").replace("\u2212", "-")) for text in written_numbers(value))
    else:
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from numbers_in(item)
