"""Whether an LM answers."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from decisor.errors import Error
from decisor.types import LM, Message, Sampling

PROBE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Probe:
    """What one small call gave: the reply, or ``error`` and its ``kind``."""

    ok: bool
    seconds: float
    text: str = ""
    error: str = ""
    kind: str = ""


async def probe(lm: LM, seconds: float = PROBE_SECONDS) -> Probe:
    """One small call, to see that key, name and address work. Never raises for what the endpoint does."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(seconds):
            reply = await lm.complete([Message("user", "Answer with the one word: ready")], Sampling(max_tokens=200))
    except TimeoutError:
        return Probe(False, time.monotonic() - began, error=f"No reply within {seconds:g} s.", kind="timeout")
    except Error as error:
        return Probe(False, time.monotonic() - began, error=str(error), kind=getattr(error, "kind", ""))
    return Probe(True, time.monotonic() - began, reply.text.strip())
