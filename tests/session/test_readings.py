"""A question with two readings: asked in one line, or computed both ways; never in the way of a run that is clear."""

import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import decisor
from decisor.errors import SetupError
from decisor.graphs.load import GraphEdge, GraphNode, load_nodes_and_edges
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.budget import Limits
from decisor.semantics.readings import OpenReading
from decisor.trace.events import LLMCall, Span, events_of
from decisor.types import Message
from definition_shops import definitions_file, shop
from servers.openai_server import serve_threaded

QUESTION = "Which customer has the most revenue?"
UNCLEAR = "Thought: discounts.\nUnclear: revenue | after discounts, with line.discount | before discounts"
PLAN = (
    "Plan: [Step 1: add up]\nThought: t\nAction: sql\nAction input: SELECT c.name, SUM({sum}) AS total "
    "FROM customer c JOIN purchase p ON p.customer_id = c.id JOIN line l ON l.purchase_id = p.id GROUP BY 1 "
    "ORDER BY 2 DESC"
)
NET, GROSS = "l.price * l.quantity * (1 - l.discount)", "l.price * l.quantity"
TEXT = {"calling": "text"}


def analyst(unclear: str = UNCLEAR, prompts: list[str] | None = None) -> ScriptedLLM:
    """Judges readings as told, computes what the rules of the question say, and names the first row."""

    def reply(messages: Sequence[Message]) -> str:
        text = "\n".join(message.content for message in messages)
        if prompts is not None:
            prompts.append(text)
        if "# How to judge" in text:
            return unclear
        net = '"revenue": after discounts' in text
        if "[o" in messages[-1].content and ".r1] |" in messages[-1].content:
            id = messages[-1].content.rpartition(".r1] |")[0].rpartition("[")[2]
            return f"Final answer: {'Cy' if net else 'Ann'}\nBecause: it is first [{id}.r1]"
        return PLAN.format(sum=NET if net else GROSS)

    return ScriptedLLM(reply)


def test_a_person_is_asked_in_one_line_and_what_they_say_is_followed(tmp_path: Path) -> None:
    lines: list[str] = []

    async def person(one: OpenReading) -> str:
        lines.append(one.line())
        return "2"

    result = decisor.ask(QUESTION, db=shop(tmp_path), llm=analyst(), reader=person, settings=TEXT)
    assert lines == ['What is meant by "revenue"? 1 after discounts, with line.discount, 2 before discounts']
    assert result.answer == "Ann" and result.decision.assumptions == ('"revenue" means before discounts (by you)',)
    assert not [span for span in events_of(result.trace, Span) if span.name.startswith("other reading")]


@pytest.mark.parametrize("answer", ["only closed ones", "  "])
def test_a_person_may_answer_in_their_own_words_or_not_know(tmp_path: Path, answer: str) -> None:
    prompts: list[str] = []

    async def person(one: OpenReading) -> str:
        return answer

    result = decisor.ask(QUESTION, db=shop(tmp_path), llm=analyst(prompts=prompts), reader=person, settings=TEXT)
    if answer.strip():
        assert '- "revenue": only closed ones' in prompts[1]
        assert result.decision.assumptions == ('"revenue" means only closed ones (by you)',)
    else:
        assert "the choice changes the decision" in " ".join(result.decision.reasons)


def test_where_nobody_can_be_asked_both_are_computed_and_the_decision_says_what_the_choice_does(tmp_path: Path) -> None:
    result = decisor.ask(QUESTION, db=shop(tmp_path), llm=analyst(), settings=TEXT)
    assert result.answer == "Cy"
    assert result.decision.reasons[-1] == (
        '"revenue" was taken as after discounts, with line.discount; it could mean before discounts. That gives Ann: '
        "the choice changes the decision."
    )
    assert result.decision.assumptions == ('"revenue" means after discounts, with line.discount',)
    assert str(result).count("Decision:") == 1 and result.evidence.ids == ("o1.r1",)


def test_the_words_of_a_question_to_a_graph_can_be_open_too(tmp_path: Path) -> None:
    url = f"kglite:///{tmp_path}/shop.kgl"
    nodes = [GraphNode("Customer", {"name": "Ann"}), GraphNode("Customer", {"name": "Cy"})]
    nodes += [
        GraphNode("Line", {"price": price, "discount": discount}) for price, discount in ((60.0, 0.5), (55.0, 0.0))
    ]
    load_nodes_and_edges(url, nodes, [GraphEdge("BOUGHT", 0, 2), GraphEdge("BOUGHT", 1, 3)])

    def reply(messages: Sequence[Message]) -> str:
        text = "\n".join(message.content for message in messages)
        if "# How to judge" in text:
            assert "(:Line)" in text and "- revenue: " in text, "the graph, and what the rules suspect"
            return "Unclear: revenue | after discounts | before discounts"
        value = "l.price * (1 - l.discount)" if '"revenue": after discounts' in text else "l.price"
        if "[o" in messages[-1].content and ".r1] |" in messages[-1].content:
            return f"Final answer: {'Ann' if value == 'l.price' else 'Cy'}\nBecause: it is first [o1.r1]"
        return (
            "Plan: [Step 1: add up]\nThought: t\nAction: cypher\nAction input: MATCH (c:Customer)-[:BOUGHT]->"
            f"(l:Line) RETURN c.name AS name, sum({value}) AS total ORDER BY total DESC"
        )

    result = decisor.ask(QUESTION, graph=url, llm=ScriptedLLM(reply), settings=TEXT)
    assert result.answer == "Cy" and result.decision.assumptions == ('"revenue" means after discounts',)
    assert result.decision.reasons[-1].endswith("That gives Ann: the choice changes the decision.")


