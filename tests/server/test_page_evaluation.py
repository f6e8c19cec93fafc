"""An evaluation on the page of a real server, in a real Chromium: its cases stand there as they finish."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from decisor.evaluation.store.open import open_store
from decisor.evaluation.store.protocol import Store
from decisor.outcome import Outcome, State
from decisor.server.serving import Serving
from decisor.trace.events import Entry, Plan, Trace
from decisor.types import Usage
from report.browser import FOUND
from server.page import window

pytestmark = pytest.mark.skipif(not FOUND, reason="needs chromium and chromedriver")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path / "trade.db")
    store.begin({"benchmarks": "dqa"})
    yield store
    store.close()


def case(number: int, state: State, technique: str = "plan_rag") -> Outcome:
    return Outcome("dqa", f"c{number}", technique, "m", 0, state, answer=f"Lyon {number}", gold=("Lyon",),
                   usage=Usage(calls=number), seconds=number / 2)  # fmt: skip


def entries() -> list[Entry]:
    trace = Trace()
    trace.add(Plan(("look at the prices", "compare them")))
    return trace.entries


def test_an_evaluation_fills_in_while_it_runs_and_tells_each_case(tmp_path: Path, store: Store) -> None:
    store.finish(case(1, "right"), entries())
    with window(Serving(evaluations={"trade": str(tmp_path / "trade.db")})) as page:
        page.open("/evaluations/trade")
        page.see("1 finished")
        for one in (case(2, "wrong", "plan_rag"), case(3, "right", "iter_rag"), case(4, "crashed", "iter_rag")):
            store.finish(one, entries())
        page.see("4 finished")
        page.until("document.querySelectorAll('.cases > li').length === 4")
        rows = page.run("return [...document.querySelectorAll('tbody tr')].map((one) => one.innerText.split('\\t'))")
        assert sorted(row[3:6] for row in rows) == [["2", "1", "50.0 %"], ["2", "1", "50.0 %"]]
        page.picture("evaluation")
        page.picture("evaluation-phone", 390, 844)
        assert page.sideways() <= 0
        page.run("const state = document.querySelector('[aria-label=\"Which cases\"]'); state.value = 'wrong'; "
                 "state.dispatchEvent(new Event('change'))")  # fmt: skip
        page.until("document.querySelectorAll('.cases > li').length === 1")
        page.run("document.querySelector('.cases details').open = true")
        page.until("document.querySelector('.cases')?.textContent.includes('look at the prices')")
        page.picture("evaluation-case")
