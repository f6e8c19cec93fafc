"""A simulated reasoner on questions with gold hops: proposes queries of mixed quality, and answers when it has read
every gold passage, and only then. Test equipment: never report its score as a model's.

What it assumes, and says so: of the queries it knows, the one for the next hop comes first with probability ``good``;
shown its own earlier queries it stays with the last of them, and parts of it, with probability ``anchored`` (that
models do so is FuRePA's claim, not ours); the same prompt at the same temperature gives the same reply.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random
from typing import Any

from decisor.lab.training import HopExample, propose_training_queries
from decisor.types import Record

SHOWN = re.compile(r"^\[(o\d+\.r\d+)\] (.*)$", re.M)
ASKED = re.compile(r"^(?:Query|Action input): (.+)$", re.M)


@dataclass
class Reasoner:
    """``examples`` by question, ``answers`` by question. Called with the body of a chat request."""

    examples: Mapping[str, HopExample]
    answers: Mapping[str, str]
    passages: Mapping[str, Record]
    wrong: Sequence[str]
    good: float = 0.4
    anchored: float = 0.5
    seed: int = 0
    calls: int = field(default=0)

    def __call__(self, request: dict[str, Any]) -> str:
        self.calls += 1
        prompt: str = request["messages"][-1]["content"]
        question = section(prompt, "Question").splitlines()[0]
        example = self.examples[question]
        gold = list(dict.fromkeys(hop.gold for hop in example.hops))
        seen = {id for id in gold if fingerprint(self.passages[id].text) in prompt}
        if len(seen) == len(gold):
            return self.answer(question, prompt)
        if "Final answer" in prompt and "Query:" not in prompt and "Action: search" not in prompt:
            return "Final answer: none"  # the last call, or a reader
        known = next((number for number, id in enumerate(gold) if id not in seen), len(gold))
        draw = Random(f"{self.seed} {request.get('temperature')} {prompt}")
        queries = self.propose(example, known, [self.passages[id] for id in gold if id in seen], draw)
        before = ASKED.findall(section(prompt, "What you thought and asked before") + section(prompt, "So far"))
        if before and draw.random() < self.anchored:
            parts = before[-1].split()
            queries = [before[-1], " ".join(parts[: -(-len(parts) // 2)]), *queries[3:]]
        return self.written(prompt, queries)

    def propose(self, example: HopExample, known: int, held: Sequence[Record], draw: Random) -> list[str]:
        """Four queries. The next hop's own leads with probability ``good``, follows among the others with the same."""
        pool = [
            (query, kind)
            for query, kind in propose_training_queries(example, known, held, draw, self.wrong).items()
            if kind not in ("question", "root", "resolved", "llm")
        ]
        draw.shuffle(pool)
        others = [query for query, _ in pool[:3]]
        hop = example.hops[min(known, len(example.hops) - 1)]
        best = resolved(hop.ask, example) or f"{hop.answer}"
        if draw.random() < self.good:
            return [best, *others]
        others.insert(draw.randint(1, 3), best)
        return others

    def answer(self, question: str, prompt: str) -> str:
        said = self.answers[question]
        if "Reasoning so far" in prompt:
            return f"So the answer is: {said}"
        return f"Thought: all is read.\nFinal answer: {said}"

    def written(self, prompt: str, queries: Sequence[str]) -> str:
        if "Reasoning so far" in prompt:
            return queries[0]
        if "Action: search" in prompt:
            return f"Thought: more is needed.\nAction: search\nAction input: {queries[0]}"
        return "Thought: more is needed.\n" + "\n".join(f"Query: {query}" for query in queries)


def resolved(ask: str, example: HopExample) -> str:
    """A hop's question with the gold answers in the place of its references."""
    return re.sub(r"#(\d+)", lambda one: example.hops[int(one[1]) - 1].answer, re.sub(r"\s*>>\s*", " ", ask)).strip()


@lru_cache(maxsize=100_000)
def fingerprint(text: str) -> str:
    """The longest run of plain characters, which any way of quoting leaves as it is."""
    runs: list[str] = re.findall(r"[A-Za-z0-9 ,.;()'-]+", text)
    return max(runs, key=len).strip()


def section(prompt: str, name: str) -> str:
    """What stands under a heading, up to the next; nothing where there is no such heading."""
    _, found, rest = f"\n{prompt}".partition(f"\n# {name}\n")
    return re.split(r"\n# ", rest, maxsplit=1)[0].strip() if found else ""
