"""The history of a server, and other parts of it that wait for nobody: what fails for one run holds up no other."""

import asyncio
import socket
from dataclasses import replace
from html import escape
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from decisor.errors import SetupError
from decisor.history.store import History, PastRun
from decisor.server.app import bind_socket
from decisor.server.live import HistoryWriter, LiveRun
from decisor.server.runs import escape_markdown
from decisor.trace.events import ActionResult, TraceEntry
from decisor.types import Observation, Question, Record, Value


async def test_a_trace_that_cannot_be_written_holds_up_no_other_run(tmp_path: Path) -> None:
    keeper = HistoryWriter(History(tmp_path))
    work = asyncio.create_task(keeper.work())
    endless: dict[str, Value] = {}
    endless["again"] = endless
    runs = []
    async with asyncio.timeout(20):
        for text in ("One?", "Two?"):
            past = PastRun(Question(text), state="answered")
            number = await keeper.begin(past)
            runs.append(LiveRun(replace(past, number=number), str(number)))
            keeper.live[number] = runs[-1]
        bad, good = runs
        bad.entries = [TraceEntry(1, 0, 0.0, ActionResult(0, Observation((Record("r1", endless),))))]
        third = PastRun(Question("Three?"))
        _, _, number = await asyncio.gather(keeper.end(bad), keeper.end(good), keeper.begin(third))
    work.cancel()
    await keeper.close()
    assert (bad.is_kept, good.is_kept, number) == (False, True, 3)


def test_a_port_that_is_taken_leaves_no_socket_open() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        before = len(list(Path("/proc/self/fd").iterdir()))
        with pytest.raises(SetupError, match="Cannot listen") as caught:
            bind_socket("127.0.0.1", other.getsockname()[1])
        assert len(list(Path("/proc/self/fd").iterdir())) == before, caught
    with bind_socket("127.0.0.1", 0) as listening:
        assert listening.getsockname()[1]


@pytest.mark.parametrize(
    "text",
    [
        "- x",
        "-",
        "+ x",
        "1. x",
        "12) x",
        "> x",
        "# x",
        "---",
        "- - -",
        "===",
        "--- x",
        "a & b &amp; &lt;b> c",
        "~~x~~",
        "```x",
        "~~~x",
        "-5",
        "-x",
        "1.5 EUR",
        "3-4",
        "*x*",
        "_x_",
        "![x](y)",
        "<script>",
        "a\\b",
        "`x`",
        "| a | b |",
    ],
)
def test_a_text_of_a_run_is_no_markup_in_markdown(text: str) -> None:
    reader = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    assert reader.render(f"before\n{escape_markdown(text)}").removeprefix("<p>before\n") == f"{escape(text)}</p>\n"
    assert reader.render(escape_markdown(text)) == f"<p>{escape(text)}</p>\n"
