"""Debug and backtrack: change one thing in a recorded run and go on from there. Plan-RAG, section 3.3.

Of a reasoning DAG, the changed node and what rests on it are answered again, then the answers are put together again. A
node whose parents' answers came out the same (normalised) keeps its own; when all did, the decision stands. Of loops
that go step by step, and of searches, the replies and observations before the changed step are replayed, and from there
on it is a run like any other. Nothing that is reused costs a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from decisor.errors import SetupError
from decisor.run import Run, Technique
from decisor.techniques import technique as from_settings
from decisor.techniques.reasoning_dag import ReasoningDAG
from decisor.techniques.replay.edits import Edit, Rerun
from decisor.techniques.replay.recorded_run import read_recorded_run
from decisor.techniques.replay.rerun_graph import rerun_graph
from decisor.techniques.replay.rerun_steps import rerun_steps
from decisor.techniques.replay.trusted_settings import trusted
from decisor.trace.events import Entry
from decisor.types import Question


async def rerun(
    events: Sequence[Entry],
    edits: Sequence[Edit],
    run: Run,
    technique: Technique | None = None,
    question: Question | None = None,
) -> Rerun:
    """Go on from a recorded run after ``edits``. ``technique`` and ``question`` where the trace does not name them. The
    run's environment is to be tools on data: what was done before is not done again, so no action may leave a state.

    Raises:
        SetupError: the trace cannot be gone on from, an edit does not fit it, or a tool it needs is not there.
    """
    past = read_recorded_run(events)
    question = question or past.question
    if past.decision is None or question is None:
        raise SetupError("The trace does not hold a whole run: it has no question or no decision.")
    if technique is None:
        if not past.technique:
            raise SetupError("The trace does not name its technique.")
        name, settings = trusted(past.technique, past.settings)
        technique = from_settings(name, **settings)
    past = replace(past, question=question)
    if isinstance(technique, ReasoningDAG):
        return await rerun_graph(past, edits, technique, run)
    if past.nested or getattr(technique, "at_once", 1) > 1:
        raise SetupError(
            f"A run of {past.technique or technique} cannot be gone on from: its steps are not in one line: several "
            "things were done at once."
        )
    return await rerun_steps(past, edits, technique, run)
