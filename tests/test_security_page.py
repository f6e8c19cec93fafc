"""SECURITY.md names a test for each promise, and each is there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "SECURITY.md").read_text("utf-8")
TESTS = re.findall(r"`(tests/[\w/.]+\.py)::(\w+)`", PAGE)


@pytest.mark.slow
def test_every_test_that_the_page_names_is_there() -> None:
    missing = []
    for path, name in TESTS:
        file = ROOT / path
        tree = ast.parse(file.read_text("utf-8")) if file.is_file() else ast.Module([], [])
        if name not in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}:
            missing.append(f"{path}::{name}")
    assert TESTS and not missing


def test_every_promise_names_a_test() -> None:
    promises = PAGE.partition("## What is promised")[2].partition("## Systems")[0]
    lines = [line for line in promises.splitlines() if line.startswith("| ")]
    rows = [line for line in lines if not line.startswith("| promise |")]
    assert len(rows) > 20
    assert [row for row in rows if not re.search(r"`tests/[\w/.]+\.py::\w+` ?.*\|$", row)] == []


def test_the_readme_and_the_docs_lead_to_the_page() -> None:
    for page in ("README.md", "docs/access.md"):
        assert "SECURITY.md" in (ROOT / page).read_text("utf-8")
