"""An agent of one's own under test: expectations, repeats, JUnit XML, exit codes, questions without a test."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import decisor
from decisor.cli import run_command_line
from decisor.lab.benchmark import Outcome
from decisor.lab.evaluation.suite import write_junit_file
from decisor.types import Usage
from definition_shops import definitions_file, shop
from servers.openai_server import serve_threaded

QUERY = (
    "SELECT c.name, SUM(l.price * l.quantity * (1 - l.discount)) AS total FROM customer c JOIN purchase p "
    "ON p.customer_id = c.id JOIN line l ON l.purchase_id = p.id WHERE p.status = 'closed' GROUP BY 1 ORDER BY 2 DESC"
)
REVENUE, FUTURE, OPEN = (
    "Who is our best customer?",
    "How much will they buy in 2040?",
    "Which customers bought in 2023?",
)
MET: list[dict[str, Any]] = [
    {"id": "who", "question": REVENUE, "answer": "Cy", "cites": ["Customer", "line"], "uses": ["net_revenue"]},
    {"id": "cost", "question": REVENUE, "answer": "Cy", "asks": False, "abstains": False, "dollars": 1},
    {"id": "future", "question": FUTURE, "abstains": True},
    {"id": "open", "question": OPEN, "asks": True},
]
UNMET: dict[str, tuple[dict[str, Any], str]] = {
    "another": ({"answer": "Ann"}, "another answer"),
    "cites": ({"answer": "Cy", "cites": ["line", "payroll"]}, "does not cite payroll"),
    "uses": ({"uses": ["reading.best_customer", "churn"]}, "does not use the definition churn"),
    "dollars": ({"dollars": 0.000001}, "costs more than $1e-06"),
    "asks": ({"asks": True}, "does not ask what is meant"),
    "abstains": ({"abstains": True}, "does not abstain"),
}


def analyst(request: Mapping[str, Any]) -> str:
    """Says that a date is open, computes the net revenue, names the first row, and knows nothing of the future."""
    text = "\n".join(message["content"] for message in request["messages"])
    if "# How to judge" in text:
        return f"Unclear: {'in 2023 | by ordered_on | by shipped_on' if OPEN in text else 'none'}"
    if "o1.r1] |" in text or "o2.r1] |" in text or "o3.r1] |" in text:
        if FUTURE in text:
            return "Final answer: none\nBecause: the data do not say it."
        id = request["messages"][-1]["content"].rpartition(".r1] |")[0].rpartition("[")[2]
        return f"Final answer: Cy\nBecause: most [{id}.r1]"
    return f"Plan: [Step 1: add up]\nThought: t\nAction: sql\nAction input: {QUERY}"


@pytest.fixture
def evaluate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs questions by the command; its exit code, the outcomes by case, and what it says."""
    monkeypatch.chdir(tmp_path)
    db, definitions = shop(tmp_path), str(definitions_file(tmp_path))

    def run(lines: Sequence[Mapping[str, Any]], *words: str, llm: Callable[[Any], str] = analyst) -> Any:
        (tmp_path / "mine.jsonl").write_text("\n".join(map(json.dumps, lines)))
        with serve_threaded(llm) as url:
            own = ["--questions", "mine.jsonl", "--db", db, "--definitions", definitions, "--llm", f"m@{url} price=1,2"]
            code = run_command_line(["eval", *own, "-t", "plan_rag replan=no", "--json", *words])
        said = capsys.readouterr()
        rows = [] if code == 2 else [json.loads(line) for line in said.out.splitlines()]
        return code, {(row["case"], row["repeat"]): row for row in rows}, f"{said.err}{'' if rows else said.out}"

    return run


def test_every_expectation_that_is_met_makes_a_case_right(evaluate: Any) -> None:
    code, outcomes, said = evaluate(MET, "--fail-under", "1")
    assert {key: (row["state"], row["failure"]) for key, row in outcomes.items()} == {
        (one["id"], 0): ("right", "") for one in MET
    }
    assert outcomes["who", 0]["metrics"] == {"answer": 1.0, "cites": 1.0, "uses": 1.0}
    assert code == 0 and "4 of 4 cases right in every repeat" in said


def test_each_expectation_that_is_not_met_is_named(evaluate: Any) -> None:
    lines = [{"id": id, "question": REVENUE, **expected} for id, (expected, _) in UNMET.items()]
    _, outcomes, _ = evaluate([*lines, {"id": "quiet", "question": OPEN, "asks": False}])
    assert {id: outcomes[id, 0]["failure"] for id in UNMET} == {id: fault for id, (_, fault) in UNMET.items()}
    assert {row["state"] for row in outcomes.values()} == {"wrong"}
    assert outcomes["quiet", 0]["failure"] == "asks what is meant"
    assert outcomes["cites", 0]["metrics"] == {"answer": 1.0, "cites": 0.0}


