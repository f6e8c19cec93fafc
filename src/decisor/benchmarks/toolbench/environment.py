"""A task's functions as an environment: calls are answered by whom the benchmark says, ``Finish`` hands the answer in.

Every observation is one record with ``error`` and ``response``, cut at 1,024 characters as in the release; one that was
simulated says so. Nothing tells whether the task is solved.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count

from decisor.benchmarks.toolbench.answers import Answers, Reply, read
from decisor.benchmarks.toolbench.functions import ANSWER, FINISH, GIVE_UP, Api, Schema, distinct, finish_schema, schema
from decisor.benchmarks.toolbench.load import Task
from decisor.benchmarks.toolbench.statuses import BAD_INPUT, NO_FUNCTION
from decisor.tools.functions.arguments import Arguments
from decisor.types import Action, Observation, Record, Usage, Value

LONGEST = 1024


@dataclass
class ToolServer:
    """Satisfies ``types.Environment``. Forks share who answers; only whether it is finished is their own."""

    task: Task
    answers: Answers
    finished: bool = False
    counter: Iterator[int] = field(default_factory=lambda: count(1))

    @cached_property
    def functions(self) -> dict[str, Api]:
        return distinct(self.task.apis)

    @property
    def lm_usage(self) -> Usage:
        """What a simulating LM has cost, in all forks together; no part of the technique's budget."""
        return self.answers.lm_usage

    def tools(self) -> tuple[str, ...]:
        return (*self.functions, FINISH)

    def describe(self) -> str:
        functions = [schema(api) for api in self.functions.values()] + [finish_schema()]
        return "\n\n".join(describe_function(one) for one in functions)

    async def step(self, action: Action) -> Observation:
        """A call that fails is an observation with its error."""
        if self.finished:
            return self.observation(Reply(f"{BAD_INPUT}: the task is finished, nothing can follow.", ""))
        if action.tool == FINISH:
            return self.finish(action.input)
        api = self.functions.get(action.tool)
        if api is None:
            return self.observation(Reply(f"{NO_FUNCTION}: {action.tool}. There is {', '.join(self.tools())}.", ""))
        arguments = read(action.input)
        if arguments is None:
            return self.observation(Reply(f"{BAD_INPUT}: write the arguments as one JSON object.", ""))
        reply = await self.answers.answer(api, arguments)
        assert reply is not None
        return self.observation(reply)

    def finish(self, text: str) -> Observation:
        kind, answer = read_finish(text)
        if kind == GIVE_UP:
            self.finished = True
            return replace(self.observation(Reply("", "This attempt is given up.")), answer="")
        if kind != ANSWER or answer is None:
            missing = "final_answer" if kind == ANSWER else f"return_type, as {ANSWER} or {GIVE_UP}"
            return self.observation(Reply(f"{BAD_INPUT}: {FINISH} needs {missing}.", ""))
        self.finished = True
        return replace(self.observation(Reply("", "The final answer is handed in.")), answer=answer)

    def observation(self, reply: Reply) -> Observation:
        over = len(reply.error) + len(reply.response) - LONGEST
        response = f"{reply.response[: max(len(reply.response) - over, 0)]}..." if over > 0 else reply.response
        fields: dict[str, Value] = {"error": reply.error[:LONGEST], "response": response}
        if reply.by == "simulated":
            fields["simulated"] = "by a language model; no API said this"
        record = Record(f"o{next(self.counter)}.r1", fields, source=reply.by)
        return Observation((record,), error=bool(reply.error), truncated=False)

    def fork(self) -> ToolServer:
        return ToolServer(self.task, self.answers, self.finished, self.counter)


def describe_function(function: Schema) -> str:
    """As text: the name, what it does, and its arguments with examples."""
    properties = {
        name: {**about, **({"example": about["example_value"]} if "example_value" in about else {})}
        for name, about in function["parameters"]["properties"].items()
    }
    arguments = Arguments({"properties": properties, "required": function["parameters"]["required"]})
    return f"### Tool: {function['name']}\n{function['description']}\n{arguments.describe()}"


def read_finish(text: str) -> tuple[str, str | None]:
    """The return type and the answer; JSON that cannot be read is searched for both, as the release does.

    >>> read_finish('{"return_type": "give_answer", "final_answer": "It is "warm" today"}')
    ('give_answer', 'It is "warm" today')
    """
    arguments = read(text)
    if arguments is not None:
        answer = arguments.get("final_answer")
        return str(arguments.get("return_type", "")), None if answer is None else answer if isinstance(
            answer, str
        ) else json.dumps(answer)
    kind = re.search(r'"return_type"\s*:\s*"(\w+)"?', text)
    answer_match = re.search(r'"final_answer"\s*:\s*"(.*)', text, re.S)
    return kind[1] if kind else "", re.sub(r'"?\s*}?\s*$', "", answer_match[1]) if answer_match else None
