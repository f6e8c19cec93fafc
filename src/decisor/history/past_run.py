"""What is known of a run that was kept, beside its trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from decisor.budget import Limits
from decisor.types import Question, Usage

Verdict = Literal["right", "wrong"]
VERDICTS: tuple[str, ...] = get_args(Verdict)
State = Literal["running", "interrupted", "answered", "budget", "steps", "no_answer", "failed"]
UNFINISHED: tuple[State, ...] = ("interrupted", "failed", "budget")
"""States that a run may be gone on from."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a person named for a run: its data, tools, technique, LM and limits, so that they need not be named again.
    Places are without passwords; ``left_out``: those that cannot be named from here again (a password, an object)."""

    db: tuple[str, ...] = ()
    graph: tuple[str, ...] = ()
    docs: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    base_url: str = ""
    auth: tuple[str, ...] = ()
    model: str = ""
    tables: tuple[str, ...] = ()
    deny_tables: tuple[str, ...] = ()
    definitions: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    mask: tuple[str, ...] = ()
    audit: str = ""
    max_scan: str = ""
    technique: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    lm: str = ""
    limits: Limits = field(default_factory=Limits)
    folder: str = ""
    left_out: tuple[str, ...] = ()
    row_values: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """What a person says of a decision afterwards. ``came_of``: what came of it, in words. ``answer``: the right one,
    where they know it and it is another."""

    verdict: Verdict
    came_of: str = ""
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Approval:
    """That a person stands behind a decision, or, where it ``refuses``, that they do not: ``note`` says why. ``at``:
    when, in UTC (ISO 8601). ``content``: the digest of the record of the decision that they saw. ``withdrawn``: when it
    was taken back, ``why``; '' while it holds. ``seal``: the digest of all of these."""

    by: str
    at: str
    content: str
    note: str = ""
    withdrawn: str = ""
    why: str = ""
    seal: str = ""
    refuses: bool = False


@dataclass(frozen=True, slots=True)
class Sight:
    """What a run of a server may have seen, with the runs that it goes on from: ``connections``, without the rows and
    columns that were ``kept_back`` from who asked."""

    connections: tuple[str, ...] = ()
    kept_back: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PastRun:
    """``number`` is never given twice. ``owner``: whose it is, '' for the person at the command. ``began``: seconds
    since 1970. ``why``: why it ended, where that is no decision. ``before``: the number of the run that it follows, or
    0. ``bytes``: of its trace, which has so many ``entries`` over so many ``seconds``. ``edit``: what was changed in
    the run before, where it goes on from that. ``tools``: what it could ask. ``approvals``: the oldest first.
    ``sight``: None where no server began it."""

    question: Question
    inputs: Inputs = Inputs()
    number: int = 0
    owner: str = ""
    began: float = 0.0
    technique: str = ""
    lm: str = ""
    state: State = "running"
    answer: str = ""
    why: str = ""
    usage: Usage = field(default_factory=Usage)
    before: int = 0
    mark: Mark | None = None
    approvals: tuple[Approval, ...] = ()
    bytes: int = 0
    edit: Mapping[str, str] = field(default_factory=dict)
    tools: tuple[str, ...] = ()
    entries: int = 0
    seconds: float = 0.0
    sight: Sight | None = None
