"""Rerun a recorded run with one thing changed. Data and LLM are named again, since a trace holds neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from decisor.parsing.prompting import USUAL, Asking, Calling, split_calling
from decisor.sandbox.process import mark_as_handwritten
from decisor.session.data import Data, open_data
from decisor.session.run_setup import Choice, configure_technique, decide_by_technique, open_run
from decisor.session.sources import Sources
from decisor.session.user_tools import add_calculator
from decisor.system.tasks import run_in_thread
from decisor.trace.events import RunStart, RunUsage, TraceEntry, events_of
from decisor.types import Decision, Question, Usage

if TYPE_CHECKING:
    from decisor.runtime.run import Run
    from decisor.session.request import AskRequest, Attachments
    from decisor.techniques.replay.rerun import Edit, Rerun


@dataclass(frozen=True)
class RerunComparison:
    """Both runs side by side, with the usage of the second one."""

    rerun: Rerun
    usage: Usage


def rerun_on_sources(
    sources: Sources, entries: Sequence[TraceEntry], edit: Edit, request: AskRequest, attached: Attachments
) -> RerunComparison:
    """Open the data, go on from a recorded run with one change, and close the data.

    Raises:
        SetupError: the trace or the edit cannot be used, or something that is needed is not named again.
        LLMError: the endpoint failed for good.
    """

    async def once() -> RerunComparison:
        async with open_data(sources) as data:
            return await rerun_on_data(data, entries, edit, request, attached)

    return run_in_thread(once())


async def rerun_on_data(
    data: Data, entries: Sequence[TraceEntry], edit: Edit, request: AskRequest, attached: Attachments
) -> RerunComparison:
    """Go on from a recorded run with one change, on open data.

    Technique and settings of the request are a person's own: a trace may name none that reach outside.
    """
    from decisor.techniques import find_technique_class
    from decisor.techniques.replay.recorded_run import check_recorded_settings, read_recorded_run
    from decisor.techniques.replay.rerun import Rerun, get_action_input, rerun_with_edit
    from decisor.techniques.shared.prompts_file import split_asking_settings

    past = read_recorded_run(entries)
    name, technique = "", None
    settings: dict[str, str] = {}
    calling: Calling = "auto"
    asking: Asking = USUAL
    # Configure the technique; of the trace only settings that reach nothing outside are taken.
    if past.technique or request.technique:
        own: dict[str, str] = {key: str(value) for key, value in request.settings.items()}
        name, settings = check_recorded_settings(past.technique, past.settings, request.technique, own)
        calling, own = split_calling(settings, "auto")
        asking, own = split_asking_settings(find_technique_class(name), name, own)
        technique = await configure_technique(name, own, data.llms)
    llm = await data.llms.get(attached.llm or request.llm)
    start = next(events_of(entries, RunStart), None)
    reports: list[Rerun] = []

    async def again(question: Question, run: Run) -> Decision:
        reports.append(await rerun_with_edit(entries, edit, run, technique))
        return reports[0].after

    # Run the technique again from the change on.
    choice = Choice(name, again, llm, settings, calling=calling, asking=asking)
    with open_run(add_calculator(data.tools, technique), choice, request, attached) as run:
        if start is not None:
            origin = data.provenance(attached.keeping.owner if attached.keeping else "")
            run.trace.add(
                RunStart(
                    start.question, name, run.llm.name, settings, start.tools, edit=edit.texts(), provenance=origin
                )
            )
        # For the audit: a query that a person wrote in place of the model's is the person's.
        with mark_as_handwritten(get_action_input(edit.action) if edit.action else ""):
            decision = await decide_by_technique(again, past.question or Question(""), run)
        # A limit may end the run before it reports; then there is nothing to compare but the decisions.
        report = reports[0] if reports else Rerun(past.decision or Decision(""), decision, ())
        # Replayed actions were not done again.
        usage = replace(run.budget.spent, actions=run.budget.spent.actions - report.replayed)
        run.trace.add(RunUsage(usage))
    return RerunComparison(report, usage)
