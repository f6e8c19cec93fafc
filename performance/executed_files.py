"""Which files one question executes, and how often the thread of reading changes files.

    python performance/executed_files.py [--list]

A question with two replies over a small SQLite file is asked twice: from Python with a scripted LLM, and by the command
over HTTP. The second time every call of a function of the package is heard, in every thread. A reader who follows the
question opens that many files, and jumps that many times. Workers are processes of their own and are not counted.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import decisor
from decisor.types import Message
from servers.openai_server import serve_threaded
from session.conftest import database, planner

PACKAGE = Path(decisor.__file__).parent


@dataclass
class Execution:
    """The functions of the package that were called. files: calls by file. changes: of the file, within a thread."""

    files: Counter[str] = field(default_factory=Counter)
    functions: set[tuple[str, str]] = field(default_factory=set)
    changes: int = 0
    last: dict[int, str] = field(default_factory=dict)

    def hear(self, frame: FrameType, event: str, argument: object) -> None:
        path = frame.f_code.co_filename
        if event != "call" or not path.startswith(f"{PACKAGE}{os.sep}") or frame.f_code.co_name.startswith("<"):
            return
        name = path[len(str(PACKAGE)) + 1 :]
        self.files[name] += 1
        self.functions.add((name, frame.f_code.co_name))
        if self.last.get(threading.get_ident()) != name:
            self.changes += 1
            self.last[threading.get_ident()] = name


def hear_execution(ask: Callable[[], object]) -> Execution:
    """Run a question twice, so that nothing is imported or cached for the first time, and hear the second."""
    ask()
    execution = Execution()
    threading.setprofile(execution.hear)
    sys.setprofile(execution.hear)
    ask()
    sys.setprofile(None)
    threading.setprofile(None)
    return execution


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="name the files, with their calls")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"XDG_DATA_HOME": folder, "XDG_CACHE_HOME": folder, "XDG_CONFIG_HOME": folder}
        sites = database(Path(folder) / "sites.db", [("oak", 700.0), ("elm", 400.0)])
        llm: Any = planner()

        def reply(body: dict[str, Any]) -> str:
            return str(llm.replies([Message("user", message["content"]) for message in body["messages"]]))

        def ask_in_python() -> object:
            return decisor.ask("Which site should we open?", db=sites, llm=planner(), technique="plan_rag")

        with serve_threaded(reply) as url:

            def ask_by_command() -> object:
                from decisor.cli import run_command_line

                words = ["ask", "Which site should we open?", "--db", str(sites), "--llm", f"m@{url}"]
                with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                    return run_command_line([*words, "--technique", "plan_rag"])

            for name, ask in (("decisor.ask", ask_in_python), ("decisor ask over HTTP", ask_by_command)):
                show_execution(name, hear_execution(ask), arguments.list)
    loaded = {name for name in sys.modules if name.split(".")[0] == "decisor"}
    paths = {Path(file) for name in loaded if (file := getattr(sys.modules[name], "__file__", None))}
    print(f"loaded: {len(paths)} modules with {sum(len(path.read_text().splitlines()) for path in paths)} lines")


def show_execution(name: str, execution: Execution, is_listed: bool) -> None:
    print(
        f"{name}: {len(execution.files)} files, {execution.changes} changes of file, "
        f"{len(execution.functions)} functions"
    )
    for file, calls in execution.files.most_common() if is_listed else ():
        print(f"  {calls:6}  {file}")


if __name__ == "__main__":
    main()
