"""A decision model over HTTP, and evaluations that fill in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from decision_shops import database
from decisor.lab.benchmark import Outcome
from decisor.lab.evaluation.store import CaseTask, open_store
from decisor.server.settings import ServerSettings
from decisor.session.sources import build_sources
from decisor.trace.events import RunStart, TraceEntry
from decisor.types import Question
from server.serving import Served, served
from session.test_whatif import MODEL, TABLES


@pytest.fixture
def offices(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "offices.toml").write_text(MODEL, "utf-8")
    db = database(tmp_path, TABLES)
    with served(ServerSettings(build_sources(db=db, model=tmp_path / "offices.toml"))) as place:
        yield place


@pytest.mark.slow
def test_a_model_is_described_with_what_may_be_changed(offices: Served) -> None:
    choices = offices.client.get("/api/choices").json()
    assert [one["model"] for one in choices["connections"]] == [True]
    model = offices.client.get("/api/models/sql").json()
    assert [one["name"] for one in model["measures"]] == ["rent", "way"]
    assert [(one["name"], one["spread"]) for one in model["inputs"]] == [
        ("terms.people", "30 % each"),
        ("office.rent", "10 % by name"),
    ]
    assert model["scenarios"] == ["hiring"]
    assert "Input, one of" in model["forms"]


@pytest.mark.slow
def test_an_input_is_changed_and_the_ranking_with_it(offices: Served) -> None:
    def best(text: str) -> str:
        reply = offices.client.post("/api/models/sql/whatif", json={"input": text})
        assert reply.status_code == 200, reply.text
        return str(reply.json()["ranking"]["options"][0]["name"])

    assert best("rank trials=50") == "east"
    changed = offices.client.post("/api/models/sql/whatif", json={"input": "set terms.people = 6"}).json()
    assert "north" in str(changed["records"]) + changed["note"]
    robust = offices.client.post("/api/models/sql/whatif", json={"input": "rank trials=50"}).json()["ranking"]
    assert (robust["trials"], 0 <= robust["robustness"] <= 1) == (50, True)
    assert best("rank") == "east"


@pytest.mark.slow
def test_an_input_that_cannot_be_read_is_one_line(offices: Served) -> None:
    reply = offices.client.post("/api/models/sql/whatif", json={"input": "set nothing.there = 1"})
    assert (reply.status_code, "nothing" in reply.json()["error"]) == (400, True)
    assert offices.client.post("/api/models/other/whatif", json={"input": "rank"}).status_code == 404


@pytest.mark.slow
def test_exact_needs_no_llm(offices: Served) -> None:
    reply = offices.client.post("/api/ask", json={"question": "Which office?", "technique": "exact"})
    run = offices.ended(reply.json()["id"])
    assert (run["answer"], run["llm"], run["usage"]["calls"]) == ("east", "", 0)


def test_an_evaluation_is_shown_while_it_fills(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    cases = [Outcome("dqa", f"case-{number}", "plan_rag", "m", 0, "right", answer="elm") for number in (1, 2)]
    store = open_store(path)
    store.begin({"benchmarks": "dqa"})
    store.plan([CaseTask(one.key) for one in cases])
    entries = [TraceEntry(1, 0, 0.0, RunStart(Question("Which site?"), "plan_rag", "m"))]
    store.finish(cases[0], entries)
    with served(ServerSettings(evaluations={"run": str(path)})) as place:
        page = place.client.get("/api/evaluations/run/page")
        assert "sandbox" in page.headers["content-security-policy"]
        assert "case-1" in page.text and "Which site?" in page.text and "case-2" not in page.text
        store.finish(cases[1], entries)
        assert "case-2" in place.client.get("/api/evaluations/run/page").text
        assert place.client.get("/api/evaluations/other/page").status_code == 404
    store.close()
