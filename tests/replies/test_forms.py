"""Every kind of reply, in three ways: what labelled text, a JSON object and a call of a function say is the same."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decisor.errors import ParseError
from decisor.lab.judges import verdict_form
from decisor.llms.scripted import ScriptedLLM
from decisor.parsing.labelled import LabelledReply, WrittenCall
from decisor.parsing.reply_form import Form, ReplyShape, build_object_schema, normalize_function_name
from decisor.runtime.run import Run
from decisor.techniques.dag import experts as aggregator
from decisor.techniques.dag import experts as critic
from decisor.techniques.dag import experts as dynamic_query
from decisor.techniques.dag import experts as generator
from decisor.techniques.dag import experts as query_writer
from decisor.techniques.dag import experts as rewriter
from decisor.techniques.dag.experts import relevance_form
from decisor.techniques.furepa import build_query_proposal_form
from decisor.techniques.ircot import SENTENCE
from decisor.techniques.iter_rag import IterRAG
from decisor.techniques.iter_retgen import GENERATION
from decisor.techniques.plan_rag import PlanRAG
from decisor.techniques.react import ReAct
from decisor.techniques.reflexion import LESSON_FORM
from decisor.techniques.self_ask import SelfAsk
from decisor.techniques.shared.analyst import FINAL_ANSWER
from decisor.techniques.shared.answer import Trajectory, build_final_answer_form
from decisor.techniques.shared.judge import BETTER_FORM, CHANCE_FORM, RATING_FORM
from decisor.techniques.shared.passages import build_short_answer_form
from decisor.techniques.shared.search_tree import Tree
from decisor.techniques.tot import build_proposed_actions_form
from decisor.tools.calculator import CalculatorTool
from decisor.tools.toolbox import Toolbox
from decisor.types import Action, Observation, Question, Record, Step
from techniques.table import TableTool

RUN = Run(ScriptedLLM([]), Toolbox([TableTool(), CalculatorTool()]))
SHOWN = (Record("o1.r1", {"name": "bel", "km": 340.25}), Record("o1.r2", {"name": "aune", "km": 99}))
NEW = Trajectory(Question("Which river is the longest?"))
LATER = Trajectory(NEW.question, (Step(Action("sql", "SELECT 1"), Observation(SHOWN)),), ("look",), (), ("look",))
TREE = Tree.plant(NEW.question, RUN, calls=9, max_steps=9)
WORD = st.sampled_from(
    ["the", "river", "bel", "is", "340", "km", "(not", "99),", "Über", "it's", "x", "=", "3.5", "<b>"]
)
WORDS = st.lists(WORD, max_size=6).map(lambda words: " ".join(["Bel", *words]).strip(" ,;."))
QUERY = st.sampled_from(["SELECT name, km FROM river", "SELECT 1", "SELECT x FROM y WHERE a = 'b, c'"])
Case = tuple[Form[Any], str, dict[str, Any]]


def acting(form: Form[Any], one: str, two: str, query: str) -> Case:
    value = {"thought": one, "action": "sql", "action_input": query}
    return form, f"Thought: {one}\nAction: sql\nAction input: {query}", value


def planning(one: str, two: str, query: str) -> Case:
    form, text, value = acting(PlanRAG().form(NEW, RUN), one, two, query)
    plan = {"plan": [one, two], "current_step": two}
    return form, f"Plan: [Step 1: {one}, Step 2: {two}]\nCurrent step: {two}\n{text}", plan | value


def replanning(one: str, two: str, query: str) -> Case:
    _, text, value = acting(PlanRAG().form(NEW, RUN), one, two, query)
    plan = {"replan": True, "why": one, "plan": [two, one], "current_step": one}
    text = f"Re-plan: Y, {one}\nPlan: [Step 1: {two}, Step 2: {one}]\nCurrent step: {one}\n{text}"
    return PlanRAG().form(LATER, RUN), text, plan | value


def answering(form: Form[Any], one: str, two: str, more: Mapping[str, str]) -> Case:
    value = {**more, "because": f"{one} [o1.r1]", "final_answer": two}
    thought = f"Thought: {more['thought']}\n" if more else ""
    return form, f"{thought}Final answer: {two}\nBecause: {one} [o1.r1]", value


def concluding(form: Form[Any], one: str, two: str) -> Case:
    """With what an analyst adds."""
    form, text, value = answering(form, one, two, {"thought": two})
    more = {"runner_up": f"{one} 99", "assumptions": two}
    return form, f"{text}\nRunner-up: {one} 99\nAssumptions: {two}", value | more


CASES: dict[str, Callable[[str, str, str], Case]] = {
    "plan and action": planning,
    "replan and action": replanning,
    "action": lambda one, two, query: acting(IterRAG().form(LATER, RUN), one, two, query),
    "answer instead": lambda one, two, _: concluding(IterRAG().form(LATER, RUN), one, two),
    "final answer": lambda one, two, _: concluding(build_final_answer_form(LATER, FINAL_ANSWER), one, two),
    "short answer": lambda one, two, _: answering(build_short_answer_form(LATER, SHOWN), one, two, {}),
    "search": lambda one, two, _: (
        ReAct().form(LATER),
        f"Thought: {one}\nAction: search\nAction input: {two}",
        {"thought": one, "action": "search", "action_input": two},
    ),
    "follow-up": lambda one, two, _: (SelfAsk().form(LATER), f"Follow up: {one}", {"follow_up": one}),
    "generation": lambda one, two, _: (
        GENERATION,
        f"Thought: {one}\nBecause: {two}\nFinal answer: {one}",
        {"thought": one, "because": two, "final_answer": one},
    ),
    "sentence": lambda one, two, _: (SENTENCE, one, {"sentence": one}),
    "queries": lambda one, two, query: (
        build_query_proposal_form(LATER, SHOWN, 4),
        f"Thought: {one}\nQuery: {two}\nQuery: {query}",
        {"thought": one, "queries": [two, query]},
    ),
    "step": lambda one, two, query: acting(TREE.form(), one, two, query),
    "answer of a search": lambda one, two, _: answering(TREE.form(), one, two, {"thought": one}),
    "giving up": lambda one, two, _: (
        TREE.form(),
        f"Thought: {one}\nAction: give_up\nAction input: {two}",
        {"thought": one, "action": "give_up", "action_input": two},
    ),
    "next actions": lambda one, two, query: (
        build_proposed_actions_form(("sql", "calculator"), 4),
        f"1. sql: {query}\n2. calculator: {one}",
        {"actions": [{"action": "sql", "action_input": query}, {"action": "calculator", "action_input": one}]},
    ),
    "comparison": lambda one, two, _: (BETTER_FORM, f"{one}\nBetter: B", {"thought": one, "better": "B"}),
    "no better": lambda one, two, _: (BETTER_FORM, f"{one}\nBetter: equal", {"thought": one, "better": "equal"}),
    "chance": lambda one, two, _: (CHANCE_FORM, f"{one}\nlikely", {"thought": one, "chance": "likely"}),
    "rating": lambda one, two, _: (RATING_FORM, f"{one}\nRating: 7", {"thought": one, "rating": 7}),
    "lesson": lambda one, two, _: (LESSON_FORM, f"{one}\nLesson: {two}", {"thought": one, "lesson": two}),
    "question": lambda one, two, _: (dynamic_query.DYNAMIC_QUERY_FORM, f"Question: {one}", {"question": one}),
    "answer of a part": lambda one, two, _: (
        generator.ANSWER,
        f"Answer: {one}\nQuote: {two}",
        {"quote": two, "answer": one},
    ),
    "next sentence": lambda one, two, _: (generator.NEXT, f"Next: {one}", {"next": one}),
    "evidence needed": lambda one, two, _: (critic.CRITIC_FORM, "Evidence needed: yes", {"evidence_needed": True}),
    "relevance": lambda one, two, _: (relevance_form(SHOWN, True), "Helps: [2],[1]", {"helps": [2, 1]}),
    "nothing relevant": lambda one, two, _: (relevance_form(SHOWN, False), "Helps: [No]", {"helps": []}),
    "another search": lambda one, two, _: (rewriter.REWRITER_FORM, f"Search: {one}", {"search": one}),
    "query": lambda one, two, query: (query_writer.QUERY_WRITER_FORM, f"Query: {query}", {"query": query}),
    "answer from parts": lambda one, two, _: answering(aggregator.FORM, one, two, {}),
    "verdict": lambda one, two, _: (
        verdict_form(("correct", "incorrect"), ""),
        f"{one}\nVerdict: incorrect",
        {"why": one, "verdict": "incorrect"},
    ),
}


def shape_of(form: Form[Any], value: Mapping[str, Any]) -> ReplyShape:
    """The one of the form's shapes whose keys the value has."""
    (shape,) = {id(one): one for one in (*form.now, *form.shapes) if one.says.keys() == value.keys()}.values()
    return shape


