"""The page for everybody: by keyboard alone, with a screen reader's tree, and with runs of thousands of events."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx
import pytest

from decisor.demo.demo import QUESTION, REPLIES, write_shop
from decisor.server.settings import ServerSettings
from decisor.session.sources import build_sources
from decisor.trace.events import (
    ActionResult,
    ActionStart,
    Conclusion,
    NodeRating,
    Plan,
    PlanChange,
    RunStart,
    SearchNode,
    SearchTree,
    Trace,
    TraceEntry,
)
from decisor.trace.file import read_trace
from decisor.types import Action, Decision, Evidence, Observation, Question, Record
from report.browser import FOUND
from server.axe import FILE, missing
from server.page import PICTURES, Page, by_turn, window, writing_llm

pytestmark = pytest.mark.skipif(not FOUND, reason="needs chromium and chromedriver")
TRACES = Path(__file__).parent.parent / "traces" / "data"
MANY = 5_000


def long_run() -> list[TraceEntry]:
    """5,000 events: a query with rows, again and again."""
    trace = Trace()
    trace.add(RunStart(QUESTION, "plan_rag", "m"))
    trace.add(Plan(("look at everything",)))
    for at in range(1, (MANY - 4) // 2 + 1):
        action = trace.add(ActionStart("sql", f"SELECT name, rent FROM site WHERE id = {at}"))
        trace.add(ActionResult(action, Observation((Record(f"o{at}.r1", {"name": f"site {at}", "rent": at * 1.5}),))))
    trace.add(PlanChange(3, "enough", ("look at everything", "decide")))
    trace.add(Conclusion(Decision("site 1")))
    return trace.entries


def wide_search(count: int = 3_000) -> list[TraceEntry]:
    """A search tree of so many nodes, three children each."""
    trace = Trace()
    trace.add(RunStart(QUESTION, "radagent", "m"))
    ratings = [NodeRating(0)]
    for node in range(1, count):
        parent = (node - 1) // 3
        trace.add(SearchNode(node, parent, Action("sql", f"SELECT {node}"), text=f"{node} rows"))
        ratings.append(NodeRating(node, parent, elo=float(node % 90), matches=1))
    trace.add(SearchTree(tuple(ratings), chosen=count - 1))
    trace.add(Conclusion(Decision("site")))
    return trace.entries


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    shop = tmp_path_factory.mktemp("shop") / "shop.db"
    write_shop(shop)
    model = Path(str(files("decisor.demo") / "shop.toml"))
    traces = {name: read_trace(TRACES / f"{name}.jsonl") for name in ("reasoning_dag", "search")}
    runs = {
        "long": long_run(),
        "wide": wide_search(),
        "odd": odd_run(),
        "dag": traces["reasoning_dag"],
        "search": traces["search"],
    }
    with writing_llm(by_turn(*REPLIES)) as url:
        serving = ServerSettings(build_sources(db=f"sqlite:///{shop}", model=model), {"small": f"small@{url}"})
        with window(serving, runs) as page:
            yield page


@pytest.mark.slow
def test_a_reasoning_dag_is_drawn_and_its_nodes_lead_to_what_happened(page: Page) -> None:
    page.open("/runs/dag")
    page.until("document.querySelectorAll('.canvas .node.answered').length === 5")
    assert len(page.run("return [...document.querySelectorAll('.canvas path.line')].map((one) => one.id)")) == 5
    target = page.run("return document.querySelector('.canvas .node a').getAttribute('href')")
    assert "To which site did the team of Ada move?" in page.run(f"return document.querySelector('{target}').innerText")
    assert page.run("return document.querySelector('.canvas .node').textContent").endswith("→ oak")
    page.picture("dag", at=".drawings")
    page.picture("dag-phone", 390, 844, at=".drawings")


@pytest.mark.slow
def test_a_drawing_is_dragged_on_the_page_that_is_handed_on(page: Page) -> None:
    page.browser.open(f"{page.url}/api/runs/wide/page")
    page.until("document.querySelector('.tools button')")
    place = (
        "const box = document.querySelector('.canvas'); box.scrollIntoView(); box.scrollTo(0, 0);"
        "const at = box.getBoundingClientRect(); return [at.x + 300, at.y + 200]"
    )
    x, y = (int(one) for one in page.run(place))
    moves = [
        {"type": "pointerMove", "x": x, "y": y, "duration": 0},
        {"type": "pointerDown", "button": 0},
        {"type": "pointerMove", "x": x - 120, "y": y - 90, "duration": 50},
        {"type": "pointerUp", "button": 0},
    ]
    page.browser.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": moves}]})
    page.until("document.querySelector('.canvas').scrollLeft + document.querySelector('.canvas').scrollTop > 80")
    page.browser.screenshot(PICTURES / "page-tree.png")
    assert (
        "script-src 'sha256-"
        in httpx.get(f"{page.url}/api/runs/wide/page", timeout=60).headers["content-security-policy"]
    )


@pytest.mark.slow
def test_a_search_tree_of_thousands_of_nodes_has_only_those_in_sight(page: Page) -> None:
    page.open("/runs/wide")
    page.until("document.querySelectorAll('.canvas .node').length > 3")
    count = "return document.querySelectorAll('.canvas .node').length"
    assert page.run(count) < 200
    page.run("document.querySelector('.canvas').scrollTop = 20000")
    page.until("document.querySelector('.canvas .node')?.getAttribute('transform').match(/ (\\d+)/)[1] > 3000")
    assert 0 < page.run(count) < 200
    page.run("document.querySelector('.canvas').scrollLeft = 20000")
    page.click("Zoom in")
    page.picture("tree", at=".drawings")
    page.open("/runs/search")
    page.until("document.querySelectorAll('.canvas .node.way').length > 1")
    page.picture("search", at=".drawings")


def test_a_run_of_five_thousand_events_is_whole(page: Page) -> None:
    page.open("/runs/long")
    page.answered()
    page.until(f"document.querySelectorAll('.steps .acts').length === {(MANY - 4) // 2}")
    page.run("document.querySelector('.story > .steps:last-child > li:last-child').scrollIntoView()")
    page.see("enough", ".replan")


def odd_run() -> list[TraceEntry]:
    """Keys of more digits than JavaScript keeps, words that never end, a hundred columns, a text from right to left."""
    trace = Trace()
    trace.add(RunStart(Question("أي مورد؟ " + "Donaudampfschifffahrt" * 9), "plan_rag", "m" * 90))
    trace.add(Plan(("Averylongword" * 20,)))
    action = trace.add(ActionStart("sql", "SELECT * FROM wide"))
    row = Record("o1.r1", {"key": 2**63 - 1, "name": "شركة النور", **{f"column_{at}": "x" * 90 for at in range(100)}})
    trace.add(ActionResult(action, Observation((row,))))
    action = trace.add(ActionStart("sql", "SELECT * FROM nothing"))
    trace.add(ActionResult(action, Observation((), note="No rows.")))
    trace.add(Conclusion(Decision("شركة النور", evidence=Evidence(("o1.r1",)))))
    return trace.entries


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_odd_values_are_whole_and_stay_in_their_place(page: Page, width: int) -> None:
    page.browser.size(width, 900)
    page.open("/runs/odd")
    page.answered()
    assert page.sideways() <= 0
    cut = "(one) => one.scrollWidth > one.clientWidth + 1"
    assert page.run(f"return [...document.querySelectorAll('.story li, h1')].filter({cut}).length") == 0
    page.see("9223372036854775807", ".result .scroll")
    page.browser.size(1280, 900)


@pytest.mark.slow
def test_a_watched_run_keeps_its_end_in_sight_until_a_person_scrolls_up() -> None:
    down = "innerHeight + scrollY > document.documentElement.scrollHeight - 200"
    back, seen = threading.Event(), threading.Event()

    def happen() -> Iterator[TraceEntry | None]:
        """As far as a person reads, however long the browser takes to draw it."""
        entries = long_run()
        yield from entries[:1000]
        while not back.is_set():
            yield None
        yield from entries[1000:1500]
        while not seen.is_set():
            yield None

    with window(ServerSettings(), {}, {"live": happen()}) as page:
        page.open("/runs/live")
        page.until(f"document.querySelectorAll('.steps .acts').length > 100 && {down}")
        page.run("scrollTo(0, scrollY - 900)")
        page.until("document.querySelectorAll('.steps .acts').length > 300")
        assert not page.run(f"return {down}")
        page.run("scrollTo(0, document.documentElement.scrollHeight)")
        page.until("scrollY > 900")
        back.set()
        page.until(f"document.querySelectorAll('.steps .acts').length > 500 && {down}")
        seen.set()


@pytest.mark.slow
def test_a_decision_is_had_with_the_keyboard_alone(page: Page) -> None:
    page.open()
    page.run("document.querySelector('.skip').focus()")
    assert page.text(":focus") == "Skip to the content"
    page.press("Enter")
    assert page.run("return document.activeElement.id") == "main"
    tab_to(page, "document.activeElement.id === 'question'")
    page.press(*"Which supplier?")
    page.press(*"x")
    tab_to(page, "document.activeElement.textContent === 'small'")
    page.press("Enter")
    page.run("document.querySelector('.ask-box > textarea').focus()")
    tab_to(page, "document.activeElement.id === 'technique'")
    page.press(*"plan r")
    page.until("document.getElementById('technique').value === 'plan_rag'")
    page.run("document.getElementById('question').focus()")
    page.press("Enter", hold="Control")
    page.answered()
    assert page.run("return document.activeElement.id") == "main"
    tab_to(page, "document.activeElement.matches('.decision a.figure')")
    page.press("Enter")
    page.until("document.querySelector('td:target')")
    tab_to(page, "document.activeElement.matches('.acts summary')")
    page.press("Enter")
    tab_to(page, "document.activeElement.getAttribute('aria-label') === 'Change step 1'")
    page.press("Enter")
    page.until("document.activeElement.matches('.editor textarea')")
    page.press("Escape")
    page.until("document.activeElement.getAttribute('aria-label') === 'Change step 1'")


def tab_to(page: Page, condition: str, most: int = 60) -> None:
    """Presses Tab until it holds; every stop shows where it is."""
    for _ in range(most):
        page.press("Tab")
        if page.run(f"return {condition}"):
            return
    raise AssertionError(f"{condition} is not reached by {most} tabs")


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=missing() or "it is there")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "path", ["/", "/runs/dag", "/runs/search", "/models/sql", "/compare?before=dag&after=search", ""]
)
def test_axe_finds_nothing_serious(page: Page, path: str, scheme: str) -> None:
    page.colours(scheme)
    if path:
        page.open(path)
    else:
        page.ask()
    page.until("document.querySelector('.run.over .decision, .then .plot, .start #question')")
    if not path:
        page.answered()
    findings = axe(page)
    page.colours("light")
    assert findings == []


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=missing() or "it is there")
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_nothing_serious_in_a_what_if_with_everything_opened(page: Page, width: int) -> None:
    page.browser.size(width, 900)
    try:
        page.open("/models/sql")
        page.write("i-offer.unit_cost", "-40")
        page.until("document.querySelectorAll('.then .plot .before').length")
        page.click("What would change the winner?")
        page.see("changes nothing", ".page > section .then")
        page.run("document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
        assert axe(page) == [] and page.sideways() <= 0
    finally:
        page.picture("what-if-opened", width)


def axe(page: Page) -> list[dict[str, Any]]:
    """What it finds that is serious: the rule, how grave it is, and where."""
    page.run(FILE.read_text("utf-8"))
    script = """const done = arguments[0];
        axe.run(document, { resultTypes: ["violations"] }).then((result) => done(result.violations.map((one) => ({
            id: one.id, impact: one.impact, where: one.nodes.slice(0, 4).map((node) => node.target.join(" ") + " "
            + (node.failureSummary ?? "").slice(0, 300)) }))), (error) => done(String(error)))"""
    findings = page.browser.call("POST", "/execute/async", {"script": script, "args": []})
    assert isinstance(findings, list), findings
    return [one for one in findings if one["impact"] in ("serious", "critical")]
