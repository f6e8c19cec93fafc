"""How many first replies of an LLM can be used, technique by technique, in each way of calling.

    python performance/small_model.py --llm MODEL@URL [--calling text,json] [--count 20] [--max-tokens 2048]
        [--technique plan_rag]...

The first reply to a question counts as read where it fits its form, its tool exists, and nothing in it is copied from
the form. Nothing is said of answers: a small model's are of no use. The smallest setting asks once:
``--count 1 --technique single_rag --calling json --max-tokens 256``. Data: $DECISOR_DATA, of DQA, MuSiQue, Game of 24.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from decisor.errors import LLMError, ParseError
from decisor.lab.benchmark import Bench, Case, open_bench
from decisor.llms.choose import choose_llm
from decisor.llms.shared import close_llm
from decisor.parsing.labelled import LabelledReply
from decisor.parsing.plan import PlanGraph
from decisor.parsing.prompting import Calling
from decisor.parsing.reply_form import Form
from decisor.runtime.budget import Budget
from decisor.runtime.run import Run
from decisor.techniques import build_technique
from decisor.types import LLM, Decision, Message, Sampling

T = TypeVar("T")
PLAYED = {
    "plan_rag": "dqa",
    "iter_rag": "dqa",
    "single_rag": "dqa",
    "react": "musique",
    "reasoning_dag": "musique",
    "radagent": "game24",
}
LEAST = 8
"""Letters that a text of the form must have to count as copied."""


class Enough(Exception):
    """The first reply is there."""


@dataclass
class First:
    """What became of a first reply: '' where it was read, else why not."""

    why: str = "no call"
    text: str = ""
    tokens: int = 0


@dataclass(frozen=True)
class FirstReply(Run):
    """A run that ends with its first reply."""

    first: First = field(default_factory=First)
    max_tokens: int = 2048

    async def ask(
        self,
        prompt: str | Sequence[Message],
        form: Form[T] | Callable[[str], T],
        sampling: Sampling = Sampling(),
        final: bool = False,
        tries: int | None = None,
    ) -> T:
        assert isinstance(form, Form), "every reply of these techniques has a form"
        messages = [Message("user", prompt)] if isinstance(prompt, str) else list(prompt)
        limited = replace(self.sampling(form, sampling), max_tokens=self.max_tokens)
        try:
            reply = await self.complete(messages, limited, final)
            self.first.text, self.first.tokens = reply.text, reply.usage.completion_tokens
            if reply.finish == "length":
                self.first.why = "cut"
            else:
                self.first.why = fault_of(form.read(reply.text), self.env.tools(), self.wording(form))
        except ParseError as complaint:
            self.first.why = complaint.reason
        except LLMError as error:
            self.first.why = f"failed: {error}"
        raise Enough


def fault_of(value: object, tools: Sequence[str], wording: str) -> str:
    if isinstance(value, LabelledReply) and value.call is not None and value.call.tool not in tools:
        return "unknown_tool"
    return "copied" if any(is_copied(text, wording) for text in texts_of(value)) else ""


def texts_of(value: object) -> Iterator[str]:
    """What a reply asks for or answers."""
    match value:
        case LabelledReply(call=call, answer=answer):
            yield from (call.input if call else "", answer or "")
        case PlanGraph(parts=parts):
            yield from (part.query for part in parts)
        case Decision(answer=answer):
            yield answer


def is_copied(text: str, wording: str) -> bool:
    """Whether it stands in what the prompt says of the form."""
    plain = letters(text)
    return len(plain) >= LEAST and plain in letters(wording)


def letters(text: str) -> str:
    return re.sub(r"\W+", "", text.casefold())


async def play(
    name: str, calling: Calling, cases: Sequence[Case], data: Bench, model: LLM, most: int, show: bool
) -> list[First]:
    """``show``: every reply, as it comes."""
    replies = []
    for case in cases:
        first = First()
        async with data.environment(case) as env:
            run = FirstReply(model, env, Budget(), calling=calling, first=first, max_tokens=most)
            try:
                await build_technique(name)(case.question, run)
            except Enough:
                replies.append(first)
                if show:
                    words = " ".join(first.text.split())[:300]
                    print(f"    {first.why or 'read'}, {first.tokens} tokens: {words}", flush=True)
    return replies


async def main(spec: str, names: Sequence[str], callings: Sequence[Calling], count: int, most: int, show: bool) -> None:
    model = choose_llm(spec, os.environ)
    assert model is not None, "name an LLM with --llm"
    print(f"{model.name}: first replies that can be used, of {count} questions each, at most {most} tokens a reply")
    for name in names:
        data = open_bench(PLAYED[name])
        cases = data.cases()
        chosen = [cases[at * len(cases) // count] for at in range(count)]
        for calling in callings:
            began = time.perf_counter()
            replies = await play(name, calling, chosen, data, model, most, show)
            whys = Counter(first.why for first in replies if first.why)
            seconds = (time.perf_counter() - began) / count
            mean = sum(first.tokens for first in replies) / count
            print(
                f"{name:14} {calling:6} {count - whys.total():3} of {count}  {mean:4.0f} tokens, {seconds:5.1f} s a "
                f"reply  {dict(whys) or ''}",
                flush=True,
            )
    await close_llm(model)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llm", required=True)
    parser.add_argument("--technique", action="append", choices=PLAYED)
    parser.add_argument("--calling", default="text,json")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--max-tokens", type=int, default=2048)
    parser.add_argument("--show", action="store_true", help="print every reply")
    options = parser.parse_args()
    asyncio.run(
        main(
            options.llm,
            options.technique or list(PLAYED),
            options.calling.split(","),
            options.count,
            options.max_tokens,
            options.show,
        )
    )
