"""How much of a follow-up prompt repeats an earlier one from its beginning on, so that a prefix cache can serve it.

    python performance/prompt_prefix.py [DATA] [--limit 20] [--technique plan_rag ...] [--show]

Policies (test equipment, never a model's score) play the techniques over HTTP through the real client: the one of
Decision QA, and on MuSiQue one that searches each hop of the gold decomposition. What is measured stands in the traces:
of every prompt after the first of its span, the characters that an earlier prompt of the span began with; calls, tokens
(four characters each) and bytes of the trace file a question. A prompt with another beginning than all before it (the
reader of ircot) begins a thread of its own. Two shares of characters, over all follow-up prompts:

* prefix: of the follow-up prompts. What is new in them (a reply, an observation) can be in no cache, so this has a
  ceiling below 100 %, which stands beside it.
* again: of what had been sent before and is sent again. It is 100 % where prompts grow at the end only.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from decisor.lab.benchmark import Bench, Case
from decisor.lab.dqa.bench import DqaBench
from decisor.lab.evaluation.case_run import CaseAttempt, run_case
from decisor.lab.qa.bench import MUSIQUE, MuSiQueBench
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.techniques import build_technique
from decisor.trace.events import LLMCall, TraceEntry, UnreadableReply
from decisor.trace.file import format_trace_file
from decisor.trace.prompts import common_affix_length
from decisor.types import Message
from policies.dqa import DqaPolicy
from policies.hops import HopPolicy
from servers.openai_server import serve

ON_DATABASES = ("plan_rag", "iter_rag", "single_rag")
ON_DOCUMENTS = ("react", "ircot", "self_ask", "iter_retgen")
BEGINNING = 150
"""Characters that prompts of one thread have in common at least."""
Reply = Callable[[dict[str, Any]], str]


@dataclass
class Tally:
    """Of the runs of one technique. ``repeats`` and ``length`` are characters of follow-up prompts, ``before`` those of
    the prompts before them."""

    questions: int = 0
    right: int = 0
    calls: int = 0
    tokens: int = 0
    repeats: int = 0
    length: int = 0
    before: int = 0
    trace_bytes: int = 0
    unreadable: int = 0

    def add(self, entries: Sequence[TraceEntry], right: bool, tokens: int) -> None:
        self.questions += 1
        self.right += right
        self.tokens += tokens
        earlier: dict[int, list[str]] = {}
        for entry in entries:
            self.unreadable += isinstance(entry.event, UnreadableReply)
            if isinstance(entry.event, LLMCall):
                self.calls += 1
                text, prompts = flat(entry.event.messages), earlier.setdefault(entry.span, [])
                if any(text.startswith(one[:BEGINNING]) for one in prompts):
                    same, last = max((common_affix_length(one, text, False), len(one)) for one in prompts)
                    self.repeats, self.before = self.repeats + same, self.before + min(last, len(text))
                    self.length += len(text)
                prompts.append(text)
        self.trace_bytes += len(format_trace_file(entries).encode())

    def __str__(self) -> str:
        n = self.questions
        shares = [f"{part / self.length:.1%}" for part in (self.repeats, self.before)] if self.length else ["-", "-"]
        again = f"{self.repeats / self.before:.1%}" if self.before else "-"
        return (
            f"{self.right}/{n} right, {self.calls / n:.1f} calls, {self.tokens / n:,.0f} tokens, trace "
            f"{self.trace_bytes / n / 1000:.1f} kB, unread replies {self.unreadable}, "
            f"prefix {shares[0]} (at most {shares[1]}), again {again}"
        )


def flat(messages: Sequence[Message]) -> str:
    return "".join(f"<{message.role}>\n{message.content}\n" for message in messages)


async def played(bench: Bench, cases: Sequence[Case], name: str, policy: Reply, tally: Tally, show: bool) -> None:
    async with serve(policy) as url:
        llm = OpenAICompatible("policy", url)
        attempt = CaseAttempt(bench.name, bench, name, build_technique(name), "policy", llm)
        for case in cases:
            outcome, entries = await run_case(case, attempt)
            tally.add(entries, outcome.state == "right", outcome.usage.tokens)
            if show:
                print(*(flat(one.event.messages) for one in entries if isinstance(one.event, LLMCall)), sep="\n=====\n")
                show = False
        await llm.close()


async def on_databases(data: Path, limit: int, names: Sequence[str], show: bool) -> None:
    for form in ("sql", "graph"):
        for scenario in ("locating", "building"):
            bench = DqaBench(data / "dqa", scenario, form, limit)
            cases = bench.cases()
            for name in names:
                tally = Tally()
                for _, group in groupby(cases, key=lambda case: bench.shared.cases[case.id].world.key):
                    some = list(group)  # a text is the question of one world only
                    policy = DqaPolicy({str(one.question): one.gold[0] for one in some}.__getitem__)
                    await played(bench, some, name, policy, tally, show)
                print(f"{name:12} dqa {scenario:8} {form:5} {tally}")
            await bench.close()


async def on_documents(data: Path, limit: int, names: Sequence[str], show: bool) -> None:
    bench = MuSiQueBench(data, limit=10)
    cases = bench.cases()
    chosen = [cases[at * len(cases) // limit] for at in range(limit)]
    policy = HopPolicy(chosen, {passage.id: passage for passage in MUSIQUE.passages(data)})
    for name in names:
        tally = Tally()
        await played(bench, chosen, name, policy, tally, show)
        print(f"{name:12} musique            {tally}")
    await bench.close()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = Path(os.environ.get("DECISOR_DATA", "../shared/data"))
    parser.add_argument("data", type=Path, nargs="?", default=data)
    parser.add_argument("--limit", type=int, default=20)
    parser.add_argument("--technique", action="append", choices=(*ON_DATABASES, *ON_DOCUMENTS))
    parser.add_argument("--show", action="store_true", help="print every prompt of the first question")
    args = parser.parse_args()
    names = args.technique or (*ON_DATABASES, *ON_DOCUMENTS)
    await on_databases(args.data, args.limit, [name for name in names if name in ON_DATABASES], args.show)
    await on_documents(args.data, args.limit, [name for name in names if name in ON_DOCUMENTS], args.show)


if __name__ == "__main__":
    asyncio.run(main())
