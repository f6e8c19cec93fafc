"""An evaluation on the page of a real server, in a real Chromium: its cases stand there as they finish."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from decisor.lab.benchmark import Outcome, State
from decisor.lab.evaluation.postgres_store import open_store
from decisor.lab.evaluation.store import RunStore
from decisor.server.settings import ServerSettings
from decisor.trace.events import ActionResult, ActionStart, Conclusion, LLMCall, Plan, Trace, TraceEntry
from decisor.types import Decision, Evidence, Message, Objection, Observation, Record, Usage
from report.browser import FOUND
from server.axe import missing
from server.page import Page, window
from server.test_page_reach import axe, tab_to

pytestmark = pytest.mark.skipif(not FOUND, reason="needs chromium and chromedriver")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    store = open_store(tmp_path / "trade.db")
    store.begin({"benchmarks": "dqa"})
    yield store
    store.close()


def case(number: int, state: State, technique: str = "plan_rag", repeat: int = 0) -> Outcome:
    return Outcome(
        "dqa",
        f"c{number}",
        technique,
        "m",
        repeat,
        state,
        answer=f"Lyon {number}",
        gold=("Lyon",),
        usage=Usage(calls=number),
        seconds=number / 2,
    )


def entries() -> list[TraceEntry]:
    trace = Trace()
    trace.add(Plan(("look at the prices", "compare them")))
    usage = Usage(calls=1, prompt_tokens=900, completion_tokens=100, seconds=1.5)
    trace.add(LLMCall("m", (Message("user", "?"),), ("Thought: prices come first",), usage=usage))
    action = trace.add(ActionStart("sql", "SELECT name, price FROM site ORDER BY price"))
    trace.add(ActionResult(action, Observation((Record("o1.r1", {"name": "Lyon", "price": 1.5}),)), 912.3))
    trace.add(
        Conclusion(
            Decision(
                "Lyon",
                Evidence(("o1.r1",), objections=(Objection("figure", "You wrote 99."),)),
                reasons=("It costs 1.5, not 99.",),
            )
        )
    )
    return trace.entries


@pytest.mark.slow
def test_an_evaluation_fills_in_while_it_runs_and_tells_each_case(tmp_path: Path, store: RunStore) -> None:
    store.finish(case(1, "right"), entries())
    with window(ServerSettings(evaluations={"trade": str(tmp_path / "trade.db")})) as page:
        page.open("/evaluations/trade")
        page.see("1 finished")
        for one in (case(2, "wrong", "plan_rag"), case(3, "right", "iter_rag"), case(4, "crashed", "iter_rag")):
            store.finish(one, entries())
        page.see("4 finished")
        page.until("document.querySelectorAll('.cases > li').length === 4")
        rows = page.run("return [...document.querySelectorAll('tbody tr')].map((one) => one.innerText.split('\\t'))")
        figures = {row[0]: row[1:5] for row in rows}  # a crashed case is open, and says nothing of accuracy
        assert figures == {"iter_rag": ["100.0 %", "1", "2", "1"], "plan_rag": ["50.0 %", "1", "2", "0"]}
        page.picture("evaluation")
        page.picture("evaluation-phone", 390, 844)
        assert page.sideways() <= 0
        page.run(
            "const state = document.querySelector('[aria-label=\"Which cases\"]'); state.value = 'wrong'; "
            "state.dispatchEvent(new Event('change'))"
        )
        page.until("document.querySelectorAll('.cases > li').length === 1")
        page.run("document.querySelector('.cases details').open = true")
        page.until("document.querySelector('.cases')?.textContent.includes('look at the prices')")
        page.run("document.querySelectorAll('.cases details').forEach((one) => one.open = true)")
        words = ("prices come first", "1 row", "15 min 12 s", "It costs 1.5, not 99.", "The answer says 99.")
        for text in (*words, "Evidence"):
            page.see(text, ".cases")
        page.run("document.querySelector('.cases .evidence caption a').click()")
        assert page.text(".cases .here") == page.text(".cases .story tr.cited") != ""
        page.picture("evaluation-case")


@pytest.fixture
def page(tmp_path: Path, store: RunStore) -> Iterator[Page]:
    """On an evaluation with a case of each state."""
    states: list[State] = ["right", "wrong", "crashed", "over_budget", "unscored"]
    for number, state in enumerate(states):
        store.finish(case(number, state), entries())
    with window(ServerSettings(evaluations={"trade": str(tmp_path / "trade.db")})) as page:
        page.open("/evaluations/trade")
        page.see("5 finished")
        page.until("document.querySelectorAll('.cases > li').length === 5")
        yield page


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=missing() or "it is there")
def test_axe_finds_nothing_serious_on_an_evaluation_with_a_case_opened(page: Page) -> None:
    page.run("document.querySelector('.cases details').open = true")
    page.until("document.querySelector('.cases')?.textContent.includes('look at the prices')")
    for scheme in ("light", "dark"):
        page.colours(scheme)
        assert axe(page) == [], scheme
    page.colours("light")
    page.browser.size(390, 844)
    assert axe(page) == [] and page.sideways() <= 0
    page.picture("evaluation-case-phone", 390, 844, at=".cases")


@pytest.mark.slow
def test_the_cases_of_an_evaluation_are_chosen_and_read_by_keyboard_alone(page: Page, store: RunStore) -> None:
    page.run("document.querySelector('main').focus()")
    tab_to(page, "document.activeElement.getAttribute('aria-label') === 'Which cases'")
    page.press(*"wrong")
    page.until("document.querySelectorAll('.cases > li').length === 1")
    tab_to(page, "document.activeElement.matches('.cases summary')")
    page.press("Enter")
    page.until("document.querySelector('.cases')?.textContent.includes('look at the prices')")
    store.finish(case(9, "wrong"), entries())
    page.until("document.querySelectorAll('.cases > li').length === 2")
    assert page.run("return document.querySelector('.cases details').open")
    assert page.run("return document.activeElement.matches('.cases li:first-child summary')")


@pytest.mark.slow
def test_repeats_of_a_case_count_as_one_case(tmp_path: Path, store: RunStore) -> None:
    for repeat in range(3):
        store.finish(case(1, "right", repeat=repeat), entries())
    store.finish(case(2, "wrong"), entries())
    with window(ServerSettings(evaluations={"trade": str(tmp_path / "trade.db")})) as page:
        page.open("/evaluations/trade")
        page.until("document.querySelectorAll('.cases > li').length === 4")
        row = page.run("return document.querySelector('tbody tr').innerText.split('\\t')")
        assert row[1:5] == ["50.0 %", "3", "2 (4 tries)", "0"]  # not 75 %, which pools the tries
