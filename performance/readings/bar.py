"""Questions with two readings through the front door, with an LLM that believes whatever the rules suspect.

    python performance/readings/bar.py

Some minutes.

Of 40 ambiguous questions: with a definition, how many are decided by it, uncontradicted and cited; without one, how
many are asked of a person, and how many are computed both ways where nobody is there. Of 40 clear ones: how many are
asked needlessly. The LLM is a policy: test equipment, it answers nothing rightly.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1]))

import decisor
from decisor.llms.scripted import ScriptedLLM
from decisor.semantics.definitions import Reading, format_definitions
from decisor.semantics.readings import OpenReading
from decisor.session.data import Data
from decisor.types import Message
from head import words
from readings.measure import places, questions

SUSPECT = re.compile(r"^- (.+?): (.+?) or (.+)$", re.M)
ROW = re.compile(r"\[(o\d+\.r1)\] \|")


def believer(messages: Sequence[Message]) -> str:
    """Holds for open what is suspected, runs one query, and names what came first."""
    text = "\n".join(message.content for message in messages)
    if "# How to judge" in text:
        lines = SUSPECT.findall(text.partition("# What a rule of thumb suspects")[2].partition("# How to judge")[0])
        return "\n".join(f"Unclear: {' | '.join(line)}" for line in lines[:2]) or "Unclear: none"
    if rows := ROW.findall(messages[-1].content):
        return f"Final answer: one\nBecause: it is there [{rows[-1]}]"
    return "Plan: [Step 1: look]\nThought: t\nAction: sql\nAction input: SELECT 1 AS one"


async def one(data: Data, question: str, asks: list[OpenReading] | None) -> decisor.Result:
    async def person(reading: OpenReading) -> str:
        assert asks is not None
        asks.append(reading)
        return "1"

    return await data.ask(
        question,
        llm=ScriptedLLM(believer),
        settings={"calling": "text", "replan": "no"},
        reader=person if asks is not None else None,
    )


async def defined(url: str, entry: dict[str, Any], file: Path) -> bool:
    """Whether its definition is followed: nobody is asked, nothing is computed twice, and it is cited."""
    words, means = entry["settle"]["words"], entry["settle"]["means"]
    file.write_text(format_definitions([Reading("meant", [words] if isinstance(words, str) else words, means)]))
    asks: list[OpenReading] = []
    async with decisor.open(db=url, definitions=file) as data:
        result = await one(data, entry["ask"], asks)
    cites = any(record.fields.get("definition") == "reading.meant" for record in result.records)
    if asks or not cites:
        print("  not followed:", entry["ask"], [(ask.words, *ask.choices) for ask in asks], cites)
    return cites and not asks


async def main() -> None:
    counts: dict[str, list[int]] = {name: [0, 0] for name in ("defined", "asked", "both", "needless")}
    with tempfile.TemporaryDirectory() as folder:
        for name, url in places(Path(folder)).items():
            group = questions()[name]
            async with decisor.open(db=url) as data:
                for entry in group["ambiguous"]:
                    asks: list[OpenReading] = []
                    await one(data, entry["ask"], asks)
                    result = await one(data, entry["ask"], None)
                    both = any("could mean" in line for line in result.decision.reasons)
                    add(counts, asked=bool(asks), both=both)
                for question in group["clear"]:
                    asks = []
                    await one(data, question, asks)
                    add(counts, needless=bool(asks))
            for entry in group["ambiguous"]:
                add(counts, defined=await defined(url, entry, Path(folder) / "definitions.toml"))
    for key, (hits, total) in counts.items():
        print(f"{key}: {hits} of {total}")


def add(counts: dict[str, list[int]], **hits: bool) -> None:
    for key, hit in hits.items():
        counts[key][0] += hit
        counts[key][1] += 1


if __name__ == "__main__":
    words(__doc__)
    asyncio.run(main())
