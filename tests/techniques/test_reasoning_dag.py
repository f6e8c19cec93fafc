"""The reasoning DAG, as transcripts of its experts over a few real documents."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from decisor.errors import LLMError, ParseError
from decisor.llms.scripted import ScriptedLLM
from decisor.parsing.figures import without_citations
from decisor.runtime.budget import Budget, Limits
from decisor.runtime.run import Run
from decisor.techniques import build_technique
from decisor.techniques.dag.experts import Experts, ask_expert_with, criticise, read_quoted_answer
from decisor.techniques.reasoning_dag import ReasoningDAG
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import ActionStart, GraphResult, NodeAnswer, NodeResult
from decisor.types import Decision, Question
from techniques.documents import DOCUMENTS, Passages, Policy, nodes, part_of
from techniques.table import TableTool

BORN = Question("Where was the director of Arrival born?")
CHAIN = nodes(("1.1", "Who directed the film Arrival?"), ("2.1", "Where was <A1.1> born?"))
BOTH = nodes(
    ("1.1", "Who directed the film Arrival?"),
    ("1.2", "Who directed the film Dune?"),
    ("2.1", "Where was <A1.1> born?"),
    ("2.2", "Where was <A1.2> born?"),
)


async def ask(
    policy: Policy,
    how: ReasoningDAG = ReasoningDAG(),
    tools: Passages | None = None,
    question: Question = BORN,
    limits: Limits = Limits(),
) -> tuple[Decision, Run]:
    run = Run(ScriptedLLM(policy), Toolbox([tools or Passages()]), Budget(limits))
    return await how(question, run), run


def answers(run: Run) -> list[NodeAnswer]:
    return [result.answer for result in run.trace.of(NodeResult)]


def counts_in(run: Run) -> Mapping[str, int]:
    (result,) = run.trace.of(GraphResult)
    return result.counts


async def test_answers_flow_along_the_edges_and_each_names_its_document() -> None:
    policy = Policy(CHAIN)
    decision, run = await ask(policy)
    assert (decision.answer, decision.stopped) == ("Gentilly, Quebec", "answered")
    first, second = answers(run)
    assert (first.answer, second.question) == ("Denis Villeneuve", "Where was Denis Villeneuve born?")
    assert (first.attribution, first.support) == ("attributed", "It was directed by Denis Villeneuve.")
    assert decision.evidence.ids == (first.document, second.document)
    assert decision.reasons[-1] == f"The answer stands in [{second.document}]."
    counts = counts_in(run)
    assert (counts["depth"], counts["retrievals"], counts["nodes_attributed"], counts["plan_fallback"]) == (2, 2, 2, 0)


async def test_a_node_sees_its_question_its_parents_answers_and_its_documents_and_nothing_else() -> None:
    deep = nodes(
        ("1.1", "Who directed the film Arrival?"),
        ("1.2", "Who directed the film Dune?"),
        ("2.1", "Where was <A1.2> born?"),
        ("3.1", "Where was the mayor of <A2.1> born?"),
    )
    policy = Policy(deep)
    await ask(policy, question=Question("An unmistakable main question?", "Rules that nobody else sees."))
    sent = [prompt for role, prompt in policy.prompts if role not in ("planner", "aggregator")]
    assert not [prompt for prompt in sent if "unmistakable" in prompt or "nobody else" in prompt]
    of_2_1 = [prompt for prompt in sent if part_of(prompt, "Question") == "Where was David Lynch born?"]
    assert of_2_1
    assert all("Q1.2: Who directed the film Dune? -> David Lynch" in p for p in of_2_1 if "# Known answers" in p)
    assert not [prompt for prompt in of_2_1 if "Who directed the film Arrival?" in prompt]
    of_3_1 = [p for p in sent if part_of(p, "Question") == "Where was the mayor of Missoula, Montana born?"]
    assert of_3_1
    assert not [prompt for prompt in of_3_1 if "Who directed" in prompt]


async def test_without_the_critic_a_node_always_retrieves_and_asks_nothing_twice() -> None:
    policy = Policy(CHAIN)
    decision, run = await ask(policy, ReasoningDAG(critic="no"))
    assert decision.answer == "Gentilly, Quebec"
    assert "Known answers" in policy.of("generator")[1]
    assert [role for role, _ in policy.prompts] == [
        "planner",
        "relevance",
        "generator",
        "relevance",
        "generator",
    ]
    assert len(run.trace.of(ActionStart)) == 2


async def test_an_answer_that_the_critic_accepts_is_the_models_own_and_said_to_be() -> None:
    policy = Policy('{"simple": true}', {"generator": lambda prompt: "Answer: Gentilly", "critic": lambda prompt: "no"})
    decision, run = await ask(policy, ReasoningDAG(critic="yes"))
    (node,) = answers(run)
    assert (node.node, node.attribution, node.retrievals) == ("Q", "model_knowledge", 0)
    assert decision.evidence.ids == ()
    assert "own knowledge" in decision.reasons[-1]
    assert not policy.of("aggregator")
    counts = counts_in(run)
    assert (counts["depth"], counts["nodes"]) == (0, 0)


async def test_nothing_relevant_is_searched_for_in_other_words_twice_and_then_the_node_is_unattributed() -> None:
    policy = Policy(CHAIN, {"relevance": lambda prompt: "[No]", "generator": lambda prompt: "Answer: Paris"})
    tool = Passages()
    decision, run = await ask(policy, tools=tool)
    assert tool.queries[:3] == ["Who directed the film Arrival?", "Arrival", "Arrival"]
    assert len(policy.of("relevance")) == 2, "what was found of no help before is not shown again"
    assert [node.attribution for node in answers(run)] == ["unattributed", "unattributed"]
    assert decision.answer == "Paris"
    assert "Who directed the film Arrival?" in policy.of("rewrite")[0]


async def test_all_documents_are_kept_without_a_relevance_expert_and_several_with_many() -> None:
    _, run = await ask(Policy(CHAIN), ReasoningDAG(relevance="none", documents=2))
    assert [len(node.documents) for node in answers(run)] == [2, 2]
    some = Policy(CHAIN, {"relevance": lambda prompt: "Helps: [1],[2]"})
    _, run = await ask(some, ReasoningDAG(relevance="many"))
    assert len(answers(run)[0].documents) == 2
    assert "[1],[3]" in some.of("relevance")[0]


async def test_to_the_letter_a_rejected_chunk_is_kept_and_the_evidence_only_helps_the_next_one() -> None:
    def next_sentence(prompt: str) -> str:
        return (
            "Next: It was Lynch." if part_of(prompt, "Written so far") == "(nothing yet)" else "Next: No, Villeneuve."
        )

    policy = Policy(
        nodes(("1.1", "Who directed the film Arrival?")),
        {"continue": lambda p: "Done" if "No," in p else next_sentence(p)},
    )
    _, run = await ask(policy, ReasoningDAG(literal=True))
    (node,) = answers(run)
    assert node.answer == "It was Lynch. No, Villeneuve."
    assert "(none)" in policy.of("continue")[0]
    assert "Denis Villeneuve" in part_of(policy.of("continue")[1], "Documents")


async def test_a_failed_node_blocks_only_its_descendants_and_the_answer_says_what_is_missing() -> None:
    policy = Policy(BOTH, {"generator": lambda p: "Search: Dune" if "Dune" in p else None})
    decision, run = await ask(policy, ReasoningDAG(critic="yes"))
    by_id = {node.node: node for node in answers(run)}
    assert {id: node.status for id, node in by_id.items()} == {
        "Q1.1": "answered",
        "Q1.2": "failed",
        "Q2.1": "answered",
        "Q2.2": "blocked",
    }
    missing = [reason for reason in decision.reasons if reason.startswith("Missing")]
    assert [reason.partition(":")[2][:6].strip() for reason in missing] == ["Q1.2:", "Q2.2:"]
    assert "Missing: Q1.2, Q2.2" in policy.of("aggregator")[0]
    counts = counts_in(run)
    assert counts["missing"] == 2


@pytest.mark.parametrize("role", ["critic", "relevance", "rewrite", "dynamic query"])
async def test_an_expert_that_cannot_be_understood_ends_neither_its_node_nor_the_run(role: str) -> None:
    decision, run = await ask(Policy(BOTH, {role: lambda _: "<think>perhaps"}))
    assert {node.status for node in answers(run)} <= {"answered", "unknown"}
    assert decision.stopped != "failed"


@pytest.mark.slow
async def test_a_node_that_takes_too_long_fails_and_the_others_go_on() -> None:
    class Slow(Passages):
        async def call(self, text: str) -> Any:
            if "Dune" in text:
                await asyncio.sleep(60)
            return await super().call(text)

    decision, run = await ask(Policy(BOTH), ReasoningDAG(node_seconds=3.0), Slow())
    assert [n.status for n in sorted(answers(run), key=lambda n: n.node)] == [
        "answered",
        "failed",
        "answered",
        "blocked",
    ]
    assert any("took longer than 3 seconds" in reason for reason in decision.reasons)


async def test_an_unknown_answer_is_not_put_in_and_its_question_stands_there_instead() -> None:
    policy = Policy(CHAIN, {"generator": lambda prompt: "Answer: unknown" if "directed the" in prompt else None})
    _, run = await ask(policy)
    first, second = answers(run)
    assert first.status == "unknown"
    assert second.question == "Where was [Who directed the film Arrival?] born?"
    assert not second.sure
    stopping = Policy(CHAIN, {"generator": lambda prompt: "Answer: unknown"})
    _, run = await ask(stopping, ReasoningDAG(unknown="stop"))
    assert [node.status for node in answers(run)] == ["unknown", "blocked"]


@pytest.mark.parametrize("schedule", ["ready", "levels"])
async def test_a_ready_queue_starts_a_node_when_its_own_parents_are_done_and_levels_wait_for_all(schedule: str) -> None:
    started: list[str] = []
    gate = asyncio.Event()

    class Watched(Passages):
        async def call(self, text: str) -> Any:
            started.append(text)
            if "Dune" in text:
                await asyncio.wait_for(gate.wait(), 30)
            if "born" in text and "Denis" in text:
                gate.set()
            return await super().call(text)

    settings = {"schedule": schedule, "node_seconds": "0.5"}
    how: Any = build_technique("reasoning_dag", **settings)
    await ask(Policy(BOTH), how, Watched())
    assert ("Where was Denis Villeneuve born?" in started) is True
    assert gate.is_set()
    second = started.index("Where was Denis Villeneuve born?")
    assert (schedule == "ready") == ("Where was David Lynch born?" in started[second:])


async def test_long_answers_are_put_in_by_the_dynamic_query_expert_and_short_ones_as_they_are() -> None:
    long = "the man who made many films about sand, rain and time"
    says: dict[str, Callable[[str], str | None]] = {
        "generator": lambda prompt: f"Answer: {long}" if "directed the" in prompt else None,
        "dynamic query": lambda prompt: "Question: Where was he, Denis Villeneuve, born?",
        "critic": lambda prompt: "no" if "directed the" in prompt else None,
    }
    policy = Policy(CHAIN, says)
    _, run = await ask(policy)
    assert answers(run)[1].question == "Where was he, Denis Villeneuve, born?"
    assert f"Who directed the film Arrival? -> {long}" in policy.of("dynamic query")[0]
    assert not Policy(CHAIN).of("dynamic query")


async def test_an_expert_may_have_an_llm_of_its_own() -> None:
    policy, small = Policy(CHAIN), ScriptedLLM(lambda messages: "no", "small")
    how = replace(ReasoningDAG(critic="yes"), experts=Experts(criticise=ask_expert_with(small, criticise)))
    says = {"generator": lambda prompt: "Answer: Lyon"}
    decision, _ = await ask(replace(policy, says=says), how)
    assert decision.answer == "Lyon"
    assert len(small.seen) == 2
    assert not policy.of("critic")


async def test_a_plan_that_cannot_be_read_twice_is_the_question_itself_and_counted() -> None:
    decision, run = await ask(Policy("First I would look who directed it."), question=Question("Who directed Arrival?"))
    assert decision.answer == "Denis Villeneuve"
    counts = counts_in(run)
    assert (counts["plan_fallback"], counts["depth"]) == (1, 0)


async def test_a_defective_plan_is_asked_for_again_once_with_the_list_of_what_is_wrong_and_then_mended() -> None:
    wrong = nodes(("1.1", "Who directed the film Arrival?"), ("2.1", "Where was <A1.1> born, near <A9.9>?"))
    policy = Policy(wrong)
    decision, run = await ask(policy)
    assert "Q2.1 needs Q9.9, which is not in the plan." in policy.of("planner")[1]
    assert len(policy.of("planner")) == 2
    assert decision.answer == "Gentilly, Quebec"
    counts = counts_in(run)
    assert counts["degraded"] == 1
    seen = [p for p in policy.of("generator") if "Where was Denis Villeneuve born, near ?" in p]
    assert seen
    assert all(str(BORN) in prompt for prompt in seen)


async def test_a_plan_mixes_documents_and_a_database_whose_query_the_model_writes() -> None:
    plan = json.dumps(
        {
            "nodes": [
                {"id": "1.1", "ask": "Which river is longest?", "needs": [], "source": "sql"},
                {"id": "1.2", "ask": "Who directed the film Dune?", "needs": [], "source": "passages"},
                {"id": "2.1", "ask": "Is <A1.1> a name of <A1.2>?", "needs": ["1.1", "1.2"], "source": "none"},
            ]
        }
    )
    queries = iter(["select nme from river", "```sql\nselect name from river order by km desc limit 1\n```"])
    policy = Policy(
        plan,
        {
            "query writer": lambda prompt: f"Query: {next(queries)}",
            "generator": lambda p: "Answer: bel" if "[1] name bel" in p else "Answer: no" if "a name of" in p else None,
        },
    )
    table = TableTool()
    run = Run(ScriptedLLM(policy), Toolbox([table, Passages()]))
    decision = await ReasoningDAG()(Question("Is the longest river called like Dune's director?"), run)
    await table.close()
    assert decision.answer == "no"
    by_id = {node.node: node for node in answers(run)}
    assert (by_id["Q1.1"].answer, by_id["Q1.1"].attribution, by_id["Q1.1"].retrievals) == ("bel", "attributed", 2)
    assert by_id["Q2.1"].attribution == "model_knowledge"
    assert "no such column: nme" in policy.of("query writer")[1]
    assert "river(name, km, note)" in policy.of("planner")[0]
    assert "Articles about films" not in policy.of("query writer")[0]
    assert any("select name from river order by km desc limit 1" in prompt for prompt in policy.of("generator"))
    assert policy.of("generator")[-1].count("Is bel a name of David Lynch?") == 1


async def test_a_limit_in_the_middle_still_gives_an_answer_and_says_so() -> None:
    decision, _ = await ask(Policy(CHAIN), limits=Limits(calls=4))
    assert decision.stopped == "budget"
    assert decision.answer
    assert any(reason.startswith("Missing: Q2.1") for reason in decision.reasons)


async def test_an_llm_that_is_gone_for_good_ends_the_run() -> None:
    run = Run(ScriptedLLM([CHAIN]), Toolbox([Passages()]))
    with pytest.raises(LLMError):
        await ReasoningDAG()(BORN, run)


async def test_a_yes_counts_as_quoted_only_where_the_words_it_quotes_are_in_the_document() -> None:
    ask_coffee = nodes(("1.1", "Where was David Lynch born?"))

    def with_quote(quote: str) -> Policy:
        return Policy(ask_coffee, {"generator": lambda p: f"Answer: yes\nQuote: {quote}" if "[1]" in p else None})

    _, run = await ask(with_quote("He liked coffee."))
    assert answers(run)[0].attribution == "quoted"
    _, run = await ask(with_quote("He hated coffee."))
    assert answers(run)[0].attribution == "unattributed"


async def test_a_passage_that_the_corpus_holds_twice_is_shown_once() -> None:
    policy = Policy(CHAIN)
    await ask(policy, tools=Passages([*DOCUMENTS, *DOCUMENTS]))
    shown = part_of(policy.of("relevance")[0], "Documents")
    assert shown.count("It was directed by Denis Villeneuve.") == 1


async def test_with_several_sources_a_node_that_names_none_is_asked_about() -> None:
    plan = nodes(("1.1", "Who directed the film Arrival?"))
    policy = Policy(plan)
    table = TableTool()
    run = Run(ScriptedLLM(policy), Toolbox([table, Passages()]))
    decision = await ReasoningDAG()(Question("Who made Arrival?"), run)
    await table.close()
    assert "Q1.1: name the source, one of sql, passages or none." in policy.of("planner")[1]
    assert decision.answer == "Denis Villeneuve"


def test_a_reply_of_blanks_is_read_at_once() -> None:
    """Quadratic readers took minutes for this, and the suite would time out."""
    assert read_quoted_answer("Answer: a" + " " * 150_000 + "b").text == "a b"
    assert without_citations("a" + " " * 150_000 + "b").startswith("a ")


def test_an_answer_is_read_under_either_name_and_a_reply_to_another_prompt_is_none() -> None:
    assert read_quoted_answer("Thought: easy\n**Final answer:** Lyon.\nQuote: none").text == "Lyon"
    assert read_quoted_answer("Lyon").text == "Lyon"
    for reply in ("Query: select name from river", "Evidence needed: no", "Helps: [2]"):
        with pytest.raises(ParseError):
            read_quoted_answer(reply)


async def test_documents_in_several_places_are_all_read_whatever_they_are_called() -> None:
    films = Passages([one for one in DOCUMENTS if "film" in one[0]], name="films")
    people = Passages([one for one in DOCUMENTS if "film" not in one[0]], name="people")
    simple = Run(ScriptedLLM(Policy('{"simple": true}')), Toolbox([films, people]))
    decision = await ReasoningDAG()(Question("Who directed the film Arrival?"), simple)
    assert decision.answer == "Denis Villeneuve" and films.queries and people.queries
    places = CHAIN.replace('"needs": []', '"needs": [], "source": "films"')
    named = Run(ScriptedLLM(Policy(places.replace('["1.1"]', '["1.1"], "source": "people"'))), Toolbox([films, people]))
    decision = await ReasoningDAG()(BORN, named)
    assert decision.answer == "Gentilly, Quebec"
    assert [start.tool for start in named.trace.of(ActionStart)] == ["films", "people"]
