"""Parts that other packages add by entry points: a package as pip leaves one, without pip."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import decisor
from decisor.cli import run_command_line
from decisor.errors import SetupError
from decisor.lab.benchmark import find_bench_class
from decisor.sandbox.engines import engine_of, load_engine
from decisor.system.extras import find_plugins
from decisor.techniques import find_technique_class
from session.conftest import planner

ENTRY_POINTS = """
[decisor.techniques]
cheapest = toy_plugin:Cheapest
broken = toy_plugin:Notes
[decisor.engines]
toy = toy_plugin:ENGINE
[decisor.retrievers]
notes = toy_plugin:Notes
[decisor.benchmarks]
sums = toy_plugin:Sums
"""
MODULE = """
from dataclasses import dataclass, replace
from decisor import Decision, Evidence, Record
from decisor.sandbox.engines import sqlite
from decisor.types import Action

@dataclass(frozen=True)
class Cheapest:
    table: str = "site"

    async def __call__(self, question, run):
        rows = await run.act(Action("sql", f"SELECT name FROM {self.table} ORDER BY rent LIMIT 1"))
        return Decision(str(rows.records[0].fields["name"]), Evidence((rows.records[0].id,)))

class Notes:
    about = "Notes on sites."

    async def find(self, query, limit):
        return [Record("n1", {}, "The lease of oak ends in May.")]

class Sums:
    name = "sums"
    def cases(self): return ()
    def environment(self, case): ...
    async def score(self, case, decision, events): ...
    async def close(self): ...

ENGINE = replace(sqlite.ENGINE, name="toy", title="Toybase", schemes=("toy",), endings=())
"""


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path / "site-packages"
    about = folder / "decisor_toy-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: decisor-toy\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    (folder / "toy_plugin.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(folder))
    find_plugins.cache_clear()
    yield
    find_plugins.cache_clear()
    load_engine.cache_clear()
    sys.modules.pop("toy_plugin", None)


def test_a_technique_of_a_package_decides_by_its_name(sites: Path) -> None:
    result = decisor.ask("Which site?", db=sites, technique="cheapest", settings={"table": "site"}, llm=planner())
    assert (result.answer, result.evidence.ids) == ("elm", ("o1.r1",))
    with pytest.raises(SetupError, match="toy_plugin:Notes is no technique"):
        find_technique_class("broken")


def test_a_retriever_of_a_package_finds_passages(sites: Path) -> None:
    llm = decisor.ScriptedLLM(["Final answer: oak\nBecause: its lease ends in May [o1.r1]"])
    result = decisor.ask("Which lease ends?", docs="notes", technique="rag", llm=llm)
    assert [record.text for record in result.records] == ["The lease of oak ends in May."]


def test_an_engine_and_a_benchmark_of_a_package_are_found_by_name() -> None:
    assert engine_of("toy:///plants.toy").title == "Toybase"
    assert find_bench_class("sums").__module__ == "toy_plugin"
    with pytest.raises(SetupError, match="no engine for toys://"):
        engine_of("toys:///plants.toy")


def test_the_command_lists_the_parts_with_their_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["plugins"]) == 0
    out = capsys.readouterr().out
    assert "techniques   cheapest         toy_plugin:Cheapest (decisor-toy)" in out and "sums" in out


def test_nothing_of_ours_is_replaced_by_a_package(tmp_path: Path) -> None:
    about = tmp_path / "site-packages" / "decisor_toy-1.0.dist-info"
    (about / "entry_points.txt").write_text("[decisor.techniques]\nexact = toy_plugin:Cheapest\n")
    assert find_technique_class("exact").__module__ == "decisor.techniques.exact"
