"""Spoils the replies of a policy, as weak models spoil theirs, so that what a bad reply costs can be measured.

With probability ``share`` a reply is replaced by one of: a form of the shared corpus of malformed replies with this
reply's own tool and query in it, a wrong column, a dropped bracket, a wrong tool, prose, nothing, or a part of itself.
Which one depends on the seed, the case (the model that a request names) and how many replies that case has had, so that
two versions of the package meet the same luck. Test equipment.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

QUERY = "SELECT region, revenue FROM v_revenue"
CALL = re.compile(r"^Action: (?P<tool>.+)\nAction input: (?P<input>.+)$", re.M | re.S)
ANSWER = re.compile(r"^Final answer: (?P<name>.+)$", re.M)
CITATION = re.compile(r"\[(o\d+\.\w+)\]")
COLUMN = re.compile(r"\b[a-z]+_[a-z_]+\b")
BRACKET = re.compile(r"[\[\](){}]")
TOOLS = ("python", "database_query", "query_tool", "run")
PROSE = (
    "Let me look at the data first. The question depends on several values that we do not know yet.",
    "Based on the data shown it is hard to say, because there are many factors. I would compare the candidates.",
    "Sure! Here is how to go about it:\n\n1. Find the candidates\n2. Compare them\n3. Choose the best one",
)
AROUND = (
    "{0},}}",
    "{0}",
    "```json\n{1}\n```",
    "~~~\n{1}\n~~~",
    "<think>Hm.</think>\n{1}",
    "Here it is:\n{1}",
    "[{1}]",
    "null",
    "{{}}",
    "{1}\n{1}",
    "\u200b{1}\u2060",
    "I'm sorry, but I can't help with that.",
)
"""Forms of plans: the plan without its last bracket, and the whole of it, with something around."""
AGAIN = "\n# Your last reply could not be used\n"
WAYS = ("form", "column", "bracket", "tool", "prose", "empty", "cut")


@dataclass(frozen=True)
class Form:
    """A row of the corpus: the text, whether it is JSON, and how it ends."""

    text: str
    is_json: bool
    kind: str
    finish: str


def forms_in(file: Path) -> tuple[Form, ...]:
    """Those that are short enough to be written out."""
    rows = [json.loads(line) for line in file.read_bytes().splitlines()]
    return tuple(
        Form(row["raw"], row["format"] != "planrag_text", row["format"], row["finish_reason"])
        for row in rows
        if "raw" in row and row["reason"] != "limits"
    )


@dataclass
class Noise:
    """``policy``: the reply to a chat request's body. ``ways``: how often each way was taken."""

    policy: Callable[[dict[str, Any]], str]
    share: float
    forms: Sequence[Form]
    seed: int = 0
    replies: Counter[str] = field(default_factory=Counter)
    ways: Counter[str] = field(default_factory=Counter)

    def __call__(self, request: dict[str, Any]) -> tuple[str, str]:
        """The text and why it ends. What was said of an earlier bad reply is no concern of a perfect policy."""
        case = str(request["model"])
        self.replies[case] += 1
        luck = random.Random(f"{self.seed} {case} {self.replies[case]}")
        reply = self.policy({**request, "messages": first_asked(request["messages"])})
        if luck.random() >= self.share:
            return reply, "stop"
        way = luck.choice(WAYS)
        self.ways[way] += 1
        return self.spoil(reply, way, luck)

    def spoil(self, reply: str, way: str, luck: random.Random) -> tuple[str, str]:
        call = CALL.search(reply)
        if way == "form":
            return self.in_a_form(reply, luck)
        if way == "column" and call and (columns := COLUMN.findall(call["input"])):
            column = luck.choice(columns)
            return re.sub(rf"\b{column}\b", f"{column}_total", reply), "stop"
        if way == "tool" and call:
            return reply.replace(f"Action: {call['tool']}", f"Action: {luck.choice(TOOLS)}"), "stop"
        if way == "bracket" and (brackets := list(BRACKET.finditer(reply))):
            at = luck.choice(brackets).start()
            return reply[:at] + reply[at + 1 :], "stop"
        if way == "empty":
            return luck.choice(("", "  \n ", "\u200b")), "stop"
        if way == "cut":
            return reply[: luck.randrange(len(reply))], luck.choice(("length", "stop"))
        return luck.choice(PROSE), "stop"

    def in_a_form(self, reply: str, luck: random.Random) -> tuple[str, str]:
        """One of the corpus, of the same kind as the reply: an action, an answer, a plan, or neither."""
        if call := CALL.search(reply):
            form = luck.choice([one for one in self.forms if one.kind in ("json_action", "planrag_text", "tool_call")])
            return filled(form, call["tool"], call["input"]), form.finish
        if (answer := ANSWER.search(reply)) and (ids := CITATION.findall(reply)):
            form = luck.choice([one for one in self.forms if one.kind == "final_answer"])
            text = form.text.replace('"EU"', json.dumps(CITATION.sub("", answer["name"]).strip()))
            return text.replace("sql:1", ids[-1]), form.finish
        if reply.lstrip().startswith("{"):
            return luck.choice(AROUND).format(reply[:-1], reply), "stop"
        bare = [one for one in self.forms if "SELECT" not in one.text and one.kind in ("json_action", "planrag_text")]
        form = luck.choice(bare)
        return form.text, form.finish


def first_asked(turns: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The conversation as it was before any reply in it could not be used."""
    first = next((at for at, turn in enumerate(turns) if turn["role"] == "assistant"), len(turns))
    return [{**turn, "content": turn["content"].partition(AGAIN)[0]} for turn in turns[:first]]


def filled(form: Form, tool: str, query: str) -> str:
    """The form with this tool and this query in the places of its own."""
    text = re.sub(r"\bsql\b", tool, form.text)
    if form.is_json:
        query = json.dumps(query, ensure_ascii=False)[1:-1]
        if f'\\"{QUERY}' in text:
            query = json.dumps(query, ensure_ascii=False)[1:-1]
    return text.replace(QUERY, query)
