"""Definitions in a run: shown, held against its queries, cited; and the command with a file of them."""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

import decisor
from decisor.cli import run_command_line
from decisor.errors import SetupError
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.budget import Budget, Limits
from decisor.runtime.run import Run
from decisor.session.definitions import Meaning
from decisor.session.run_setup import NoLLM
from decisor.session.verify import Verification, verify_trace
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import LLMCall, events_of
from decisor.trace.file import read_trace
from decisor.types import Decision, Evidence, Message, Pitfall
from definition_shops import definitions_file, shop

GROSS = (
    "SELECT c.name, SUM(l.price * l.quantity) AS total FROM customer c JOIN purchase p ON p.customer_id = c.id "
    "JOIN line l ON l.purchase_id = p.id GROUP BY 1 ORDER BY 2 DESC"
)
NET = (
    "SELECT c.name, SUM(l.price * l.quantity * (1 - l.discount)) AS total FROM customer c JOIN purchase p "
    "ON p.customer_id = c.id JOIN line l ON l.purchase_id = p.id WHERE p.status = 'closed' GROUP BY 1 "
    "ORDER BY 2 DESC"
)
QUESTION = "Who is our best customer?"


def llm(queries: Sequence[str], answer: str, cited: str) -> ScriptedLLM:
    replies = [f"Plan: [Step 1: add up]\nThought: t\nAction: sql\nAction input: {queries[0]}"]
    replies += [f"Thought: t\nAction: sql\nAction input: {query}" for query in queries[1:]]
    return ScriptedLLM([*replies, f"Final answer: {answer}\nBecause: most [{cited}]"])


def test_a_run_is_shown_the_definitions_that_it_needs_and_cites_what_it_used(tmp_path: Path) -> None:
    model = llm([GROSS, NET], "Cy", "o3.r1")
    result = decisor.ask(
        QUESTION,
        db=shop(tmp_path),
        definitions=definitions_file(tmp_path),
        llm=model,
        settings={"replan": "no", "calling": "text"},
    )
    prompt = next(events_of(result.trace, LLMCall)).messages[0].content
    assert "- reading.best_customer: 'best customer' or 'top customer' means the customer with the most net" in prompt
    assert "- metric.net_revenue (revenue, turnover): SUM(l.price" in prompt and "calendar.fiscal" not in prompt
    assert "SUM(l.price * l.quantity) is not metric.net_revenue" in model.seen[1]
    assert "is not metric.net_revenue" not in model.seen[2].rpartition("o3.r1")[2]
    assert result.evidence.ids == ("o3.r1", "o1.r1", "o1.r2")
    assert [record.fields["definition"] for record in result.records[1:]] == [
        "reading.best_customer",
        "metric.net_revenue",
    ]
    assert "By the definition metric.net_revenue (by ann, 2026-01-31) [o1.r2]." in result.decision.reasons
    assert "Decision: Cy" in str(result) and str(result).count("Decision:") == 1


def test_an_answer_that_rests_on_another_computation_says_so(tmp_path: Path) -> None:
    result = decisor.ask(
        QUESTION,
        db=shop(tmp_path),
        definitions=definitions_file(tmp_path),
        llm=llm([GROSS], "Ann", "o2.r1"),
        settings={"replan": "no", "calling": "text"},
    )
    (pitfall,) = result.evidence.pitfalls
    assert pitfall.text.startswith("SUM(l.price * l.quantity) is not metric.net_revenue")
    assert pitfall.kind == "definition" and pitfall.records == ("o2.r1",)


def test_an_answer_that_rests_on_another_computation_goes_back_once(tmp_path: Path) -> None:
    asked = llm([GROSS], "Ann", "o2.r1")
    again = [f"Thought: t\nAction: sql\nAction input: {NET}", "Final answer: Cy\nBecause: most [o3.r1]"]
    assert not callable(asked.replies)
    model = ScriptedLLM([*asked.replies, *again])
    settings = {"replan": "no", "calling": "text"}
    result = decisor.ask(
        QUESTION, db=shop(tmp_path), definitions=definitions_file(tmp_path), llm=model, settings=settings
    )
    complaint = model.seen[2].partition("# Your last reply could not be used")[2]
    assert "SUM(l.price * l.quantity) is not metric.net_revenue" in complaint
    assert result.answer == "Cy" and result.evidence.pitfalls == () and len(model.seen) == 4


