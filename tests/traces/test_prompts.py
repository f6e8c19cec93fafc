"""Prompts kept as what they add: the same when read, and small."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decisor.system.serialization import json_value
from decisor.trace.events import LLMCall, Trace, events_of
from decisor.trace.file import TraceFile, format_trace_file, read_trace, read_trace_text
from decisor.trace.prompts import TracePrompt
from decisor.types import Message

SYSTEM = Message("system", "You decide by data. " * 50)
WORDS = st.text("ab \n\ud800é", max_size=8)
MESSAGES = st.lists(st.builds(Message, st.sampled_from(("system", "user", "assistant")), WORDS), max_size=4)


def prompt_of(trace: Trace, *messages: Message, span: int = 0) -> TracePrompt:
    """Of a call that is added to the trace."""
    trace.add(LLMCall("m", messages, ("yes",)), span)
    return prompts_of(trace)[-1]


def prompts_of(trace: Trace) -> list[TracePrompt]:
    return [call.messages for call in trace.of(LLMCall) if isinstance(call.messages, TracePrompt)]


def history(step: int) -> Message:
    """As a technique writes it: the steps between a question and what is left to do."""
    steps = "".join(f"Action {n}: SELECT {n}\nObservation: {'row ' * 50}\n" for n in range(step))
    return Message("user", f"Which is best?\n{steps}You have {99 - step} actions left.")


@pytest.mark.slow
@given(st.lists(st.tuples(MESSAGES, st.integers(0, 2)), max_size=12))
def test_any_prompts_are_read_back_as_they_were(prompts: list[tuple[list[Message], int]]) -> None:
    trace = Trace()
    for messages, span in prompts:
        prompt_of(trace, *messages, span=span)
    assert [list(prompt) for prompt in prompts_of(trace)] == [messages for messages, _ in prompts]
    valid = [[m.content.encode("utf-8", "replace").decode() for m in messages] for messages, _ in prompts]
    calls = events_of(read_trace_text(format_trace_file(trace.entries)), LLMCall)
    assert [[m.content for m in call.messages] for call in calls] == valid


def test_a_history_that_grows_is_kept_in_proportion_to_its_length() -> None:
    sizes = []
    for calls in (20, 40, 80):
        trace = Trace()
        for step in range(calls):
            assert list(prompt_of(trace, SYSTEM, history(step))) == [SYSTEM, history(step)]
        sizes.append(len(format_trace_file(trace.entries)))
    whole = sum(len(SYSTEM.content) + len(history(step).content) for step in range(80))
    assert sizes[2] < whole / 8
    assert sizes[2] < 3.2 * sizes[1]


def test_messages_that_are_added_are_all_that_is_kept() -> None:
    trace = Trace()
    talk = [SYSTEM, Message("user", "Where?")]
    prompt_of(trace, *talk)
    talk += [Message("assistant", "In Lyon."), Message("user", "Sure?")]
    prompt = prompt_of(trace, *talk)
    assert json_value(prompt.as_addition()) == {
        "since": 1,
        "same": 2,
        "start": 0,
        "end": 0,
        "new": [{"role": "assistant", "content": "In Lyon."}, {"role": "user", "content": "Sure?"}],
    }
    assert len(prompt) == 4 and prompt[-1].content == "Sure?"
    assert list(prompt) == talk


def test_conversations_side_by_side_build_each_on_its_own() -> None:
    trace = Trace()
    for step in range(3):
        for span in (5, 6):
            prompt_of(trace, Message("user", f"{span} " * 100 + f"step {step}"), span=span)
    builds_on = [prompt.before.entry if prompt.before else None for prompt in prompts_of(trace)]
    assert builds_on == [None, None, 1, 2, 3, 4]


def test_a_trace_file_cut_anywhere_has_its_prompts_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with path.open("w", encoding="utf-8") as file:
        trace = Trace(listeners=[TraceFile(file).write])
        for step in range(5):
            prompt_of(trace, SYSTEM, history(step))
    data = path.read_bytes()
    for cut in range(0, len(data), 97):
        path.write_bytes(data[:cut])
        for step, call in enumerate(events_of(read_trace(path), LLMCall)):
            assert list(call.messages) == [SYSTEM, history(step)]
