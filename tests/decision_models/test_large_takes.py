"""How many may be taken is bounded by what there is to take, whatever number the file writes."""

import math
import sys
import time

import pytest

from decisor.decision_models.candidates import Candidates
from decisor.decision_models.schema import parse_take
from decisor.types import Table

SITES = Table(("name",), (("elm",), ("oak",), ("ash",)))


@pytest.mark.parametrize(
    ("take", "count"),
    [
        ("0-99999999999999999999", 8),
        ("1-3", 7),
        (99999999999999999999, 0),
        ("99999999999999999999-999999999999999999999", 0),
        (2, 3),
    ],
)
def test_a_take_beyond_the_rows_is_counted_and_enumerated_at_once(take: int | str, count: int) -> None:
    began = time.monotonic()
    candidates = Candidates(SITES, (parse_take(take),))
    assert candidates.count == len(candidates) == len(candidates.places) == count
    assert time.monotonic() - began < 1


def test_a_take_of_any_number_of_many_rows_is_counted_at_once() -> None:
    rows = tuple((str(number),) for number in range(20_000))
    began = time.monotonic()
    assert Candidates(Table(("name",), rows), (parse_take("0-99999999999999999999"),)).count == sys.maxsize
    assert Candidates(Table(("name",), rows), (parse_take(2),)).count == math.comb(20_000, 2)
    assert time.monotonic() - began < 1
