"""A recorded run, gone on from with one thing changed: the data and the LM are named again, a trace holds neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Unpack

from decisor.asking import USUAL, Asking
from decisor.calling import Calling, split_calling
from decisor.session.data import Data, opened
from decisor.session.decide import decide
from decisor.session.keeping import owner_of
from decisor.session.options import Options
from decisor.session.running import running
from decisor.session.sources import Sources
from decisor.session.sync import in_thread
from decisor.session.technique import Choice, technique_of
from decisor.session.tools import with_calculator
from decisor.tools.databases.sandbox.audit import written_by_hand
from decisor.trace.events import Entry, RunStart, RunUsage, events_of
from decisor.types import Decision, Question, Usage

if TYPE_CHECKING:
    from decisor.run import Run
    from decisor.techniques.replay.edits import Edit, Rerun


@dataclass(frozen=True)
class Comparison:
    """Both runs side by side, and what the second one cost."""

    rerun: Rerun
    usage: Usage


def rerun_once(sources: Sources, entries: Sequence[Entry], edit: Edit, options: Options) -> Comparison:
    """Open, go on, close.

    Raises:
        SetupError: the trace or the edit cannot be used, or something that is needed is not named again.
        LMError: the endpoint failed for good.
    """

    async def once() -> Comparison:
        async with opened(sources) as data:
            return await go_on(data, entries, edit, **options)

    return in_thread(once())


async def go_on(data: Data, entries: Sequence[Entry], edit: Edit, **options: Unpack[Options]) -> Comparison:
    """On data that are open. ``technique`` and ``settings`` are those that the trace may not name."""
    from decisor.techniques import kind_of
    from decisor.techniques.replay.edits import Rerun
    from decisor.techniques.replay.recorded_run import read_recorded_run
    from decisor.techniques.replay.rerun import rerun
    from decisor.techniques.replay.rerun_steps import as_input
    from decisor.techniques.replay.trusted_settings import trusted
    from decisor.techniques.shared.prompts import asking_of

    past, other = read_recorded_run(entries), str(options.get("technique", ""))
    name, technique = "", None
    settings: dict[str, str] = {}
    calling: Calling = "auto"
    asking: Asking = USUAL
    if past.technique or other:
        name, settings = trusted(past.technique, past.settings, other, options.get("settings", {}))
        calling, own = split_calling(settings, "auto")
        asking, own = asking_of(kind_of(name), name, own)
        technique = await technique_of(name, own, data.lms)
    lm = await data.lms.get(options.get("lm"))
    start = next(events_of(entries, RunStart), None)
    reports: list[Rerun] = []

    async def again(question: Question, run: Run) -> Decision:
        reports.append(await rerun(entries, [edit], run, technique))
        return reports[0].after

    choice = Choice(name, again, lm, settings, calling=calling, asking=asking)
    with running(with_calculator(data.tools, technique), choice, options) as run:
        if start is not None:
            origin = data.provenance(owner_of(options))
            run.trace.add(RunStart(start.question, name, run.lm.name, settings, start.tools, edit=edit.texts(),
                                   provenance=origin))  # fmt: skip
        with written_by_hand(as_input(edit.action) if edit.action else ""):
            decision = await decide(again, past.question or Question(""), run)
        report = reports[0] if reports else Rerun(past.decision or Decision(""), decision, ())
        usage = replace(run.budget.spent, actions=run.budget.spent.actions - report.replayed)
        run.trace.add(RunUsage(usage))
    return Comparison(report, usage)
