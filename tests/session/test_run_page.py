"""A run as a page: everything that was decided and done, and nothing that runs or is fetched."""

import html
import re
from pathlib import Path

import decisor
from decisor.cli import run_command_line
from decisor.lab.examples import make_example
from decisor.llms.scripted import ScriptedLM
from decisor.views.markup import csp_hash
from session.conftest import PLAN, QUERY, planner
from techniques.documents import Passages, Policy, nodes

WRONG = "SELECT nam FROM site"
REPLAN = (
    f"Plan: [Step 1: read names]\nReplan: yes, the column is name\nThought: A slip.\nAction: sql\nAction input: {QUERY}"
)


def page_of(result: decisor.Result, path: Path) -> str:
    result.html(path)
    return path.read_text("utf-8")


def test_a_page_shows_plan_replan_each_query_its_rows_and_what_no_record_supports(sites: Path, tmp_path: Path) -> None:
    last = "Final answer: elm\nBecause: it costs 400 [o2.r1], and 99 less [o2.r2]"
    lm = ScriptedLM([PLAN.format(tool="sql", query=WRONG), REPLAN, last, last])
    result = decisor.ask("Which site?", db=sites, lm=lm, rules="Only rent counts.", goal="The lowest rent.")
    page = page_of(result, tmp_path / "run.html")
    for part in (
        "Only rent counts.",
        "The lowest rent.",
        "compare the rents",
        "Replan",
        "the column is name",
        "read names",
        "no such column",
        '<td class="n">700</td>',
        "You wrote 99",
        "Tokens",
    ):
        assert part in page, part
    texts = [html.unescape(re.sub("<[^>]+>", "", query)) for query in re.findall("<pre[^>]*>(.*?)</pre>", page, re.S)]
    assert WRONG in texts and QUERY in texts


def test_a_figure_of_the_answer_leads_to_its_cell_and_a_record_to_the_query_that_brought_it(sites: Path) -> None:
    piece = decisor.ask("Which site?", db=sites, lm=planner())._repr_html_()
    places = dict(re.findall('id="([^"]+)"[^>]*>([^<]+)<', piece))
    links = dict(re.findall('<a class="figure" href="#([^"]+)"[^>]*>([^<]+)</a>', piece))
    assert links and {places[place]: text for place, text in links.items()} == {"400": "400", "700": "700"}
    [row] = {target for target, name in re.findall('<a href="#([^"]+)">(o1.r1)</a>', piece) if "-r-" in target}
    assert f'<tr class="cited" id="{row}">' in piece
    ids = re.findall(r'\bid="([^"]+)"', piece)
    assert len(ids) == len(set(ids))


def test_a_replan_is_a_difference_and_what_nothing_supports_is_marked(sites: Path) -> None:
    last = "Final answer: elm\nBecause: it costs 400 [o2.r1], and 99 less [o2.r2]"
    lm = ScriptedLM([PLAN.format(tool="sql", query=WRONG), REPLAN, last])
    piece = decisor.ask("Which site?", db=sites, lm=lm)._repr_html_()
    assert "<del>compare the rents</del><small> dropped</small>" in piece
    assert "<ins>read names</ins><small> new</small>" in piece
    assert '<p class="failed objection">You wrote 99' in piece


def test_a_page_runs_nothing_fetches_nothing_and_escapes_what_comes_from_outside(sites: Path, tmp_path: Path) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    lm = planner(answer=f"Final answer: elm {evil}\nBecause: {evil} [o1.r1]")
    page = page_of(decisor.ask(f"Which {evil}?", db=sites, lm=lm, rules=evil), tmp_path / "run.html")
    assert "default-src 'none'; style-src 'sha256-" in html.unescape(page) and "unsafe-inline" not in page
    tags = re.findall(r"<[^>]+>", page)
    assert not [tag for tag in tags if re.search(r"^<(script|img|link|iframe)|\son\w+=|\sstyle=|https?://", tag)]
    assert page.count(html.escape(evil)) > 4
    for scheme in ("prefers-color-scheme: dark", "max-width: 600px"):
        assert scheme in page


def test_a_ranking_is_drawn_with_the_candidates_beyond_the_tenth_folded(tmp_path: Path) -> None:
    world = make_example("trade")
    result = decisor.ask(world.question, db=world.database_url, lm="none")
    assert result.ranking is not None
    page = page_of(result, tmp_path / "run.html")
    assert page.count('<svg class="bar"') == len(result.ranking.options) > 10
    assert f"{len(result.ranking.options) - 10} more</summary>" in page and "no LM" in page
    assert all(step in page for step in result.decision.plan)


def test_the_nodes_of_a_reasoning_dag_stand_with_their_questions_and_answers() -> None:
    chain = nodes(("1.1", "Who directed the film Arrival?"), ("2.1", "Where was <A1.1> born?"))
    result = decisor.ask(
        "Where was the director of Arrival born?",
        tools=[Passages()],
        technique="reasoning_dag",
        lm=ScriptedLM(Policy(chain)),
    )
    piece = result._repr_html_()
    assert "<b>Q1.1</b>" in piece and "<p>Where was &lt;A1.1&gt; born?</p>" in piece
    assert piece.count('<g class="node answered"') == 2 and piece.count('<path class="line ') == 1
    [node] = re.findall('<g class="node answered"[^>]*><a href="#([^"]+)"><title>1.1', piece.replace("Q1.1", "1.1"))
    assert f'id="{node}"' in piece and "<script" not in piece
    assert "<b>Answer</b><span>attributed</span>" in piece and "<details><summary>2 actions" in piece


def test_a_page_with_a_drawing_has_one_script_that_its_policy_names(tmp_path: Path) -> None:
    chain = nodes(("1.1", "Who directed the film Arrival?"), ("2.1", "Where was <A1.1> born?"))
    result = decisor.ask(
        "Where was the director born?",
        tools=[Passages()],
        technique="reasoning_dag",
        lm=ScriptedLM(Policy(chain)),
    )
    page = page_of(result, tmp_path / "run.html")
    [script] = re.findall("<script>(.*?)</script>", page, re.S)
    assert f"script-src '{csp_hash(script)}'" in html.unescape(page)
    assert "innerHTML" not in script and "eval" not in script


def test_a_recorded_run_is_the_same_page_and_json_lists_its_queries(sites: Path, tmp_path: Path) -> None:
    result = decisor.ask("Which site?", db=sites, lm=planner())
    result.save(tmp_path / "run.jsonl")
    assert run_command_line(["trace", str(tmp_path / "run.jsonl"), "--html", str(tmp_path / "trace.html")]) == 0
    page = page_of(result, tmp_path / "run.html")
    assert (tmp_path / "trace.html").read_text("utf-8") == page
    [query] = result.as_object()["queries"]
    assert (query["tool"], query["input"], query["records"], query["error"]) == ("sql", QUERY, 2, None)


def test_half_characters_of_an_lm_of_ones_own_end_no_page(sites: Path, tmp_path: Path) -> None:
    last = "Final answer: elm \ud83d\nBecause: \ud83d it costs 400 [o1.r2]"
    lm = ScriptedLM([PLAN.format(tool="sql", query=QUERY) + " \ud83d", PLAN.format(tool="sql", query=QUERY), last])
    result = decisor.ask("Which site?", db=sites, lm=lm, trace=tmp_path / "run.jsonl")
    page = page_of(result, tmp_path / "run.html")
    assert "elm \ufffd" in page and result._repr_html_()
    result.save_record(tmp_path / "record.json")
