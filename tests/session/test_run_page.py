"""A run as a page: everything that was decided and done, drawn by one script from data; nothing is fetched."""

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import decisor
from decisor.cli import run_command_line
from decisor.lab.dqa.generator import make_example
from decisor.llms.scripted import ScriptedLLM
from decisor.views.markup import csp_hash
from report.browser import FOUND, Browser, browser, page_data
from session.conftest import PLAN, QUERY, planner
from techniques.documents import Passages, Policy, nodes

WRONG = "SELECT nam FROM site"
REPLAN = (
    f"Plan: [Step 1: read names]\nReplan: yes, the column is name\nThought: A slip.\nAction: sql\nAction input: {QUERY}"
)
LAST = "Final answer: elm\nBecause: it costs 400 [o2.r1], and 99 less [o2.r2]"
needs_browser = pytest.mark.skipif(not FOUND, reason="needs chromium and chromedriver")


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    with browser() as one:
        yield one


def page_of(result: decisor.Result, path: Path) -> str:
    result.html(path)
    return path.read_text("utf-8")


def opened(window: Browser, result: decisor.Result, folder: Path) -> str:
    """Show the page of a result, unfold everything, and return its text."""
    result.html(folder / "run.html")
    window.open((folder / "run.html").as_uri())
    window.run("for (const fold of document.querySelectorAll('details')) fold.open = true")
    return str(window.run("return document.querySelector('main.drawn .brief').textContent"))


def all_texts(window: Browser, selector: str) -> list[str]:
    found: list[str] = window.run(f"return [...document.querySelectorAll('{selector}')].map((one) => one.textContent)")
    return found


def dag_result() -> decisor.Result:
    chain = nodes(("1.1", "Who directed the film Arrival?"), ("2.1", "Where was <A1.1> born?"))
    question = "Where was the director of Arrival born?"
    return decisor.ask(question, tools=[Passages()], technique="reasoning_dag", llm=ScriptedLLM(Policy(chain)))


@needs_browser
def test_a_page_shows_plan_replan_each_query_its_rows_and_what_no_record_supports(
    window: Browser, sites: Path, tmp_path: Path
) -> None:
    llm = ScriptedLLM([PLAN.format(tool="sql", query=WRONG), REPLAN, LAST, LAST])
    result = decisor.ask("Which site?", db=sites, llm=llm, rules="Only rent counts.", goal="The lowest rent.")
    text = opened(window, result, tmp_path)
    parts = (
        "Only rent counts.",
        "The lowest rent.",
        "Changed the plan",
        "the column is name",
        "no such column",
        "Tokens",
    )
    for part in (*parts, "2 actions, 4 LLM calls"):
        assert part in text, part
    assert {WRONG, QUERY} <= set(all_texts(window, "pre.sql")) and "700" in all_texts(window, "td.n")
    assert all_texts(window, ".diff del") == ["compare the rents"] and all_texts(window, ".diff ins") == ["read names"]
    [objection] = all_texts(window, ".against .wrong")
    assert objection.startswith("No source. “it costs 400") and all_texts(window, ".wrong .none") == ["99"]
    assert "99" not in all_texts(window, ".decision .why, .decision .more")


@needs_browser
@pytest.mark.parametrize("form", ["page", "cell"])
def test_a_figure_of_the_answer_leads_to_its_cell_and_a_record_to_the_query_that_brought_it(
    window: Browser, sites: Path, tmp_path: Path, form: str
) -> None:
    result = decisor.ask("Which site?", db=sites, llm=planner())
    if form == "page":
        opened(window, result, tmp_path)
    else:
        (tmp_path / "cell.html").write_text(f"<!doctype html><body>{result._repr_html_() * 2}", "utf-8")
        window.open((tmp_path / "cell.html").as_uri())
    pieces = window.run("return document.querySelectorAll('.decisor.drawn').length")
    assert pieces == (1 if form == "page" else 2)
    led = """const piece = [...document.querySelectorAll('.decisor')].at(-1), to = (link) => { link.click();
        return piece.querySelector(':target, .here')?.textContent; };
        return [...piece.querySelectorAll('a.figure')].map((link) => [link.textContent, to(link)]).concat([['row',
        to(piece.querySelector('caption a'))]])"""
    *figures, (_, row) = window.run(led)
    assert figures == [["400", "400"], ["700", "700"]]
    assert row == "elm400"
    assert window.run("return document.querySelectorAll('.story tr.cited').length") == 2 * pieces


