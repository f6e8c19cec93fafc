"""What the docs promise: every technique, tool and setting has its place, every option is listed, the code runs."""

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from decisor.cli import COMMANDS, build_app
from decisor.techniques import TECHNIQUES, find_technique_class

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TOOLS = ("sql", "cypher", "whatif", "calculator", "passages", "combine")
COMMAND = re.compile(r"`decisor ([a-z][^`\n]*)`|^ *(?:[A-Z_]+=\S+ )*decisor ([a-z].*)$", re.M)
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)


def test_every_technique_and_each_of_its_settings_is_in_the_docs() -> None:
    text = (ROOT / "docs" / "techniques.md").read_text("utf-8")
    for name in TECHNIQUES:
        kind = find_technique_class(name)
        assert f"## {name}\n" in text
        section = text.partition(f"## {name}\n")[2].partition("\n## ")[0]
        assert not [field.name for field in fields(kind) if f"`{field.name}" not in section], name


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_has_its_heading(tool: str) -> None:
    headings = [line for page in PAGES for line in page.read_text("utf-8").splitlines() if line.startswith("#")]
    assert any(re.search(rf"\b{tool}\b", heading) for heading in headings)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_its_place_in_the_docs(command: str) -> None:
    text = (ROOT / "docs" / "command.md").read_text("utf-8")
    assert f"\n## decisor {command}\n" in text
    assert f"`{command}`" in text.partition("\n## ")[0] or f"`decisor {command}`" in text.partition("\n## ")[0]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["ask", "index", "trace", "doctor", "eval", "report"])
def test_every_option_of_the_command_is_in_the_docs(command: str) -> None:
    text = (ROOT / "docs" / "command.md").read_text("utf-8")
    told = subprocess.run(
        [sys.executable, "-m", "decisor", command, "--help"], capture_output=True, text=True, check=True, env=env()
    ).stdout
    section = text.partition(f"## decisor {command}\n")[2].partition("\n## ")[0]
    options = set(re.findall(r"^ +(?:-\w, )?(--[a-z]+)", told, re.M)) - {"--help"}
    assert options
    assert not [option for option in options if option not in section]


@pytest.mark.slow
def test_every_command_on_a_page_has_options_that_there_are() -> None:
    wrong = [
        f"{page.name}: {line}"
        for page in [*PAGES, ROOT / "SECURITY.md", ROOT / "Containerfile"]
        if page.parent.name != "decisions"  # they tell of what was not chosen too
        for words in COMMAND.findall(page.read_text("utf-8"))
        if not is_understood(line := next(filter(None, words)))
    ]
    assert not wrong


def is_understood(line: str) -> bool:
    """Of words up to a comment, a pipe or a second command; quotes may go on in the next line."""
    words = re.split(r" (?:#|\||>|&&|;) | \\$", re.sub(r"\"[^\"]*(\"|$)|'[^']*('|$)", "X", line))[0].split()
    if words[0] not in COMMANDS:
        return False
    command: Any = get_command(build_app([words[0]]))
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    options = {name for one in command.params for name in (*one.opts, *one.secondary_opts)} | {"--help"}
    return all(word.partition("=")[0].rstrip(",.;)") in options for word in words if word.startswith("--"))


def test_every_link_between_pages_leads_somewhere() -> None:
    wrong = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in PAGES
        for target in LINK.findall(page.read_text("utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert not wrong


def test_every_page_is_linked_from_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")} - {"index.md"}
    folders = ("decisions/", "measurements/")
    assert not [page for page in pages if f"({page}" not in index and not page.startswith(folders)]


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    """The blocks of a page run as one program, in an empty folder."""
    program = tmp_path / "page.py"
    program.write_text("\n\n".join(blocks(page)), "utf-8")
    ran = subprocess.run(
        [sys.executable, "-W", "error", program.name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        env=env(),
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]


def env() -> dict[str, str]:
    """Ours, without an LLM, with the source in the path."""
    kept = {key: value for key, value in os.environ.items() if "OPENAI" not in key and "ANTHROPIC" not in key}
    return kept | {"PYTHONPATH": str(ROOT / "src"), "DECISOR_LLM": "none", "COLUMNS": "200"}


def test_every_class_that_a_page_names_is_there() -> None:
    """`room.Name` in the text of a page: a class or function of that name stands in a module or room of that name."""
    named = re.compile(r"`(?:decisor\.)?(?:\w+\.)*([a-z_]+)\.([A-Z]\w*)\b")
    wrong = [
        f"{page.name}: {module}.{name}"
        for page in PAGES
        for module, name in named.findall(page.read_text("utf-8"))
        if module not in ("db", "logging", "decisor")  # Cypher's, Python's, and the front's own names
        and name not in ("NAME", "PART")  # a key of a file: the name is its writer's
        and not any(
            re.search(rf"^(?:class|def) {name}\b|^{name}\b.*=|import .*\b{name}\b", file.read_text("utf-8"), re.M)
            for file in (ROOT / "src").rglob("*.py")
            if module in (file.stem, file.parent.name)
        )
    ]
    assert not wrong
