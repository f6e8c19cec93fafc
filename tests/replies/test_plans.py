"""Plans as models write them: every form gives the same graph, and every defect has its rule. 1,496 real plans of GPT-3
(ProbTree), as they are and with one thing broken in each."""

import json
import random
from functools import cache

import pytest

from data import DATA
from decisor.errors import ParseError
from decisor.parsing.plan import PlanGraph, parse_plan_graph
from probtree import SETS, plans

needs_data = pytest.mark.skipif(
    not (DATA / "multihop" / "musique").exists(), reason=f"{DATA}/multihop is not there: set DECISOR_DATA"
)


@cache
def real() -> tuple[tuple[str, PlanGraph], ...]:
    """Questions and their plans, as numbered lines read them."""
    found = []
    for name in SETS:
        for question, leaves in plans(DATA, name):
            lines = "\n".join(f"{number}. {leaf.ask}" for number, leaf in enumerate(leaves, 1))
            if leaves and "#0" not in lines:
                found.append((question, parse_plan_graph(lines, 8)))
    return tuple(found)


def as_json(plan: PlanGraph) -> str:
    nodes = [{"id": p.id[1:], "ask": p.query, "needs": [id[1:] for id in p.parents]} for p in plan.parts]
    return json.dumps({"nodes": nodes}, ensure_ascii=False)


def as_lines(plan: PlanGraph) -> str:
    return "Here is the plan:\n" + "\n".join(f"{part.id}: {part.query}" for part in plan.parts)


def graph(plan: PlanGraph) -> dict[str, tuple[str, frozenset[str]]]:
    return {part.id: (part.query, frozenset(part.parents)) for part in plan.parts}


@needs_data
def test_nearly_all_real_plans_are_read_and_all_forms_of_one_give_the_same_graph() -> None:
    assert len(real()) == 1493
    for _, plan in real()[::3]:
        angled = as_json(plan).replace("<", "⟨").replace(">", "⟩")
        for form in (as_json(plan), f"```json\n{angled}\n```", as_lines(plan)):
            assert graph(parse_plan_graph(form, 8)) == graph(plan), form


@needs_data
def test_a_dropped_node_is_asked_about_in_every_plan_that_refers_to_it_and_then_mended() -> None:
    random.seed(7)
    caught = 0
    for _, plan in real():
        needed = [part for part in plan.parts if any(part.id in other.parents for other in plan.parts)]
        if not needed:
            continue
        lost = random.choice(needed)
        broken = as_json(PlanGraph(tuple(part for part in plan.parts if part != lost)))
        with pytest.raises(ParseError, match=f"{lost.id}, which is not in the plan"):
            parse_plan_graph(broken, 8)
        mended = parse_plan_graph(broken, 8, mend=True)
        caught += 1
        children = sum(lost.id in part.parents for part in plan.parts)
        assert sum(part.degraded for part in mended.parts) == children
        assert not [part for part in mended.parts if not set(part.tags) <= set(part.parents)]
    assert caught > 700


@needs_data
def test_a_back_edge_is_a_cycle_in_every_plan_and_cutting_it_gives_the_plan_back() -> None:
    caught = 0
    for _, plan in real():
        child = next((part for part in reversed(plan.parts) if part.parents), None)
        if child is None:
            continue
        nodes = json.loads(as_json(plan))["nodes"]
        root = next(node for node in nodes if node["id"] == child.parents[0][1:])
        root["needs"].append(child.id[1:])
        with pytest.raises(ParseError, match="need each other"):
            parse_plan_graph(json.dumps({"nodes": nodes}), 8)
        mended = parse_plan_graph(json.dumps({"nodes": nodes}), 8, mend=True)
        caught += 1
        assert sum(part.degraded for part in mended.parts) == 1
        assert len(mended.parts) == len(plan.parts)
    assert caught > 700


@needs_data
def test_a_plan_cut_off_anywhere_is_asked_for_again_and_its_whole_nodes_are_saved_after_that() -> None:
    random.seed(3)
    for _, plan in real()[::5]:
        whole = as_json(plan)
        second = whole.find('{"id"', 12)
        if second < 0:
            continue
        cut = whole[: random.randrange(second, len(whole) - 3)]
        if cut.rstrip(" ,").endswith("}"):
            continue
        try:
            saved = parse_plan_graph(cut, 8, mend=True)
        except ParseError as error:
            pytest.fail(f"{error}: {cut}")
        assert saved.parts


@needs_data
def test_prose_is_never_a_plan() -> None:
    for question, _ in real()[::10]:
        for mend in (False, True):
            with pytest.raises(ParseError):
                parse_plan_graph(f"To answer this I would first think about it. {question}", 8, mend=mend)


def test_tags_make_edges_and_an_edge_without_a_tag_only_orders() -> None:
    plan = parse_plan_graph(
        '{"nodes": [{"id": "1.1", "ask": "a"}, {"id": "1.2", "ask": "b"}, '
        '{"id": "2.1", "ask": "c <A1.1>?", "needs": ["1.2"]}]}'
    )
    assert plan.parts[2].parents == ("Q1.2", "Q1.1")
    assert plan.parts[2].tags == ("Q1.1",)


