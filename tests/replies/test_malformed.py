"""What models write when they do not write what they should: each row of the corpus reaches its label."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from data import read_security_rows
from decisor.errors import ParseError
from decisor.parsing.labelled import LabelledReply, parse_labelled
from decisor.parsing.plan import parse_plan_graph
from decisor.parsing.reply_form import Form
from decisor.runtime.run import Run
from decisor.techniques.shared.analyst import build_action_shape, build_answer_shape, build_labelled_form
from decisor.tools.toolbox import Toolbox
from decisor.types import Completion, Message, Sampling

TOOLS = ("sql", "cypher", "search_passages", "finish")
QUERY = {"tool": "sql", "input": "SELECT region, revenue FROM v_revenue"}
ARGUMENTS = '{"query": "SELECT region, revenue FROM v_revenue", "database": %s}'
READ_ONLY = '{"query": "SELECT region, revenue FROM v_revenue", "read_only": false}'
TAKEN: dict[str, dict[str, Any]] = {  # docs/decisions/text-replies.md says why
    "llm-097": {"expected": "repair", "expect": QUERY},
    "llm-037": {"expect": QUERY},  # An only argument is the query itself.
    "llm-038": {"expect": QUERY},
    "llm-067": {"expected": "repair", "expect": {"tool": "sql", "input": "17"}},
    "llm-090": {"expected": "repair", "expect": {"tool": "sql", "input": "query='SELECT 1'"}},
    "llm-094": {"expected": "repair", "expect": {"tool": "sql", "input": "SELECT 1"}},
    # A tool that is called finish is a tool, and the names and kinds of arguments are checked by the tool.
    "llm-103": {"expected": "repair", "expect": {"tool": "finish", "input": "EU"}},
    "llm-113": {"expected": "repair", "expect": {"tool": "search_passages", "input": '{"query": "q", "k": "five"}'}},
    "llm-244": {"expected": "repair", "expect": {"tool": "sql", "input": ARGUMENTS % '"mysql://root:pw@127.0.0.1/x"'}},
    "llm-245": {"expected": "repair", "expect": {"tool": "sql", "input": READ_ONLY}},
    "llm-161": {"expected": "repair", "expect": QUERY},
}

NO_OBJECT = [55, 56, 65, 91, 93, 95, 96, 101, 118, 120, 121]
"""Read as text, as they begin with no brace, and without an action."""
TAKEN |= {f"llm-{number:03}": {"reason": "missing_field"} for number in NO_OBJECT}


@dataclass
class Says:
    text: str
    finish: str
    name: str = "says"

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        return Completion((self.text,), finish=self.finish)


def text_of(row: dict[str, Any]) -> str:
    return row["raw"] if "raw" in row else "".join(piece * times for piece, times in row["gen"])


def action_form(observations: int = 1) -> Form[LabelledReply]:
    """Return the form of the techniques that query data: labels, an object or a function call."""
    shapes = (build_action_shape(TOOLS), build_answer_shape())
    return build_labelled_form("action", "", TOOLS, observations, lambda reply: reply, shapes)


def parser(row: dict[str, Any]) -> Callable[[str], dict[str, Any]]:
    context = row.get("context", {})
    seen = context.get("observations")

    def planrag(reply: str) -> dict[str, Any]:
        said = parse_labelled(reply, TOOLS, seen if seen is not None else 1)
        if said.call is None:
            return {"final": said.answer}
        return {"tool": said.call.tool, "input": said.call.input}

    def objects(reply: str) -> dict[str, Any]:
        said = action_form(seen if seen is not None else 1).read(reply)
        assert said.call is not None
        return {"tool": said.call.tool, "input": said.call.input}

    def dag(reply: str) -> dict[str, Any]:
        graph = parse_plan_graph(reply)
        ids = [part.id for part in graph.parts]
        return {"nodes": len(ids), "order": ids}

    return {
        "json_action": objects,
        "planrag_text": planrag,
        "plan_dag": dag,
        "tool_call": objects,
    }[row["format"]]


async def test_a_reply_is_handled_as_labelled() -> None:
    rows = [row | TAKEN.get(row["id"], {}) for row in read_security_rows("malformed_llm_outputs")]
    rows = [row for row in rows if row["format"] != "final_answer"]  # no technique asks for it
    assert len(rows) > 100
    for row in rows:
        run = Run(Says(text_of(row), row["finish_reason"]), Toolbox([]), retries=0)
        if row["expected"] in ("ask_again", "refuse"):
            with pytest.raises(ParseError) as raised:
                await run.ask("?", parser(row))
            assert raised.value.reason == row["reason"], (row["id"], raised.value)
            continue
        assert await run.ask("?", parser(row)) == row["expect"], row["id"]


async def test_a_reply_over_the_limits_is_not_asked_for_again() -> None:
    run = Run(Says('{"a":' * 100_000, "stop"), Toolbox([]), retries=2)
    with pytest.raises(ParseError):
        await run.ask("?", action_form())
    assert run.budget.spent.calls == 1


@pytest.mark.parametrize("piece", ['{"a": "', "Action: sql\n", '\\"', "{", "```json\n", "Step 1: ", "'", "/* ", "**"])
def test_reading_takes_linear_time(piece: str) -> None:
    long = piece * (199_000 // len(piece))
    began = time.process_time()
    for parse in (action_form().read, lambda r: parse_labelled(r, TOOLS, 1), parse_plan_graph):
        for text in (long, "{" + long, "Plan: " + long):
            try:
                parse(text)
            except ParseError:
                continue
    assert time.process_time() - began < 20.0  # minutes, were it the square of the length
