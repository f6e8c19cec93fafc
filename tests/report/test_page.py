"""The page: the same bytes for the same run, whole figures without the script, and hostile text in every field."""

import json
import math
import os
import re
import time
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import StringIO
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from data import read_security_rows
from decisor.cli import main
from decisor.lab.benchmark import Outcome
from decisor.lab.evaluation.store import open_store
from decisor.lab.report.document import make_report, report_as_csv, report_as_markdown
from decisor.lab.report.page import write_page
from decisor.system.serialization import finite_json_value
from decisor.trace.events import ActionResult, ActionStart, Conclusion, NodeSpan, Trace, TraceEntry, UnreadableReply
from decisor.trace.file import format_trace_file, read_trace_text
from decisor.types import Decision, Evidence, Observation, Question, Ranking, Record, Usage
from decisor.views.page import LEVELS, story_json
from report.browser import FOUND, browser
from report.made import Made, run
from servers.openai_server import serve_threaded

KEPT = list(run(12))
CANARY = "18999"
"""The port that the payloads call; the test puts its own in its place."""
COLUMNS = ("source", "total", "local", "tie_right", "margin", "replans", "retrievals")
MORE = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]><svg/onload=alert(1)>",
    '" onmouseover="alert(1)',
    "__proto__",
    "constructor",
    "hidden",
)


def page(made: list[Made], before: list[Made] | None = None) -> str:
    entries = {one.outcome.key: one.entries for one in made}
    earlier = None if before is None else [one.outcome for one in before]
    report = make_report([one.outcome for one in made], {"suite": "s"}, earlier)
    states = None if earlier is None else {one.key: one.state for one in earlier}
    out = StringIO()
    write_page(report, lambda one: entries[one.key], out, states)
    return out.getvalue()


def stored(trace: Trace) -> list[TraceEntry]:
    """As a store gives them back."""
    return read_trace_text(format_trace_file(trace.entries))


def payloads() -> list[str]:
    return [row["body"] for row in read_security_rows("web_attacks") if row["class"] == "xss"]


