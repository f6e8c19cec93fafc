"""The container file: a user without rights, and options that there are."""

import json
import re
import tomllib
from pathlib import Path

from typer.main import get_command

from decisor.cli import build_app

ROOT = Path(__file__).parent.parent.parent
TEXT = (ROOT / "Containerfile").read_text("utf-8")


def test_it_starts_the_server_with_options_that_there_are() -> None:
    words = json.loads(re.findall(r"^ENTRYPOINT (.*)", TEXT, re.M)[0])
    command = get_command(build_app(["serve"])).commands["serve"]  # type: ignore[attr-defined]
    options = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    assert words[:2] == ["decisor", "serve"]
    assert {word for word in words if word.startswith("--")} <= options
    assert "--no-browser" in words


def test_nobody_with_rights_runs_it_and_it_installs_extras_that_there_are() -> None:
    last = re.findall(r"^USER (\S+)", TEXT, re.M)[-1]
    assert last not in ("root", "0")
    assert TEXT.rindex("\nUSER") < TEXT.rindex("\nENTRYPOINT")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    wanted = re.findall(r"/build\[([\w,]+)\]", TEXT)[0].split(",")
    assert set(wanted) <= extras.keys()


def test_what_it_copies_is_in_the_context_of_the_build() -> None:
    context = set((ROOT / ".containerignore").read_text("utf-8").split())
    copies = [name for line in re.findall(r"^COPY (.*) \S+$", TEXT, re.M) for name in line.split()]
    assert all((ROOT / name).exists() for name in copies)
    assert {f"!{name}" for name in copies} <= context
