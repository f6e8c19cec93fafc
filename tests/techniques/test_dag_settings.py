"""The reasoning DAG's settings: critic, context, chunks, the last node; what an answer of several parts rests on."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.budget import Budget
from decisor.runtime.run import Run
from decisor.techniques.reasoning_dag import ReasoningDAG
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import LLMCall, NodeAnswer, NodeResult, NodeSpan, Span
from decisor.types import Decision, Question
from techniques.documents import Passages, Policy, nodes, part_of
from techniques.table import TableTool

BORN = Question("Where was the director of Arrival born?")
CHAIN = nodes(("1.1", "Who directed the film Arrival?"), ("2.1", "Where was <A1.1> born?"))


async def ask(
    policy: Policy, how: ReasoningDAG = ReasoningDAG(), tools: Passages | None = None, question: Question = BORN
) -> tuple[Decision, Run]:
    run = Run(ScriptedLLM(policy), Toolbox([tools or Passages()]))
    return await how(question, run), run


def answers(run: Run) -> list[NodeAnswer]:
    return [result.answer for result in run.trace.of(NodeResult)]


async def test_where_documents_are_all_there_is_nothing_is_drafted_from_memory_and_no_critic_asked() -> None:
    roles = {}
    for critic in ("auto", "yes"):
        policy = Policy(CHAIN)
        decision, _ = await ask(policy, ReasoningDAG(critic=critic))
        assert decision.answer == "Gentilly, Quebec"
        roles[critic] = [role for role, _ in policy.prompts]
    assert roles["auto"] == ["planner", "relevance", "generator", "relevance", "generator"]
    assert roles["yes"].count("critic") == 2 and roles["yes"].count("generator") == 4


async def test_an_answer_that_stays_unknown_is_looked_for_again_without_a_critic() -> None:
    tool = Passages()
    policy = Policy(CHAIN, {"relevance": lambda p: "Helps: [1]", "generator": lambda p: "Answer: unknown"})
    await ask(policy, ReasoningDAG(retries=1), tools=tool)
    assert len(set(policy.of("relevance"))) > 2, "other documents each time"
    assert not policy.of("critic")


async def test_a_critic_is_asked_where_a_question_may_also_go_to_a_database() -> None:
    table = TableTool()
    policy = Policy(nodes_of_sources())
    run = Run(ScriptedLLM(policy), Toolbox([Passages(), table]), Budget())
    await ReasoningDAG()(BORN, run)
    assert policy.of("critic")


def nodes_of_sources() -> str:
    return json.dumps(
        {"nodes": [{"id": "1.1", "ask": "Who directed the film Arrival?", "needs": [], "source": "passages"}]}
    )


@settings(max_examples=30, deadline=None)
@given(links=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=9))
async def test_no_answer_but_a_parents_reaches_a_node_by_unique_tokens_over_all_prompts(
    links: list[tuple[int, int]],
) -> None:
    needs = {at: sorted({low for low, high in links if high == at and low < at}) for at in range(6)}
    plan = nodes(
        *(
            (f"1.{at + 1}", f"What is thing{at}x of {', '.join(f'<A1.{one + 1}>' for one in needs[at])}?")
            for at in needs
        )
    )

    def token(prompt: str) -> str:
        (number,) = re.findall(r"thing(\d)x", part_of(prompt, "Question"))
        return f"Answer: tok{number}x"

    async def seen(how: ReasoningDAG) -> dict[int, set[int]]:
        policy = Policy(plan, {"generator": token, "relevance": lambda p: "[No]", "rewrite": lambda p: "Search: film"})
        run = Run(ScriptedLLM(policy), Toolbox([Passages()]), Budget())
        await replace(how, max_nodes=9, retries=0)(BORN, run)
        spans = {entry.id: entry for entry in run.trace.entries if isinstance(entry.event, Span | NodeSpan)}
        tokens: dict[int, set[int]] = {}
        for entry in run.trace.entries:
            span = spans.get(entry.span)
            while span is not None and not isinstance(span.event, NodeSpan):
                span = spans.get(span.span)
            if isinstance(entry.event, LLMCall) and span is not None and isinstance(span.event, NodeSpan):
                prompt = "".join(message.content for message in entry.event.messages)
                (node,) = map(int, re.findall(r"thing(\d)x", span.event.question))
                tokens.setdefault(node, set()).update(map(int, re.findall(r"tok(\d)x", prompt)))
        return tokens

    for node, tokens in (await seen(ReasoningDAG(critic="yes"))).items():
        assert tokens - {node} <= set(needs[node])
    filled = await seen(ReasoningDAG(critic="yes", context="filled"))
    deep = [node for node in needs if any(needs[parent] for parent in needs[node])]
    assert all(filled[node] - {node} >= set(needs[node]) for node in deep)


async def test_the_old_way_tells_a_parents_question_with_what_was_filled_in() -> None:
    deep = nodes(
        ("1.1", "Who directed the film Dune?"),
        ("2.1", "Where was <A1.1> born?"),
        ("3.1", "Where was the mayor of <A2.1> born?"),
    )
    for context, words in (
        ("own", "Where was (the answer of Q1.1) born? ->"),
        ("filled", "Where was David Lynch born?"),
    ):
        policy = Policy(deep)
        await ask(policy, ReasoningDAG(context=context))  # type: ignore[arg-type]
        assert words in next(p for p in policy.of("generator") if "the mayor of" in p)


async def test_a_chunk_is_cut_at_its_tokens_and_written_again_with_evidence() -> None:
    plan = nodes(("1.1", "Who directed the film Arrival?"))
    llm = ScriptedLLM(
        [plan, "He was bo", "Evidence needed: yes", "Helps: [1]", "Denis Vil", "leneuve", "Evidence needed: no", "Done"]
    )
    run = Run(llm, Toolbox([Passages()]), Budget())
    decision = await ReasoningDAG(chunk=3, critic="yes")(BORN, run)
    assert decision.answer == "Denis Vil leneuve"
    assert "Written so far\nDenis Vil" in llm.seen[5] and "Denis Villeneuve" in part_of(llm.seen[5], "Documents")


async def test_an_answer_of_two_parts_cites_the_document_of_each() -> None:
    policy = Policy(
        nodes(("1.1", "Where were Denis Villeneuve and David Lynch born?")),
        {"generator": lambda p: "Answer: Gentilly and Missoula\nQuote: none", "relevance": lambda p: "Helps: [1],[2]"},
    )
    decision, run = await ask(policy, ReasoningDAG(relevance="many"))
    (node,) = answers(run)
    assert node.attribution == "attributed" and len(node.also) == 1
    assert decision.evidence.ids == (node.document, *node.also)


@pytest.mark.parametrize(
    ("question", "called"), [("Where was the director of Arrival born?", 0), ("Was he born in Quebec?", 1)]
)
async def test_an_only_last_node_is_the_answer_unless_yes_or_no_is_asked(question: str, called: int) -> None:
    policy = Policy(CHAIN)
    await ask(policy, question=Question(question))
    assert len(policy.of("aggregator")) == called
    policy = Policy(CHAIN)
    await ask(policy, ReasoningDAG(aggregator="always"), question=Question(question))
    assert len(policy.of("aggregator")) == 1
