"""``decisor trace`` draws a search."""

import io
from pathlib import Path

from rich.console import Console

from decisor.benchmarks.game24.load import question
from decisor.benchmarks.game24.puzzle import Puzzle
from decisor.budget import Budget, Limits
from decisor.cli.trace import tell_story
from decisor.run import Run
from decisor.story.live import lines_of
from decisor.techniques import technique
from decisor.techniques.radagent import RadAgent
from decisor.trace.events import Event, Trace, read_trace
from policies.game24 import Game24LM


async def test_the_whole_tree_is_drawn_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    with file.open("w", encoding="utf-8") as opened:
        trace = Trace(file=opened)
        trace.add("run", question=question("4 5 6 10"), technique="radagent", settings={}, lm="policy")
        run = Run(Game24LM(1), Puzzle.of("4 5 6 10"), Budget(Limits(calls=30)), trace)
        decision = await technique("radagent")(question("4 5 6 10"), run)
    screen = io.StringIO()
    tell_story(read_trace(file), Console(file=screen, width=160))
    drawn = screen.getvalue().partition("Search tree: ")[2].splitlines()
    nodes = sum(event.data.get("name") == "node" for event in trace.events)
    assert drawn[0].startswith(f"{nodes} nodes, ")
    branches = [line for line in drawn[1:] if "combine" in line]
    assert len(branches) == nodes
    way = [line for line in branches if "▸" in line]
    assert len(way) == 3 and "[answered]" in way[-1] and "Elo" in way[0]
    assert decision.answer in screen.getvalue()


async def test_one_sequence_is_said_to_be_one(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    with file.open("w", encoding="utf-8") as opened:
        run = Run(Game24LM(1), Puzzle.of("4 5 6 10"), Budget(Limits(calls=30)), Trace(file=opened))
        decision = await RadAgent(check=lambda answer: True)(question("4 5 6 10"), run)
    screen = io.StringIO()
    tell_story(read_trace(file), Console(file=screen, width=160))
    assert "Search tree: 3 nodes, 1 sequence\n" in screen.getvalue()
    assert decision.reasons[-1] == "Chosen by Elo among 1 sequence after no comparison."


def test_only_a_reply_that_cannot_be_read_is_said_to_be_asked_for_again() -> None:
    for problem, said in (("reply", "asked again"), ("lm", "the LM failed"), ("many_rounds", "many rounds")):
        (line,) = lines_of(Event(1, 0, "note", 0.0, {"problem": problem, "text": "so it is"}))
        assert line.plain == f"    {said}: so it is"
