"""What the record of a decision says, and where that is from."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import decisor
from decision_record.record_shops import QUERY, computed, from_rows, sites
from decisor.cli import run_command_line
from decisor.decision_record.build import build_record, definition_of
from decisor.decision_record.page import read_record, record_to_json
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.budget import Limits
from decisor.semantics.readings import OpenReading
from decisor.trace.events import Conclusion, RunStart, TraceEntry, UsedFile
from decisor.trace.file import read_trace
from decisor.types import Decision, Question, Record
from decisor.version import __version__
from definition_shops import definitions_file, shop
from session.test_readings import QUESTION, TEXT, analyst


def test_the_record_of_a_computed_decision_holds_alternatives_rules_and_the_model(tmp_path: Path) -> None:
    _, result = computed(tmp_path)
    content = result.record().content
    assert content.decision.answer == "Mainz + Linz" and content.alternatives is not None
    assert [one.name for one in content.alternatives.options] == ["Mainz + Linz", "Linz + Ulm", "Linz + Metz"]
    assert (
        content.alternatives.excluded[0].rules == ("capacity",)
        and "3,093 of 3,000" in content.alternatives.excluded[0].why
    )
    assert [(one.name, one.state, one.candidate) for one in content.rules] == [
        ("capacity", "kept", "Mainz + Linz"),
        ("early", "not testable", "Mainz + Linz"),
    ]
    assert content.model is not None and content.model.text == (tmp_path / "close.toml").read_text()
    assert [(one.tool, one.ranks, len(one.rows)) for one in content.evidence.queries] == [("whatif", True, 2)]
    assert content.open_points[0].settles == "A person who vouches for it."
    (certain,) = content.assumptions
    assert certain.endswith("as the data say but lane.cost, customer.units, site.rent: nothing else was varied.")
    assert (content.request.by, content.means.version, content.means.lm) == ("Ann", __version__, "")


def test_the_record_of_a_decision_from_rows_holds_them_with_their_query_and_what_is_open(tmp_path: Path) -> None:
    path, result = from_rows(tmp_path)
    content = result.record().content
    (query,) = content.evidence.queries
    assert (query.name, query.input, query.brought, query.cut) == ("o1", QUERY, 3, False)
    assert [(row.id, row.fields) for row in query.rows] == [
        ("o1.r1", {"name": "elm", "rent": 400.0}),
        ("o1.r2", {"name": "oak", "rent": 700.0}),
    ]
    assert (content.means.lm, content.means.technique, content.usage.calls) == ("scripted", "plan_rag", 3)
    assert [(one.form, one.place) for one in content.data.sources] == [("sql", f"sqlite:///{path}")]
    open_words = " ".join(one.what for one in content.open_points)
    for words in ("none was executed", "in the order of a query", "You wrote 9999"):
        assert words in open_words, words


def test_a_definition_stands_with_who_wrote_it_and_the_digest_of_its_file(tmp_path: Path) -> None:
    net = (
        "SELECT c.name, SUM(l.price * l.quantity * (1 - l.discount)) AS v FROM line l JOIN purchase p "
        "ON p.id = l.purchase_id JOIN customer c ON c.id = p.customer_id WHERE p.status = 'closed' GROUP BY 1 "
        "ORDER BY 2 DESC"
    )
    llm = ScriptedLLM(
        [
            f"Plan: [Step 1: add up]\nThought: t\nAction: sql\nAction input: {net}",
            "Final answer: Cy\nBecause: it is first [o2.r1]",
        ]
    )
    file = definitions_file(tmp_path)
    result = decisor.ask(
        "Which customer has the most net revenue?",
        db=shop(tmp_path),
        definitions=str(file),
        llm=llm,
        technique="plan_rag",
        settings=TEXT,
    )
    (used,) = [one for one in result.record().content.definitions if one.name == "metric.net_revenue"]
    assert (used.by, used.file) == ("ann", str(file)) and len(used.digest) == 64


def test_a_reading_that_nobody_chose_is_open_and_says_what_the_other_gives(tmp_path: Path) -> None:
    content = decisor.ask(QUESTION, db=shop(tmp_path), llm=analyst(), settings=TEXT).record().content
    (reading,) = content.readings
    assert (reading.words, reading.by, reading.other, reading.gives) == ("revenue", "", "before discounts", "Ann")
    assert any("the other would give Ann" in one.what for one in content.open_points)


def test_a_reading_that_a_person_chose_names_them(tmp_path: Path) -> None:
    async def person(one: OpenReading) -> str:
        return "2"

    result = decisor.ask(QUESTION, db=shop(tmp_path), llm=analyst(), reader=person, settings=TEXT, who="Ann")
    (reading,) = result.record().content.readings
    assert (reading.means, reading.by) == ("before discounts", "Ann")
    assert not any("Nobody said" in one.what for one in result.record().content.open_points)


def test_a_follow_up_keeps_the_question_before_and_the_rows_of_that_run(tmp_path: Path) -> None:
    _, first = from_rows(tmp_path)
    llm = ScriptedLLM(["Plan: [Step 1: none]\nThought: known\nFinal answer: oak\nBecause: it is next, 700 [o1.r2]"])
    content = first.ask("And without elm?", llm=llm, technique="plan_rag").record().content
    assert (
        content.request.before == ("Which site?: elm",) and "What was decided before it holds." in content.assumptions
    )
    assert [row.id for query in content.evidence.queries for row in query.rows] == ["o1.r2"]


def test_the_record_of_a_run_that_a_limit_ended_says_so(tmp_path: Path) -> None:
    llm = ScriptedLLM(["Plan: [Step 1: x]\nThought: t\nAction: sql\nAction input: SELECT name FROM site"] * 3)
    result = decisor.ask(
        "Which?",
        db=f"sqlite:///{sites(tmp_path)}",
        llm=llm,
        technique="iter_rag",
        settings=TEXT,
        limits=Limits(calls=1),
    )
    assert "A limit ended the run." in [one.what for one in result.record().content.open_points]


def test_keys_and_passwords_are_in_no_part_of_it(tmp_path: Path) -> None:
    key = "sk-proj-0123456789abcdefghij"
    start = RunStart(
        Question(f"Which? {key}"),
        "plan_rag",
        "m@http://ann:hunter22@host/v1",
        {"critic_llm": "m@http://ann:hunter22@host/v1"},
    )
    entries = [
        TraceEntry(1, 0, 0.0, start),
        TraceEntry(2, 0, 0.1, Conclusion(Decision("oak", reasons=(f"with {key}",)))),
    ]
    text = record_to_json(build_record(entries))
    assert key not in text and "hunter22" not in text and text.count("[hidden]") >= 4


def test_tokens_of_masked_columns_stay_tokens_where_who_asks_sees_values(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript("""CREATE TABLE customers (id INTEGER, email TEXT); INSERT INTO customers VALUES
            (1, 'ann@shop.example'), (2, 'bo@shop.example'), (3, 'cy@shop.example');""")
    llm = ScriptedLLM(
        [
            "Thought: look\nAction: sql\nAction input: SELECT email, id FROM customers ORDER BY id DESC",
            "Final answer: the first\nBecause: id 2 [o1.r1]",
        ]
    )
    result = decisor.ask(
        "Who?",
        db=f"sqlite:///{path}",
        rows={"customers": "email <> 'cy@shop.example'"},
        mask="customers.email",
        reveal=True,
        llm=llm,
        technique="iter_rag",
        settings=TEXT,
    )
    assert result.records[0].fields["email"] == "bo@shop.example"
    result.save_record(tmp_path / "r.json")
    result.save_record(tmp_path / "r.html")
    for name in ("r.json", "r.html"):
        text = (tmp_path / name).read_text()
        assert "@shop.example" not in text and "masked_" in text
    assert result.record().content.data.sources[0].rows[0].condition == "email <> ?"


def test_it_is_the_same_from_the_run_the_history_and_the_trace(tmp_path: Path) -> None:
    _, result = from_rows(tmp_path, history=True, trace=tmp_path / "run.jsonl")
    assert run_command_line(["history", "show", "1", "--record", str(tmp_path / "shown.json")]) == 0
    assert run_command_line(["trace", str(tmp_path / "run.jsonl"), "--record", str(tmp_path / "traced.json")]) == 0
    digests = {read_record(tmp_path / name).record.digest for name in ("shown.json", "traced.json")}
    assert digests == {result.record().digest}
    assert read_record(tmp_path / "shown.json").record.run == 1


def test_a_trace_of_before_has_a_record_that_says_what_it_does_not_know(tmp_path: Path) -> None:
    _, result = from_rows(tmp_path, trace=tmp_path / "run.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    del next(line for line in lines if line.get("event") == "RunStart")["data"]["provenance"]
    (tmp_path / "old.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    content = build_record(read_trace(tmp_path / "old.jsonl")).content
    assert content.decision == result.record().content.decision
    assert any("is not in the trace" in one.what for one in content.open_points)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["r.json", "r.html"])
def test_asking_with_record_writes_it(tmp_path: Path, name: str) -> None:
    computed(tmp_path)
    words = [
        "ask",
        "Which two?",
        "--db",
        f"duckdb:///{tmp_path}/shop.duckdb",
        "--model",
        str(tmp_path / "close.toml"),
        "-t",
        "exact",
        "-o",
        "trials=0",
        "--llm",
        "none",
        "--record",
        str(tmp_path / name),
    ]
    assert run_command_line(words) == 0
    assert "Mainz + Linz" in (tmp_path / name).read_text()


def test_no_text_of_a_record_is_markup_on_its_page(tmp_path: Path) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    path = sites(tmp_path)
    llm = ScriptedLLM(
        [
            f"Plan: [Step 1: {hostile}]\nThought: t\nAction: sql\nAction input: SELECT name, '{hostile}' AS x "
            "FROM site ORDER BY name",
            f"Final answer: {hostile}\nBecause: {hostile} [o1.r1]",
        ]
    )
    result = decisor.ask(hostile, db=f"sqlite:///{path}", rules=hostile, llm=llm, technique="plan_rag", who=hostile)
    result.save_record(tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert "<img" not in text and text.count("&lt;img src=x") >= 6
    assert 'content="default-src &#x27;none&#x27;' in text and "<script" not in text


def test_of_two_definition_files_of_one_name_the_record_names_the_right_one() -> None:
    files = [UsedFile("a/words.toml", "1" * 64), UsedFile("b/words.toml", "2" * 64)]
    for file in files:
        used = definition_of(Record("o1.r1", {"definition": "metric.net", "file": file.path}), files)
        assert (used.file, used.digest) == (file.path, file.digest)
    # A server tells names without folders: which of the two it was cannot be said.
    names = [UsedFile("words.toml", "1" * 64), UsedFile("words.toml", "2" * 64)]
    assert definition_of(Record("o1.r1", {"file": "b/words.toml"}), names).digest == ""
    assert definition_of(Record("o1.r1", {"file": "b/words.toml"}), names[1:]).digest == "2" * 64
