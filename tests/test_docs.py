"""What the docs promise: every technique, tool and setting has its words, the commands are right, the code runs."""

import os
import re
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from decisor.cli import COMMANDS, MORE, build_app
from decisor.techniques import TECHNIQUES, find_technique_class

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TOOLS = ("sql", "cypher", "whatif", "calculator", "passages", "combine")
COMMAND = re.compile(r"`decisor ([a-z][^`\n]*)`|^ *(?:[A-Z_]+=\S+ )*decisor ([a-z].*)$", re.M)
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)


def test_every_technique_and_each_of_its_settings_has_its_words() -> None:
    words = tomllib.loads((ROOT / "docs" / "pages" / "techniques.toml").read_text("utf-8"))
    asking = (ROOT / "docs" / "asking.md").read_text("utf-8")
    assert set(words) == set(TECHNIQUES)
    for name in TECHNIQUES:
        settings = {field.name for field in fields(find_technique_class(name))}
        assert set(words[name].get("settings", {})) == settings, name
        assert f"`{name}`" in asking, name


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_is_explained(tool: str) -> None:
    assert any(f"tool `{tool}`" in page.read_text("utf-8") for page in PAGES)


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
    if words[0] not in COMMANDS | MORE:
        return False
    command: Any = get_command(build_app([words[0]]))
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    options = {name for one in command.params for name in (*one.opts, *one.secondary_opts)} | {"--help"}
    return all(word.partition("=")[0].rstrip(",.;)") in options for word in words if word.startswith("--"))


def test_every_link_between_pages_leads_somewhere() -> None:
    wrong = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in [*PAGES, *ROOT.glob("*.md"), *(ROOT / "examples").rglob("*.md")]
        for target in LINK.findall(page.read_text("utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert not wrong


def test_every_page_is_linked_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    folders = ("docs/decisions/", "docs/measurements/")
    assert not [page for page in pages if f"({page}" not in readme and not page.startswith(folders)]


def test_the_pages_are_few_and_short() -> None:
    """A stranger reads them: whoever adds a thousand words takes a thousand away."""
    pages = [page for page in PAGES if page.parent.name in (ROOT.name, "docs", "tutorials")]
    pages = [page for page in pages if page.name != "performance.md"]
    assert len(pages) == 20 and sum(len(page.read_text("utf-8").split()) for page in pages) <= 25_000


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
