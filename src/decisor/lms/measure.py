"""What one LM does: its speed, what it takes at once, and which settings of a call it heeds. By a few tiny calls."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, cast

from decisor.calls.estimates import tokens_in
from decisor.calls.settings import settings_of
from decisor.errors import Error, LMError
from decisor.lms.concurrency import endpoint_of
from decisor.lms.facts import Facts, facts_at
from decisor.lms.probe import Probe, probe
from decisor.types import LM, Completion, Function, Message, Sampling

Heeds = Literal["yes", "ignored", "refused"]
TELL = [Message("user", "Tell a long story of a ship and the harbours that it comes to.")]
ASK = [Message("user", "Name a city. Reply with its name.")]
SCHEMA: Mapping[str, object] = {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False,
}  # fmt: skip
SHORT, LONG = 8, 48
"""Tokens of the replies that are asked for."""
EACH_SECONDS = 60.0
DROPPED = {"seed": "seed", "max_tokens": "max_tokens", "stop": "stop", "n": "n", "logprobs": "logprobs",
           "streaming": "stream", "response_format": "response_format", "tools": "tools"}  # fmt: skip
"""What is tried, and what it is called among what an LM's endpoint refused."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """``seconds``: of the first call; ``speed``: tokens a second while it writes; ``context``: tokens of prompt and
    reply; ``slots``: calls at once; 0 for what is not known. ``busy``: so it is asked later, not repaired. ``heeds``:
    by the name of a setting."""

    probe: Probe
    speed: float = 0.0
    context: int = 0
    slots: int = 0
    busy: bool = False
    heeds: Mapping[str, Heeds] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return self.probe.seconds


async def measure(lm: LM) -> Measurement:
    """Never raises for what the endpoint does."""
    first = await probe(lm)
    endpoint = endpoint_of(lm)
    facts = Facts() if endpoint is None else await asyncio.to_thread(facts_at, endpoint, lm.name)
    context = settings_of(lm).context or facts.context
    is_busy = bool(facts.slots) and facts.at_work >= facts.slots
    if not first.ok:
        return Measurement(first, context=context, slots=facts.slots, busy=is_busy or first.kind == "rate")
    began = time.monotonic()
    story = await reply_of(lm, Sampling(max_tokens=LONG), TELL)
    seconds = time.monotonic() - began
    speed = story.usage.completion_tokens / seconds if story else 0.0
    heeds = {name: verdict for name, look in LOOKS.items() if (verdict := await heeded(lm, name, look)) is not None}
    return Measurement(first, speed, context, facts.slots, is_busy, heeds)


async def heeded(lm: LM, name: str, look: Callable[[LM], Awaitable[bool]]) -> Heeds | None:
    """None where the call itself failed."""
    try:
        async with asyncio.timeout(EACH_SECONDS):
            seen = await look(lm)
    except LMError as error:
        return "refused" if error.kind == "request" else None
    except (Error, TimeoutError):
        return None
    dropped: set[str] = getattr(lm, "dropped", set())
    if DROPPED[name] in dropped and not (name == "max_tokens" and seen):
        return "refused"
    return "yes" if seen else "ignored"


async def reply_of(lm: LM, sampling: Sampling, messages: list[Message]) -> Completion | None:
    with suppress(Error, TimeoutError):
        async with asyncio.timeout(EACH_SECONDS):
            return await lm.complete(messages, sampling)
    return None


async def caps(lm: LM) -> bool:
    reply = await lm.complete(TELL, Sampling(max_tokens=SHORT))
    return reply.usage.completion_tokens <= SHORT


async def stops(lm: LM) -> bool:
    """Our side cuts at stop words too, so it is the count that shows who stopped."""
    reply = await lm.complete(TELL, Sampling(stop=("e",), max_tokens=LONG))
    return reply.usage.completion_tokens <= tokens_in(reply.text) + SHORT


async def repeats(lm: LM) -> bool:
    ask = Sampling(temperature=1.0, seed=7, max_tokens=LONG // 2)
    return (await lm.complete(TELL, ask)).text == (await lm.complete(TELL, ask)).text


async def gives_several(lm: LM) -> bool:
    return len((await lm.complete(TELL, Sampling(temperature=1.0, n=2, max_tokens=SHORT))).texts) == 2


async def gives_logprobs(lm: LM) -> bool:
    return bool((await lm.complete(TELL, Sampling(logprobs=2, max_tokens=SHORT))).logprobs)


async def streams(lm: LM) -> bool:
    stream = getattr(lm, "stream", None)
    texts: list[str] = []
    if stream is not None:
        await stream(TELL, Sampling(max_tokens=LONG), texts.append)
    return len(set(texts)) > 2


async def fits_schema(lm: LM) -> bool:
    reply = await lm.complete(ASK, Sampling(schema=SCHEMA, max_tokens=2 * LONG))
    return isinstance(parsed(reply.text).get("city"), str)


async def calls_tools(lm: LM) -> bool:
    function = Function("answer", "Give the city.", SCHEMA)
    reply = await lm.complete(ASK, Sampling(functions=(function,), max_tokens=2 * LONG))
    return parsed(reply.text).get("name") == "answer"


def parsed(text: str) -> Mapping[str, object]:
    with suppress(ValueError, RecursionError):
        if isinstance(value := json.loads(text), dict):
            return cast(Mapping[str, object], value)
    return {}


LOOKS: Mapping[str, Callable[[LM], Awaitable[bool]]] = {
    "max_tokens": caps, "stop": stops, "seed": repeats, "n": gives_several, "logprobs": gives_logprobs,
    "streaming": streams, "response_format": fits_schema, "tools": calls_tools,
}  # fmt: skip
