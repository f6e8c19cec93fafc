"""The tool ``whatif`` on a decision model: what follows from a choice, what if the data were others, what it takes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from decisor.decision_models import answers, effects, studies
from decisor.decision_models.machine import OpenModel
from decisor.decision_models.show import flat
from decisor.errors import SetupError, ToolError
from decisor.plurals import counted
from decisor.rankings import amount
from decisor.replies.wishes import Wish, parse_wish
from decisor.types import Goal, Observation

SHOWN = 12
FORMS = """\
Input, one of:
- `rank`: all candidates, best first, with margin, robustness and what is ruled out (`rank scenario=NAME trials=200`)
- some candidates, separated by commas or as a JSON list: just these, beside the best of all
- `why NAME`: each rule with the rows that break it, each measure against the best
- `set TABLE.COLUMN = EXPRESSION where CONDITION`, `TABLE.COLUMN × 1.1`, `TABLE.COLUMN + 5 %`: the data changed so; \
several with semicolons
- `scenario NAME`; `scenarios`: all side by side, with the worst case
- `what would it take for NAME to win`; `turning points`: how far each input moves until another one wins
- `sensitivity`: which input moves the lead most; `pareto`: who is beaten by nobody in every measure
Nothing of it touches the database: a copy is changed. Each record can be cited."""


@dataclass(eq=False)
class ModelTool:
    """Satisfies ``types.Tool``. ``seconds``: the longest that one input may take, unless ``rank`` names its own.
    ``words``: of the model, from ``described``."""

    model: OpenModel
    words: str = ""
    seconds: float = 120.0
    name: str = "whatif"
    base: answers.Base | None = None

    def describe(self) -> str:
        return f"{self.words}\n{FORMS}".strip()

    @property
    def measure(self) -> str:
        return self.model.model.first.name

    @property
    def goal(self) -> Goal:
        return self.model.model.first.goal

    async def call(self, text: str) -> Observation:
        """Raises ToolError where the input cannot be read, names what is not there, or a statement fails."""
        return await asyncio.to_thread(self._answer, text)

    def start_clock(self, seconds: float) -> None:
        """Let everything that is computed from now on end after so many seconds."""
        self.model.deadline = time.monotonic() + seconds

    def _answer(self, text: str) -> Observation:
        self.start_clock(self.seconds)
        try:
            wish = self.wish(text)
            seconds = self.seconds if wish.seconds == float("inf") else wish.seconds
            self.start_clock(seconds)
            return self._answered(replace(wish, seconds=seconds))
        except SetupError as error:
            raise ToolError(str(error)) from error

    def wish(self, text: str) -> Wish:
        """What is no other input is candidates, or the name of a scenario alone; a candidate's own name comes first."""
        plain = text.strip().strip("`\"' ")
        if self.model.model.choice and answers.number_of(self.model, plain) is not None:
            return Wish((plain,), text=plain)
        wish = parse_wish(text)
        scenarios = {one.name.lower(): one.name for one in self.model.model.scenarios}
        if wish.kind == "rank" and plain.lower() in scenarios:
            return Wish(kind="scenario", scenario=scenarios[plain.lower()])
        return wish

    def _answered(self, wish: Wish) -> Observation:
        model, seconds = self.model, wish.seconds
        if wish.kind == "rank" and not wish.candidates:
            return answers.rank(model, wish)
        if not model.model.choice:
            if wish.kind in ("change", "scenario"):
                return effects.solved(model, wish, seconds)
            raise ToolError(
                "This model is for the solver: it takes `rank`, `set TABLE.COLUMN = ...` and `scenario NAME`."
            )
        self.base = base = self.base or answers.base_of(model)
        match wish.kind:
            case "rank":
                return answers.compare(model, base, wish)
            case "why":
                return answers.why(model, base, wish)
            case "change" | "scenario":
                return effects.changed(model, base, wish)
            case "scenarios":
                return studies.scenarios(model, base)
            case "pareto":
                return studies.pareto(model, base)
            case "sensitivity":
                return studies.sensitivity(model, base, seconds)
            case "turning points":
                return studies.turning(model, base, None, seconds)
            case "reach":
                return studies.turning(model, base, answers.number_or_raise(model, wish), seconds)

    async def close(self) -> None:
        """Holds nothing open; who opened the model closes it."""


def described(model: OpenModel) -> str:
    """What is decided, measured, varied and taken as certain. It asks the worker for the candidates."""
    return "\n".join(descriptions(model))


def descriptions(model: OpenModel) -> Iterator[str]:
    file = model.model
    yield f"Computes what follows from a choice, on the decision model of this question: {flat(file.decide)}."
    for at, one in enumerate(file.measures):
        extreme = "small" if one.goal == "min" else "large"
        books = f"; the books say {amount(one.now, one.unit)}" if one.now is not None else ""
        yield f"- measure {one.name}{f' in {one.unit}' if one.unit else ''}, as {extreme} as possible{books}" + (
            "; it decides" if not at and len(file.measures) > 1 else ""
        )
    if file.choice:
        yield f"- {candidates_line(model)}"
    for rule in file.rules:
        limit = f"{rule.measure} {'at most' if rule.at_most is not None else 'at least'} {rule.bound}"
        yield f"- rule {rule.name}: {flat(rule.text) or (flat(limit) if rule.measure else 'no row of its query')}"
    for require in file.requires:
        yield f"- required, {require.name}: {flat(require.text or require.sum)}"
    if file.scenarios:
        yield f"- scenarios: {', '.join(f'{one.name} ({flat(one.text or one.change)})' for one in file.scenarios)}"
    spreads = [
        f"{one.name}{f' in {one.unit}' if one.unit else ''} by {one.spread}" for one in file.inputs if one.spread
    ]
    certain = [one.name for one in file.inputs if not one.spread]
    yield f"- uncertain: {', '.join(spreads) or 'nothing'}"
    yield f"- taken as certain: {', '.join(certain) or 'all the rest'}"
    tables = [f"{copy.name} ({', '.join(column.name for column in copy.columns)})" for copy in model.copies.values()]
    yield f"- columns that may be set: {'; '.join(tables[:SHOWN])}"


def candidates_line(model: OpenModel) -> str:
    try:
        count = len(model.candidates)
        names = dict.fromkeys(model.candidates.name(at) for at in (0, count - 1))
    except ToolError as error:
        return f"candidates: cannot be computed ({error})"
    return f"{counted(count, 'candidate')}, such as {' and '.join(names)}"
