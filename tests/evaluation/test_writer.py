"""A store behind an event loop: what is known to be missing is not looked up, what others bought is found."""

from __future__ import annotations

from pathlib import Path

from decisor.lab.evaluation.store import CaseTask, StoreThread, Writer, open_store
from decisor.types import Completion, Usage

REPLY = Completion(("Lyon",), Usage(1, 10, 5), model="m")


async def test_replies_of_earlier_runs_and_of_other_processes_are_found(tmp_path: Path) -> None:
    earlier = open_store(tmp_path / "run.db")
    earlier.keep_reply("kept", REPLY)
    earlier.plan([CaseTask(("b", case, "t", "m", 0)) for case in "xy"])
    store = open_store(tmp_path / "run.db")
    writer = Writer(StoreThread(store))
    await writer.do(lambda store: store.plan([CaseTask(("b", case, "t", "m", 0)) for case in "xy"]))
    await writer.look()
    assert await writer.reply("kept") == REPLY
    assert await writer.reply("other's") is None
    earlier.keep_reply("other's", REPLY)
    earlier.keep_reply("wasted", REPLY, usable=False)
    claim = await writer.claim()
    assert claim is not None and claim.key == ("b", "x", "t", "m", 0)
    assert await writer.reply("other's") == REPLY
    assert await writer.reply("wasted") is None
    await writer.keep_reply("own", REPLY)
    assert await writer.reply("own") == REPLY
    await writer.close()
    store.close()
    earlier.close()


async def test_what_is_missing_for_sure_costs_no_query(tmp_path: Path) -> None:
    store = open_store(tmp_path / "run.db")
    writer = Writer(StoreThread(store))
    await writer.look()
    await writer.close()
    store.close()  # so that a query would fail
    assert await writer.reply("missing") is None
