"""The example worlds."""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from decisor.errors import SetupError
from decisor.lab.dqa.generator import SEEDS, make_example


def counted(graph: Any, query: str) -> int:
    return int(graph.cypher(query).to_list()[0]["n"])


@pytest.mark.parametrize("name", SEEDS)
def test_an_example_has_the_same_world_in_both_forms(name: str, tmp_path: Path) -> None:
    import kglite

    made = make_example(name, tmp_path)
    label, table = ("Goods", "goods") if name == "supply" else ("Country", "country")
    graph = kglite.load(made.graph_url.removeprefix("kglite:///"))
    with closing(sqlite3.connect(made.database)) as database:
        ((rows,),) = database.execute(f"SELECT count(*) FROM {table}")
        ((edges,),) = database.execute("SELECT count(*) FROM " + ("supply" if name == "supply" else "node_country"))
    assert counted(graph, f"MATCH (n:{label}) RETURN count(n) AS n") == rows
    kind = "Supply" if name == "supply" else "NodeCountry"
    assert counted(graph, f"MATCH ()-[r:{kind}]->() RETURN count(r) AS n") == edges
    assert made.subject in made.question.text


def test_an_example_is_written_once(tmp_path: Path) -> None:
    first = make_example("trade", tmp_path).database.stat().st_mtime_ns
    assert make_example("trade", tmp_path).database.stat().st_mtime_ns == first


def test_only_the_graph_of_an_example_needs_kglite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kglite", None)
    made = make_example("trade", tmp_path)
    assert made.database.exists() and not made.graph.exists()
    with pytest.raises(SetupError, match=r"pip install .*graph"):
        _ = made.graph_url


def test_an_unknown_example_is_named() -> None:
    with pytest.raises(SetupError, match="supply, trade"):
        make_example("chess")
