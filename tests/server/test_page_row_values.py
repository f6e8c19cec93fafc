"""A tool is to get a value of a row: the page asks who is there, and only their yes sends it."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from decisor.server.settings import ServerSettings
from decisor.session.sources import build_sources
from functions.test_row_values import SECRET, api, shop  # noqa: F401 (fixtures)
from report.browser import FOUND
from server.page import window, writing_llm

pytestmark = pytest.mark.skipif(not FOUND, reason="needs chromium and chromedriver")
CALL = "Thought: send\nAction: weather\nAction input: " + json.dumps({"place": SECRET})
LOOK = "Thought: read\nAction: sql\nAction input: SELECT * FROM site"


def reply(body: dict[str, Any]) -> str:
    text = json.dumps(body["messages"])
    if "Unclear: none" in text:
        return "Unclear: none"
    if "Action: weather" in text:
        return "Final answer: elm\nBecause: it is there [o1.r1]"
    return CALL if "o1.r1" in text.rpartition("# So far")[2] else LOOK


@pytest.mark.slow
@pytest.mark.parametrize(("says", "count"), [("do not send it", 0), ("send it", 1)])
def test_the_page_asks_whether_a_tool_gets_a_value_of_a_row(
    says: str,
    count: int,
    shop: str,  # noqa: F811
    api: tuple[str, list[str]],  # noqa: F811
) -> None:
    gate = threading.Event()
    gate.set()
    with writing_llm(reply, gate) as url:
        serving = ServerSettings(build_sources(db=shop, tools=api[0]), {"small": f"small@{url}"})
        with window(serving) as page:
            page.ask("Which site is best for plant Delta?", technique="iter_rag")
            page.see("May weather get values of rows")
            page.picture("row-values", at=".approval")
            said = page.text()
            assert SECRET in said and "weather" in said and not api[1]
            page.click(says)
            page.answered()
            assert len(api[1]) == count