def as_call(form: Form[Any], value: Mapping[str, Any]) -> dict[str, Any]:
    """As a provider's client writes down a call."""
    shape = shape_of(form, value)
    if "action" not in value:
        return {"name": normalize_function_name(shape.name), "arguments": value}
    rest = {key: one for key, one in value.items() if key not in ("action", "action_input")}
    return {
        "name": normalize_function_name(value["action"]),
        "arguments": json.dumps({**rest, "input": value["action_input"]}),
    }


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=25, deadline=None)
@given(one=WORDS, two=WORDS, query=QUERY)
def test_text_object_and_call_are_the_same_value(name: str, one: str, two: str, query: str) -> None:
    form, text, value = CASES[name](one, two, query)
    call = as_call(form, value)
    fenced = f"```json\n{json.dumps(value, indent=1)}\n```"
    tagged = f"<tool_call>\n{json.dumps(call)}\n</tool_call>"
    ways = [text, json.dumps(value), json.dumps({"reply": value}), json.dumps(call), tagged, fenced]
    values = [form.read(way) for way in ways]
    assert all(other == values[0] for other in values), values


@pytest.mark.parametrize("name", CASES)
def test_each_schema_asks_for_the_keys_that_the_prompt_tells_of(name: str) -> None:
    form, _, value = CASES[name]("one", "two", "SELECT 1")
    shape = shape_of(form, value)
    schema = build_object_schema(form.kind, shape)
    assert schema["required"] == list(shape.says) and schema["additionalProperties"] is False
    offered = [key for one in form.now or form.shapes for key in one.says]
    told = re.findall(r'^"(\w+)": ', form.wording("json"), re.M)
    assert told == offered, "each key once, and none that the schema lacks"
    names = ["input" if key == "action_input" else key for key in offered if key != "action"]
    assert re.findall(r'^"(\w+)": ', form.wording("tools"), re.M) == names
    assert not any(words in json.dumps(form.schema()) for one in form.shapes for words in one.says.values())
    assert {one.name for one in form.functions()} >= {
        normalize_function_name(tool) for one in form.now or form.shapes for tool in one.enums.get("action", ())
    }
    assert "Final answer:" not in form.wording("json") + form.wording("tools")
    assert "Action input:" not in form.wording("json") + form.wording("tools")


