"""What a client may send. Nothing of it is a place, a file, a URL or a module: names are looked up among what the
server was started with."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

MOST_TEXT = 200_000
Name = Annotated[str, Field(max_length=200)]
Text = Annotated[str, Field(max_length=MOST_TEXT)]
Setting = bool | int | float | Annotated[str, Field(max_length=200)]


class Body(BaseModel):
    """What every request is."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class LimitsBody(Body):
    """What a run may take. None goes beyond that of the server."""

    calls: Annotated[int, Field(ge=1, le=10**9)] | None = None
    tokens: Annotated[int, Field(ge=1, le=10**12)] | None = None
    dollars: Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)] | None = None
    seconds: Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)] | None = None
    actions: Annotated[int, Field(ge=1, le=10**9)] | None = None


class HowToRun(Body):
    """``lm``: a name of ``choices``, "none", or "" for the first. ``approve``: each query waits until it is allowed.
    ``asks``: words with two readings wait for what they mean; else both are computed.
    ``stream``: thoughts are heard while they are written."""

    lm: Name = ""
    limits: LimitsBody = LimitsBody()
    approve: bool = False
    asks: bool = False
    stream: bool = False


class AskBody(HowToRun):
    """A question. ``connections``: by name, all where it is empty. ``follows``: the run that it follows up."""

    question: Annotated[str, Field(min_length=1, max_length=20_000)]
    rules: Text = ""
    goal: Annotated[str, Field(max_length=20_000)] = ""
    connections: Annotated[tuple[Name, ...], Field(max_length=100)] = ()
    technique: Name = ""
    settings: Annotated[dict[Name, Setting], Field(max_length=100)] = Field(default_factory=dict)
    follows: Name = ""


class ChangeBody(HowToRun):
    """What is changed in a run: ``at``, the number of a step or the name of a node. Of a step ``thought``, ``action``
    (its input) or ``observation``; of a node ``answer``, ``ask`` or ``context``; of the plan that holds after a step
    (0: the first one) ``plan``, its steps."""

    at: Annotated[str, Field(min_length=1, max_length=100)]
    thought: Text | None = None
    action: Text | None = None
    observation: Text | None = None
    answer: Text | None = None
    ask: Text | None = None
    context: Text | None = None
    plan: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=2_000)], ...], Field(max_length=100)] = ()


class ApprovalBody(Body):
    """``why`` is for the model to read where the query is refused."""

    allow: bool
    why: Annotated[str, Field(max_length=2_000)] = ""


class ReadingBody(Body):
    """``answer``: the number of a choice, words of one's own, or "" for both."""

    answer: Annotated[str, Field(max_length=2_000)] = ""


class MarkBody(Body):
    """``mark``: "" takes it back. ``answer``: the right one, where another was; ``note``: what came of it."""

    mark: Literal["right", "wrong", ""]
    answer: Annotated[str, Field(max_length=2_000)] = ""
    note: Annotated[str, Field(max_length=20_000)] = ""


class RecordApprovalBody(Body):
    """``by``: who says it, where the server knows no users. ``digest``: of the record that they read; of another one
    nothing is said. ``refuse``: they do not approve, and ``note`` says why; ``withdraw`` takes back what they said."""

    by: Name = ""
    digest: Annotated[str, Field(max_length=64)] = ""
    note: Annotated[str, Field(max_length=2_000)] = ""
    refuse: bool = False
    withdraw: bool = False


class ReaderBody(Body):
    """A user whom a run is shown to; with ``end`` it no longer is."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    end: bool = False


class WhatIfBody(Body):
    """One input of the tool ``whatif``, such as ``rank``, ``set site.rent = rent * 1.1`` or ``why elm``."""

    input: Annotated[str, Field(min_length=1, max_length=20_000)]


class TokenBody(Body):
    """A token, for a cookie."""

    token: Annotated[str, Field(min_length=1, max_length=200)]
