"""Runs the questions of Decision QA through a technique, several at once."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, runtime_checkable

from decisor.aio import each
from decisor.budget import Limits
from decisor.cli.bench_cases import Asked
from decisor.cli.bench_stores import Stores, form_of
from decisor.errors import LMError, SetupError
from decisor.evaluation.dqa_run import Answered, ask
from decisor.tools.toolbox import Toolbox
from decisor.trace import Trace
from decisor.types import LM, Completion, Message, Sampling, Technique, Tool

WITHOUT_LM = ("exact", "heuristic")
WITHOUT_DATABASE = ("exact",)


@runtime_checkable
class Closing(Protocol):
    """An LM that holds connections."""

    async def close(self) -> None: ...


@dataclass(frozen=True)
class NoLM:
    """Stands where a technique asks no LM."""

    name: str = "none"

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        raise LMError("This technique was not to ask an LM.", "none", permanent=True)


@dataclass(frozen=True)
class Setup:
    """What runs, and within what limits. ``url``: a database to use in place of the ones beside the questions."""

    technique: str
    form: str = "sql"
    settings: Mapping[str, str] = field(default_factory=dict)
    lm: LM = field(default_factory=NoLM)
    url: str | None = None
    at_once: int = 8
    limits: Limits = field(default_factory=Limits)
    traces: Path | None = None

    def made(self) -> Technique:
        """The technique; ``exact`` leaves out its trials of robustness unless they are asked for."""
        from decisor.techniques import technique

        settings = dict(self.settings)
        if self.technique == "exact":
            settings.setdefault("trials", "0")
        return technique(self.technique, **settings)

    @property
    def label(self) -> str:
        """
        >>> Setup("plan_rag", settings={"replan": "no"}).label
        'plan_rag replan=no'
        """
        return " ".join([self.technique, *(f"{key}={value}" for key, value in self.settings.items())])


@dataclass(frozen=True)
class Ran:
    """All answers, in the order of the questions, and the wall-clock seconds that answering took."""

    rows: tuple[Answered, ...]
    seconds: float


async def run(cases: Sequence[Asked], setup: Setup, done: Callable[[Answered], None] = lambda row: None) -> Ran:
    """Every case once; ``done`` hears of each as it is answered.

    Raises:
        LMError: the endpoint will answer no question (key, quota, model).
        SetupError: the technique or the database cannot be used.
    """
    if setup.url and form_of(setup.url) != setup.form:
        raise SetupError(f"{setup.url} is a database of the form {form_of(setup.url)}, not {setup.form}.")
    technique = setup.made()
    began = time.monotonic()
    with TemporaryDirectory(prefix="decisor-dqa-") as folder:
        stores = Stores(Path(folder), setup.form, setup.url)
        stores.expect(case.world for case in cases)

        async def one(at: int) -> Answered:
            row = await answer(cases[at], technique, setup, stores)
            done(row)
            return row

        order = sorted(range(len(cases)), key=lambda at: (cases[at].world.key, at))
        try:
            rows = dict(zip(order, await each(one, order, setup.at_once), strict=True))
        finally:
            await stores.close()
            if isinstance(setup.lm, Closing):
                await setup.lm.close()
    return Ran(tuple(rows[at] for at in range(len(cases))), time.monotonic() - began)


async def answer(case: Asked, technique: Technique, setup: Setup, stores: Stores) -> Answered:
    """One question in an environment of its own."""
    async with contextlib.AsyncExitStack() as stack:
        held: list[Tool] = []
        if setup.technique in WITHOUT_DATABASE:
            held.append(what_if(case))
        else:
            held.append(await stack.enter_async_context(stores.tool(case.world)))
        trace = Trace()
        if setup.traces:
            name = f"{case.case.scenario}-{case.case.question_num}-{setup.form}.jsonl"
            trace.file = stack.enter_context((setup.traces / name).open("w", encoding="utf-8"))
        return await ask(case.case, technique, setup.lm, Toolbox(held), setup.limits, trace)


def what_if(case: Asked) -> Tool:
    from decisor.tools.whatif import WhatIfTool
    from decisor.whatif.ranking import rank

    return WhatIfTool(case.model, rank)
