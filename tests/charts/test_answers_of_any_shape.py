"""An answer that is a table or a series: cited as a whole, drawn from its cells, the same in every form."""

import base64
import html
import json
import re
from pathlib import Path

import pytest

import decisor
from charts.sales import ANSWER, BY_MONTH, llm, sales
from decisor.cli import run_command_line
from decisor.trace.events import LLMCall, events_of
from definition_shops import definitions_file, shop
from report.browser import page_data

QUESTION = "Revenue by month and category?"
TEXT = {"calling": "text"}


def test_an_observation_is_cited_as_a_whole_and_every_row_of_it_is_evidence(tmp_path: Path) -> None:
    result = decisor.ask(QUESTION, db=sales(tmp_path), llm=llm(), settings=TEXT)
    assert result.answer == "revenue by month and category"
    assert result.evidence.ids == tuple(f"o1.r{number}" for number in range(1, 73))
    [chart] = result.charts
    assert (chart.kind, chart.title) == ("line", "Revenue by month and category")
    assert {one.name: len(one.marks) for one in chart.series} == {"Beverages": 24, "Produce": 24, "Seafood": 24}
    cells = {record.id: record.fields["revenue"] for record in result.records}
    assert {mark.record: value for _, mark, value in chart.marks()} == cells


def test_an_observation_alone_is_an_answer_and_one_that_never_came_is_refused(tmp_path: Path) -> None:
    replies = [
        f"Plan: [Step 1: add up]\nThought: t\nAction: sql\nAction input: {BY_MONTH}",
        "Final answer: all of it [o2]\nBecause: see [o2]",
        "Final answer: [o1]\nBecause: it is what was asked for",
    ]
    model = decisor.ScriptedLLM(replies)
    result = decisor.ask(QUESTION, db=sales(tmp_path), llm=model, settings=TEXT)
    assert "You cite o2, which you have not been shown." in model.seen[2]
    assert (result.answer, len(result.evidence.ids)) == ("Table o1", 72)


