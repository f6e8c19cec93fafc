"""An evaluation on the page of a real server, in a real Chromium: a link leads to the report of its finished cases."""

from pathlib import Path

import pytest

from decisor.lab.benchmark import Outcome
from decisor.lab.evaluation.store import open_store
from decisor.server.settings import ServerSettings
from decisor.trace.events import Plan, Trace
from decisor.types import Usage
from report.browser import FOUND
from server.page import window

pytestmark = pytest.mark.skipif(not FOUND, reason="needs chromium and chromedriver")


@pytest.mark.slow
def test_the_page_leads_to_the_report_of_an_evaluation(tmp_path: Path) -> None:
    store, trace = open_store(tmp_path / "trade.db"), Trace()
    store.begin({"benchmarks": "dqa"})
    trace.add(Plan(("look at the prices", "compare them")))
    store.finish(Outcome("dqa", "c1", "plan_rag", "m", 0, "right", answer="Lyon", usage=Usage(calls=1)), trace.entries)
    with window(ServerSettings(evaluations={"trade": str(tmp_path / "trade.db")})) as page:
        page.open("/")
        page.see("Evaluation: trade", "#links")
        address = page.run("return document.querySelector('#links a').getAttribute('href')")
        page.browser.open(page.url + address)
        page.see("1 outcome", "body")
        page.run("document.querySelector('#list .row').click()")
        page.until("document.querySelector('#list').textContent.includes('look at the prices')")
        store.finish(Outcome("dqa", "c2", "plan_rag", "m", 0, "wrong", answer="Bonn"), trace.entries)
        page.browser.open(page.url + address)
        page.see("2 outcomes", "body")
    store.close()
