"""The tools of an old decision, on the data of today."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack

from decisor.decision_models.parse import parse
from decisor.decision_record.restored import PastStep
from decisor.definitions.tool import NAME as DEFINITIONS
from decisor.definitions.tool import Brought
from decisor.errors import SetupError, ToolError
from decisor.session.data import Data
from decisor.session.modelling import ModellingTool
from decisor.session.past_decision import PastDecision
from decisor.session.whatif import from_model, from_question
from decisor.tools.calculator import CalculatorTool
from decisor.tools.databases.combine import NAME as COMBINE
from decisor.tools.databases.combine import CombineTool
from decisor.tools.databases.sandbox.audit import asked_by
from decisor.types import Observation, Tool

MODELLING, WHATIF = "decision_model", "whatif"


async def tools_of(data: Data, past: PastDecision, stack: AsyncExitStack) -> Mapping[str, Tool]:
    """Those at hand, and the decision models that the decision names. ``stack`` closes what is opened here.

    Raises:
        SetupError: a tool that it rests on is not here.
    """
    tools = {tool.name: tool for tool in (*data.tools, CalculatorTool(), CombineTool())}
    needed = {one.step.action.tool for one in past.steps} - {"think", "person", DEFINITIONS}
    if MODELLING in needed and data.databases:
        tools[MODELLING] = ModellingTool(data.databases[0], trials=0)
    if WHATIF in needed and WHATIF not in tools:
        tool = await whatif_of(past, data, stack)
        tools |= {WHATIF: tool} if tool else {}
    if data.definitions:
        files = tuple(data.definitions.values())
        tools[DEFINITIONS] = Brought([one for file in files for one in file], files)
    if missing := sorted(needed - tools.keys()):
        flags = "--db, --graph, --docs or --model"
        raise SetupError(f"The decision rests on {', '.join(missing)}: name the same data again with {flags}.")
    return tools


async def whatif_of(past: PastDecision, data: Data, stack: AsyncExitStack) -> Tool | None:
    """Of the decision model as it was, else the one that the question is about."""
    if past.model and data.databases:
        return await from_model(parse(past.model), data.databases[0], stack, data.definitions)
    return await from_question(past.question, data.databases)


async def again(past: PastStep, tools: Mapping[str, Tool]) -> Observation:
    """What a query brings today; nothing where it fails."""
    action = past.step.action
    if action.tool not in tools:
        return Observation(error=True)
    try:
        with asked_by("decisor"):
            observation = await tools[action.tool].call(action.input)
    except ToolError as error:
        return Observation(note=str(error), error=True)
    combine = tools[COMBINE]
    if isinstance(combine, CombineTool) and past.number:
        combine.remember(past.number, action, observation, tools[action.tool])
    return observation
