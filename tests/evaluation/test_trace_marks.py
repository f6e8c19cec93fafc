"""Marks of a trace that was made through a Run, and of the same trace as a store keeps it."""

from decisor.errors import ParseError
from decisor.evaluation.trace_marks import marks
from decisor.lms.scripted import ScriptedLM
from decisor.run import Run
from decisor.tools.calculator import CalculatorTool
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import ActionStart, Entry, Trace
from decisor.trace.file import file_text, read_text
from decisor.types import Action


def stored(trace: Trace) -> list[Entry]:
    return read_text(file_text(trace.entries))


async def test_a_run_without_trouble_has_no_mark() -> None:
    run = Run(ScriptedLM([]), Toolbox([CalculatorTool()]))
    await run.act(Action("calculator", "1 + 1"))
    assert marks(run.trace.entries) == marks(stored(run.trace)) == ()


async def test_each_trouble_leaves_its_mark_once() -> None:
    def parse(reply: str) -> str:
        if reply == "fine":
            return reply
        raise ParseError("There is no tool 'x'.", "unknown_tool" if reply == "x" else "syntax")

    run = Run(ScriptedLM(["?", "fine", "x", "fine"]), Toolbox([CalculatorTool()]))
    await run.ask("say fine", parse)
    assert marks(run.trace.entries) == ("unread_reply",)
    await run.ask("say fine", parse)
    assert marks(run.trace.entries) == ("unread_reply", "unknown_tool")
    await run.act(Action("calculator", "1 / 0"))
    await run.act(Action("calculator", "import os"))
    run.trace.add(ActionStart("calculator", "9 ** 9"))
    expected = ("unread_reply", "unknown_tool", "failed_action", "cut_off")
    assert marks(run.trace.entries) == marks(stored(run.trace)) == expected


async def test_an_action_on_a_tool_that_is_not_there_is_an_unknown_tool() -> None:
    run = Run(ScriptedLM([]), Toolbox([CalculatorTool()]))
    await run.act(Action("calculater", "1"))
    assert marks(run.trace.entries) == ("unknown_tool",)
