"""What is changed in a recorded run, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass

from decisor.types import Action, Decision, Observation


@dataclass(frozen=True, slots=True)
class Edit:
    """``at``: a node of a DAG (Q2.1 or 2.1) or the number of a step. Nothing else given: it is only done again.

    Of a node: ``answer`` sets its answer, ``ask`` its question (with tags), ``context`` is told beside it. Of a step:
    ``thought`` is what the model goes on from, ``action`` replaces what it did, ``observation`` what came back.
    ``plan``: the steps of the plan that holds after that step, of the first plan after step 0; the model goes on by it.
    """

    at: str
    answer: str | None = None
    ask: str | None = None
    context: str = ""
    thought: str = ""
    action: Action | str | None = None
    observation: Observation | str | None = None
    plan: tuple[str, ...] = ()

    def texts(self) -> dict[str, str]:
        """What was changed, for people: the steps of a plan on lines of their own."""
        values = {name: getattr(self, name) for name in self.__slots__} | {"plan": "\n".join(self.plan)}
        return {name: text for name, text in values.items() if isinstance(text, str) and text}


@dataclass(frozen=True, slots=True)
class StepChange:
    """A node or step in both runs, in words. ``how``: reused, edited, or again."""

    at: str
    before: str
    after: str
    how: str


@dataclass(frozen=True, slots=True)
class Rerun:
    """Both runs, side by side. ``replayed``: actions that the run's usage counts and that were not done again."""

    before: Decision
    after: Decision
    changes: tuple[StepChange, ...]
    replayed: int = 0