def test_a_plan_of_parts_is_the_same_graph_by_ids_and_by_depths() -> None:
    from decisor.parsing.plan import parse_plan_graph

    by_id = '{"nodes": [{"id": "1.1", "ask": "Who wrote it?"}, {"id": "2.1", "ask": "Where is <A1.1> from?"}]}'
    by_depth = '{"nodes": [{"depth": "1", "ask": "Who wrote it?"}, {"depth": "2", "ask": "Where is <A1.1> from?"}]}'
    assert parse_plan_graph(by_id).parts == parse_plan_graph(by_depth).parts


def test_thoughts_come_before_the_action_and_an_answer_before_any_step_is_not_offered() -> None:
    first, later = IterRAG().form(NEW, RUN), IterRAG().form(LATER, RUN)
    (act,) = first.schema()["properties"].values()
    assert list(act["properties"]) == ["thought", "action", "action_input"]
    assert act["properties"]["action"]["enum"] == ["sql", "calculator", "think"]
    acts, answers = later.schema()["properties"]["reply"]["anyOf"]
    assert acts["required"] == list(act["properties"]) and "final_answer" in answers["required"]
    assert [one.name for one in first.functions()] == ["sql", "calculator", "think"]
    assert [one.name for one in later.functions()][-1] == "final_answer"


