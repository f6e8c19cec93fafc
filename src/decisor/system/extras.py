"""Parts of the package that are installed by choice, and the one logger of the package.

An error about a missing part has the command that adds it to this very set-up. The logger is
``logging.getLogger("decisor")``: silent until a program gives it a handler. INFO: data that were opened, how a run
ended. WARNING: a call to an LLM that is tried again, a check that failed. No record holds a key or a password.
"""

from __future__ import annotations

import logging
import re
import shlex
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from decisor.errors import SetupError
from decisor.system.secrets import redact

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

CONDITION = re.compile(r";\s*extra\s*==\s*['\"]([\w-]+)['\"]")


def missing_extra_error(what: str, extra: str) -> SetupError:
    """Return the error for a missing package, with the command that installs it. what: the complaint, such as
    "Documents need tantivy".
    """
    return SetupError(f"{what}: {format_install_command(extra)}")


@contextmanager
def require_package(package: str, extra: str) -> Iterator[None]:
    """Raise SetupError with the install command if the import within the block fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing_extra_error(f"This needs {package}", extra) from error


PLUGINS = {
    "techniques": "a class, called with (question, run)",
    "engines": "an Engine, by the scheme of its URLs",
    "llms": "a Provider, as --llm NAME/MODEL takes it",
    "retrievers": "a class, as --docs module:Class takes it",
    "benchmarks": "a class, as -b module:Class takes it",
}
"""Groups of entry points that other packages add parts by, and what each part is."""


@cache
def find_plugins(group: str) -> dict[str, EntryPoint]:
    """Find the parts that installed packages add to a group (``decisor.techniques`` and so on), by name."""
    # Reading the metadata of all packages takes a while: it is done where a name is none of ours.
    from importlib.metadata import entry_points

    return {one.name: one for one in entry_points(group=f"decisor.{group}")}


LAB = ("rapidfuzz", "sklearn", "Stemmer")
"""Modules that only the extra ``lab`` brings."""


def import_lab(module: str, user: str) -> ModuleType:
    """Import a module of ``decisor.lab``, which nothing imports by a statement. user: what needs it.

    Raises:
        SetupError: the extra ``lab`` is not installed.
    """
    if not all(map(find_spec, LAB)):
        raise missing_extra_error(f"{user} needs the lab", "lab")
    return import_module(f"decisor.lab.{module}")


def format_install_command(extra: str) -> str:
    """Format the command that installs an extra into this set-up: by pipx, pip, or uv without pip."""
    command = format_pip_install(f"decisor[{extra}]")
    # pip takes the installed Decisor for this name; uv may ask a registry for it, so it is given the packages.
    return format_pip_install(*packages_of_extra(extra)) if command.startswith("uv ") else command


def format_pip_install(*words: str) -> str:
    """Format the command that installs packages by name, with options of pip."""
    packages = " ".join(shlex.quote(word) for word in words)
    # pipx records what it injects; what pip adds there is lost when pipx installs the package anew.
    if "pipx" in Path(sys.prefix).parts:
        return f"pipx inject decisor {packages}"
    # By this interpreter: a bare pip may belong to another environment.
    python = shlex.quote(shorten_path(Path(sys.executable)))
    if find_spec("pip"):
        return f"{python} -m pip install {packages}"
    return f"uv pip install --python {python} {packages}"


def packages_of_extra(extra: str) -> list[str]:
    """Return the packages of an extra with their versions, as pyproject.toml has them.

    "" means the packages that are always installed.

    >>> packages_of_extra("neo4j")
    ['neo4j>=5.28']
    """
    from importlib.metadata import PackageNotFoundError, requires  # a sandbox worker, which imports this, needs neither

    lines: list[str] = []
    with suppress(PackageNotFoundError):  # read from its folder, without an installation
        lines = requires("decisor") or []
    # Read from the installed metadata, so that the versions are those of this release.
    packages = [line.partition(";")[0].strip() for line in lines if extra in (CONDITION.findall(line) or [""])]
    return packages or [f"decisor[{extra}]"]


def decisor_command() -> str:
    """Return the command ``decisor`` as one types it here: by its name if the search path leads to it."""
    own = Path(sys.executable).with_name("decisor")
    return "decisor" if shutil.which("decisor") or not own.exists() else shlex.quote(shorten_path(own))


def shorten_path(path: Path) -> str:
    """Return a path relative to the working folder if it is inside."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


class Redaction(logging.Filter):
    """A log filter that hides keys and passwords in every record, whichever handler it goes to."""

    def filter(self, record: logging.LogRecord) -> bool:
        # Formatted first: a key may stand in an argument of the record.
        record.words = record.msg
        record.msg, record.args = redact(record.getMessage()), None
        if record.exc_info and record.exc_info[0] is not None:
            record.exc_text = redact("".join(traceback.format_exception(*record.exc_info)).rstrip())
        return True


logger = logging.getLogger("decisor")
logger.addFilter(Redaction())
logger.addHandler(logging.NullHandler())

heard_by: ContextVar[Callable[[str], object] | None] = ContextVar("heard_by", default=None)


@contextmanager
def note_faults(hear: Callable[[str], object]) -> Iterator[None]:
    """Report faults of checks within the block to ``hear`` too, such as to the trace of a run."""
    before = heard_by.set(hear)
    try:
        yield
    finally:
        heard_by.reset(before)


@contextmanager
def pass_over_faults(check: str) -> Iterator[None]:
    """Log and note a fault inside a check, and go on after the block: a check never ends a run.

    >>> with note_faults(print), pass_over_faults("figures"):
    ...     1 / 0
    The check of figures failed (ZeroDivisionError) and was passed over.
    """
    try:
        yield
    except Exception as error:
        logger.warning("The check of %s failed.", check, exc_info=True)
        if hear := heard_by.get():  # without its text, which may hold values that a reader must not see
            hear(f"The check of {check} failed ({type(error).__name__}) and was passed over.")
