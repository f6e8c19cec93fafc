"""What comes from outside is text on the page: no field of an event, a row, a schema or a question runs, loads or
leads anywhere. In a real Chromium, with the attacks of the shared list."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import get_args

import pytest

from data import read_security_rows
from decisor.server.settings import ServerSettings
from decisor.session.sources import build_sources
from decisor.trace.events import ActionResult, Conclusion, Event, RunStart, TraceEntry
from report.browser import FOUND
from server.page import Page, window, writing_llm
from traces.every_event import filled

pytestmark = pytest.mark.skipif(not FOUND, reason="needs chromium and chromedriver")
CANARY = "18999"


def hostile_texts() -> list[str]:
    """List scripts for a page first, then what rows say to an LLM."""
    scripts = [row["body"] for row in read_security_rows("web_attacks") if row["class"] == "xss"]
    return scripts + [row["text"] for row in read_security_rows("injection_rows") if len(row["text"]) < 10_000]


@pytest.fixture(scope="module")
def calls() -> Iterator[tuple[str, list[str]]]:
    """The port that attacks are to call, and what called it."""
    paths: list[str] = []

    class Catch(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            return None

    server = HTTPServer(("127.0.0.1", 0), Catch)
    Thread(target=server.serve_forever, daemon=True).start()
    yield str(server.server_port), paths
    server.shutdown()
    server.server_close()


def entries_of(text: str) -> list[TraceEntry]:
    """An event of every class with the text in every field; results belong to the action before them."""
    entries: list[TraceEntry] = []
    kinds = [kind for kind in get_args(Event) if kind is not Conclusion]
    for kind in (RunStart, *(one for one in kinds if one is not RunStart), Conclusion):
        event = filled(kind, text)
        if isinstance(event, ActionResult):
            event = ActionResult(entries[-1].id, event.observation)
        entries.append(TraceEntry(len(entries) + 1, 0, 0.5, event))
    return entries


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, calls: tuple[str, list[str]]) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("hostile")
    texts = [text.replace(CANARY, calls[0]) for text in hostile_texts()]
    with closing(sqlite3.connect(folder / "evil.db")) as connection, connection:
        connection.execute('CREATE TABLE "<img src=x onerror=alert(1)>" ("<script>alert(1)</script>" TEXT)')
        rows = [(text.encode("utf-8", "replace").decode(),) for text in texts]
        connection.executemany('INSERT INTO "<img src=x onerror=alert(1)>" VALUES (?)', rows)
    runs = {str(at): entries_of(text) for at, text in enumerate(texts)}
    with (
        writing_llm(lambda body: f"Final answer: {texts[0]}\nBecause: {texts[1]}") as url,
        window(ServerSettings(build_sources(db=f"sqlite:///{folder / 'evil.db'}"), {"m": f"m@{url}"}), runs) as page,
    ):
        yield page


def quiet(page: Page) -> None:
    """No dialog, no element from a text, no other address."""
    assert page.browser.dialog() is None
    strange = """return [...document.querySelectorAll(`main :is(script, iframe, img, object, embed, base, meta, link,
        style, form[action], [onerror], [onload], [onclick], [ontoggle], [style], [srcdoc])`)].map((one) =>
        one.outerHTML)"""
    assert page.run(strange) == []
    links = page.run(
        "return [...document.querySelectorAll('main a:not([download])')].map((one) => one.getAttribute('href'))"
    )
    assert [one for one in links if not one.startswith(("/", "#"))] == []


@pytest.mark.slow
def test_an_attack_in_every_field_of_every_event_is_text(page: Page, calls: tuple[str, list[str]]) -> None:
    for at, text in enumerate(hostile_texts()):
        page.open(f"/runs/{at}")
        page.until("document.querySelector('.run.over .decision')")
        page.run("document.querySelectorAll('details').forEach((one) => one.open = true)")
        page.until("document.querySelectorAll('.steps li').length > 10")
        quiet(page)
        words = re.findall("[!-~]+", text.replace(CANARY, calls[0]))
        shown = str(page.run("return document.querySelector('.result').textContent"))
        assert max(words, key=len) in shown, text
        assert page.run("return location.pathname") == f"/runs/{at}", text
        assert calls[1] == [], text


def test_marks_that_hide_or_reorder_text_are_seen(page: Page) -> None:
    at = next(place for place, text in enumerate(hostile_texts()) if "\u202e" in text)
    page.open(f"/runs/{at}")
    page.until("document.querySelector('.run.over .decision')")
    text = str(page.run("return document.querySelector('main').textContent"))
    assert "\\u202e" in text
    assert "\u202e" not in text


def test_names_and_values_of_a_database_are_text(page: Page, calls: tuple[str, list[str]]) -> None:
    page.open("/")
    page.click("Look inside")
    page.until("document.querySelector('.schema details')")
    page.run("document.querySelectorAll('details').forEach((one) => one.open = true)")
    page.see("<script>alert(1)</script>", ".schema")
    quiet(page)
    assert calls[1] == []


def test_a_question_in_the_address_is_only_filled_in(page: Page) -> None:
    page.open("/?question=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
    page.until("document.getElementById('question').value === '<img src=x onerror=alert(1)>'")
    page.until(f"document.querySelectorAll('#runs a').length === {min(len(hostile_texts()), 50)}")
    quiet(page)


def test_the_file_to_hand_on_runs_and_loads_nothing(page: Page, calls: tuple[str, list[str]]) -> None:
    for at in range(0, len(hostile_texts()), 5):
        page.browser.open(f"{page.url}/api/runs/{at}/page")
        assert page.browser.dialog() is None
        assert page.run("return document.querySelectorAll('script[src], iframe, img, object, form').length") == 0
    assert calls[1] == []


def test_the_page_has_no_way_to_make_markup_of_text() -> None:
    files = sorted((Path(__file__).parents[2] / "src" / "decisor").rglob("*.js"))
    assert len(files) > 15
    for file in files:
        text = file.read_text("utf-8")
        for word in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "DOMParser",
            "eval(",
            "new Function",
            "createContextualFragment",
            "srcdoc",
        ):
            assert word not in text, f"{file.name}: {word}"
