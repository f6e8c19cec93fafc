"""Parts of the package that are installed by choice, and the command that adds one to this very set-up."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from decisor.errors import SetupError

CONDITION = re.compile(r";\s*extra\s*==\s*['\"]([\w-]+)['\"]")


def lacks(what: str, extra: str) -> SetupError:
    """The error for ``what`` ("Documents need tantivy"), with the command that mends it."""
    return SetupError(f"{what}: {how_to_install(extra)}")


@contextmanager
def needs(package: str, extra: str) -> Iterator[None]:
    """Around an import of ``package``: raises SetupError, as ``lacks``, where it is not there."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise lacks(f"This needs {package}", extra) from error


def how_to_install(extra: str) -> str:
    """The command that installs what ``extra`` holds into this set-up: by pipx, pip, or uv where there is no pip."""
    return pip_install(*packages_of(extra))


def pip_install(*words: str) -> str:
    """The same for packages by name, with pip's options."""
    packages = " ".join(shlex.quote(word) for word in words)
    if "pipx" in Path(sys.prefix).parts:
        return f"pipx inject decisor {packages}"
    python = shlex.quote(near(Path(sys.executable)))
    if find_spec("pip"):
        return f"{python} -m pip install {packages}"
    return f"uv pip install --python {python} {packages}"


def packages_of(extra: str) -> list[str]:
    """With their versions, as pyproject.toml has them; of "", those that are always there.

    >>> packages_of("neo4j")
    ['neo4j>=5.28']
    """
    from importlib.metadata import PackageNotFoundError, requires  # a sandbox worker, which imports this, needs neither

    lines: list[str] = []
    with suppress(PackageNotFoundError):  # read from its folder, without an installation
        lines = requires("decisor") or []
    packages = [line.partition(";")[0].strip() for line in lines if extra in (CONDITION.findall(line) or [""])]
    return packages or [f"decisor[{extra}]"]


def how_to_call() -> str:
    """The command as one types it here: by its name where the path leads to it."""
    own = Path(sys.executable).with_name("decisor")
    return "decisor" if shutil.which("decisor") or not own.exists() else shlex.quote(near(own))


def near(path: Path) -> str:
    """As one would type it here."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