def test_the_first_call_of_plan_rag_tells_neither_of_a_replan_nor_of_an_answer() -> None:
    first, later = PlanRAG().form(NEW, RUN), PlanRAG().form(LATER, RUN)
    for way in ("json", "tools"):
        assert not re.search("replan|why|final_answer", first.wording(way)), way
        assert re.search('"replan": .*"why": .*"final_answer": ', later.wording(way), re.S), way
    assert first.wording("json").startswith('One JSON object and nothing else: {"reply": {...}}')
    assert first.wording("tools").count('"plan": ') == 1, "once for all functions"
    assert [one.description for one in later.functions()][::3] == [
        "Give sql its input, as the prompt says.",
        "To answer, when you know the best candidate",
    ]


@pytest.mark.parametrize("name", ["plan and action", "query", "next actions", "search"])
def test_a_query_of_twelve_thousand_letters_passes_in_every_way(name: str) -> None:
    query = "SELECT name FROM river WHERE name IN (" + ", ".join(f"'r{at}'" for at in range(1_500)) + ")"
    assert len(query) > 12_000
    form, text, value = CASES[name]("one", query if name == "search" else "two", query)
    assert all(query in repr(form.read(way)) for way in (text, json.dumps(value), json.dumps(as_call(form, value))))
    # llama.cpp refuses a schema with a maxLength above 2,000, and is then sent one without any size.
    most = {
        key: int(size) for key, size in re.findall(r'"(\w+)": {"type": "string"[^}]*"maxLength": (\d+)', str_of(form))
    }
    assert max(most.values(), default=0) <= 2_000 and not {"action_input", "input", "query"} & most.keys()


def str_of(form: Form[Any]) -> str:
    return json.dumps([form.schema(), *(one.parameters for one in form.functions())])


def test_a_query_that_is_cut_off_is_told_so() -> None:
    with pytest.raises(ParseError, match=r"cut off\. Write less; what takes a very long query may be asked in two"):
        IterRAG().form(NEW, RUN).read('{"thought": "x", "action": "sql", "action_input": "SELECT name, km FR')


def test_a_tool_gets_its_input_as_one_text_whatever_arguments_come() -> None:
    form = TREE.form()
    move = form.read('{"name": "sql", "arguments": {"thought": "x", "city": "Lyon", "k": 2}}')
    assert move == LabelledReply(WrittenCall("sql", '{"city": "Lyon", "k": 2}'), thought="x")
    written = form.read('{"thought": "look", "name": "sql", "arguments": {"input": "SELECT 1"}}')
    assert written == LabelledReply(WrittenCall("sql", "SELECT 1"), thought="look")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ('{"thought": "x", "action": "sqlite", "action_input": "SELECT 1"}', "unknown_tool"),
        ('{"thought": "x", "action": "sql"}', "missing_field"),
        ('{"thought": "x", "action": "sql", "action_input": ""}', "missing_field"),
        ('{"thought": "x", "final_answer": "bel"}', "no_evidence"),
        ('{"tool_calls": [{"name": "sql", "arguments": {}}, {"name": "sql", "arguments": {}}]}', "multiple_actions"),
        ('{"thought": "cut he', "truncated"),
    ],
)
def test_what_an_object_lacks_is_complained_of_as_in_text(reply: str, reason: str) -> None:
    with pytest.raises(ParseError) as complaint:
        IterRAG().form(NEW, RUN).read(reply)
    assert complaint.value.reason == reason


def test_a_reply_of_text_is_read_where_an_object_was_asked_for() -> None:
    move: LabelledReply = IterRAG().form(NEW, RUN).read("Thought: look\nAction: sql\nAction input: SELECT 1")
    assert move.call is not None and move.call.input == "SELECT 1"
