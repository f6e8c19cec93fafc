"""A decision model drafted by an LM: a question, its rules and a database in; model files out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

from decisor.session.front import ask
from decisor.session.options import Options
from decisor.session.result import Result
from decisor.session.sources import Place
from decisor.trace.events import ActionStart, Entry, events_of
from decisor.types import Question

TECHNIQUE, TOOL, SECOND = "model_first", "decision_model", "#### second"


@dataclass(frozen=True)
class Draft:
    """``model``: the file that ranks, '' where none was agreed on. ``models``: where two differ, both."""

    result: Result
    model: str = ""
    models: Sequence[str] = ()


def draft(question: Question, *, db: Place, **options: Unpack[Options]) -> Draft:
    """Ask for a model; a person at the terminal is asked what the rules leave open.

    Raises:
        SetupError: there is no LM, or the data cannot be opened.
        LMError: the endpoint failed for good.
    """
    options["settings"] = {"asks_person": True, **options.get("settings", {})}
    options["technique"] = TECHNIQUE
    result = ask(question, db=db, **options)
    return Draft(result, ranked(result.trace), compared(result.trace) if not result.answer else ())


def ranked(entries: Sequence[Entry]) -> str:
    """The model that a run of model_first ranked by; '' where it came to none."""
    inputs = [start.input for start in events_of(entries, ActionStart)
              if start.tool == TOOL and start.input.startswith("rank\n")]  # fmt: skip
    return inputs[-1].partition("\n")[2] if inputs else ""


def compared(entries: Sequence[Entry]) -> Sequence[str]:
    """The last two models that were held against each other."""
    inputs = [start.input for start in events_of(entries, ActionStart)
              if start.tool == TOOL and start.input.startswith("compare\n")]  # fmt: skip
    if not inputs:
        return ()
    first, _, second = inputs[-1].partition("\n")[2].partition(SECOND)
    return (first.strip() + "\n", second.strip() + "\n")
