"""Python processes of our own, and the one way to start them.

The folder that a person stands in may be someone else's, and Python takes code from it (json.py, numpy.py) wherever it
is on the path. So a child has nothing of it:

    -I            no PYTHON* variables, no site of the user, neither the working folder nor a script's on the path
    path          ours, handed over as arguments, without the working folder and without relative entries
    environment   variables on a list, so no keys
    folder        an empty one of our own: paths are made absolute before they are handed over
    session       its own, so that Ctrl-C at a terminal reaches us alone, and we say when a child ends
    parent        when that is gone, killed say, the child ends too, whatever it computes
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

KEPT = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "SYSTEMROOT")
BOOT = """import gc, os, sys
from importlib import import_module
gc.set_threshold(50_000, 20, 50)
name, parent, given, own = sys.argv[1], int(sys.argv[2]), sys.argv[3:], sys.path
sys.argv[1:], sys.path = [], given + [entry for entry in own if entry not in given]
import_module("decisor.system.processes").end_with(parent)
import_module(name).main()
sys.stdout.flush()
os._exit(0)"""
"""Imports make many objects that stay; taking all apart at the end would be a fifth of the life of a short process."""
SET_PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG: <linux/prctl.h>, prctl(2)."""
WATCH_SECONDS = 1.0
ORPHAN_SECONDS = 8.0
"""Time in which a child whose parent is gone may let its server end the running query."""


def working_folder() -> Path:
    """Return the working folder, or the root if it was removed."""
    try:
        return Path.cwd()
    except OSError:
        return Path(os.sep)


BEGAN = working_folder()
"""Folder in which this process was started: ``python -m`` puts it on the path, and it stays there."""


@dataclass(frozen=True, slots=True)
class ProcessStart:
    """The command, environment and folder that a process is started with."""

    command: tuple[str, ...]
    environment: dict[str, str]
    folder: str


def build_python_start(module: str, variables: Sequence[str] = ()) -> ProcessStart:
    """Build the start of a process that runs ``main`` of a module of this package. variables: names of environment
    variables that it needs beside ``KEPT``.
    """
    command = (sys.executable, "-I", "-X", "utf8", "-W", "ignore", "-c", BOOT, module, str(os.getpid()), *module_path())
    environment = {name: os.environ[name] for name in (*KEPT, *variables) if name in os.environ}
    return ProcessStart(command, environment, child_folder())


def run_child(module: str, stdin: bytes = b"", variables: Sequence[str] = ()) -> subprocess.CompletedProcess[bytes]:
    """Run a module in a child process until it ends, with ``stdin`` on its standard input."""
    start = build_python_start(module, variables)
    return subprocess.run(
        start.command,
        input=stdin,
        env=start.environment,
        cwd=start.folder,
        capture_output=True,
        check=False,
        start_new_session=True,
    )


def start_child(module: str) -> subprocess.Popen[bytes]:
    """Start a child process with pipes to its standard input and output. Its standard error is dropped."""
    start = build_python_start(module)
    return subprocess.Popen(
        start.command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=start.environment,
        cwd=start.folder,
        start_new_session=True,
    )


def end_with(parent: int) -> None:
    """Let this process end when its parent does, in the middle of any computation.

    The kernel's signal comes also when only the thread that started this process ends: nobody asks it any more then,
    or whoever does starts another. Not on Windows, which tells a child nothing of its parent.
    """
    if sys.platform == "linux":
        import ctypes

        # It ends a process at once, whatever that computes; the worker of a server hears it, and ends its query there.
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # it ended before the signal was asked for
            os._exit(1)
    elif sys.platform != "win32":
        threading.Thread(target=watch_parent, args=(parent,), name="parent watch", daemon=True).start()


def watch_parent(parent: int) -> None:
    """Wait until the parent is gone, then end this process."""
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ORPHAN_SECONDS)
    os._exit(1)


def module_path() -> list[str]:
    """Return the import path for a child: absolute entries, never the working folder.

    So a child finds the same modules as its parent.
    """
    entries = [entry for entry in sys.path if Path(entry).is_absolute() and not is_working_folder(entry)]
    return list(dict.fromkeys([*entries, str(Path(__file__).resolve().parents[2])]))


def is_working_folder(entry: str) -> bool:
    """Return whether a path entry is the working folder, of now or of the start."""
    for place in (working_folder(), BEGAN):
        with suppress(OSError):
            if Path(entry).samefile(place):
                return True
    return False


FOLDERS: dict[int, tempfile.TemporaryDirectory[str]] = {}
"""By process: a fork does not remove the folder of the process that it came from."""


def child_folder() -> str:
    """Return the empty folder in which children work; it is removed when this process ends.

    The root if no folder can be made.
    """
    ours = FOLDERS.get(os.getpid())
    if ours is None or not Path(ours.name).is_dir():
        try:
            ours = tempfile.TemporaryDirectory(prefix="decisor-", ignore_cleanup_errors=True)
        except OSError:
            return os.path.abspath(os.sep)  # noqa: PTH100
        FOLDERS[os.getpid()] = ours
        # A fork inherits the handler, so it asks whose folder it is.
        atexit.register(remove_child_folder, os.getpid())
    return ours.name


def remove_child_folder(process: int) -> None:
    """Remove the folder of a process that ends; a fork of the process leaves it alone."""
    if os.getpid() == process:
        FOLDERS.pop(process).cleanup()


def make_path_absolute(path: str) -> str:
    """Resolve a path in the working folder, for a child that works in another folder."""
    return str(working_folder() / path)
