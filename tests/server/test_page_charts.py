"""An answer that is a table, on the page of ``decisor serve`` and as a file, in a real Chromium: drawn beside its
table, in both schemes, on a phone, without a network. Pictures are kept in build/pictures."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from charts.sales import ANSWER, BY_MONTH, sales
from decisor.server.settings import ServerSettings
from decisor.session.sources import build_sources
from report.browser import FOUND
from server.axe import missing
from server.page import Page, window
from server.serving import planner
from server.test_page_reach import axe
from servers.openai_server import serve_threaded

pytestmark = pytest.mark.skipif(not FOUND, reason="needs chromium and chromedriver")
DRAWN = "document.querySelector('.chart svg.wide .run')"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    path = sales(tmp_path_factory.mktemp("sales"))
    with serve_threaded(planner(BY_MONTH, ANSWER)) as url:
        serving = ServerSettings(build_sources(db=f"sqlite:///{path}"), {"m": f"m@{url}"})
        with window(serving) as page:
            yield page


@pytest.fixture(scope="module")
def place(page: Page) -> str:
    """The address of a run that is over."""
    page.ask("Revenue by month and category?")
    page.answered()
    page.until(DRAWN)
    return str(page.run("return location.pathname"))


@pytest.mark.slow
def test_the_chart_of_an_answer_stands_before_its_table_and_its_marks_lead_to_the_rows(page: Page, place: str) -> None:
    page.open(place)
    page.until(DRAWN)
    page.see("Revenue by month and category")
    assert page.run("return document.querySelectorAll('.chart svg.wide .run').length") == 3
    assert page.run("return [...document.querySelectorAll('.chart svg.wide a')].length") == 72
    page.run("document.querySelector('.chart svg.wide a:nth-of-type(30)').dispatchEvent(new MouseEvent('click'))")
    record = page.run("return document.querySelector('.chart svg.wide a:nth-of-type(30)').getAttribute('href')")
    page.until(f"location.hash === '{record}' && document.querySelector('tr:target')")
    words = page.run("return document.querySelector('.chart svg.wide a:nth-of-type(30) title').textContent")
    assert str(words).rsplit(": ", 1)[1] in page.text("tr:target")
    page.picture("chart", at=".chart")


def test_a_citation_of_a_whole_observation_leads_to_its_first_row(page: Page, place: str) -> None:
    page.open(place)
    page.until(DRAWN)
    assert page.run("return document.querySelector('.decision a.cite').getAttribute('href')") == "#e-o1.r1"


def test_on_a_phone_the_narrow_drawing_stands_there_and_nothing_goes_sideways(page: Page, place: str) -> None:
    page.open(place)
    page.until(DRAWN)
    page.picture("chart-phone", 390, 844, at=".chart")
    page.browser.size(390, 844)
    shows = "return [...document.querySelectorAll('.chart svg')].map((one) => one.checkVisibility())"
    assert (page.run(shows), page.sideways()) == ([False, True], 0)
    texts = "[...document.querySelectorAll('.chart .narrow text')]"
    assert page.run(f"return Math.min(...{texts}.map((one) => one.getBoundingClientRect().height))") > 11
    page.browser.size(1280, 900)


@pytest.mark.skipif(bool(missing()), reason=missing() or "it is there")
def test_axe_finds_nothing_serious_in_a_chart_and_a_reader_of_screens_is_told_it(page: Page, place: str) -> None:
    page.open(place)
    page.until(DRAWN)
    assert [one for one in axe(page) if one["impact"] in ("serious", "critical")] == []
    label = page.run("return document.querySelector('.chart .wide [role=img]').getAttribute('aria-label')")
    assert "72 values in 3 series; lowest Beverages, 1996-01: 100, highest Seafood, 1997-12: 423" in str(label)
    assert page.run("return document.querySelectorAll('.chart svg a:not([tabindex=\"-1\"])').length") == 0


def test_the_specification_can_be_taken_along_and_the_api_has_it(page: Page, place: str) -> None:
    page.open(place)
    page.until(DRAWN)
    href = page.run("return document.querySelector('a[download=\"chart.vl.json\"]').getAttribute('href')")
    spec = json.loads(base64.b64decode(str(href).partition(",")[2]))
    assert len(spec["data"]["values"]) == 72
    result = httpx.get(f"{page.url}/api{place}/picture", timeout=60).json()["result"]
    assert str(href) in result and result.count("<svg") == 2


def test_the_file_of_a_run_shows_the_chart_without_a_server_or_a_script(page: Page, place: str, tmp_path: Path) -> None:
    text = httpx.get(f"{page.url}/api{place}/page", timeout=60).text
    # What a reader gets whose browser runs no script: the drawing alone.
    still = re.sub(r"<script>.*?</script>", "", text, flags=re.S)
    (tmp_path / "still.html").write_text(still)
    page.browser.open(f"file://{tmp_path}/still.html")
    assert page.run("return document.querySelectorAll('.chart svg.wide .run').length") == 3
    (tmp_path / "run.html").write_text(text)
    page.browser.open(f"file://{tmp_path}/run.html")
    assert page.run("return document.querySelectorAll('.chart svg.wide .run').length") == 3
    colours = []
    for scheme in ("light", "dark"):
        page.colours(scheme)
        colours.append(page.run("return getComputedStyle(document.querySelector('.chart .run')).stroke"))
    page.colours("light")
    assert colours[0] != colours[1]
    assert page.run("return getComputedStyle(document.querySelector('.chart .hit')).fill") == "rgba(0, 0, 0, 0)"
