"""What a person does on the page of ``decisor serve``, in a real Chromium: ask, watch, stop, read, change, compare,
hand on. Pictures of each are kept in build/pictures."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import httpx
import pytest

from decisor.demo.demo import REPLIES, write_shop
from decisor.server.settings import ServerSettings
from decisor.session.sources import build_sources
from report.browser import FOUND
from server.page import Page, by_turn, window, writing_llm

pytestmark = pytest.mark.skipif(not FOUND, reason="needs chromium and chromedriver")
UNFOLD = "document.querySelectorAll('.story details').forEach((one) => one.open = true)"
SHORT = "SELECT name FROM supplier ORDER BY name"
FURTHER = "Final answer: Arlo Works\nBecause: it is next with 135,440.84 [o1.r1]"


@pytest.fixture(scope="module")
def gate() -> threading.Event:
    """Closed, it holds every reply in its middle."""
    event = threading.Event()
    event.set()
    return event


@pytest.fixture(autouse=True)
def open_gate(gate: threading.Event) -> Iterator[None]:
    """After each test, however it ends."""
    yield
    gate.set()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, gate: threading.Event) -> Iterator[Page]:
    shop = tmp_path_factory.mktemp("shop") / "shop.db"
    write_shop(shop)
    model = Path(str(files("decisor.demo") / "shop.toml"))
    with writing_llm(by_turn(*REPLIES), gate) as url:
        serving = ServerSettings(build_sources(db=f"sqlite:///{shop}", model=model), {"small": f"small@{url}"})
        with window(serving) as page:
            yield page


@pytest.fixture(scope="module")
def finished(page: Page) -> str:
    """The address of a run that is over."""
    page.ask()
    page.answered()
    return str(page.run("return location.pathname"))


@pytest.mark.slow
def test_the_page_to_ask_shows_data_their_schema_and_the_settings_of_a_technique(page: Page) -> None:
    page.open()
    page.see("What do you need to decide?")
    page.see("Which supplier should we drop?", ".list")
    page.picture("ask")
    page.picture("ask-phone", 390, 844)
    page.click("Look inside")
    page.see("purchase", ".schema")
    page.run("document.querySelector('.schema details').open = true")
    page.see("supplier", ".schema")
    page.click("small")
    page.write("technique", "plan_rag")
    page.see("PlanRAG: plan before the first query")
    page.run("document.querySelectorAll('.settings details').forEach((one) => one.open = true)")
    page.see("max steps")
    page.picture("ask-schema")


def test_a_run_is_watched_thought_plan_rows_and_spend(page: Page, gate: threading.Event) -> None:
    gate.clear()
    page.ask()
    page.until("document.querySelector('.live-text .writes')?.textContent.includes('Plan: [Step 1')")
    assert page.run("return document.querySelector('.run.over')") is None
    page.picture("live")
    gate.set()
    page.see("find the supplier whose goods come back most often", ".ticks, .diff")
    page.answered()
    assert "live-text" not in str(
        page.run("return [...document.querySelectorAll('.steps li')].map((one) => one.className)")
    )
    assert "Decision: Drop Tamsin & Co" in page.text("#say")
    assert page.run("return document.title") == "Drop Tamsin & Co – Decisor"
    page.see("Drop Tamsin & Co", "#runs")


@pytest.mark.slow
def test_a_decision_is_read_with_its_figures_its_replan_and_its_queries(page: Page, finished: str) -> None:
    page.open(finished)
    page.answered()
    page.until("document.querySelector('.decision .figure')")
    assert page.text(".decision .answer") == "Drop Tamsin & Co"
    assert page.text(".gain b") == "+10,317 EUR"
    assert "4,200" in page.text(".against .wrong .none") and "4,200" not in page.text(".decision")
    assert "1 figure has no source" in page.text(".checks .bad")
    page.run("document.querySelector('.replan').scrollIntoView()")
    page.see("find the supplier whose goods come back most often dropped", ".replan .diff")
    place = page.run(
        "return [...document.querySelectorAll('.decision a.figure')].find((one) => "
        "one.textContent === '143,627.33').getAttribute('href')"
    )
    assert page.run(f"return document.getElementById('{place[1:]}').textContent") == "143,627.33"
    queries = page.run("return [...document.querySelectorAll('.steps .sql')].map((one) => one.textContent)")
    assert "count(DISTINCT CASE WHEN x.unit_cost IS NULL THEN l.product END)" in queries[1]
    page.picture("read")
    page.picture("read-phone", 390, 844)


def test_rows_are_sorted_filtered_and_taken_along(page: Page, finished: str) -> None:
    page.open(finished)
    page.answered()
    first = "return document.querySelector('.evidence tbody tr td').textContent"
    assert page.run(first) == "Norrik"
    page.click("Sort by name", ".evidence")
    assert page.run(first) == "Arlo Works"
    assert page.run("return document.querySelector('.evidence th').getAttribute('aria-sort')") == "ascending"
    link = page.run("return document.querySelector('.evidence a[download]').href")
    lines = httpx.get(str(link), trust_env=False, timeout=60).content.decode("utf-8-sig").splitlines()
    assert (lines[0], lines[2]) == (
        "name,profit_today,profit_without,products_lost",
        "Tamsin & Co,133310.03,143627.33,0",
    )
    assert len(lines) == 8


def test_what_the_model_was_sent_can_be_read(page: Page, finished: str) -> None:
    page.open(finished)
    page.answered()
    page.run("document.querySelectorAll('.says details').forEach((one) => one.open = true)")
    page.see("Which supplier should we drop?", ".says .prompt")


def test_a_run_that_is_stopped_keeps_what_it_had(page: Page, gate: threading.Event) -> None:
    gate.clear()
    page.ask()
    page.until("document.querySelector('.live-text .writes')")
    page.click("Stop")
    page.until("document.querySelector('.run.over')")
    gate.set()
    page.see("Stopped", "#runs")
    page.see("Stopped before there was a decision")
    page.picture("stopped")


@pytest.mark.slow
def test_a_query_is_changed_and_both_runs_stand_side_by_side(page: Page, finished: str) -> None:
    page.open(finished)
    page.answered()
    page.run(UNFOLD)
    page.click("Change step 1")
    page.until("document.querySelector('.editor textarea')?.value.includes('count(r.purchase)')")
    page.picture("change", at=".steps .acts")
    page.run(f"document.querySelector('.editor textarea').value = {SHORT!r}")
    page.click("Run from here")
    page.until("location.pathname === '/compare'")
    page.until("document.querySelectorAll('.run.over .decision').length === 2")
    page.see("steps differ", "main")
    page.until("document.querySelectorAll('.half')[1].querySelector('.decision a.figure')")
    page.run("document.querySelectorAll('.half')[1].querySelector('.decision a.figure').click()")
    page.until("document.querySelectorAll('.half')[1].querySelector('td.here') && !location.hash")
    page.until(f"document.querySelector('.changes .changed')?.textContent.includes({SHORT!r})")
    page.picture("compare")
    page.picture("compare-steps", at=".changes")
    page.picture("compare-phone", 390, 844)


@pytest.mark.slow
def test_one_step_of_a_plan_is_changed_and_the_new_thought_is_seen_as_it_is_written(
    page: Page, finished: str, gate: threading.Event
) -> None:
    page.open(finished)
    page.answered()
    page.click("Change plan after step 1")
    page.until("document.querySelectorAll('.planned textarea').length === 2")
    page.run("document.querySelectorAll('.planned textarea')[1].value = 'name the two best'")
    page.picture("change-plan", at=".steps .replan")
    gate.clear()
    page.click("Run from here")
    page.until("location.pathname === '/compare'")
    page.until("document.querySelector('.side-run:last-child .writes')?.textContent.includes('One query')")
    page.picture("change-live")
    gate.set()
    page.until("document.querySelectorAll('.run.over .decision').length === 2")
    page.see("in its plan after step 1", ".side-run:last-child .asked")
    page.until(
        "[...document.querySelectorAll('.side-run:last-child .replan .new')].some((one) => "
        "one.textContent.includes('name the two best'))"
    )
    page.until("document.querySelector('.changes .changed')?.textContent.includes('Plan after step 1')")
    page.picture("compare-plan")
    page.picture("compare-plan-steps", at=".changes")


def test_queries_of_a_changed_run_wait_where_a_person_wants_to_see_them(page: Page, finished: str) -> None:
    page.open(finished)
    page.answered()
    page.run(UNFOLD)
    page.click("Change step 2")
    page.run(f"document.querySelector('.editor textarea').value = {SHORT!r}")
    page.click("Ask before each query", ".editor")
    page.click("Run from here")
    page.see("Run this query?", ".side-run:last-child .approvals")
    assert page.run("return document.querySelector('.side-run:last-child .approval textarea').value") == SHORT
    page.picture("change-approve", at=".approval")
    page.click("Refuse")
    page.click("Send refusal")
    page.until("document.querySelector('.approval[data-number=\"2\"]')")
    page.click("Run query")
    page.until("document.querySelectorAll('.run.over').length === 2")


def test_each_query_waits_where_a_person_wants_to_see_it(page: Page) -> None:
    page.open()
    page.write("question", "Which supplier should we drop?")
    page.write("technique", "plan_rag")
    page.run("document.getElementById('approve').click()")
    page.click("Decide")
    page.see("Run this query?", ".approvals")
    assert page.run("return document.querySelectorAll('.steps .scroll').length") == 0
    page.picture("approve", at=".approval")
    for number in (1, 2):
        page.until(f"document.querySelector('.approval[data-number=\"{number}\"]')")
        page.click("Run query")
    page.answered()
    assert "Tamsin & Co" in page.text(".decision")


def test_a_follow_up_is_asked_below_and_stays_in_the_thread(page: Page, finished: str) -> None:
    page.open(finished)
    page.answered()
    page.until("document.querySelector('.next textarea')")
    page.write("question", "And without the smallest?")
    page.click("Ask")
    page.until(f"location.pathname !== {finished!r}")
    page.see("Drop Tamsin & Co", ".earlier .reply")
    page.answered()
    assert page.text("h1") == "And without the smallest?"
    page.picture("follow-up")


def test_a_run_is_handed_on_as_files_and_by_its_address(page: Page, finished: str) -> None:
    page.open(finished)
    page.answered()
    page.click("More")
    links = page.run(
        "return [...document.querySelectorAll('.menu a[download]')].map((one) => [one.innerText, one.href])"
    )
    bodies = {name: httpx.get(link, trust_env=False, timeout=60) for name, link in links}
    records = ["Record of the decision (page)", "Record of the decision (JSON)"]
    files = [f"Download as {kind}" for kind in ("one HTML file", "Markdown", "JSON")]
    assert list(bodies) == [*files, *records, "Trace file"]
    for name, part in (
        (files[0], "<!doctype html>"),
        (files[1], "# Which supplier"),
        (files[2], '"answer"'),
        (records[0], "<!doctype html>"),
        (records[1], '"alternatives"'),
        ("Trace file", '{"decisor_trace"'),
    ):
        assert bodies[name].status_code == 200
        assert bodies[name].text.startswith(part) or part in bodies[name].text
        assert "attachment" in bodies[name].headers["content-disposition"]
    page.picture("share")
    page.click("Compare with …")
    page.until("document.querySelector('.menu select')")


def test_a_decision_is_marked_right_or_wrong(page: Page, finished: str) -> None:
    page.open(finished)
    page.answered()
    page.click("Right")
    page.see("Kept.", ".mark")
    page.write("note", "Profit rose.")
    page.click("Keep the note")
    page.open(finished)
    page.answered()
    page.see("Was right", ".mark")
    assert page.run("return document.getElementById('note').value") == "Profit rose."


def test_runs_are_searched(page: Page, finished: str) -> None:
    page.open(finished)
    page.answered()
    page.write("search", "no such words at all")
    page.see("No decision holds these words.", "#side")
    page.write("search", "supplier")
    page.until("document.querySelectorAll('#runs a').length > 0")


@pytest.mark.slow
def test_an_input_of_the_decision_model_is_moved_and_the_ranking_follows(page: Page) -> None:
    page.open("/models/sql")
    page.until("document.querySelectorAll('.then .plot .spread').length === 5")
    page.write("i-offer.unit_cost", "-40")
    page.until("document.querySelectorAll('.then .plot .before').length === 7")
    page.see("before the change", ".legend")
    assert page.run("return document.querySelectorAll('.then .plot .out .dot').length") == 2
    page.click("What would change the winner?")
    page.see("changes nothing", ".page > section .then")
    page.see("offer: unit cost (supplier Quill Bros)", ".page > section .then")
    page.click("Reset")
    page.until("document.querySelectorAll('.then .plot .before').length === 0")
    page.click("Each supplier")
    page.write("i-offer.unit_cost-Tamsin & Co", "-30")
    # A supplier that gets cheaper is the last to be dropped; Quill Bros follows, as its turning point says.
    page.see("Quill Bros by most", ".then")
    page.click("Reset")
    page.until("document.querySelectorAll('.then .plot .before').length === 0")
    page.picture("what-if")
    page.picture("what-if-phone", 390, 844)


@pytest.mark.slow
def test_on_a_phone_nothing_is_wider_than_the_screen(page: Page, finished: str) -> None:
    page.browser.size(390, 844)
    try:
        for path in ("/", finished, "/models/sql"):
            page.open(path)
            page.until("document.querySelector('.answer, .plot, .start #question')")
            assert page.sideways() <= 0, path
        page.click("Decisions", ".top")
        page.until("document.querySelector('#side').checkVisibility()")
        page.picture("runs-phone", 390, 844)
    finally:
        page.browser.size(1280, 900)


@pytest.mark.slow
def test_what_is_not_there_says_so(page: Page) -> None:
    page.open("/runs/nothing")
    page.see("This cannot be shown")
    page.picture("missing")
