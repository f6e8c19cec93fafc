"""The tool that tests candidates on a decision model, so that no LM has to do the arithmetic in its head."""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from decisor.errors import SetupError, ToolError
from decisor.rankings import note
from decisor.types import Goal, Observation, Ranking, Record, WhatIf

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SETTINGS = ("semantics", "percent", "trials", "seconds")
SEMANTICS = ("", "paper", "released")


class Rank(Protocol):
    """Ranks the candidates of a model: ``decisor.decision_models.ranking.rank``."""

    def __call__(self, model: WhatIf, percent: float = ..., trials: int = ..., *, seconds: float = ...) -> Ranking: ...


@runtime_checkable
class Narrow(Protocol):
    """A model that knows its candidates by more names than one."""

    def only(self, names: Sequence[str]) -> WhatIf: ...


@dataclass(frozen=True)
class Wish:
    """What an input asks for; no candidates means all of them."""

    candidates: tuple[str, ...] = ()
    semantics: str = ""
    percent: float = 5.0
    trials: int = 200
    seconds: float = float("inf")


@dataclass(frozen=True)
class Cut:
    """A model cut down to some of its candidates."""

    model: WhatIf
    names: tuple[str, ...]
    whole: int

    @property
    def measure(self) -> str:
        return self.model.measure

    @property
    def goal(self) -> Goal:
        return self.model.goal

    def candidates(self) -> tuple[str, ...]:
        return self.names

    def outcomes(self, candidates: Sequence[str]) -> NDArray[np.float64]:
        return self.model.outcomes(candidates)

    def varied(self, percent: float, rng: np.random.Generator) -> WhatIf:
        return replace(self, model=self.model.varied(percent, rng))


@dataclass(frozen=True)
class WhatIfTool:
    """``find`` gives the decision model for a semantics ("paper" or "released"); ``rank`` ranks its candidates.

    ``most``: how many candidates become records. Satisfies ``types.Tool``.
    """

    find: Callable[[str], WhatIf]
    rank: Rank
    semantics: str = "paper"
    most: int = 10
    name: str = "whatif"

    def describe(self) -> str:
        return (
            "Computes the outcome of candidates on the decision model of this question.\n"
            "Input: `rank` for all candidates, or some candidates separated by commas (or a JSON list).\n"
            "Returns the outcome of each, best first, with the margin and how robust the best one is."
        )

    async def call(self, text: str) -> Observation:
        """Raises ToolError where a candidate does not exist or a setting cannot be read."""
        return await asyncio.to_thread(self._answer, parse_wish(text))

    def _answer(self, wish: Wish) -> Observation:
        """A model that cannot be computed is for the LM to read: it may answer without."""
        try:
            return self._compute(wish)
        except SetupError as error:
            raise ToolError(str(error)) from error

    def _compute(self, wish: Wish) -> Observation:
        model = self.find(wish.semantics or self.semantics)
        if wish.candidates:
            model = model.only(wish.candidates) if isinstance(model, Narrow) else cut(model, wish.candidates)
        ranking = self.rank(model, percent=wish.percent, trials=wish.trials, seconds=wish.seconds)
        if isinstance(model, Cut):
            ranking = replace(ranking, candidates=model.whole)
        records = tuple(
            Record(f"r{at}", {"candidate": option.name, ranking.measure: option.outcome, "rank": at}, source=self.name)
            for at, option in enumerate(ranking.options[: self.most], 1)
        )
        total = len(ranking.options)
        return Observation(records, note(ranking), truncated=total > len(records), total=total, ranking=ranking)

    async def close(self) -> None:
        """Holds nothing open."""


def parse_wish(text: str) -> Wish:
    """
    >>> parse_wish("rank")
    Wish(candidates=(), semantics='', percent=5.0, trials=200, seconds=inf)
    >>> parse_wish("rank semantics=released trials=0").trials
    0
    >>> parse_wish('["genua", "12"]').candidates, parse_wish("genua, 12").candidates
    (('genua', '12'), ('genua', '12'))
    >>> parse_wish('"Rank all candidates"') == parse_wish('{"action": "RANK"}') == parse_wish("`rank`")
    True
    """
    text = inside_of(text)
    head, *rest = text.split() or [""]
    settings = [word for word in rest if "=" in word]
    others = [word.casefold().strip(".") for word in rest if "=" not in word]
    if head.casefold().strip(".") in ("", "rank", "all") and set(others) <= ALL:
        return _settings([word.partition("=") for word in settings])
    if text.startswith("["):
        try:
            names = json.loads(text)
        except ValueError as error:
            raise ToolError(f"The list of candidates is not JSON: {error}.") from error
    else:
        names = text.split(",")
    return Wish(tuple(str(name).strip().strip("\"'") for name in names if str(name).strip()))


ALL = {"all", "the", "candidates", "of", "them", "every", "candidate", "options"}


def inside_of(text: str) -> str:
    """What was asked for, without quotes, and where it came as an object the one text or list in that."""
    text = text.strip().strip("`\"' \n")
    if not text.startswith("{"):
        return text
    try:
        values = list(json.loads(text).values())
    except (ValueError, AttributeError):
        return text
    wish = values[0] if len(values) == 1 else ""
    return json.dumps(wish) if isinstance(wish, list) else wish.strip() if isinstance(wish, str) else text


def _settings(pairs: Sequence[tuple[str, str, str]]) -> Wish:
    texts = {key: value for key, _, value in pairs}
    if strange := texts.keys() - set(SETTINGS):
        raise ToolError(f"whatif has no setting {', '.join(sorted(strange))}; it has {', '.join(SETTINGS)}.")
    try:
        percent, trials = float(texts.get("percent", 5.0)), int(texts.get("trials", 200))
        seconds = float(texts.get("seconds", "inf"))
    except ValueError as error:
        raise ToolError(f"A setting of whatif is not a number: {error}.") from error
    semantics = texts.get("semantics", "").lower()
    if semantics not in SEMANTICS:
        raise ToolError(f"semantics is paper or released, not {semantics!r}.")
    if not (0 <= percent <= 100 and 0 <= trials <= 100_000 and seconds > 0):
        raise ToolError("percent is from 0 to 100, trials from 0 to 100,000, and seconds above 0.")
    return Wish((), semantics, percent, trials, seconds)


def existing(names: Sequence[str], there: Sequence[str]) -> tuple[str, ...]:
    """The names, each once. Raises ToolError, with close names, where one is no candidate."""
    candidates = set(there)
    for name in names:
        if name not in candidates:
            near = difflib.get_close_matches(name, there, 3) or list(there[:3])
            raise ToolError(f"{name!r} is no candidate; close to it: {', '.join(near)}. There are {len(there)}.")
    return tuple(dict.fromkeys(names))


def cut(model: WhatIf, names: Sequence[str]) -> WhatIf:
    """Raises ToolError where a name is no candidate."""
    there = model.candidates()
    return Cut(model, existing(names, there), len(there))
