"""Marks of a trace that was made through a Run, and of the same trace as a store keeps it."""

from decisor.errors import ParseError
from decisor.lab.evaluation.case_run import find_trace_marks
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.run import Run
from decisor.tools.calculator import CalculatorTool
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import ActionStart, Trace, TraceEntry
from decisor.trace.file import format_trace_file, read_trace_text
from decisor.types import Action


def stored(trace: Trace) -> list[TraceEntry]:
    return read_trace_text(format_trace_file(trace.entries))


async def test_a_run_without_trouble_has_no_mark() -> None:
    run = Run(ScriptedLLM([]), Toolbox([CalculatorTool()]))
    await run.act(Action("calculator", "1 + 1"))
    assert find_trace_marks(run.trace.entries) == find_trace_marks(stored(run.trace)) == ()


async def test_each_trouble_leaves_its_mark_once() -> None:
    def parse(reply: str) -> str:
        if reply == "fine":
            return reply
        raise ParseError("There is no tool 'x'.", "unknown_tool" if reply == "x" else "syntax")

    run = Run(ScriptedLLM(["?", "fine", "x", "fine"]), Toolbox([CalculatorTool()]))
    await run.ask("say fine", parse)
    assert find_trace_marks(run.trace.entries) == ("unread_reply",)
    await run.ask("say fine", parse)
    assert find_trace_marks(run.trace.entries) == ("unread_reply", "unknown_tool")
    await run.act(Action("calculator", "1 / 0"))
    await run.act(Action("calculator", "import os"))
    run.trace.add(ActionStart("calculator", "9 ** 9"))
    expected = ("unread_reply", "unknown_tool", "failed_action", "cut_off")
    assert find_trace_marks(run.trace.entries) == find_trace_marks(stored(run.trace)) == expected


async def test_an_action_on_a_tool_that_is_not_there_is_an_unknown_tool() -> None:
    run = Run(ScriptedLLM([]), Toolbox([CalculatorTool()]))
    await run.act(Action("calculater", "1"))
    assert find_trace_marks(run.trace.entries) == ("unknown_tool",)
