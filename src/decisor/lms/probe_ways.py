"""Which ways of calling an endpoint has: whether it holds a reply to a schema, and whether it calls functions."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from decisor.calling import AUTO, Way, ways_of
from decisor.errors import Error, ParseError
from decisor.lms.probe import PROBE_SECONDS
from decisor.replies.form import Form
from decisor.replies.shape import Shape, read_object
from decisor.types import LM, Message, Sampling

WORDS = ("ready", "waiting")


@dataclass(frozen=True, slots=True)
class Word:
    """What is asked for: a number, and one of two words."""

    word: str
    copies: int


def no_object(reply: str) -> Word:
    raise ParseError("It is no object.", "shape")


FORM: Form[Word] = Form(
    "word", "", no_object, Word,
    (Shape({"copies": "how many", "word": "one word"}, "say", enums={"word": WORDS}),),
    lambda value: read_object(Word, value),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WayCheck:
    """``why`` it is not there: '' where it is."""

    way: Way
    ok: bool
    why: str = ""


async def probe_ways(lm: LM, seconds: float = PROBE_SECONDS) -> tuple[WayCheck, ...]:
    """Two small calls whose prompt says nothing of the form, so that only an endpoint that holds to it can keep it.
    Never raises for what the endpoint does; none for an LM that is asked in text only."""
    return () if ways_of(lm) is None else tuple([await check(lm, way, seconds) for way in AUTO])


async def check(lm: LM, way: Way, seconds: float) -> WayCheck:
    sampling = Sampling(max_tokens=200, schema=FORM.schema() if way == "json" else None,
                        functions=FORM.functions() if way == "tools" else ())  # fmt: skip
    try:
        async with asyncio.timeout(seconds):
            reply = await lm.complete([Message("user", "Are you ready?")], sampling)
    except TimeoutError:
        return WayCheck(way, False, f"no reply within {seconds:g} s")
    except Error as error:
        return WayCheck(way, False, str(error))
    ways = ways_of(lm)
    if ways is not None and way in ways.against:
        return WayCheck(way, False, ways.against[way])
    return WayCheck(way, fits(reply.text), "" if fits(reply.text) else "it wrote text all the same")


def fits(reply: str) -> bool:
    """Whether a reply is the object that was asked for, as itself or as a call."""
    try:
        return FORM.read(reply).word in WORDS
    except ParseError:
        return False
