"""What is not installed is named with the command that installs it here."""

import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from decisor.system.extras import format_pip_install, packages_of_extra

ROOT = Path(__file__).parents[1]
NAMED = re.compile(r'(?:missing_extra_error|require_package)\([^)]*?, "(\w+)"\s*\)|^    extra="(\w+)",$', re.MULTILINE)


def test_every_extra_that_a_message_names_is_one_of_the_package() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    texts = [path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py")]
    names = {name for text in texts for match in NAMED.findall(text) for name in match if name}
    assert {"graph", "neo4j", "postgres", "serve", "documents", "lab"} <= names
    assert names <= set(extras), names - set(extras)


def test_a_package_that_nobody_promises_is_named_by_its_extra() -> None:
    assert packages_of_extra("nothing") == ["decisor[nothing]"]


@pytest.mark.parametrize(
    ("module", "extra", "call"),
    [
        (
            "kglite",
            "graph",
            "from decisor.sandbox import engine, engines; engines.open_engine_database('kglite', '', engine.Caps())",
        ),
        (
            "kglite",
            "graph",
            "from decisor.graphs.load import load_nodes_and_edges as load; load('kglite:///x.kgl', [], [])",
        ),
        (
            "neo4j",
            "neo4j",
            "from decisor.graphs.load import load_nodes_and_edges as load; load('bolt://127.0.0.1:1', [], [])",
        ),
        ("tantivy", "documents", "from decisor.documents.search import build_analyzer; build_analyzer()"),
    ],
)
def test_where_a_driver_is_missing_the_message_says_what_to_type(module: str, extra: str, call: str) -> None:
    code = (
        f"import sys; sys.modules[{module!r}] = None\nfrom decisor.errors import SetupError\n"
        f"try:\n    {call}\nexcept SetupError as error:\n    print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert re.search(rf"needs? {module}: .*pip install 'decisor\[{extra}\]'\n", ran.stdout), ran.stdout


@pytest.mark.parametrize("words", [["eval", "--help"], ["bench", "list"]])
def test_where_the_lab_is_missing_one_sentence_says_how_to_get_it(words: list[str]) -> None:
    code = f"import sys; sys.modules['rapidfuzz'] = None\nfrom decisor.cli import main\nmain({words!r})"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert re.fullmatch(r"decisor: decisor \w+ needs the lab: .*install .*\n", ran.stderr), ran.stderr


def test_an_example_needs_no_extra() -> None:
    lab = ("rapidfuzz", "sklearn", "Stemmer")
    code = f"import sys; sys.modules |= dict.fromkeys({lab!r})\nfrom decisor.cli import main\n"
    words = ["ask", "--example", "trade", "--llm", "none", "--no-history"]
    ran = subprocess.run([sys.executable, "-c", f"{code}main({words!r})"], capture_output=True, text=True)
    assert ran.returncode == 0 and "Ranking: profit" in ran.stdout, ran.stderr


def test_the_tools_for_agents_need_nothing_of_the_page() -> None:
    code = "import sys; sys.modules |= dict.fromkeys(('fastapi', 'authlib', 'psycopg_pool'))\nimport decisor.mcp.server"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_a_set_up_without_pip_is_sent_to_uv(tmp_path: Path) -> None:
    venv.create(tmp_path / "v", with_pip=False, symlinks=True)
    python = tmp_path / "v/bin/python"
    code = (
        f"import sys; sys.path.append({str(ROOT / 'src')!r}); from decisor.system.extras import *; "
        "print(format_pip_install('apsw'))"
    )
    ran = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert ran.stdout.startswith("uv pip install --python v/bin/python") and ran.stdout.endswith(" apsw\n")
    assert " install " in format_pip_install("apsw")
