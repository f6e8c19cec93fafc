"""The page with texts of other scripts, with a run of hours, and on paper, in a real Chromium. Pictures of each are
kept in build/pictures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from decisor.server.settings import ServerSettings
from decisor.trace.events import (
    ActionResult,
    ActionStart,
    Conclusion,
    LLMCall,
    Plan,
    PlanChange,
    RunStart,
    RunUsage,
    ShortenedPrompt,
    Trace,
    TraceEntry,
)
from decisor.types import Decision, Evidence, Figure, Message, Observation, Question, Record, ToolCall, Usage
from report.browser import FOUND
from server.page import Page, window

pytestmark = pytest.mark.skipif(not FOUND, reason="needs chromium and chromedriver")
FAMILY, PERSIAN = "👨\u200d👩\u200d👧", "می\u200cخواهم"
HOURS = 3 * 3600.0


def scripts() -> list[TraceEntry]:
    """A question, a plan, rows and an answer in Japanese, Arabic, Persian and emoji."""
    trace = Trace()
    trace.add(RunStart(Question("東京と大阪のどちらに新しい店舗を開くべきでしょうか？"), "plan_rag", "m"))
    trace.add(Plan(("各都市の売上高を比較する", "قارن الإيجارات في كل مدينة")))
    action = trace.add(ActionStart("sql", 'SELECT "都市", "売上高", "メモ" FROM "店舗"'))
    rows = [("東京", 1200.5, FAMILY), ("القاهرة", 850.0, PERSIAN), ("a\u200dpple", 3.5, "soft\u00adhyphen")]
    records = tuple(
        Record(f"o1.r{at}", dict(zip(("都市", "売上高", "メモ"), row, strict=True))) for at, row in enumerate(rows, 1)
    )
    trace.add(ActionResult(action, Observation(records)))
    evidence = Evidence(("o1.r1", "o1.r2", "o1.r3"), (Figure("1,200.5", "o1.r1"), Figure("850", "o1.r2")))
    reasons = ("東京の売上高は1,200.5で最大です [o1.r1]。", "والقاهرة 850 [o1.r2] هي الثانية.")
    trace.add(Conclusion(Decision("東京 — القاهرة هي البديل", evidence, reasons=reasons)))
    return trace.entries


def three_hours(many: int = 600) -> list[TraceEntry]:
    """Queries that take minutes, one after another, and a replan now and then."""
    trace = Trace()
    trace.add(RunStart(Question("Which of the sites should we open?"), "plan_rag", "m"))
    trace.add(Plan(("look at all", "decide")))
    for at in range(1, many + 1):
        usage = Usage(calls=1, prompt_tokens=900, completion_tokens=100, seconds=2.0)
        trace.add(LLMCall("m", (Message("user", "?"),), (f"Thought: look at site {at}",), usage=usage))
        action = trace.add(ActionStart("sql", f"SELECT rent FROM site WHERE id = {at}"))
        trace.add(ActionResult(action, Observation((Record(f"o{at}.r1", {"rent": at * 1.5}),)), 912.3))
        if at % 200 == 0:
            trace.add(PlanChange(at, "not enough", ("look at all", f"look again after {at}", "decide")))
    trace.add(Conclusion(Decision("site 1", evidence=Evidence(("o1.r1",)))))
    trace.add(RunUsage(Usage(calls=many, prompt_tokens=900 * many, completion_tokens=100 * many, seconds=HOURS)))
    entries = trace.entries
    return [replace(entry, at=HOURS * at / (len(entries) - 1)) for at, entry in enumerate(entries)]


def tool_calls() -> list[TraceEntry]:
    """Two queries of one reply that end in the other order, and thoughts of the model, one without a word beside it."""
    trace = Trace()
    trace.add(RunStart(Question("Which site is cheapest?"), "agent", "m"))
    calls = (ToolCall("c1", "plan", '{"steps": ["compare"]}'), ToolCall("c2", "sql", '{"query": "SELECT 1"}'))
    raw = {"messages": [{"type": "thinking", "thinking": "Two sites to compare.", "signature": "c2ln"}]}
    turn = Message("assistant", "I look at both.", calls, raw=raw)
    prompt = (Message("user", "Which?"),)
    trace.add(LLMCall("m", prompt, ("I look at both.",), turn=turn))
    trace.add(Plan(("compare",)))
    starts = [trace.add(ActionStart("sql", f"SELECT {at}")) for at in (1, 2)]
    for at in (2, 1):
        trace.add(ActionResult(starts[at - 1], Observation((Record(f"o{at}.r1", {"site": f"site {at}"}),)), 0.5))
    results = (Message("tool", "ok", call_id="c1"), Message("tool", "[o1.r1] | site 1", call_id="c2"))
    decide = Message("assistant", "", (ToolCall("c3", "decide", '{"answer": "site 1"}'),))
    trace.add(ShortenedPrompt("context", 9_000, 6_000, ("o1", "o2")))
    trace.add(LLMCall("m", (*prompt, turn, *results), ("",), turn=decide))
    trace.add(Conclusion(Decision("site 1", evidence=Evidence(("o1.r1",)))))
    trace.add(RunUsage(Usage(calls=2)))
    return trace.entries


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with window(ServerSettings(), {"scripts": scripts(), "hours": three_hours(), "tools": tool_calls()}) as page:
        yield page


def test_letters_and_emoji_that_need_joiners_have_them_and_hidden_marks_are_seen(page: Page) -> None:
    page.open("/runs/scripts")
    page.answered()
    page.run("document.querySelectorAll('.story details').forEach((one) => one.open = true)")
    for where in (".result", ".story"):
        page.see(FAMILY, where)
        page.see(PERSIAN, where)
        page.see(r"a\u200dpple", where)
        page.see(r"soft\u00adhyphen", where)
    page.picture("scripts")
    page.picture("scripts-phone", 390, 844)
    page.picture("scripts-story", at=".story")


def test_a_call_with_tool_calls_shows_thoughts_and_each_result_under_its_query(page: Page) -> None:
    page.open("/runs/tools")
    page.answered()
    thoughts = page.run(
        "return [...document.querySelectorAll('.story .thought')]"
        ".map((one) => one.checkVisibility() ? one.textContent : '')"
    )
    assert thoughts == ["Two sites to compare.", "I look at both."]
    items = page.run("return [...document.querySelectorAll('.steps > li')].map((one) => one.className)")
    assert [one for one in items if one != "notes"] == ["says", "plan", "acts", "acts", "says"]
    acts = page.run(
        "return [...document.querySelectorAll('.acts')]"
        ".map((one) => ['pre', 'td:last-child'].map((part) => one.querySelector(part).textContent))"
    )
    assert acts == [["SELECT 1", "site 1"], ["SELECT 2", "site 2"]]
    page.run("for (const fold of document.querySelectorAll('.story details')) fold.open = true")
    page.see("2 results (o1, o2) left out of the prompt", ".story")
    page.until("document.querySelector('li.says:last-of-type .prompt pre, .says .prompt pre')")
    page.see('sql {"query": "SELECT 1"}', ".story")
    page.until("[...document.querySelectorAll('.prompt small')].some((one) => one.textContent === 'result of a tool')")
    assert "c2ln" not in page.run("return document.body.textContent")
    page.picture("tool-calls", at=".story")
    page.browser.open(f"{page.url}/api/runs/tools/page")
    page.until("document.querySelectorAll('.story .thought').length === 2")


def test_a_line_from_right_to_left_leaves_those_around_it_in_their_places(page: Page) -> None:
    page.open("/runs/scripts")
    page.answered()
    page.until("document.querySelector('#runs a[href=\"/runs/scripts\"] bdi')?.textContent.startsWith('東京')")
    sides = page.run("return [...document.querySelectorAll('.plan li')].map((one) => getComputedStyle(one).textAlign)")
    assert set(sides) == {"left"}
    assert page.run("return [...document.querySelectorAll('.decision a.figure')].map((one) => one.textContent)") == [
        "1,200.5",
        "850",
    ]


def test_on_the_page_that_is_handed_on_figures_between_other_letters_lead_to_their_cells(page: Page) -> None:
    page.browser.open(f"{page.url}/api/runs/scripts/page")
    page.until("document.querySelectorAll('.decision a.figure').length === 2")
    directions = page.run(
        "return [...document.querySelectorAll('.decision p')].map((one) => getComputedStyle(one).unicodeBidi)"
    )
    assert set(directions) == {"plaintext"}
    page.picture("scripts-file")


def test_a_run_of_three_hours_says_so_and_is_read_to_its_end(page: Page) -> None:
    page.open("/runs/hours")
    page.answered()
    page.see("3 h 0 min", ".spend")
    page.see("15 min 12 s", ".story")
    page.until("document.querySelectorAll('.steps .acts').length === 600")
    page.run("scrollTo(0, document.documentElement.scrollHeight)")
    page.see("look again after 600", ".story > .steps:last-child")
    page.picture("hours")
    page.picture("hours-phone", 390, 844)
    page.browser.open(f"{page.url}/api/runs/hours/page")
    page.until("document.querySelector('main').textContent.includes('15 min 12 s')")


def test_on_paper_colours_are_light_and_nothing_that_is_to_be_pressed_stands_there(page: Page) -> None:
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    try:
        for path in ("/runs/scripts", "/api/runs/scripts/page"):
            page.browser.cdp("Emulation.setEmulatedMedia", {"media": "print", "features": features})
            page.browser.open(page.url + path)
            page.until("document.querySelector('.decision .answer')")
            ink = "return getComputedStyle(document.querySelector('h1')).color"
            assert page.run(ink) == "rgb(27, 27, 25)", path
            # A head by which rows are sorted is a head on paper too.
            buttons = "[...document.querySelectorAll('button:not(th button), form, .skip, .deeds')]"
            pressed = f"{buttons}.filter((one) => one.checkVisibility())"
            assert page.run(f"return {pressed}.length") == 0, path
    finally:
        page.browser.cdp("Emulation.setEmulatedMedia", {"media": "", "features": []})