def test_a_case_has_to_be_right_in_every_repeat_and_the_exit_code_says_so(evaluate: Any) -> None:
    given: list[str] = []

    def moody(request: Mapping[str, Any]) -> str:
        reply = analyst(request)
        if "Final answer" in reply and f"{REVENUE} (a)" in str(request["messages"]):
            given.append(reply)
            return reply if len(given) == 1 else reply.replace("Cy", "Ann")
        return reply

    lines = [{"id": id, "question": f"{REVENUE} ({id})", "answer": "Cy"} for id in "ab"]
    words = ["--repeats", "2", "--cases-at-once", "1", "--junit", "junit.xml", "--fail-under"]
    code, outcomes, said = evaluate(lines, *words, "0.6", llm=moody)
    assert [row["state"] for row in outcomes.values()].count("right") == 3
    assert code == 1 and "1 of 2 cases right in every repeat" in said
    assert evaluate(lines, *words, "0.5")[0] == 0
    (suite,) = ElementTree.parse("junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("4", "1", "0")
    assert [case.get("name") for case in suite.iter("testcase")] == ["a", "a (2)", "b", "b (2)"]
    (failure,) = suite.iter("failure")
    assert failure.get("message") == "another answer" and "Answer: Ann (right: Cy)" in str(failure.text)


def test_changed_expectations_are_another_case(evaluate: Any) -> None:
    evaluate(MET[:1])
    code, _, said = evaluate([{**MET[0], "cites": ["payroll"]}])
    assert code == 2 and "The case who of own" in said


PYTEST = """
import pytest
def test_right(): pass
def test_wrong(): assert "\\x1b" == ""
@pytest.mark.skip
def test_skipped(): pass
@pytest.fixture
def broken(): raise ValueError
def test_error(broken): pass
"""


def test_the_file_has_the_shape_of_the_junit_xml_that_pytest_writes(tmp_path: Path) -> None:
    (tmp_path / "test_oracle.py").write_text(PYTEST)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=theirs.xml", "test_oracle.py"]
    subprocess.run(words, cwd=tmp_path, capture_output=True, timeout=120)
    states = {"right": "pass", "wrong": "\x1bno", "unscored": "skip", "crashed": "error", "over_budget": "late"}
    outcomes = [
        Outcome("own", text, "agent", "m", 0, state, text=text, reasons=("\x00<&",), usage=Usage(), seconds=0.25)  # type: ignore[arg-type]
        for state, text in states.items()
    ]
    write_junit_file(outcomes, tmp_path / "ours.xml")
    theirs, ours = (ElementTree.parse(tmp_path / name).getroot() for name in ("theirs.xml", "ours.xml"))

    def attributes(root: ElementTree.Element) -> dict[str, set[str]]:
        return {
            tag: {name for one in root.iter(tag) for name in one.attrib} for tag in {one.tag for one in root.iter()}
        }

    known, found = attributes(theirs), attributes(ours)
    assert found.keys() == known.keys()
    # The totals of all suites, and the state of a failure, are in the schema of Ant and not written by pytest.
    extra = {"testsuites": {"tests", "failures", "errors", "skipped", "time"}, "failure": {"type"}, "error": {"type"}}
    assert all(found[tag] <= known[tag] | extra.get(tag, set()) for tag in found)
    assert ours.attrib | {"name": ""} == {
        "name": "", "tests": "5", "failures": "2", "errors": "1", "skipped": "1", "time": "1.250"
    }  # fmt: skip
    assert [[child.tag for child in case] for case in ours.iter("testcase")] == [
        [], ["failure"], ["skipped"], ["error"], ["failure"]
    ]  # fmt: skip


def test_questions_of_the_history_without_a_test_are_listed_with_the_gap_that_costs_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def reply(request: Mapping[str, Any]) -> str:
        text = "\n".join(message["content"] for message in request["messages"])
        if "# How to judge" not in text and "payroll" not in text and "salary" in text:
            return "Plan: [Step 1: look]\nThought: t\nAction: sql\nAction input: SELECT pay FROM payroll"
        return "Final answer: none\nBecause: no such table" if "payroll" in text else analyst(request)

    with serve_threaded(reply) as url:
        ask: dict[str, Any] = {
            "db": shop(tmp_path),
            "llm": f"m@{url} price=1,2",
            "technique": "plan_rag",
            "history": True,
        }
        for question in (REVENUE, OPEN, OPEN, "Who has the best salary?"):
            decisor.ask(question, settings={"replan": "no"}, **ask)
    (tmp_path / "mine.jsonl").write_text(json.dumps({"question": "who is our best customer", "answer": "Cy"}))
    assert run_command_line(["eval", "--questions", "mine.jsonl", "--untested"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if not line.startswith("    ")][:-1] == [OPEN, "Who has the best salary?"]
    assert '    no definition of "in 2023"' in lines and "    table payroll not found" in lines
    assert lines[1].startswith("    2 runs, ") and REVENUE not in lines
    assert lines[-1].startswith('The costliest gap: no definition of "in 2023" (2 runs, ')
