"""How much one query may read, in rows or bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from decisor.errors import SetupError

LIMIT = re.compile(r"(?P<number>\d[\d_,]*(?:\.\d+)?)\s*(?P<size>[KMGT]?)(?P<bytes>B(?:ytes)?)?(?:\s*rows)?", re.I)
SIZES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


@dataclass(frozen=True, slots=True)
class MaxScan:
    """At most so many rows, or bytes, that one query reads."""

    number: int
    bytes: bool = False

    def __str__(self) -> str:
        return f"{self.number:,} {self.unit}"

    @property
    def unit(self) -> str:
        return "bytes" if self.bytes else "rows"


def parse_max_scan(text: str | int) -> MaxScan:
    """
    >>> print(parse_max_scan("5M"), parse_max_scan("1_000 rows"), parse_max_scan("2.5GB"), parse_max_scan(700))
    5,000,000 rows 1,000 rows 2,500,000,000 bytes 700 rows
    >>> parse_max_scan("9 bytes") == MaxScan(9, bytes=True)
    True

    Raises:
        SetupError: it is neither rows nor bytes.
    """
    match = LIMIT.fullmatch(str(text).strip())
    if match is None:
        raise SetupError(f"A limit on what a query reads is rows or bytes, such as 5M or 2GB, not {text!r}.")
    number = float(match["number"].replace("_", "").replace(",", ""))
    return MaxScan(int(number * SIZES[match["size"].upper()]), bool(match["bytes"]))