def test_a_question_that_names_nothing_defined_is_asked_as_without_a_file(tmp_path: Path) -> None:
    url, query = shop(tmp_path), "SELECT product, COUNT(*) AS n FROM line GROUP BY 1 ORDER BY 2"
    plain, other = (llm([query], "cup", "o1.r1") for _ in range(2))
    settings = {"replan": "no", "calling": "text"}
    decisor.ask("Which product should go?", db=url, llm=plain, settings=settings)
    result = decisor.ask(
        "Which product should go?", db=url, llm=other, settings=settings, definitions=definitions_file(tmp_path)
    )
    assert other.seen == plain.seen and result.evidence.ids == ("o1.r1",)


def test_many_questions_at_once_each_have_their_own_definitions(tmp_path: Path) -> None:
    def reply(messages: Sequence[Message]) -> str:
        text = "\n".join(message.content for message in messages)
        if "o2.r1" in text or "[o1.r1]" in text:
            return (
                "Final answer: x\nBecause: it is [o2.r1]" if "[o2.r1]" in text else "Final answer: x\nBecause: [o1.r1]"
            )
        return "Plan: [Step 1: a]\nThought: t\nAction: sql\nAction input: SELECT 1 AS one"

    async def both() -> list[decisor.Result]:
        async with decisor.open(db=shop(tmp_path), definitions=definitions_file(tmp_path)) as data:
            ask = [
                data.ask(text, llm=ScriptedLLM(reply), settings={"calling": "text"})
                for text in (QUESTION, "Which product should go?")
            ]
            return list(await asyncio.gather(*ask))

    one, other = asyncio.run(both())
    assert "o1.r1" in one.evidence.ids and one.evidence.ids[0] == "o2.r1"
    assert other.evidence.ids == ("o1.r1",)


@pytest.mark.slow
def test_of_several_databases_a_file_says_which_it_is_about(tmp_path: Path) -> None:
    url, file = shop(tmp_path), definitions_file(tmp_path)
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as database, database:
        database.execute("CREATE TABLE t (a INT)")
    with pytest.raises(SetupError, match=r"Which database is .*definitions.toml about\? Write definitions=\"NAME="):
        decisor.ask(QUESTION, db=[f"shop={url}", f"other={other}"], definitions=file, llm="none", technique="exact")
    with pytest.raises(SetupError, match="is about shops, and there is no such database; there is shop, other"):
        decisor.ask(QUESTION, db=[f"shop={url}", f"other={other}"], definitions=f"shops={file}", llm="none")
    with pytest.raises(SetupError, match="There is no LLM to plan this"):
        decisor.ask(QUESTION, db=[f"shop={url}", f"other={other}"], definitions=f"shop={file}", llm="none")


def test_a_file_with_a_fault_is_said_before_anything_is_paid_for(tmp_path: Path) -> None:
    model = llm([GROSS], "Ann", "o2.r1")
    with pytest.raises(SetupError, match=r"line 1: metric.a needs either sql with from, or query"):
        decisor.ask(QUESTION, db=shop(tmp_path), definitions=definitions_file(tmp_path, "[metric.a]\n"), llm=model)
    assert not model.seen


MODEL = """
format = 3
decide = "the purchase to cancel"
choice.pick.rows = "SELECT id FROM purchase"
change = "DELETE FROM line WHERE purchase_id IN (SELECT id FROM pick)"
[measure.revenue]
goal = "max"
metric = "net_revenue"
"""