class Tags(HTMLParser):
    """Elements and attributes as a browser would find them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_same_run_gives_the_same_bytes() -> None:
    assert page(KEPT) == page(list(run(12)))
    assert page(KEPT) != page(list(run(12, seed=2)))


def test_the_page_asks_for_nothing_and_runs_one_script_only() -> None:
    tags = Tags()
    tags.feed(page(KEPT))
    scripts = [attributes for name, attributes in tags.found if name == "script"]
    assert [one for one in scripts if one.get("type") != "application/json"] == [{}]
    assert not [name for name, _ in tags.found if name in ("img", "iframe", "object", "form", "base", "audio", "video")]
    links = [a[key] for _, a in tags.found for key in ("href", "src", "action") if key in a]
    assert all(str(link).startswith(("#", "data:,")) for link in links)
    assert not [key for _, attributes in tags.found for key in attributes if key.startswith("on") or key == "style"]
    policy = next(str(a["content"]) for _, a in tags.found if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy and "unsafe" not in policy


def test_the_tables_hold_the_share_of_right_answers() -> None:
    text = page(KEPT)
    rows = [one.outcome for one in KEPT if one.outcome.technique == "plan_rag"]
    right = sum(one.state == "right" for one in rows)
    counted = sum(one.state in ("right", "wrong", "over_budget") for one in rows)
    assert f"{100 * right / counted:.1f}" in text


def test_a_story_keeps_what_the_decision_cites_however_far_it_is_cut() -> None:
    trace = Trace()
    at = trace.add(ActionStart("sql", "SELECT * FROM flow"))
    records = tuple(Record(f"o1.r{n}", {"name": f"node {n}", "flow": n}) for n in range(1, 500))
    trace.add(ActionResult(at, Observation(records, total=9000), 0.1))
    trace.add(Conclusion(Decision("node 321", Evidence(("o1.r321",)))))
    full, short = json.loads(story_json(stored(trace), 100_000)), json.loads(story_json(stored(trace), 10))
    cut, whole = (one["entries"][1]["data"]["observation"] for one in (short, full))
    assert [row["id"] for row in cut["records"]] == ["o1.r1", "o1.r2", "o1.r321"] and cut["total"] == 9000
    assert len(whole["records"]) == LEVELS[0].rows + 1


def test_a_story_nests_spans_and_says_what_it_left_out() -> None:
    trace = Trace()
    span = trace.add(NodeSpan("Q1.1", "Who?", source="sql"))
    for number in range(600):
        trace.add(UnreadableReply("empty" if number == 599 else "syntax", "complaint"), span)
    node, *inside = json.loads(story_json(stored(trace), 10**9))["entries"]
    assert (node["data"]["node"], node["data"]["question"], node["data"]["source"]) == ("Q1.1", "Who?", "sql")
    assert {one["span"] for one in inside} == {node["id"]}
    assert [one["data"]["entries"] for one in inside if one["event"] == "Cut"] == [200]
    assert inside[-1]["data"]["reason"] == "empty"


def test_what_is_inside_of_a_stretch_that_was_left_out_is_left_out_too() -> None:
    trace = Trace()
    for number in range(600):
        span = trace.add(NodeSpan(f"Q{number}", "Who?"))
        action = trace.add(ActionStart("sql", f"SELECT {number}"), span)
        trace.add(ActionResult(action, Observation(), 0.1), span)
    rows = json.loads(story_json(stored(trace), 10**9))["entries"]
    ids = {row["id"] for row in rows} | {0}
    assert len(rows) == 3 * 400 + 1 and all(row["span"] in ids for row in rows)


def test_a_whole_number_that_javascript_would_round_goes_as_text() -> None:
    trace = Trace()
    action = trace.add(ActionStart("sql", "SELECT 9007199254740993"))
    trace.add(ActionResult(action, Observation((Record("o1.r1", {"n": 9007199254740993, "m": 12}),)), 0.1))
    [_, result] = json.loads(story_json(stored(trace)))["entries"]
    assert result["data"]["observation"]["records"][0]["fields"] == {"n": "9007199254740993", "m": 12}


def test_csv_is_one_line_an_outcome_and_no_cell_is_a_formula() -> None:
    import csv

    hostile = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "\u200b=1", "\uff1d1", "a\x1b]8;;x", 'a"b,c\nd']
    outcomes = [replace(KEPT[0].outcome, case=text, answer=text, gold=(text,), failure=text) for text in hostile]
    lines = list(csv.reader(StringIO(report_as_csv(make_report(outcomes)))))
    assert len(lines) == len(hostile) + 1
    for line in lines[1:]:
        assert not [cell for cell in line if re.match(r"\s*[=+@\uff1d]|-\D|[\t\r]", cell)]
    assert lines[-1][1] == 'a"b,c\nd' and "\x1b" not in report_as_csv(make_report(outcomes))


def test_markdown_shows_a_hostile_name_as_text() -> None:
    bad = "<img src=x onerror=alert(1)>|[x](javascript:alert(1))\n# no"
    text = report_as_markdown(make_report([replace(one.outcome, technique=bad) for one in KEPT]))
    assert not re.search(r"(?<!\\)<img|(?<!\\)\]\(|\n# no", text)
    head, _, line = text.partition("| technique")[2].splitlines()[:3]
    assert "img src" in line and len(re.findall(r"(?<!\\)\|", head)) == len(re.findall(r"(?<!\\)\|", line)) - 1


def test_json_holds_what_the_charts_show_and_only_numbers_that_json_knows() -> None:
    outcomes = [replace(one.outcome, metrics={"odd": float("nan")}) for one in KEPT]
    told = json.loads(json.dumps(finite_json_value(make_report(outcomes)), allow_nan=False))
    (one,) = told["benchmarks"]
    assert {chart["id"] for chart in one["charts"]} >= {"budget", "cost", "replans", "sr-mr"}
    assert one["rows"][0]["interval"]["low"] < one["rows"][0]["accuracy"] < one["rows"][0]["interval"]["high"]


@pytest.mark.parametrize("lost", [math.nan, math.inf, -math.inf])
def test_a_metric_that_is_no_number_ends_no_form_of_a_report_and_is_said(lost: float) -> None:
    metrics = dict(KEPT[3].outcome.metrics) | {"tie_right": lost, "elo": lost}
    made = [*KEPT[:3], replace(KEPT[3], outcome=replace(KEPT[3].outcome, metrics=metrics)), *KEPT[4:]]
    report = make_report([one.outcome for one in made], {"suite": "s"})
    assert "Left out of the mean, no finite number: elo in 1 outcome, tie right in 1 outcome." in page(made)
    assert "tie right in 1 outcome" in report_as_markdown(report)
    assert json.loads(json.dumps(finite_json_value(report), allow_nan=False))
    assert report_as_csv(report)


def test_the_command_writes_every_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / name for name in ("a.db", "b.db")]
    for path, seed in zip(paths, (1, 2), strict=True):
        store = open_store(path)
        store.begin({"suite": "s"})
        for one in run(6, seed):
            store.finish(one.outcome, one.entries)
        store.close()
    for arguments in ([], ["--json"], ["--csv"], ["--markdown"], ["--against", str(paths[1])]):
        with pytest.raises(SystemExit) as left:
            main(["report", str(paths[0]), *arguments])
        assert left.value.code == 0
        assert "plan_rag" in capsys.readouterr().out
    out = tmp_path / "page.html"
    with pytest.raises(SystemExit) as left:
        main(["report", str(paths[0]), "--html", str(out), "--against", str(paths[1])])
    assert left.value.code == 0 and "Against the earlier run" in out.read_text("utf-8")
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["report", str(paths[0]), "--html", str(out), "--json"])
    assert json.loads(capsys.readouterr().out)["outcomes"]
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".html"] == ["page.html"]
    with pytest.raises(SystemExit) as left:
        main(["report", str(tmp_path / "none.db")])
    assert left.value.code == 2 and not (tmp_path / "none.db").exists()


def test_a_second_opinion_is_asked_of_a_real_endpoint_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[object] = []
    store = open_store(tmp_path / "a.db")
    store.begin({})
    for one in run(8):
        store.finish(one.outcome, one.entries)
    store.close()

    def reply(request: object) -> str:
        asked.append(request)
        return "Everything was there.\nVerdict: DEEP"

    with serve_threaded(reply) as url:
        for _ in range(2):
            with pytest.raises(SystemExit) as left:
                main(["report", str(tmp_path / "a.db"), "--json", "--judge", f"test-model@{url}", "--judge-cases", "5"])
            assert left.value.code == 0
            told = json.loads(capsys.readouterr().out)["opinion"]
            assert (told["asked"], told["read"], {said for _, said, _ in told["table"]}) == (5, 5, {"DEEP"})
    assert len(asked) == 5


def poisoned(value: Any, payload: str) -> Any:
    """The same value with the payload in every text of it, names of fields of records too."""
    if isinstance(value, str):
        return payload
    if isinstance(value, Usage) or value is None or isinstance(value, bool | int | float):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        keep = {"goal", "stopped", "role", "kind", "state", "id"} if not isinstance(value, Question) else set()
        changed = {f.name: poisoned(getattr(value, f.name), payload) for f in fields(value) if f.name not in keep}
        return replace(value, **changed)
    if isinstance(value, Mapping):
        return {payload if key in COLUMNS else key: poisoned(item, payload) for key, item in value.items()}
    return type(value)(poisoned(item, payload) for item in value)


def poison(made: Made, payload: str, number: int) -> Made:
    """A case all of whose texts are the payload."""
    outcome = poisoned(made.outcome, payload)
    entries = tuple(replace(one, event=poisoned(one.event, payload)) for one in made.entries)
    return Made(replace(outcome, repeat=number), entries)


class Canary(BaseHTTPRequestHandler):
    asked: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        Canary.asked.append(self.path)
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@contextmanager
def canary() -> Any:
    """Listens where the payloads would call home: its port, and what was asked of it."""
    Canary.asked.clear()
    server = HTTPServer(("127.0.0.1", 0), Canary)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port, Canary.asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


needs_browser = pytest.mark.skipif(
    not FOUND and not os.environ.get("DECISOR_REQUIRE_SERVERS"), reason="no chromium with chromedriver"
)


@pytest.mark.slow
@needs_browser
def test_the_test_of_hostile_text_would_notice(tmp_path: Path) -> None:
    """A page that trusts the same text opens a dialog and calls home."""
    file = tmp_path / "open.html"
    with canary() as (port, asked), browser() as one:
        file.write_text(f"<!doctype html><img src=http://127.0.0.1:{port}/x onload=alert(1) onerror=alert(1)>")
        one.open(file.as_uri())
        until = time.monotonic() + 60
        while one.dialog() is None and time.monotonic() < until:
            time.sleep(0.05)
        assert one.dialog() is not None and asked == ["/x"]
        one.call("POST", "/alert/dismiss", {})


@pytest.mark.slow
@needs_browser
def test_hostile_text_in_every_field_is_shown_as_text_in_a_real_browser(tmp_path: Path) -> None:
    file = tmp_path / "bad.html"
    with canary() as (port, asked), browser() as one:
        texts = [text.replace(CANARY, str(port)) for text in (*payloads(), *MORE)]
        bad = [poison(KEPT[at % 4], text, at) for at, text in enumerate(texts)]
        file.write_text(page(bad, bad[:3]), "utf-8")
        one.open(file.as_uri())
        assert one.run("return document.documentElement.dataset.ready") == "yes"
        one.run("for (const row of document.querySelectorAll('.row')) row.click()")
        one.run("for (const fold of document.querySelectorAll('details')) fold.open = true")
        assert one.run("return document.querySelectorAll('.told').length") == len(bad)
        assert "<script>alert(1)</script>" in one.run("return document.getElementById('list').textContent")
        for query in ("alert", "<script>", "</script><script>"):
            one.run(
                f"const box = document.getElementById('text'); box.value = {json.dumps(query)};"
                "box.dispatchEvent(new Event('input'))"
            )
        assert one.dialog() is None
        assert one.run("return location.href") == file.as_uri()
        assert one.run("return document.querySelectorAll('script:not([type])').length") == 1
        bad_nodes = "return document.querySelectorAll('img,iframe,object,form,a:not([href^=\"#\"]),style~style').length"
        assert one.run(bad_nodes) == 0
        assert not asked


@needs_browser
def test_the_list_filters_sorts_and_opens_stories(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(page(KEPT, list(run(12, 2))), "utf-8")
    wrong = sum(one.outcome.state == "wrong" for one in KEPT)
    with browser() as one:
        one.open(file.as_uri())
        assert one.run("return document.querySelectorAll('.row').length") == len(KEPT)
        one.run("document.querySelector('.chips .wrong').click()")
        assert one.run("return document.querySelectorAll('.row').length") == wrong
        one.run(
            "const who = document.getElementById('who'); who.value = [...who.options].find(o => o.text === "
            "'single_rag').value; who.dispatchEvent(new Event('change'))"
        )
        assert set(one.run("return [...document.querySelectorAll('.row .who')].map(e => e.textContent)")) == {
            "single_rag"
        }
        one.run("document.querySelector('.row').click()")
        told = one.run("return document.querySelector('.told').textContent")
        assert "Which trading node" in told and "GROUP BY source" in told and "Evidence" in told
        one.run("document.querySelector('.told .evidence caption a').click()")
        assert one.run("return document.querySelector('.told .here').id.startsWith('r-')")
        one.run("document.querySelector('.row').click()")
        assert one.run("return document.querySelectorAll('.told').length") == 0
        one.size(390, 900)
        assert one.run("return document.documentElement.scrollWidth") <= 390


def test_an_empty_ranking_or_a_case_without_a_trace_is_no_obstacle() -> None:
    outcome = Outcome("b", "c", "t", "", 0, "crashed")
    trace = Trace()
    trace.add(Conclusion(Decision("x", ranking=Ranking("m", "max", ()))))
    assert "not scored" in page([Made(outcome, ()), Made(replace(outcome, case="d"), tuple(stored(trace)))])
