"""The requests of a client, and the options of a question that they make.

A client chooses among the things that the server was started with, and sets numbers. Nothing in a request is a place,
a file, a URL or a module: names are looked up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from decisor.decision_record.record import Act
from decisor.errors import SetupError
from decisor.parsing.prompting import CALLINGS
from decisor.server.settings import ServerSettings
from decisor.server.users import User
from decisor.session.request import AskRequest, QuestionRequest, QuestionText, RunRequest, Setting
from decisor.session.run_setup import TechniqueRow, list_technique_rows
from decisor.techniques import TECHNIQUES
from decisor.techniques.replay.rerun import Edit

MOST_TEXT, MOST_NAME = 200_000, 200
MOST_LENGTH = {"llm": MOST_NAME, "technique": MOST_NAME, "rules": MOST_TEXT, "goal": 20_000, "settings": 100}
"""Characters of a text, or number of settings, in a request of a client."""
Name = Annotated[str, Field(max_length=200)]
Text = Annotated[str, Field(max_length=MOST_TEXT)]


class Body(BaseModel):
    """A request of a client; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class HowToRun(RunRequest):
    """How a run is done. ``llm`` is a name of ``choices``, "none", or "" for the first; no limit goes beyond those of
    the server.
    """

    approve: bool = False
    """Each query waits until it is allowed."""
    asks: bool = False
    """Words with two readings wait for their meaning; otherwise both are computed."""
    stream: bool = False
    """Thoughts are sent while they are written."""

    @model_validator(mode="after")
    def check_lengths(self) -> Self:
        """Refuse a text that is too long, or too many settings: a person's own command has no such limits."""
        for name, most in MOST_LENGTH.items():
            value = getattr(self, name, "")
            texts = [*value, *map(str, value.values())] if isinstance(value, dict) else []
            if len(value) > most or any(len(text) > MOST_NAME for text in texts):
                raise ValueError(f"{name} is longer than {most:,}")
        return self


class AskBody(HowToRun, QuestionRequest):
    """A question with its rules, technique and limits."""

    question: Annotated[QuestionText, Field(min_length=1, max_length=20_000)]
    """What is to be decided, in words."""
    connections: Annotated[tuple[Name, ...], Field(max_length=100)] = ()
    """Names of connections to ask; all if empty."""
    follows: Name = ""
    """Id of the run that the question follows up."""


class ChangeBody(HowToRun):
    """A change of a run. at: the number of a step or the name of a node.

    A step takes ``thought``, ``action`` (its input) or ``observation``; a node takes ``answer``, ``ask`` or
    ``context``. plan: the steps of the plan that holds after a step (0: the first one).
    """

    at: Annotated[str, Field(min_length=1, max_length=100)]
    thought: Text | None = None
    action: Text | None = None
    observation: Text | None = None
    answer: Text | None = None
    ask: Text | None = None
    context: Text | None = None
    plan: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=2_000)], ...], Field(max_length=100)] = ()


class Order(Body):
    """A run that a person wants, as any process of the server can do it."""

    user: str
    """Name of the person."""
    groups: tuple[str, ...] = ()
    """Groups that they are in."""
    body: AskBody | ChangeBody | HowToRun
    """A question, a change of the run ``before``, or how to go on from it."""
    before: str = ""
    """Id of a run."""


class ApprovalBody(Body):
    """An answer to a query that waits. why: for the model to read if the query is refused. instead: the query that the
    model is to run as it is, in place of a refused one.
    """

    allow: bool
    why: Annotated[str, Field(max_length=2_000)] = ""
    instead: Text = ""


class ReadingBody(Body):
    """An answer to a question about words. answer: the number of a choice, words of one's own, or "" for both."""

    answer: Annotated[str, Field(max_length=2_000)] = ""


class MarkBody(Body):
    """A mark on a decision. mark:

    "" takes it back. answer: the right one, if another was. note: consequences of the decision.
    """

    mark: Literal["right", "wrong", ""]
    answer: Annotated[str, Field(max_length=2_000)] = ""
    note: Annotated[str, Field(max_length=20_000)] = ""


