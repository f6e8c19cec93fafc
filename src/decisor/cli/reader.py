"""The person at the terminal, asked which reading is meant; what they say is proposed for the definitions."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from decisor.cli.corrections import user
from decisor.definitions.readings.open import Interpreter, OpenReading
from decisor.errors import SetupError


def terminal_reader(files: Sequence[str]) -> Interpreter:
    """``files``: the definitions of the run, as they were named. Where nobody is there, it answers '' at once."""

    async def ask(one: OpenReading) -> str:
        from decisor.tools.person import ask_line, person_is_there

        if not person_is_there():
            return ""
        print(file=sys.stderr)
        how = "number, or Enter for the first" if one.asks else "number, your own words, or Enter for both"
        words = f"{one.line()} ({how}) "
        choice = one.choice(await asyncio.to_thread(ask_line, words))
        if choice and len(files) == 1 and not one.asks:
            print(proposed(file_of(files[0]), one, choice), file=sys.stderr)
        return choice

    return ask


def file_of(text: str) -> Path:
    """Of ``NAME=FILE``, the file."""
    return Path(text if Path(text).exists() else text.partition("=")[2] or text)


def proposed(file: Path, one: OpenReading, choice: str) -> str:
    """What is said of the proposal, or why there is none."""
    from decisor.definitions.format import Reading, title
    from decisor.definitions.proposals import propose

    try:
        whole = propose(file, Reading(one.words, [one.words], choice), user())
    except SetupError as error:
        return f"decisor: {error}"
    return f"decisor: to have it so from now on: decisor definitions approve {file} {title(whole)}"
