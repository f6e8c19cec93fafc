"""The functions that play a model for the papers' tables, one for each paper; none of their scores is a model's.

PlanRAG's makes a planted mistake in three of ten questions, so that tables differ from row to row. On questions over
documents one answer in four is wrong by what the function finds in its prompt.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from decisor.lab.benchmark import Case, find_bench_class, find_bench_data
from decisor.lab.dqa.worlds import SCENARIOS, read_dqa_questions
from policies.dqa import DqaPolicy
from policies.game24 import Game24LLM

Reply = Callable[[dict[str, Any]], str]
SETS = ("hotpotqa", "twowiki", "musique", "strategyqa", "arc", "popqa")


def play_paper(paper: str, data: Path) -> Reply:
    """The function for a paper, over the data of a folder."""
    if paper in ("planrag", "planrag-early"):
        folder = find_bench_data(data, "dqa")
        gold = {
            str(case.question): case.gold
            for scenario in SCENARIOS
            for case in read_dqa_questions(folder, scenario, "sql")
        }
        released = DqaPolicy(gold.__getitem__, 0.3)
        return lambda request: play_made_world(request, gold) or released(request)
    if paper == "radagent":
        return SearchPolicy()
    cases = [case for name in SETS for case in find_bench_class(name)(find_bench_data(data, name)).cases()]
    return ReaderPolicy({case.question.text: case for case in cases})


def play_made_world(request: dict[str, Any], gold: dict[str, str]) -> str:
    """The reply on a made world of Locating, whose rules have other words: one query, then the answer; else ''."""
    prompt = "\n".join(turn["content"] for turn in request["messages"])
    if "The goal is the largest profit of" not in prompt:
        return ""
    answer = next(name for text, name in gold.items() if text.strip() in prompt or question_part(text) in prompt)
    if "[o1.r1]" in prompt or "# What came back" in prompt or "No more actions" in prompt:
        return f"Thought: That is it.\nFinal answer: {answer}\nBecause: none"
    query = "SELECT trade_node FROM trade_node" if "### Tool: sql" in prompt else "MATCH (n:Trade_node) RETURN n.name"
    tool = "sql" if "### Tool: sql" in prompt else "cypher"
    return f"Plan: [Step 1: look]\nThought: I look.\nAction: {tool}\nAction input: {query}"


def question_part(text: str) -> str:
    """The line of a question that names its country, without the rules before it."""
    return next(line for line in text.splitlines() if line.startswith("You rule the country"))


class SearchPolicy:
    """Plays Game of 24 by ``Game24LLM``; calls a tool or hands in an answer where the prompt names functions."""

    def __init__(self) -> None:
        self.game = Game24LLM(3)

    def __call__(self, request: dict[str, Any]) -> str:
        prompt = "\n".join(turn["content"] for turn in request["messages"])
        luck = zlib.crc32(f"{prompt}{request.get('seed')}".encode())
        if "from the numbers" in prompt:
            return self.game.reply(request["messages"][-1]["content"], request.get("seed") or 0)
        if "Verdict:" in prompt:
            return (
                f"Verdict: {('first', 'second')[luck % 2] if 'second' in prompt else ('solved', 'unsolved')[luck % 2]}"
            )
        if "Better: A, or" in prompt:
            return f"Better: {'AB'[luck % 2]}"
        if "Lesson: none" in prompt:
            return "Lesson: none"
        functions = re.findall(r"^### Tool: (\w+)", prompt, re.M)
        others = [name for name in functions if name not in ("Finish", "search", "click")]
        if "search" in functions:
            return shop(prompt, luck)
        if luck % 3 and others:
            return f"Thought: I look.\nAction: {others[luck % len(others)]}\nAction input: {{}}"
        answer = json.dumps({"return_type": "give_answer", "final_answer": "It is so."})
        return f"Thought: That is it.\nAction: Finish\nAction input: {answer}"


def shop(prompt: str, luck: int) -> str:
    products = re.findall(r"\bB0\w{8}\b", prompt.partition("# Steps so far")[2])
    steps = prompt.partition("# Steps so far")[2].count("Action: ")
    if not products:
        words = re.findall(r"[a-z]{4,}", prompt.rpartition("# Task")[2].partition("# Steps so far")[0])
        return f"Thought: I search.\nAction: search\nAction input: {' '.join(words[:6])}"
    chosen = products[luck % len(products)]
    return f"Thought: This one.\nAction: click\nAction input: {'Buy Now' if steps > 1 else chosen}"


class ReaderPolicy:
    """Answers questions over documents: it is told the answer, and errs in a quarter of the questions."""

    def __init__(self, case_of: dict[str, Case]) -> None:
        self.case_of = case_of

    def __call__(self, request: dict[str, Any]) -> str:
        prompt = "\n".join(turn["content"] for turn in request["messages"])
        text = max((text for text in self.case_of if text in prompt), key=len, default="")
        luck = zlib.crc32(text.encode())
        answer = self.case_of[text].gold[0] if text and luck % 4 else "unknown"
        for words, reply in REPLIES:
            if words in prompt:
                return reply.format(answer=answer, question=text or "what is asked")
        return f"Thought: I have read enough.\nBecause: none\nFinal answer: {answer}"


REPLIES = (
    ("Take the question apart", '{{"nodes": [{{"id": "1.1", "ask": "{question}", "needs": []}}]}}'),
    ("A question refers by tags", "Question: {question}"),
    ("Judge whether an answer must be looked up", "Evidence needed: yes"),
    ("Which document answers the question", "Helps: [1]"),
    ("Searches for a question found nothing", "Search: {question}"),
    ("Answer the question in a few words", "Answer: {answer}\nQuote: none"),
    ("A question was taken apart", "Final answer: {answer}\nBecause: the last part."),
    ("Verdict:", "Verdict: correct"),
)