class RecordApprovalBody(Body):
    """An approval of a record, its refusal, or its withdrawal. by: who says it, if the server knows no users. digest:
    of the record that they read; of another one nothing is said. refuse: they do not approve, and ``note`` says why.
    withdraw: takes back their approval. review: day (YYYY-MM-DD) on which they look at it again.
    """

    by: Name = ""
    digest: Annotated[str, Field(max_length=64)] = ""
    note: Annotated[str, Field(max_length=2_000)] = ""
    refuse: bool = False
    withdraw: bool = False
    review: Annotated[str, Field(max_length=10)] = ""

    @property
    def act(self) -> Act:
        return "withdraw" if self.withdraw else "refuse" if self.refuse else "approve"


class HabitsBody(Body):
    """How the numbers and dates of a file are written: its decimal sign, and what goes first in its dates."""

    decimal: Literal["comma", "point"] | None = None
    dates: Literal["day", "month"] | None = None


class ReaderBody(Body):
    """A user to whom a run is shown; with ``end`` it no longer is."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    end: bool = False


class WhatIfBody(Body):
    """An input of the tool ``whatif``, such as ``rank``, ``set site.rent = rent * 1.1`` or ``why elm``."""

    input: Annotated[str, Field(min_length=1, max_length=20_000)]


class TokenBody(Body):
    """A token, to be exchanged for a cookie."""

    token: Annotated[str, Field(min_length=1, max_length=200)]


@cache
def technique_row_of_name() -> Mapping[str, TechniqueRow]:
    return {row.name: row for row in list_technique_rows()}


def request_of_body(body: HowToRun, serving: ServerSettings, user: User) -> AskRequest:
    """Return the request of a client, as far as the server lets it be.

    Raises:
        SetupError: there is no such technique, setting or LLM, or the user may not use it.
    """
    request = AskRequest(llm=serving.llm_of(body.llm, user) or "", limits=serving.limits_of(body.limits))
    if not isinstance(body, AskBody):
        return request
    technique = check_technique_name(body.technique, user)
    own = {name: getattr(body, name) for name in QuestionRequest.model_fields if name not in RunRequest.model_fields}
    settings = check_settings(technique, body.settings, serving, user)
    words = {"question": body.question.strip(), "technique": technique, "settings": settings}
    return request.model_copy(update=own | words)


def check_technique_name(name: str, user: User) -> str:
    """Return the name of a technique, '' for the usual one.

    Raise SetupError if it is unknown, or the user may not use it.
    """
    if name and name not in TECHNIQUES:
        raise SetupError(f"There is no technique {name!r:.200}; there is {', '.join(TECHNIQUES)}.")
    return user.technique(name)


def check_settings(
    technique: str, settings: Mapping[str, Setting], serving: ServerSettings, user: User
) -> dict[str, str]:
    """Return the settings of a request as text, as the command line has them.

    Raises:
        SetupError: there is no such setting, it may not be set from here, or an LLM is none of the server's.
    """
    if not settings:
        return {}
    if not technique:
        raise SetupError("Settings are of a technique: name one.")
    known = {one.name: one for one in technique_row_of_name()[technique].settings}
    values: dict[str, str] = {}
    for name, value in settings.items():
        one = known.get(name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if (name == "calling" and value in CALLINGS) or (
            name in ("temperature", "top_p") and one is None and is_number
        ):
            values[name] = str(value)
        elif one is not None and one.part:
            llm = serving.llm_of(value, user) if isinstance(value, str) and value else None
            if llm is None:
                there = ", ".join(serving.llms_for(user)) or "none is named here"
                raise SetupError(f"{name} takes the name of an LLM: {there}.")
            values[name] = llm
        elif one is not None and one.harmless:
            values[name] = {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
        else:
            names = [key for key, other in known.items() if other.harmless or other.part]
            raise SetupError(
                f"{technique} has no {name!r:.200} to be set from here; it has {', '.join(names) or 'none'}."
            )
    return values


def edit_of(body: ChangeBody) -> Edit:
    return Edit(
        body.at, body.answer, body.ask, body.context or "", body.thought or "", body.action, body.observation, body.plan
    )


def choose_connections(names: Sequence[str], there: Sequence[str]) -> tuple[str, ...]:
    """Return the chosen connections, all if none is named. Raise SetupError if one is unknown, or there are none."""
    if unknown := [name for name in names if name not in there]:
        raise SetupError(f"There is no connection {unknown[0]!r:.200}; there is {', '.join(there) or 'none'}.")
    if not there:
        raise SetupError(
            "There is nothing to ask of. Drop a file on the page, or start the server with --db, --graph or --docs."
        )
    return tuple(dict.fromkeys(names)) or tuple(there)