def test_a_page_fetches_nothing_and_runs_only_the_script_that_its_policy_names(sites: Path, tmp_path: Path) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>\u2028]]>"
    llm = planner(answer=f"Final answer: elm {evil}\nBecause: {evil} [o1.r1]")
    page = page_of(decisor.ask(f"Which {evil}?", db=sites, llm=llm, rules=evil), tmp_path / "run.html")
    data, script = re.findall("<script[^>]*>(.*?)</script>", page, re.S)
    assert "<" not in data and "\u2028" not in data and "<script" not in script
    assert page_data(page)["result"]["answer"].startswith("elm <script>alert(1)</script>")
    policy = html.unescape(page)
    assert f"default-src 'none'; script-src '{csp_hash(script)}'; style-src 'sha256-" in policy
    assert "unsafe-inline" not in page
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "import "):
        assert word not in script, word
    tags = re.findall(r"<[^>]+>", page.replace(script, ""))
    assert not [tag for tag in tags if re.search(r"^<(img|link|iframe)|\son\w+=|\sstyle=|https?://", tag)]
    assert html.escape(evil) in page, "question and decision are markup too"


@needs_browser
def test_hostile_words_are_text_on_a_page(window: Browser, sites: Path, tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\u2028\u202e]]><!--"
    llm = planner(answer=f"Final answer: elm {evil}\nBecause: {evil} [o1.r1]")
    text = opened(window, decisor.ask(f"Which {evil}?", db=sites, llm=llm, rules=evil), tmp_path)
    assert window.dialog() is None and text.count("</script><script>alert(1)</script>") > 3
    assert window.run("return document.querySelectorAll('script').length") == 2
    assert window.run("return document.querySelectorAll('main :is(img, iframe, [onerror])').length") == 0
    assert "\\u202e" in text and "\u202e" not in text


def test_a_reader_without_scripts_gets_question_decision_reasons_and_warnings(sites: Path, tmp_path: Path) -> None:
    llm = ScriptedLLM([PLAN.format(tool="sql", query=WRONG), REPLAN, LAST])
    page = page_of(decisor.ask("Which site?", db=sites, llm=llm), tmp_path / "run.html")
    brief = re.sub("<script.*?</script>|<style.*?</style>", "", page, flags=re.S)
    words = re.sub("<[^>]+>", "", brief)
    for part in ("Which site?", "elm", "it costs 400", "No query returned 99", "did not run here"):
        assert part in words, part
    assert '<h2 class="answer">elm</h2>' in brief and 'id="e-o2.r1"' in brief


@needs_browser
def test_a_ranking_is_drawn_once_with_the_figures_of_all_candidates(window: Browser, tmp_path: Path) -> None:
    world = make_example("trade")
    result = decisor.ask(world.question, db=world.database_url, llm="none")
    assert result.ranking is not None
    text = opened(window, result, tmp_path)
    many = len(result.ranking.options)
    assert many == 17 and len(all_texts(window, ".plot .dot")) == len(all_texts(window, ".plot tbody tr")) == 12
    assert "5 choices more are not drawn." in text and "The axis starts at" in text and "no LLM" in text
    assert "All 17 choices compared" in text
    assert all(step in text for step in result.decision.plan)


@needs_browser
def test_the_nodes_of_a_reasoning_dag_stand_with_their_questions_and_answers(window: Browser, tmp_path: Path) -> None:
    text = opened(window, dag_result(), tmp_path)
    window.run("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert "Where was <A1.1> born?" in text and "2 actions" in text
    assert all_texts(window, ".steps .node > details > summary .what") == ["Q1.1", "Q2.1"]
    assert all_texts(window, "li.part summary small") == ["attributed", "attributed"]
    assert (len(all_texts(window, "g.node.answered")), len(all_texts(window, "path.line"))) == (2, 1)
    led = "return document.querySelector(document.querySelector('g.node a').getAttribute('href')).textContent"
    assert str(window.run(led)).startswith("Q1.1")


def test_a_recorded_run_is_the_same_page_and_json_lists_its_queries(sites: Path, tmp_path: Path) -> None:
    result = decisor.ask("Which site?", db=sites, llm=planner())
    result.save(tmp_path / "run.jsonl")
    assert run_command_line(["trace", str(tmp_path / "run.jsonl"), "--html", str(tmp_path / "trace.html")]) == 0
    page = page_of(result, tmp_path / "run.html")
    assert (tmp_path / "trace.html").read_text("utf-8") == page
    [query] = result.to_dict()["queries"]
    assert (query["tool"], query["input"], query["records"], query["error"]) == ("sql", QUERY, 2, None)


def test_half_characters_of_an_llm_of_ones_own_end_no_page(sites: Path, tmp_path: Path) -> None:
    last = "Final answer: elm \ud83d\nBecause: \ud83d it costs 400 [o1.r2]"
    llm = ScriptedLLM([PLAN.format(tool="sql", query=QUERY) + " \ud83d", PLAN.format(tool="sql", query=QUERY), last])
    result = decisor.ask("Which site?", db=sites, llm=llm, trace=tmp_path / "run.jsonl")
    page = page_of(result, tmp_path / "run.html")
    assert "elm \ufffd" in page and result._repr_html_()
    result.save_record(tmp_path / "record.json")
