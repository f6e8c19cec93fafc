"""The run store: what is acknowledged is there, in a fixed order, once."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from decisor.errors import SetupError
from decisor.lab.benchmark import Outcome
from decisor.lab.evaluation.store import CaseTask, RunStore, open_store
from decisor.lab.evaluation.store_file import StoreError
from decisor.trace.events import Conclusion, LLMCall, Trace
from decisor.types import Completion, Decision, Message, ToolCall, Usage


def outcome(case: str, technique: str = "plan_rag", **more: object) -> Outcome:
    return Outcome("dqa", case, technique, "m", 0, **{"state": "right", **more})  # type: ignore[arg-type]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[str]:
    yield str(tmp_path / "run.db")
    assert not list(tmp_path.glob("*-owner-*"))


def test_outcomes_come_back_equal_and_by_key_whatever_the_order_they_were_finished_in(place: str) -> None:
    kept = [
        outcome("b", gold=("x", "y"), usage=Usage(3, 10, 5, None, 1.5), snapshots={30: True, 60: False}),
        outcome("a", technique="z", metrics={"f1": 0.5}, counts={"replans": 2}, tags=("SR",), reasons=("because é",)),
        outcome("a", state="crashed"),
    ]
    store = open_store(place)
    assert all(store.finish(one, []) for one in kept)
    store.close()
    again = open_store(place, create=False)
    assert again.outcomes() == [kept[2], kept[1], kept[0]]
    again.close()


def test_a_trace_comes_back_as_it_was_in_order(place: str) -> None:
    trace = Trace()
    trace.add(LLMCall("m", [Message("user", "half a pair: \ud800")], ("ok",)))
    trace.add(Conclusion(Decision("Lyon")), 1)
    store = open_store(place)
    store.finish(outcome("a"), trace.entries)
    first, second = store.trace(outcome("a").key)
    assert isinstance(first.event, LLMCall) and list(first.event.messages) == [Message("user", "half a pair: ?")]
    assert second == trace.entries[1]
    assert store.trace(outcome("none").key) == []
    store.close()


def test_a_case_is_finished_once_and_a_late_outcome_of_an_earlier_owner_is_refused(place: str) -> None:
    one, two = open_store(place), open_store(place)
    for store in (one, two):
        store.plan([CaseTask(outcome("a").key)])
    early = one.claim()
    assert early is not None and two.claim() is None
    one.release()
    late = two.claim()
    assert late is not None and (early.fence, late.fence) == (1, 2)
    assert not one.finish(outcome("a", state="wrong"), [], early.fence)
    assert two.finish(outcome("a"), [], late.fence)
    assert not two.finish(outcome("a", state="wrong"), [], late.fence)
    assert [kept.state for kept in one.outcomes()] == ["right"] and one.left() == 0
    one.close()
    two.close()


def test_the_cases_of_a_process_that_is_gone_are_taken_over_and_those_of_a_living_one_are_not(place: str) -> None:
    one, two, three = (open_store(place) for _ in range(3))
    for store in (one, two, three):
        store.plan([CaseTask(outcome(name).key) for name in "abc"])
    held = [store.claim() for store in (one, two, three)]
    assert [claim.key[1] for claim in held if claim] == ["a", "b", "c"] and three.claim() is None
    two.close()
    taken = three.claim()
    assert taken is not None and (taken.key[1], taken.fence) == ("b", 2)
    assert three.claim() is None
    one.close()
    three.close()


def test_other_settings_and_other_data_are_refused_by_name(place: str) -> None:
    store = open_store(place)
    store.begin({"limit_calls": 30, "seed": 1})
    store.begin({"limit_calls": 30, "seed": 1})
    with pytest.raises(SetupError, match="limit_calls 30, not 60"):
        store.begin({"limit_calls": 60, "seed": 1})
    assert store.about() == {"limit_calls": 30, "seed": 1}
    store.plan([CaseTask(outcome("a").key, "one")])
    with pytest.raises(SetupError, match="the data changed"):
        store.plan([CaseTask(outcome("a").key, "two")])
    store.close()


def test_a_reply_bought_twice_is_paid_twice_and_counts_once(place: str) -> None:
    store = open_store(place)
    first = Completion(("one",), Usage(1, 10, 5, 0.25, 2.0), "stop", "m")
    assert store.reply("k") is None
    assert store.keep_reply("k", first) == first
    assert store.keep_reply("k", Completion(("two",), Usage(1, 1, 1, 0.5))) == first
    assert store.reply("k") == first
    assert store.spent() == Usage(2, 11, 6, 0.75, 2.0)
    store.keep_reply("cut", Completion(("half",), Usage(1, 1, 1, None), "length"), usable=False)
    assert store.reply("cut") is None and store.spent().dollars is None
    store.close()


def test_a_reply_keeps_its_calls_and_thoughts(place: str) -> None:
    store = open_store(place)
    calls = (ToolCall("call_1", "sql", '{"query": "SELECT 1"}'), ToolCall("", "plan", "{"))
    turn = Message("assistant", "I look.", calls, raw={"model": "m", "chat": {"reasoning": "Rents.", "n": [1, None]}})
    reply = Completion(("I look.",), Usage(1, 10, 5, 0.25, 2.0), turn=turn)
    store.keep_reply("k", reply)
    assert store.reply("k") == reply
    store.close()


def test_what_a_model_wrote_may_hold_any_character(place: str) -> None:
    store = open_store(place)
    odd = "nothing \x00, \\u0000, \\\x00, half \ud800"
    reply = store.keep_reply("k", Completion((odd,), Usage(1, 10, 5, 0.25, 2.0)))
    assert store.reply("k") == reply or store.reply("k") == Completion((odd.replace("\ud800", "?"),), reply.usage)
    assert store.spent() == Usage(1, 10, 5, 0.25, 2.0)
    store.finish(outcome("a", state="crashed", text=odd), [])
    assert store.reopen(["crashed"]) == 1 and store.outcomes() == []
    store.close()


def test_what_is_left_out_is_not_claimed_and_what_was_finished_stays(place: str) -> None:
    store = open_store(place)
    keys = [outcome(case, technique=technique).key for case in ("a", "b", "c") for technique in ("t", "u")]
    store.plan([CaseTask(key) for key in keys])
    assert store.finish(outcome("a", technique="u"), [])
    held = store.claim()
    assert held is not None and held.key == keys[0]
    assert store.leave_out(held.key[0], "t") == 3 and store.left() == 2
    assert [claim.key for claim in iter(store.claim, None)] == [keys[3], keys[5]]
    assert store.leave_out(held.key[0], "t") == 0 and [one.key for one in store.outcomes()] == [keys[1]]
    store.close()


def test_cases_in_a_state_can_be_opened_again(place: str) -> None:
    store = open_store(place)
    for name, state in (("a", "crashed"), ("b", "right")):
        store.finish(outcome(name, state=state), [])
    assert store.reopen(["crashed"]) == 1
    assert [kept.case for kept in store.outcomes()] == ["b"] and store.left() == 1
    other = open_store(place)
    assert other.left() == 0 and other.claim() is None, "what it did not plan is not its business"
    other.close()
    assert store.finish(outcome("a"), [])
    store.close()


def connection(store: RunStore) -> apsw.Connection:
    return store.db.connection


def test_a_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database " * 100)
    with pytest.raises(SetupError, match="no run store"):
        open_store(path)
    assert path.read_text().startswith("not a database")
    other = open_store(tmp_path / "other.db")
    connection(other).execute("PRAGMA application_id = 7")
    other.close()
    with pytest.raises(SetupError, match="no run store"):
        open_store(tmp_path / "other.db")
    with pytest.raises(SetupError, match="There is no run store"):
        open_store(tmp_path / "missing.db", create=False)


def fill(store: RunStore) -> int:
    """How many replies were kept before the disk was full."""
    kept = 0
    with contextlib.suppress(StoreError):
        while True:
            store.keep_reply(f"k{kept}", Completion((f"{kept}" * 2000,)))
            kept += 1
    return kept


def test_on_a_full_disk_nothing_acknowledged_is_lost_and_work_goes_on_after_room_is_made(tmp_path: Path) -> None:
    store = open_store(tmp_path / "run.db")
    connection(store).execute("PRAGMA max_page_count = 40")
    kept = fill(store)
    assert kept > 3
    with pytest.raises(StoreError, match="is the disk full"):
        store.keep_reply("one more", Completion(("x" * 20_000,)))
    assert connection(store).execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert store.spent().calls == kept and store.reply(f"k{kept}") is None
    connection(store).execute("PRAGMA max_page_count = 4000")
    store.keep_reply("more", Completion(("x" * 2000,)))
    store.close()
    again = open_store(tmp_path / "run.db")
    assert again.spent().calls == kept + 1
    again.close()


def test_a_new_store_is_its_owners_alone(tmp_path: Path) -> None:
    store = open_store(tmp_path / "run.db")
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.glob("run.db*")}
    store.close()
    assert modes["run.db"] == 0o600 and set(modes.values()) == {0o600}