def test_a_choice_that_changes_nothing_is_said_to_change_nothing(tmp_path: Path) -> None:
    llm = analyst("Unclear: revenue | all purchases | only the closed ones")
    result = decisor.ask(QUESTION, db=shop(tmp_path), llm=llm, settings=TEXT)
    assert result.answer == "Ann"
    assert result.decision.reasons[-1].endswith(
        "That gives the same answer, so the choice does not change the decision."
    )


def test_a_limit_that_leaves_no_room_for_the_other_reading_is_said(tmp_path: Path) -> None:
    result = decisor.ask(QUESTION, db=shop(tmp_path), llm=analyst(), settings=TEXT, limits=Limits(calls=3))
    assert result.answer == "Cy" and "which was not computed: " in result.decision.reasons[-1]


@pytest.mark.parametrize(
    "question",
    ["Which customer has the most gross revenue?", "How many customers are there?", "Which product is that?"],
)
def test_a_clear_question_costs_no_call(tmp_path: Path, question: str) -> None:
    result = decisor.ask(question, db=shop(tmp_path), llm=analyst(), settings=TEXT)
    assert result.usage.calls == 2 and not result.decision.assumptions


def test_an_llm_that_finds_nothing_open_lets_the_question_be(tmp_path: Path) -> None:
    result = decisor.ask(QUESTION, db=shop(tmp_path), llm=analyst("Unclear: none"), settings=TEXT)
    assert (result.usage.calls, result.decision.assumptions) == (3, ())


def test_readings_may_be_off_and_always_looked_for(tmp_path: Path) -> None:
    url = shop(tmp_path)
    assert decisor.ask(QUESTION, db=url, llm=analyst(), settings=TEXT, readings="off").usage.calls == 2
    clear = decisor.ask("How many customers?", db=url, llm=analyst("Unclear: none"), settings=TEXT, readings="always")
    assert clear.usage.calls == 3
    with pytest.raises(SetupError, match="readings should be 'auto', 'always' or 'off'"):
        decisor.ask(QUESTION, db=url, llm=analyst(), readings="sometimes")  # type: ignore[arg-type]


def test_a_definition_is_followed_and_nobody_is_asked(tmp_path: Path) -> None:
    async def person(one: OpenReading) -> str:
        raise AssertionError(one)

    prompts: list[str] = []
    result = decisor.ask(
        "Which customer has the most revenue in fiscal 2024?",
        db=shop(tmp_path),
        reader=person,
        settings=TEXT,
        llm=analyst(prompts=prompts),
        definitions=definitions_file(tmp_path),
    )
    assert "# How to judge" not in prompts[0] and "metric.net_revenue" in prompts[0]
    # The third call: the query computed revenue in another way than its definition, and was told so.
    assert result.usage.calls == 3


def test_an_llm_that_asks_about_what_is_defined_is_not_followed(tmp_path: Path) -> None:
    async def person(one: OpenReading) -> str:
        raise AssertionError(one)

    result = decisor.ask(
        QUESTION,
        db=shop(tmp_path),
        reader=person,
        llm=analyst(),
        settings=TEXT,
        readings="always",
        definitions=definitions_file(tmp_path),
    )
    assert result.usage.calls == 4


def test_replies_that_cannot_be_read_do_not_stop_the_run(tmp_path: Path) -> None:
    result = decisor.ask(QUESTION, db=shop(tmp_path), llm=analyst("I do not know."), settings=TEXT)
    assert result.answer == "Ann" and any("could not be judged" in line for line in str(result).splitlines())


def test_the_prompt_for_readings_has_question_data_and_suspicion(tmp_path: Path) -> None:
    prompts: list[str] = []
    result = decisor.ask(QUESTION, db=shop(tmp_path), llm=analyst(prompts=prompts), settings=TEXT, rules="Be fair.")
    assert "table line" in prompts[0] and f"Be fair.\n\n{QUESTION}" in prompts[0]
    assert "- revenue: after discount or before discount" in prompts[0]
    calls = list(events_of(result.trace, LLMCall))
    assert (
        'Be fair.\n\nWhat is meant, where words could mean two things:\n- "revenue": after'
        in calls[1].messages[-1].content
    )


def command(url: str, tmp_path: Path) -> list[str]:
    return [
        sys.executable,
        "-m",
        "decisor",
        "ask",
        QUESTION,
        "--db",
        shop(tmp_path),
        "--llm",
        f"toy@{url}",
        "-o",
        "calling=text",
        "--no-history",
    ]


def replies(body: dict[str, object]) -> str:
    messages = [Message(turn["role"], turn["content"]) for turn in body["messages"]]  # type: ignore[attr-defined]
    return analyst().replies(messages)  # type: ignore[operator,return-value]


@pytest.mark.slow
def test_the_command_without_a_terminal_never_waits(tmp_path: Path) -> None:
    with serve_threaded(replies) as url:
        done = subprocess.run(
            command(url, tmp_path), stdin=subprocess.PIPE, capture_output=True, text=True, timeout=60, check=False
        )
    assert done.returncode == 0 and "the choice changes the decision" in done.stdout


@pytest.mark.slow
def test_the_command_at_a_terminal_asks_in_one_line(tmp_path: Path) -> None:
    mine, theirs = pty.openpty()
    with serve_threaded(replies) as url:
        process = subprocess.Popen(command(url, tmp_path), stdin=theirs, stdout=subprocess.PIPE, stderr=theirs)
        os.close(theirs)
        shown_text = b""
        while b"Enter for both" not in shown_text:
            shown_text += os.read(mine, 1000)
        os.write(mine, b"2\n")
        out, _ = process.communicate(timeout=60)
    os.close(mine)
    assert b'What is meant by "revenue"? 1 after discounts' in shown_text
    assert "Decision: Ann" in out.decode() and process.returncode == 0
