"""An audit says of each query who asked it: the model, a person, or Decisor by itself."""

import json
import sqlite3
from pathlib import Path

import decisor
from decisor.databases.sql import SqlTool
from decisor.llms.scripted import ScriptedLLM
from decisor.semantics.check import check_definitions
from decisor.semantics.definitions import parse_definitions
from decisor.session.access import restrict_sources
from decisor.session.data import open_data
from decisor.session.request import AskRequest, Attachments
from decisor.session.rerun import rerun_on_sources
from decisor.session.sources import build_sources
from decisor.session.verify import verify_trace
from decisor.techniques.replay.rerun import Edit

DOUBLE = "SELECT SUM(site.rent) AS rent FROM site JOIN visit ON visit.site = site.name"
OTHER = "SELECT SUM(rent) AS rent FROM site"


def shop(path: Path) -> str:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE site (name TEXT PRIMARY KEY, rent REAL)")
        database.execute("CREATE TABLE visit (id INTEGER PRIMARY KEY, site TEXT REFERENCES site (name))")
        database.executemany("INSERT INTO site VALUES (?, ?)", [("oak", 700.0), ("elm", 400.0)])
        database.executemany("INSERT INTO visit (site) VALUES (?)", [("oak",), ("oak",), ("elm",)])
    database.close()
    return f"sqlite:///{path}"


def script(query: str) -> ScriptedLLM:
    return ScriptedLLM(
        [f"Thought: add up\nAction: sql\nAction input: {query}", "Final answer: x\nBecause: it is so [o1.r1]"]
    )


def askers(audit: Path, statement: str = "") -> list[str]:
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    audit.unlink()
    return [line["by"] for line in lines if not statement or line["statement"] == statement]


def test_our_own_look_at_a_query_is_not_the_models(tmp_path: Path) -> None:
    url, audit = shop(tmp_path / "s.db"), tmp_path / "audit.jsonl"
    decisor.ask(
        "How much rent?", db=url, llm=script(DOUBLE), technique="iter_rag", audit=audit, settings={"calling": "text"}
    )
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [line["statement"] for line in lines if line["by"] == "model"] == [DOUBLE]
    assert any(line["by"] == "decisor" and "visit" in line["statement"] for line in lines)
    assert not any(line["by"] == "person" for line in lines)


def test_a_query_that_a_person_wrote_in_place_of_the_models_is_theirs(tmp_path: Path) -> None:
    url, audit = shop(tmp_path / "s.db"), tmp_path / "audit.jsonl"
    result = decisor.ask(
        "How much rent?", db=url, llm=script(DOUBLE), technique="iter_rag", settings={"calling": "text"}
    )
    sources = restrict_sources(build_sources(db=url), audit=audit)
    llm = ScriptedLLM(["Final answer: x\nBecause: it is so [o1.r1]"])
    rerun_on_sources(sources, result.trace, Edit("1", action=OTHER), AskRequest(), Attachments(llm=llm))
    assert askers(audit, OTHER) == ["person"]


async def test_a_program_asks_as_a_person_and_what_is_computed_again_is_decisors(tmp_path: Path) -> None:
    url, audit = shop(tmp_path / "s.db"), tmp_path / "audit.jsonl"
    async with decisor.open(db=url, audit=audit) as data:
        await data.tools[0].call(OTHER)
        assert askers(audit, OTHER) == ["person"]
        result = await data.ask("How much?", llm=script(OTHER), technique="iter_rag", settings={"calling": "text"})
        assert askers(audit, OTHER) == ["model"]
    async with open_data(restrict_sources(build_sources(db=url), audit=audit)) as data:
        await verify_trace(result.trace, data)
        assert askers(audit, OTHER) == ["decisor"]
        definitions = parse_definitions('[metric.rent]\nsql = "SUM(rent)"\nfrom = "site"\n')
        rows = data.databases[0]
        assert isinstance(rows, SqlTool) and await check_definitions(definitions, rows) == []
        assert set(askers(audit)) == {"decisor"}
