"""The technique agent beside a bare loop of tool calls: prompt tokens, calls, and what a prompt cache can use.

    python performance/bare_agent.py [DIR] [--limit 20] [--form sql|graph]

Both loops are played by one policy on questions of Decision QA: all queries in the first reply, the decision in the
second. Both are given the same text about the data. A prompt is counted with its tool calls and the schemas of its
tools, four characters a token, and each call sends the conversation again. Bars: at most 1.15 times the bare prompt
where that has 1,400 tokens a call or more, else at most 250 tokens a call above it; as many calls; 99 % of a prompt is
the beginning of the next. It says nothing of accuracy: the policy knows the answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from decisor.lab.dqa.bench import DqaBench
from decisor.lab.dqa.worlds import Form
from decisor.runtime.run import Run
from decisor.techniques import build_technique
from decisor.types import Action, Completion, Function, Message, Question, Sampling, ToolCall, Usage
from policies.dqa_queries import STEPS, asked

INSTRUCTIONS = """\
You are an analyst who answers decision questions from a database. Read the rules and the question, find out which \
candidates there are, and query the database with the tool until you can compare them. Write one statement a call; you \
may make several calls at once. Compute with the rules exactly as they are stated, and rank the candidates by the \
outcome that the question asks for. Do not guess: every number of your answer must come from a result. When you know \
the best candidate, answer with its name, the figures that decide and what you assumed. If the data cannot decide, say \
so."""
"""As long as a developer's who tries a few questions, 600 characters."""


async def bare_loop(question: Question, run: Run) -> str:
    """Answer a question by tool calls, as a developer writes it in ten lines."""
    name = run.env.tools()[0]
    schema = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    tools = (Function(name, "Run one query on the database.", schema),)
    messages = [Message("system", f"{INSTRUCTIONS}\n\n{run.env.describe()}"), Message("user", str(question))]
    while True:
        reply = await run.complete(messages, Sampling(tools=tools))
        assert reply.turn is not None
        if not reply.turn.calls:
            return reply.text
        messages.append(reply.turn)
        for call in reply.turn.calls:
            rows = (await run.act(Action(name, json.loads(call.arguments)["query"]))).records
            text = "\n".join(" | ".join([record.id, *map(str, record.fields.values())]) for record in rows[:50])
            messages.append(Message("tool", text, call_id=call.id))


@dataclass
class CallingPolicy:
    """A model that makes all queries of a question in its first reply, and decides in its second."""

    question: Question
    choice: str
    name: str = "policy"
    price: None = None
    prompts: list[str] = field(default_factory=list)
    """All that each call sent, the schemas of its tools first."""

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        sent = json.dumps([[tool.name, tool.description, tool.parameters] for tool in sampling.tools])
        for message in messages:
            sent += message.content + "".join(call.name + call.arguments for call in message.calls)
        self.prompts.append(sent)
        names = [tool.name for tool in sampling.tools]
        source = next(name for name in names if name not in ("plan", "decide"))
        wanted = asked(str(self.question))
        if not any(message.role == "tool" for message in messages):
            steps = STEPS[wanted.scenario]
            queries = [(source, {"query": wanted.query(step, source, self.choice)}) for step in steps]
            plan = [("plan", {"steps": list(steps)})] if "plan" in names else []
            return self.reply("", [*plan, *queries])
        rows = "\n".join(message.content for message in messages if message.role == "tool")
        id = re.findall(rf"^\[?(o\d+\.r\d+)\]? \| {re.escape(self.choice)} \|", rows, re.M)[-1]
        because = f"{self.choice} has the best outcome [{id}]."
        if "decide" in names:
            return self.reply("", [("decide", {"answer": self.choice, "because": because})])
        return self.reply(f"{self.choice}: {because}", [])

    def reply(self, text: str, calls: Sequence[tuple[str, object]]) -> Completion:
        written = tuple(ToolCall(f"c{at}", name, json.dumps(value)) for at, (name, value) in enumerate(calls))
        return Completion((text,), Usage(1, len(self.prompts[-1]) // 4, 100), turn=Message("assistant", text, written))


def repeated_share(prompts: Sequence[str]) -> float:
    """Return the share of each prompt that is the beginning of the next, at least."""
    shares = [1.0]
    for before, after in pairwise(prompts):
        same = next((at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), len(before))
        shares.append(same / len(before))
    return min(shares)


async def measure(data: Path, form: Form, limit: int) -> None:
    bench = DqaBench(data=data, form=form, limit=limit)
    within, rows = 0, []
    for case in bench.cases():
        sent: dict[str, list[str]] = {}
        for name in ("bare", "agent"):
            policy = CallingPolicy(case.question, case.gold[0])
            async with bench.environment(case) as env:
                run = Run(policy, env)
                if name == "bare":
                    await bare_loop(case.question, run)
                else:
                    decision = await build_technique("agent")(case.question, run)
                    assert decision.answer == case.gold[0], (case.id, decision)
            sent[name] = policy.prompts
        bare, ours = (sum(map(len, sent[name])) / 4 for name in ("bare", "agent"))
        calls = len(sent["bare"])
        is_long = bare / calls >= 1_400
        within += ours <= 1.15 * bare if is_long else ours <= bare + 250 * calls
        rows.append((bare, ours, calls, len(sent["agent"]), repeated_share(sent["agent"]), is_long))
    await bench.close()
    count = len(rows)
    totals = [sum(column) for column in zip(*rows, strict=True)]
    print(f"{count} questions, {form}; {totals[5]} with 1,400 tokens a call or more")
    print(f"prompt tokens a question: bare {totals[0] / count:,.0f}, agent {totals[1] / count:,.0f}", end=" ")
    print(f"({totals[1] / totals[0]:.2f}); within the bar: {within} of {count}")
    repeated = min(row[4] for row in rows)
    print(f"calls: bare {totals[2] / count:.2f}, agent {totals[3] / count:.2f}; repeated at least {repeated:.1%}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("DECISOR_DATA", "../shared/data")) / "dqa"
    parser.add_argument("data", type=Path, nargs="?", default=default)
    parser.add_argument("--form", choices=("sql", "graph"), default="sql")
    parser.add_argument("--limit", type=int, default=20)
    options = parser.parse_args()
    asyncio.run(measure(options.data, options.form, options.limit))
