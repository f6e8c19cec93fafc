"""Published prices of well-known models, from a dated file; a person's own file goes before it. No network."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path

from decisor.errors import SetupError
from decisor.lms.prices import Price

SHIPPED = Path(__file__).parent / "prices.toml"
SNAPSHOT = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8})")
AMOUNTS = ("prompt", "completion", "cached", "cache_write")


@dataclass(frozen=True, slots=True)
class PriceRow:
    """One line of a price table: the price of a model at a host (with its port), since when, and who says so."""

    host: str
    model: str
    price: Price
    date: date
    source: str


def published_price(model: str, host: str, environ: Mapping[str, str]) -> Price | None:
    """What ``model`` costs at ``host``, by the table that ``DECISOR_PRICES`` names, else by the one that is shipped.

    Raises:
        SetupError: the person's table cannot be read.
    """
    own = environ.get("DECISOR_PRICES")
    rows = (*(read_prices(Path(own)) if own else ()), *read_prices(SHIPPED))
    return next((row.price for row in rows if is_of(row, model, host)), None)


def is_of(row: PriceRow, model: str, host: str) -> bool:
    """Whether that is this line's model, or a dated snapshot of it."""
    if host != row.host or not model.startswith(row.model):
        return False
    rest = model[len(row.model) :]
    return not rest or SNAPSHOT.fullmatch(rest) is not None


@cache
def read_prices(path: Path) -> tuple[PriceRow, ...]:
    """The lines of a price table.

    Raises:
        SetupError: the file cannot be read, or a line lacks something.
    """
    try:
        rows = tomllib.loads(path.read_text("utf-8"))["models"]
        return tuple(row_of(row) for row in rows)
    except OSError as error:
        raise SetupError(f"Cannot read the prices in {path}: {error.strerror}.") from error
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise SetupError(
            f"{path} is no table of prices ({error}). Each line of its list models has host, model, prompt and "
            "completion in dollars per million tokens, date and source; cached and cache_write where they differ."
        ) from error


def row_of(row: Mapping[str, object]) -> PriceRow:
    """Raises ValueError, TypeError or LookupError where it is none."""
    if wrong := row.keys() - {"host", "model", "date", "source", *AMOUNTS}:
        raise ValueError(f"there is no {', '.join(sorted(wrong))}")
    amounts = {name: amount_of(row[name]) for name in AMOUNTS if name in row}
    day = row["date"]
    if not isinstance(day, date):
        raise ValueError(f"{row['model']}: the date {day!r} is none")
    price = Price(**{"prompt": amounts["prompt"], "completion": amounts["completion"], **amounts})
    return PriceRow(str(row["host"]), str(row["model"]), price, day, str(row["source"]))


def amount_of(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1e6:
        raise ValueError(f"{value!r} is no amount of dollars")
    return float(value)
