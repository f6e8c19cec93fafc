"""From what was typed to a run: the LM, the databases, the decision model and the technique, opened and closed."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from decisor.budget import Budget, Limits
from decisor.errors import BudgetExceeded, ModelMistake, SetupError
from decisor.lms.closing import close_lm
from decisor.run import Run
from decisor.session.tools import ToolSpecs, open_tools
from decisor.trace.events import Event, Trace
from decisor.types import LM, Completion, Decision, Message, Question, Record, Sampling, Technique, Tool, Usage, WhatIf

NO_TOOLS = ToolSpecs()
WITHOUT_LM = ("exact",)
AUTO = "auto"
NAME_ONE = "name one with --lm MODEL[@URL], or set DECISOR_LM, OPENAI_API_KEY or ANTHROPIC_API_KEY"
NO_LM = f"No LM planned this: the decision model computed every candidate. To have an LM plan it, {NAME_ONE}."
NOTHING_DECIDES = (
    f"There is no LM to plan this, and no decision model for these data: {NAME_ONE}, "
    "or give a decision model with --model FILE.toml."
)
NOTHING_TO_COMPUTE = (
    "exact computes from a decision model, and there is none for these data: give one with --model FILE.toml, "
    "or take another technique."
)


@dataclass(frozen=True)
class Asked:
    """What was typed. ``subject``: what the question is about, where that is known."""

    question: Question
    database: str = ""
    graph: str = ""
    docs: str = ""
    model_file: Path | None = None
    technique: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    lm: str | None = None
    limits: Limits = field(default_factory=Limits)
    trace_file: Path | None = None
    tools: ToolSpecs = NO_TOOLS
    subject: str = ""


@dataclass(frozen=True)
class Told:
    """What came of it. ``records`` are the cited ones, as they were shown; ``lm`` is '' where none was asked,
    ``chosen`` the technique that ``auto`` took."""

    asked: Asked
    technique: str
    lm: str
    decision: Decision
    usage: Usage
    records: tuple[Record, ...]
    chosen: str = ""


@dataclass(frozen=True)
class NoLM:
    """In the place of an LM for techniques that ask none."""

    name: str = ""

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        raise SetupError(f"There is no LM: {NAME_ONE}.")


async def decide(asked: Asked, listen: Callable[[Event], None]) -> Told:
    """Run the question.

    Raises:
        SetupError: something typed cannot be used, or there is nothing that could decide.
        LMError: the endpoint failed for good.
    """
    lm = choose_lm(asked)
    name = asked.technique or ("exact" if lm is None else "plan_rag")
    if name == AUTO and lm is None:
        name = "exact"
    loop, others = technique_of(name, asked.settings)
    if lm is None and name not in WITHOUT_LM:
        raise SetupError(f"{name} asks an LM, and there is none: {NAME_ONE}.")
    async with opened(asked, exact=name in (*WITHOUT_LM, AUTO)) as tools:
        if name in WITHOUT_LM and "whatif" not in [tool.name for tool in tools]:
            raise SetupError(NOTHING_TO_COMPUTE if asked.technique in WITHOUT_LM else NOTHING_DECIDES)
        from decisor.tools.toolbox import Toolbox

        with tracing(asked.trace_file, listen) as trace:
            run = Run(lm or NoLM(), Toolbox(tools), Budget(asked.limits), trace)
            trace.add("run", question=asked.question, technique=name, settings=dict(asked.settings), lm=run.lm.name,
                      tools=run.env.tools())  # fmt: skip
            try:
                decision = await loop(asked.question, run)
            except BudgetExceeded as error:
                decision = Decision("", reasons=(str(error),), stopped="budget")
            except ModelMistake as error:
                decision = Decision("", reasons=(f"The LM's replies could not be used: {error}",), stopped="failed")
            finally:
                for one in (lm, *others):
                    await close_lm(one)
            if trace.events[-1].kind != "decision":
                trace.add("decision", decision=decision)
            trace.add("note", text="usage", usage=run.budget.spent)
    notes = [event.data for event in trace.events if event.kind == "note"]
    chosen = next((str(note["technique"]) for note in notes if note.get("name") == AUTO), "")
    return Told(asked, name, run.lm.name, decision, run.budget.spent, cited(decision, trace), chosen)


def choose_lm(asked: Asked) -> LM | None:
    if asked.technique in WITHOUT_LM:
        return None
    from decisor.lms.choose import lm

    return lm(asked.lm, os.environ)


def technique_of(name: str, settings: Mapping[str, str]) -> tuple[Technique, list[LM]]:
    """The technique, and the LMs that parts of it have of their own: critic_lm=MODEL@URL, or "MODEL@URL price=0.4,1.6"
    where its price is to be known. DECISOR_PRICE is the other LM's.

    Raises:
        SetupError: there is no such technique, setting or LM, or a value does not fit.
    """
    from decisor.lms.choose import lm_with_price
    from decisor.techniques import kind_of, technique
    from decisor.techniques.shared.part_lms import parts_of, with_lms

    parts = {f"{part}_lm": part for part in parts_of(kind_of(name))}
    made = technique(name, **{key: text for key, text in settings.items() if key not in parts})
    lms: dict[str, LM] = {}
    for key, text in settings.items():
        if key in parts:
            unnamed = not text or text.startswith(" price=")
            found = None if unnamed else lm_with_price(text, {**os.environ, "DECISOR_PRICE": ""})
            if found is None:
                raise SetupError(f"{key} takes MODEL or MODEL@URL, not {text!r}.")
            lms[parts[key]] = found
    return (with_lms(made, lms) if lms else made), list(lms.values())


class tracing:  # noqa: N801 (used as a verb, like contextlib's)
    """A trace that ``listen`` hears, written to ``path`` where one is given."""

    def __init__(self, path: Path | None, listen: Callable[[Event], None]) -> None:
        self.path, self.listen, self.stack = path, listen, AsyncExitStack()

    def __enter__(self) -> Trace:
        try:
            self.file = self.path.open("w", encoding="utf-8") if self.path else None
        except OSError as error:
            raise SetupError(f"Cannot write the trace to {self.path}: {error.strerror}.") from error
        return Trace(listeners=[self.listen], file=self.file)

    def __exit__(self, *failure: object) -> None:
        if self.file:
            self.file.close()


@asynccontextmanager
async def opened(asked: Asked, exact: bool) -> AsyncIterator[list[Tool]]:
    """The tools of a run. The tool ``whatif`` is there with a model file, and for ``exact``."""
    async with AsyncExitStack() as stack:
        tools: list[Tool] = []
        if asked.database:
            sql = await open_any(asked.database)
            stack.push_async_callback(sql.close)
            tools.append(sql)
        if asked.graph:
            cypher = await open_any(asked.graph)
            stack.push_async_callback(cypher.close)
            tools.append(cypher)
        find = await model_at_hand(asked, tools, exact, stack)
        if find is not None:
            from decisor.decision_models.ranking import rank
            from decisor.tools.whatif import WhatIfTool

            tools.append(WhatIfTool(find, rank))
        if asked.docs:
            from decisor.session.documents import open_documents

            tools.append(await open_documents(asked.docs))
        for tool in open_tools(asked.tools, [tool.name for tool in tools]):
            stack.push_async_callback(tool.close)
            tools.append(tool)
        yield tools


async def model_at_hand(
    asked: Asked, tools: Sequence[Tool], exact: bool, stack: AsyncExitStack
) -> Callable[[str], WhatIf] | None:
    """What finds the decision model for a semantics, or None where there is none. ``stack`` closes it."""
    source: Any = tools[0] if tools else None
    if source is None:
        return None
    if asked.model_file is not None:
        from decisor.decision_models.model_file import load, read_model
        from decisor.tools.databases.sandbox.blocking import open_scratch

        scratch = await load(read_model(asked.model_file), source, open_scratch)
        stack.callback(scratch.close)
        return lambda semantics: scratch
    if not exact:
        return None
    from decisor.decision_models.recognise import recognise

    text = f'"{asked.subject}"' if asked.subject else str(asked.question)
    known: Any = await recognise(source, names_in(source), text)
    if known is None:
        return None

    def find(semantics: str) -> WhatIf:
        model: WhatIf = replace(known, semantics=semantics)
        return model

    return find


def names_in(tool: Any) -> list[str]:
    """The tables of a database; for a graph, the words of its schema, labels among them."""
    tables = getattr(tool, "tables", None)
    return [table.name for table in tables] if tables else re.findall(r"\w+", tool.describe())


def cited(decision: Decision, trace: Trace) -> tuple[Record, ...]:
    """The records that a decision cites, in its order."""
    shown: dict[str, Record] = {}
    for event in trace.events:
        if event.kind == "observation":
            shown |= {record.id: record for record in event.data["observation"].records}
    return tuple(shown[name] for name in decision.evidence.ids if name in shown)


async def open_any(url: str) -> Tool:
    """SQL or graph, by the URL. Raises SetupError where it cannot be opened."""
    if url.partition(":")[0] in ("kglite", "arcadedb", "bolt", "bolt+s", "neo4j", "neo4j+s"):
        from decisor.tools.databases.cypher import CypherTool

        return await CypherTool.open(url)
    from decisor.tools.databases.sql import SqlTool

    return await SqlTool.open(url)