def test_a_tag_is_a_whole_id_and_money_and_ranks_are_none() -> None:
    plan = parse_plan_graph(
        '{"nodes": [{"id": "1.1", "ask": "Which #1 hit cost $1 under $100 in {x} <b>?"}, '
        '{"id": "1.10", "ask": "b"}, {"id": "2.1", "ask": "{1.1} or ⟨A1.10⟩?"}]}'
    )
    assert plan.parts[0].query == "Which #1 hit cost $1 under $100 in {x} <b>?"
    assert plan.parts[2].query == "<A1.1> or <A1.10>?"
    assert set(plan.parts[2].parents) == {"Q1.1", "Q1.10"}


def test_the_back_edge_into_the_highest_id_is_cut_and_a_self_reference_is_one() -> None:
    wrong = '{"nodes": [{"id": "1.1", "ask": "a <A2.1>"}, {"id": "2.1", "ask": "b <A1.1>"}]}'
    mended = parse_plan_graph(wrong, mend=True)
    assert [(part.query, part.degraded) for part in mended.parts] == [("a", True), ("b <A1.1>", False)]
    alone = parse_plan_graph('{"nodes": [{"id": "1.1", "ask": "a <A1.1> b"}]}', mend=True)
    assert (alone.parts[0].query, alone.parts[0].degraded) == ("a b", True)


def test_wrong_depths_are_numbered_anew_and_tags_go_along() -> None:
    plan = parse_plan_graph("Q3.1: Who made it?\nQ1.4: Where was <A3.1> born?")
    assert [(part.id, part.query) for part in plan.parts] == [
        ("Q1.1", "Who made it?"),
        ("Q2.1", "Where was <A1.1> born?"),
    ]


def test_nodes_that_ask_the_same_are_one() -> None:
    nodes = [
        {"id": "1.1", "ask": "Who made it?"},
        {"id": "1.2", "ask": "who made  it?"},
        {"id": "1.3", "ask": "c"},
        {"id": "2.1", "ask": "Is <A1.1> <A1.2>?"},
    ]
    plan = parse_plan_graph(json.dumps({"nodes": nodes}))
    assert [part.id for part in plan.parts] == ["Q1.1", "Q1.3", "Q2.1"]
    assert [part.id for part in plan.sinks] == ["Q1.3", "Q2.1"]
    assert plan.parts[2].query == "Is <A1.1> <A1.1>?"


def test_too_many_nodes_are_asked_about_and_then_cut_to_what_the_last_one_needs() -> None:
    nodes = [{"id": f"1.{n}", "ask": f"question {n}"} for n in range(1, 10)] + [{"id": "2.1", "ask": "<A1.9>?"}]
    with pytest.raises(ParseError, match="Write at most 8"):
        parse_plan_graph(json.dumps({"nodes": nodes}), 8)
    plan = parse_plan_graph(json.dumps({"nodes": nodes}), 8, mend=True)
    assert [part.query for part in plan.parts] == ["question 9", "<A1.9>?"]
    wide = [*nodes[:-1], {"id": "2.1", "ask": " ".join(f"<A1.{n}>" for n in range(1, 10))}]
    with pytest.raises(ParseError, match="10 of them needed"):
        parse_plan_graph(json.dumps({"nodes": wide}), 8, mend=True)


@pytest.mark.parametrize("reply", ['{"simple": true}', '"Q: Who made it?"', "Q: Who made it?"])
def test_a_question_may_be_simple(reply: str) -> None:
    assert parse_plan_graph(reply).simple


def test_a_source_must_be_there_and_is_otherwise_left_out() -> None:
    reply = '{"nodes": [{"id": "1.1", "ask": "a", "source": "SQL"}, {"id": "1.2", "ask": "b", "source": "web"}]}'
    with pytest.raises(ParseError, match="There is no tool 'web'"):
        parse_plan_graph(reply, sources=("sql", "passages"))
    assert [part.source for part in parse_plan_graph(reply, sources=("sql",), mend=True).parts] == ["sql", ""]


def test_nothing_of_a_reply_is_evaluated() -> None:
    for reply in ('[(__import__("os").getcwd(), "Q1.1: a")]', '[("Q: a", "Q1.1: " + "b")]', "[" * 5000 + "("):
        with pytest.raises(ParseError):
            parse_plan_graph(reply)


def test_a_long_reply_is_read_to_its_end_or_refused() -> None:
    hostile = ["(" * 60 + '"a' * 50_000, '[("' + "\\" * 90_000, "x" * 150_000, '{"nodes": [' * 20_000]
    for reply in hostile:
        with pytest.raises(ParseError):
            parse_plan_graph(reply, 8, mend=True)
    for reply in ("1. a\n" * 30_000, "Q1.1 " * 30_000, "1. a" + " " * 150_000 + "b"):
        assert len(parse_plan_graph(reply, 8).parts) == 1


@needs_data
def test_a_spoilt_reply_is_a_plan_or_a_complaint_and_never_anything_else() -> None:
    """Characters dropped, doubled and swapped in every form; what is read is a graph without circles."""
    random.seed(11)
    for _, plan in real()[::6]:
        for whole in (as_json(plan), as_lines(plan)):
            spoilt = list(whole)
            for _ in range(random.randrange(1, 12)):
                at = random.randrange(len(spoilt))
                spoilt[at] = random.choice(
                    ["", spoilt[at] * 2, "<A1.1>", "#1", '"', "(", "}", "\\", "\n", "\u201c", "9"]
                )
            for mend in (False, True):
                try:
                    found = parse_plan_graph("".join(spoilt), 8, mend=mend)
                except ParseError:
                    continue
                known = {part.id for part in found.parts}
                assert all(set(part.parents) <= known for part in found.parts)
                assert sum(len(level) for level in found.levels) == len(found.parts)
