"""A file that a person drops on the start page, in a real Chromium: read, asked about, and removed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from decisor.server.settings import ServerSettings
from report.browser import FOUND
from server.page import Page, window

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
    page.see("offers", ".list b")
    page.see("3 rows", ".schema")
    page.see("yours alone", ".list")
    page.see("Which offers has the lowest cost?")
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