@pytest.mark.slow
def test_a_measure_of_a_decision_model_may_name_a_metric(tmp_path: Path) -> None:
    model = tmp_path / "cancel.toml"
    model.write_text(MODEL)
    words = {"db": shop(tmp_path), "model": model, "technique": "exact", "settings": {"trials": 0}}
    result = decisor.ask("Which purchase should we cancel?", definitions=definitions_file(tmp_path), **words)  # type: ignore[arg-type]
    assert result.ranking is not None and (result.answer, result.ranking.unit) == ("2", "EUR")
    assert [option.outcome for option in result.ranking.options] == pytest.approx([123.0, 90.0, 87.0, 69.0])
    with pytest.raises(
        SetupError, match=r"names the metric net_revenue; there are no definitions: give them with definitions=\."
    ):
        decisor.ask("Which purchase should we cancel?", **words)  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_command_takes_definitions_for_a_question_and_for_a_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, file, model = shop(tmp_path), definitions_file(tmp_path), tmp_path / "cancel.toml"
    model.write_text(MODEL)
    assert (
        run_command_line(["model", "rank", str(model), "--db", url, "--trials", "0", "--definitions", str(file)]) == 0
    )
    assert "123" in capsys.readouterr().out
    assert (
        run_command_line(
            ["ask", "Which?", "--db", url, "--model", str(model), "--definitions", str(file), "--llm", "none"]
        )
        == 0
    )
    assert run_command_line(["model", "rank", str(model), "--db", url]) == 2
    assert "give them with --definitions" in capsys.readouterr().err


@pytest.mark.slow
def test_a_decision_by_a_model_cites_the_metric_that_it_measures(tmp_path: Path) -> None:
    model = tmp_path / "cancel.toml"
    model.write_text(MODEL)
    result = decisor.ask(
        "Which one should go?",
        db=shop(tmp_path),
        model=model,
        technique="exact",
        settings={"trials": 0},
        definitions=definitions_file(tmp_path),
    )
    assert [record.fields.get("definition") for record in result.records][-1] == "metric.net_revenue"
    assert any(line.startswith("By the definition metric.net_revenue (by ann") for line in result.decision.reasons)


def test_a_metric_that_a_query_computed_unasked_is_cited_too(tmp_path: Path) -> None:
    result = decisor.ask(
        "Who is number one?",
        db=shop(tmp_path),
        definitions=definitions_file(tmp_path),
        llm=llm([NET], "Cy", "o1.r1"),
        settings={"replan": "no", "calling": "text"},
    )
    assert result.evidence.ids == ("o1.r1", "o2.r1")
    assert result.records[1].fields["definition"] == "metric.net_revenue"


@pytest.mark.slow
def test_a_definition_that_changed_since_is_named_by_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url, file, trace = shop(tmp_path), definitions_file(tmp_path), tmp_path / "run.jsonl"
    decisor.ask(
        QUESTION,
        db=url,
        definitions=file,
        llm=llm([GROSS, NET], "Cy", "o3.r1"),
        trace=trace,
        settings={"replan": "no", "calling": "text"},
    )
    assert run_command_line(["history", "verify", str(trace), "--db", url]) == 0
    assert "holds" in capsys.readouterr().out

    async def again() -> Verification:
        async with decisor.open(db=url, definitions=file) as data:
            return await verify_trace(read_trace(trace), data)

    assert asyncio.run(again()).state == "holds"
    file.write_text(file.read_text().replace("(1 - l.discount)", "(1 + l.discount)"))
    verification = asyncio.run(again())
    assert verification.state == "cannot be said" and "(1 + l.discount)" in verification.changes[0].after


async def test_a_decision_that_cites_definitions_keeps_the_pitfalls_of_its_queries() -> None:
    evidence = Evidence(("o1.r1",), pitfalls=(Pitfall("fan_out", "b multiplied a"),))
    run = Run(NoLLM(), Toolbox([]), Budget(Limits()))
    assert (await Meaning({}).cite(Decision("elm", evidence=evidence), [], run)).evidence == evidence
