"""Decision models: what is decided, and what if."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter

from decisor.decision_models.effects import condition
from decisor.decision_models.machine import OpenModel
from decisor.decision_models.model_tool import ModelTool
from decisor.decision_models.rank_model import rank_model
from decisor.encoding import finite
from decisor.server.here import Here, HereNow, Who
from decisor.server.requests import WhatIfBody
from decisor.server.responses import InputReply, MeasureReply, ModelReply, RecordReply, WhatIfReply
from decisor.server.runs import NotThere
from decisor.server.users import User
from decisor.session.whatif import InTurn
from decisor.types import Observation, Ranking, Tool

router = APIRouter(prefix="/api/models", tags=["what if"])


@router.get("/{name}")
async def model(name: str, here: HereNow, who: Who) -> ModelReply:
    """The decision model of a connection: what is decided, what is measured, what varies, and how to ask it."""
    tool = await tool_of(name, here, who)
    words = tool.describe().splitlines()
    opened = open_model(tool)
    if opened is None:
        return ModelReply(name=name, decide="", lines=tuple(words), forms="")
    start = next((at for at, line in enumerate(words) if line.startswith("Input, one of")), len(words))
    file = opened.model
    inputs = tuple(
        InputReply(name=one.name, unit=one.unit, spread=str(one.spread or ""), raises=one.raises, lowers=one.lowers)
        for one in file.inputs
    )
    return ModelReply(
        name=name, decide=file.decide, lines=tuple(words[:start]), forms="\n".join(words[start:]), inputs=inputs,
        measures=tuple(MeasureReply(name=one.name, goal=one.goal, unit=one.unit) for one in file.measures),
        scenarios=tuple(one.name for one in file.scenarios),
    )  # fmt: skip


@router.post("/{name}/whatif")
async def what_if(name: str, body: WhatIfBody, here: HereNow, who: Who) -> WhatIfReply:
    """Rank, change an input, ask why not another one. The data stay as they are: a copy is changed."""
    tool = await tool_of(name, here, who)
    observation = await tool.call(body.input)
    return reply_of(observation, await changed_ranking(tool, body.input))


async def changed_ranking(tool: Tool, text: str) -> Ranking | None:
    """Of the data as a change or a scenario leaves them; None for another input."""
    inside = tool.tool if isinstance(tool, InTurn) else tool
    if not isinstance(tool, InTurn) or not isinstance(inside, ModelTool) or not inside.model.model.choice:
        return None
    wish = inside.wish(text)
    if wish.kind not in ("change", "scenario"):
        return None
    scenario, changes, _ = condition(inside.model, wish)
    async with tool.turn:
        inside.start_clock(inside.seconds)
        return await asyncio.to_thread(rank_model, inside.model, trials=0, scenario=scenario, changes=changes)


async def tool_of(name: str, here: Here, who: User) -> Tool:
    """Raises NotThere where the connection is not there, or has no decision model."""
    if name in here.runs.connections(who):
        for tool in (await here.pool.member(name, who.reader)).tools:
            if tool.name == "whatif":
                return tool
    raise NotThere(f"There is no decision model {name[:80]!r}: start the server with --model FILE.")


def open_model(tool: Tool) -> OpenModel | None:
    inside = tool.tool if isinstance(tool, InTurn) else tool
    return inside.model if isinstance(inside, ModelTool) else None


def reply_of(observation: Observation, changed: Ranking | None) -> WhatIfReply:
    records = tuple(
        RecordReply(id=one.id, fields=finite(one.fields), text=one.text, source=one.source)
        for one in observation.records
    )
    ranking, study = finite(observation.ranking), finite(observation.study)
    return WhatIfReply(note=observation.note, records=records, ranking=ranking, study=study, changed=finite(changed))
