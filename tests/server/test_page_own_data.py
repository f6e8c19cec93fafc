"""A file of a person on the start page, and words of a person to a decision model, in a real Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from decisor.demo.demo import write_shop
from decisor.server.settings import ServerSettings
from decisor.session.sources import build_sources
from report.browser import FOUND
from server.page import Page, window, writing_llm

pytestmark = pytest.mark.skipif(not FOUND, reason="needs chromium and chromedriver")
DROP = """const data = new DataTransfer();
data.items.add(new File([{content}], {name}));
document.querySelector('.drop').dispatchEvent(new DragEvent('drop', {{ bubbles: true, dataTransfer: data }}))"""
SALES = "'supplier_name,cost\\\\nelm,\"1,200\"\\\\noak,900\\\\nash,950\\\\n'".replace("\\\\", "\\")


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with window(ServerSettings()) as page:
        yield page


@pytest.mark.slow
def test_a_file_is_dropped_looked_into_and_removed(page: Page) -> None:
    page.open()
    page.see("No data yet.")
    page.run(DROP.format(content=SALES, name="'offers.csv'"))
    page.see("offers", ".data b")
    page.see("3 rows", ".schema")
    page.see("yours alone", ".data .list")
    page.see("Which supplier has the lowest cost?")
    page.picture("upload")
    page.picture("upload-phone", 390, 844)
    page.browser.size(390, 844)
    assert page.sideways() <= 0
    page.browser.size(1280, 900)
    page.click("Remove offers")
    page.see("No data yet.")


@pytest.mark.slow
def test_a_file_that_is_no_table_says_so(page: Page) -> None:
    page.open()
    page.run(DROP.format(content="'hello'", name="'notes.txt'"))
    page.see("not a file of CSV, Excel or Parquet")
    page.see("No data yet.")


@pytest.mark.slow
def test_what_a_model_cannot_read_goes_to_the_llm_and_without_one_the_forms_are_told(tmp_path: Path) -> None:
    shop = tmp_path / "shop.db"
    write_shop(shop)
    sources = build_sources(db=f"sqlite:///{shop}", model=Path(str(files("decisor.demo") / "shop.toml")))
    with window(ServerSettings(sources)) as page:
        page.open("/models/sql")
        page.until("document.querySelector('.then .plot')")
        page.write("free", "costs rise by 10 percent")
        page.click("Compute")
        page.see("Without an LLM the model reads these forms")
        page.click("why Arlo Works")
        page.see("Arlo Works is number 2 of 5")
    reply = "Final answer: Tamsin & Co\nBecause: it stays ahead."
    with writing_llm(lambda body: reply) as url, window(ServerSettings(sources, {"small": f"small@{url}"})) as page:
        page.open("/models/sql")
        page.until("document.querySelector('.then .plot')")
        page.write("free", "costs rise by 10 percent")
        page.click("Ask")
        page.see("What if costs rise by 10 percent? To decide: the supplier to drop.", "h1")
