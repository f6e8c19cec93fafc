"""Every class of event: written and read back as it was, told on a terminal without what could steer it."""

from __future__ import annotations

import io
import json
import re
from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from decisor.system.serialization import DecodeError, DocumentFormat
from decisor.trace.events import Event, LLMCall, RunStart, Trace, TraceEntry
from decisor.trace.file import CLASSES as BY_NAME
from decisor.trace.file import format_trace_array, format_trace_file, read_trace_text
from decisor.types import Question
from decisor.views.page import UNDRAWN, story_json
from decisor.views.terminal import LiveView
from decisor.views.transcript import tell_story
from traces.every_event import CLASSES, filled, strategy

HOSTILE = "a\x1b]8;;http://evil\x07\x9b2J\r\u202e\u2066[red]b[/red]\x00\u200b"
SHOWN = "a]8;;http://evil2J[red]b[/red]"


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
@settings(max_examples=25)
@given(data=st.data())
def test_each_event_is_read_back_as_it_was_written(kind: type[Event], data: st.DataObject) -> None:
    event = data.draw(strategy(kind))
    entry = TraceEntry(1, 0, 0.25, event)
    assert read_trace_text(format_trace_file([entry])) == [entry]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_field_of_another_type_is_refused(kind: type[Event]) -> None:
    whole = json.loads(format_trace_array([TraceEntry(1, 0, 0.0, filled(kind, "x"))]))[0]["data"]
    events = DocumentFormat(kind)
    assert events.decode_value(whole) == filled(kind, "x")
    for name in whole:
        with pytest.raises(DecodeError):
            events.decode_value({**whole, name: {"no": [{"such": "type"}]} if not isinstance(whole[name], dict) else 7})


def test_every_class_has_a_name_of_its_own_in_the_file() -> None:
    assert len(BY_NAME) == len(CLASSES) == len({kind.__name__ for kind in CLASSES})


@pytest.mark.parametrize("word", [0, -1], ids=["first word", "last word"])
@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_no_text_of_any_event_steers_a_terminal_or_is_read_as_markup(kind: type[Event], word: int) -> None:
    trace = Trace()
    trace.add(filled(kind, HOSTILE, lambda words: words[word]))
    screen = io.StringIO()
    console = Console(file=screen, width=400, force_terminal=False, highlight=False)
    for full in (False, True):
        tell_story(read_trace_text(format_trace_file(trace.entries)), console, full)
    with LiveView(console) as view:
        view.hear(TraceEntry(1, 0, 0.0, RunStart(Question(HOSTILE, HOSTILE, HOSTILE))))
        view.hear(trace.entries[0])
    text = screen.getvalue()
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202e\u2066]", text)
    assert SHOWN in text, "the rest of it is there as it is, markup too"


def test_a_coloured_terminal_gets_only_the_colours_that_are_ours() -> None:
    trace = Trace()
    for kind in CLASSES:
        trace.add(filled(kind, HOSTILE))
    screen = io.StringIO()
    tell_story(trace.entries, Console(file=screen, width=400, force_terminal=True, color_system="standard"), True)
    escapes = set(re.findall(r"\x1b.{0,3}", screen.getvalue()))
    assert escapes and all(re.match(r"\x1b\[\d", escape) for escape in escapes)
    assert "\x1b[2J" not in screen.getvalue() and "\x9b" not in screen.getvalue()


def test_the_page_gets_a_story_of_every_event() -> None:
    trace = Trace()
    for kind in CLASSES:
        trace.add(filled(kind, "<b>word"))
    story = json.loads(story_json(trace.entries))["entries"]
    drawn = {kind.__name__ for kind in CLASSES} - {kind.__name__ for kind in UNDRAWN}
    script = (files("decisor.views") / "static" / "story.js").read_text("utf-8")
    assert drawn - set(re.findall(r'case "(\w+)"', script)) == {"RunStart", "RunUsage", "GraphResult"}
    assert drawn == {row["event"] for row in story}


def test_the_array_of_a_trace_has_every_prompt_whole() -> None:
    trace = Trace()
    for _ in range(2):
        trace.add(filled(LLMCall, "the same words " * 20))
    first, second = json.loads(format_trace_array(trace.entries))
    assert first["data"]["messages"] == second["data"]["messages"]
    assert (first["event"], first["span"], second["id"]) == ("LLMCall", 0, 2)