def test_page_terminal_and_json_show_the_same_chart_with_links_to_its_rows(tmp_path: Path) -> None:
    result = decisor.ask(QUESTION, db=sales(tmp_path), llm=llm(), settings=TEXT)
    result.html(tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text("utf-8")
    assert page.count('<svg class="wide"') == page.count('<svg class="narrow"') == 1
    assert (
        'role="img" aria-label="Revenue by month and category. Line chart of revenue by month: 72 values in 3' in page
    )
    assert "<title>Beverages, 1996-01: 100</title>" in page
    rows = {f"e-{record['id']}" for record in page_data(page)["result"]["evidence"]["records"]}
    links = re.findall(r'<a href="#([^"]+)" tabindex="-1"', page)
    assert len(links) == 2 * 72 and set(links) == rows
    [data] = re.findall(r'href="data:application/json;base64,([^"]+)" download', page)
    assert [json.loads(base64.b64decode(data))] == result.to_dict()["charts"]
    text = str(result)
    assert "Revenue by month and category\n  Beverages ▃" in text and "100 to 123" in text
    assert "[o1.r20]" in text and "[o1.r21]" not in text and "… and 52 rows more" in text


def test_a_story_read_back_from_its_file_has_the_chart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = decisor.ask(QUESTION, db=sales(tmp_path), llm=llm(), settings=TEXT)
    result.save(tmp_path / "run.jsonl")
    assert run_command_line(["trace", str(tmp_path / "run.jsonl")]) == 0
    assert "Revenue by month and category\n  Beverages" in capsys.readouterr().out
    assert run_command_line(["trace", str(tmp_path / "run.jsonl"), "--html", str(tmp_path / "trace.html")]) == 0
    result.html(tmp_path / "run.html")
    assert (tmp_path / "trace.html").read_text("utf-8") == (tmp_path / "run.html").read_text("utf-8")


def test_an_answer_that_cites_a_row_or_two_has_no_chart_and_no_bytes_for_one(tmp_path: Path) -> None:
    model = llm(answer="Final answer: Seafood\nBecause: it sells for 400 [o1.r3] and Produce for 300 [o1.r2]")
    result = decisor.ask(QUESTION, db=sales(tmp_path), llm=model, settings=TEXT)
    assert (result.charts, result.to_dict()["charts"]) == ((), [])
    assert '<figure class="chart"' not in result._repr_html_() and 'src="data:' not in result._repr_html_()


def test_rows_cited_one_by_one_are_a_table_where_they_are_all_that_the_query_brought(tmp_path: Path) -> None:
    for limit, charts in ((3, 1), (4, 0)):
        query = f"SELECT category, sum(amount) AS revenue FROM sale GROUP BY 1 ORDER BY -sum(amount) LIMIT {limit}"
        model = llm(query, "Final answer: Tea\nBecause: 24276 [o1.r1], 19476 [o1.r3], 21876 [o1.r2], not less")
        result = decisor.ask(QUESTION, db=sales(tmp_path), llm=model, settings=TEXT)
        assert len(result.charts) == charts
        for chart in result.charts:
            assert [mark.label for _, mark, _ in chart.marks()] == ["Tea", "Sweets", "Frozen"]
        (tmp_path / "sales.db").unlink()


def test_rows_too_many_for_a_prompt_are_drawn_as_far_as_they_were_read(tmp_path: Path) -> None:
    query = f"SELECT day, category || '{'x' * 250}' AS name, amount FROM sale ORDER BY 1, 2 LIMIT 180"
    result = decisor.ask(QUESTION, db=sales(tmp_path), llm=llm(query), settings=TEXT)
    rows = len(result.evidence.ids)
    assert 50 <= rows < 180
    assert result.charts[0].notes[0] == f"The first {rows} of the 180 rows that the query has."


def test_a_series_that_the_cap_on_rows_cut_says_so(tmp_path: Path) -> None:
    query = "SELECT substr(day, 1, 7) AS month, category, sum(amount) AS revenue FROM sale GROUP BY 1, 2 ORDER BY 1, 2"
    result = decisor.ask(QUESTION, db=sales(tmp_path), llm=llm(query), settings=TEXT)
    assert result.charts[0].notes == (
        "The first 200 of the 240 rows that the query has.",
        "The 8 largest of 10 are drawn; the table has all.",
    )


def test_masked_names_stay_tokens_in_a_chart_unless_the_reader_may_see_them(tmp_path: Path) -> None:
    query = "SELECT category, sum(amount) AS revenue FROM sale GROUP BY 1 ORDER BY 2 DESC"
    for reveal in (False, True):
        result = decisor.ask(
            QUESTION, db=sales(tmp_path), llm=llm(query), mask=["sale.category"], reveal=reveal, settings=TEXT
        )
        spec = json.dumps(result.to_dict()["charts"])
        assert ("masked_" in spec, "Seafood" in spec) == (not reveal, reveal)
        assert result.charts[0].kind == "bar"
        (tmp_path / "sales.db").unlink()


def test_the_unit_of_a_column_called_as_a_cited_metric_stands_at_its_axis(tmp_path: Path) -> None:
    query = (
        "SELECT c.name, SUM(l.price * l.quantity * (1 - l.discount)) AS net_revenue FROM customer c "
        "JOIN purchase p ON p.customer_id = c.id JOIN line l ON l.purchase_id = p.id WHERE p.status = 'closed' "
        "GROUP BY 1 ORDER BY 2 DESC"
    )
    reply = llm(query, "Final answer: net revenue by customer [o2]\nBecause: all is in [o2]")
    result = decisor.ask(
        "Net revenue of each customer?",
        db=shop(tmp_path),
        definitions=definitions_file(tmp_path),
        llm=reply,
        settings=TEXT,
    )
    [chart] = result.charts
    assert (chart.kind, chart.y.title) == ("bar", "net revenue (EUR)")


def test_names_from_rows_are_text_in_every_form_of_a_chart(tmp_path: Path) -> None:
    evil = "</svg><script>alert(1)</script>\x1b[31m"
    query = f"SELECT '{evil}' || category AS name, sum(amount) AS revenue FROM sale GROUP BY 1 ORDER BY 2"
    result = decisor.ask(QUESTION, db=sales(tmp_path), llm=llm(query.replace("\x1b", "")), settings=TEXT)
    assert result.charts[0].kind == "bar"
    piece = result._repr_html_()
    assert "<script>alert" not in piece and html.escape("</svg><script>alert(1)</script>") in piece
    assert piece.count("<script") == piece.count("</script>") == 2
    assert "\x1b" not in str(result)


def test_the_prompt_says_how_a_table_is_answered(tmp_path: Path) -> None:
    for calling in ("text", "json"):
        result = decisor.ask(QUESTION, db=sales(tmp_path), llm=llm(), settings={"calling": calling})
        system = list(events_of(result.trace, LLMCall))[-1].messages[0].content
        assert "with the id of the whole observation, like [o2]" in " ".join(system.split())
        (tmp_path / "sales.db").unlink()


def test_a_follow_up_may_cite_the_whole_table_of_before(tmp_path: Path) -> None:
    result = decisor.ask(QUESTION, db=sales(tmp_path), llm=llm(), settings=TEXT)
    query = "SELECT count(*) AS sales FROM sale"
    again = result.ask("And the same once more?", llm=llm(query, ANSWER))
    assert len(again.evidence.ids) == 72 and again.charts[0].title == result.charts[0].title
