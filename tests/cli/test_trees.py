"""``decisor trace`` draws a search."""

import io
from pathlib import Path

from rich.console import Console

from decisor.lab.game24 import Puzzle, make_puzzle_question
from decisor.runtime.budget import Budget, Limits
from decisor.runtime.run import Run
from decisor.techniques import build_technique
from decisor.techniques.radagent import RadAgent
from decisor.trace.events import FailedCall, RunStart, SearchNode, SearchProblem, Trace, UnreadableReply
from decisor.trace.file import TraceFile, read_trace
from decisor.views.terminal import event_lines
from decisor.views.transcript import tell_story
from policies.game24 import Game24LLM


async def test_the_whole_tree_is_drawn_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    with file.open("w", encoding="utf-8") as opened:
        trace = Trace(listeners=[TraceFile(opened).write])
        trace.add(RunStart(make_puzzle_question("4 5 6 10"), "radagent", "policy"))
        run = Run(Game24LLM(1), Puzzle.of("4 5 6 10"), Budget(Limits(calls=30)), trace)
        decision = await build_technique("radagent")(make_puzzle_question("4 5 6 10"), run)
    screen = io.StringIO()
    tell_story(read_trace(file), Console(file=screen, width=160))
    drawn = screen.getvalue().partition("Search tree: ")[2].splitlines()
    nodes = len(trace.of(SearchNode))
    assert drawn[0].startswith(f"{nodes} nodes, ")
    branches = [line for line in drawn[1:] if "combine" in line]
    assert len(branches) == nodes
    way = [line for line in branches if "▸" in line]
    assert len(way) == 3 and "[answered]" in way[-1] and "Elo" in way[0]
    assert decision.answer in screen.getvalue()


async def test_one_sequence_is_said_to_be_one(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    with file.open("w", encoding="utf-8") as opened:
        run = Run(
            Game24LLM(1), Puzzle.of("4 5 6 10"), Budget(Limits(calls=30)), Trace(listeners=[TraceFile(opened).write])
        )
        decision = await RadAgent(check=lambda answer: True)(make_puzzle_question("4 5 6 10"), run)
    screen = io.StringIO()
    tell_story(read_trace(file), Console(file=screen, width=160))
    assert "Search tree: 3 nodes, 1 sequence\n" in screen.getvalue()
    assert decision.reasons[-1] == "Chosen by Elo among 1 sequence after no comparison."


def test_only_a_reply_that_cannot_be_read_is_said_to_be_asked_for_again() -> None:
    text = "so it is"
    (line,) = event_lines(UnreadableReply("shape", text))
    assert line.plain == "    retrying: it did not fit the form"
    for event, said in (
        (FailedCall("", text), "the LLM failed"),
        (SearchProblem("many_rounds", text), "many rounds"),
    ):
        (line,) = event_lines(event)
        assert line.plain == f"    {said}: so it is"
