"""The walk of a question: through which files it goes, under which names, from `decisor ask` to the technique.

python performance/walk.py [--list]

A minute.

Counted by a profiler while the command runs a second time (a local endpoint answers), in all threads, until the
technique is called. What counts are calls of functions of ours with the question among their arguments: itself, or in
a field of a dataclass or a value of a dict. A coroutine that goes on is no new call.

    a stay    such a call in another file than the one before, from cli/ask.py on
    a climb   such a call into a room on a higher floor than the caller's
    a name    of an argument, variable or field, in one file, that holds the question or an object around it; counted
              in the callers of all functions of ours too, so those that only hand it on count
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import decisor
from decisor.cli import run_command_line
from head import words
from servers.openai_server import serve_threaded
from session.conftest import database, planner
from test_architecture import FLOOR

SOURCE = Path(decisor.__file__).parent
QUESTION = "Which of the two sites should we open?"


class Walk:
    """``stays``: files in order; ``names``: (file, name)."""

    def __init__(self) -> None:
        self.stays: list[str] = []
        self.climbs: list[tuple[str, str]] = []
        self.names: set[tuple[str, str]] = set()
        self.frames: set[FrameType] = set()
        self.ended = False

    def hear(self, frame: FrameType, event: str, value: Any) -> None:
        """Called by the profiler."""
        file = file_of(frame)
        if self.ended or event not in ("call", "return") or not file:
            return
        for each in (frame, frame.f_back):  # the caller's variables are set by then
            if each is not None and (place := file_of(each)):
                self.names |= {(place, name) for local, one in each.f_locals.items() for name in names_of(local, one)}
        if not any(True for local, one in frame.f_locals.items() for _ in names_of(local, one)):
            return
        if event == "call" and frame in self.frames:
            return
        self.frames.add(frame)
        if event == "call" and (not self.stays or self.stays[-1] != file):
            self.stays.append(file)
        if event == "call" and (caller := caller_of(frame)) and floor(file) > floor(caller):
            self.climbs.append((caller, file))
        self.ended = event == "call" and frame.f_code.co_name == "__call__" and file.startswith("techniques")


def file_of(frame: FrameType) -> str:
    """Within the package; '' outside of it."""
    path = Path(frame.f_code.co_filename)
    return str(path.relative_to(SOURCE)) if SOURCE in path.parents else ""


def caller_of(frame: FrameType) -> str:
    """The file of ours that called, also by way of others' code; '' where a loop did."""
    back = frame.f_back
    while back is not None and not file_of(back):
        back = back.f_back
    return file_of(back) if back is not None else ""


def names_of(name: str, value: Any) -> Iterator[str]:
    """The name, where the value is the question; with the field, where a field of it is."""
    if is_question(value):
        yield name
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            if is_question(getattr(value, field.name, None)):
                yield name
                yield field.name
    elif isinstance(value, dict) and name not in ("self", "globals"):
        yield from (name for part in list(value.values()) if is_question(part))


def is_question(value: Any) -> bool:
    return (isinstance(value, str) and value == QUESTION) or getattr(value, "text", None) == QUESTION


def floor(file: str) -> int:
    return FLOOR.get(Path(file).parts[0].removesuffix(".py"), 0)


def main() -> None:
    walk = Walk()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = folder
        sites = database(Path(folder) / "sites.db", [("oak", 700.0), ("elm", 400.0)])
        lm: Any = planner()

        def reply(body: dict[str, Any]) -> str:
            messages = [decisor.types.Message("user", one["content"]) for one in body["messages"]]
            return str(lm.replies(messages))

        with serve_threaded(reply) as url:
            words = ["ask", QUESTION, "--db", str(sites), "--lm", f"toy@{url}"]
            run_command_line(words)  # everything is imported
            threading.setprofile(walk.hear)
            sys.setprofile(walk.hear)
            run_command_line(words)
            sys.setprofile(None)
            threading.setprofile(None)
    start = walk.stays.index("cli/ask.py")
    stays = walk.stays[start:]
    print(
        f"\n{len(stays)} stays, {len(walk.climbs)} climbs, {len(walk.names)} names "
        f"({len({name for _, name in walk.names})} different)"
    )
    if "--list" in sys.argv:
        print("stays:", *stays, sep="\n  ")
        print("climbs:", *walk.climbs, sep="\n  ")
        print("names:", *sorted(walk.names), sep="\n  ")


if __name__ == "__main__":
    words(__doc__)
    main()
