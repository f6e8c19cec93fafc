"""A function that plays a perfect model on MuSiQue for ``reasoning_dag``, and what retrieval lets it reach.

It reads what a model reads, and knows for each sub-question of the gold decomposition its answer and the passage that
tells it. It answers only from that passage: where the passage was not shown, it does not know. So what it misses is
what retrieval misses. Test equipment: never report its score as a model's.

For a search that found nothing it has one other form: the subject alone (what stands before ``>>``, or the answers of
the parents). ``forms`` are the searches in order; ``reachable`` computes the ceiling from them without any technique.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from decisor.documents.passage import Passage
from decisor.lab.benchmark import Case
from decisor.system.text import clean_text
from decisor.types import Retriever

REFERENCE = re.compile(r"#(\d)")


@dataclass(frozen=True)
class Hop:
    """One sub-question. ``asked``: with references; ``resolved``: with the gold answers in their place."""

    asked: str
    resolved: str
    answer: str
    gold: Passage
    needs: tuple[int, ...]
    forms: tuple[str, ...]


def hops_of(case: Case, passages: dict[str, Passage]) -> list[Hop]:
    parts: Any = case.facts["decomposition"]
    answers = [str(part["answer"]) for part in parts]
    hops: list[Hop] = []
    for part in parts:
        asked = part["question"]
        needs = tuple(sorted({int(number) for number in REFERENCE.findall(asked)}))
        resolved = fill(asked, answers)
        subject = resolved.partition(" >> ")[0] if " >> " in resolved else " ".join(answers[n - 1] for n in needs)
        forms = (resolved, subject) if subject.strip() else (resolved,)
        hops.append(Hop(asked, resolved, answers[len(hops)], passages[part["gold"]], needs, forms))
    return hops


def fill(asked: str, answers: Sequence[str]) -> str:
    return REFERENCE.sub(lambda found: answers[int(found[1]) - 1], asked)


async def reachable(hops: Sequence[Hop], retriever: Retriever, limit: int = 10) -> list[bool]:
    """For each hop, with all answers before it known: whether one of its searches brings its passage."""
    found = []
    for hop in hops:
        ids = [{record.id for record in await retriever.find(form, limit)} for form in hop.forms]
        found.append(any(hop.gold.id in one for one in ids))
    return found


def key(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text.lower()).strip()


@dataclass
class MusiquePolicy:
    """``calls``: how often each expert was asked."""

    cases: Sequence[Case]
    passages: dict[str, Passage]
    calls: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.plans = {key(case.question.text): hops_of(case, self.passages) for case in self.cases}
        self.known: dict[str, list[Hop]] = {}
        for hops in self.plans.values():
            for hop in hops:
                self.known.setdefault(key(hop.resolved), []).append(hop)

    def __call__(self, request: dict[str, Any]) -> str:
        """The reply to a chat request's body."""
        prompt = request["messages"][-1]["content"]
        for mark, expert in EXPERTS.items():
            if prompt.startswith(mark):
                self.calls[expert] = self.calls.get(expert, 0) + 1
                reply: str = getattr(self, expert)(prompt)
                return reply
        raise AssertionError(f"no expert of reasoning_dag asks this:\n{prompt[:500]}")

    def plan_of(self, case: Case) -> list[Hop]:
        return self.plans[key(case.question.text)]

    def plan(self, prompt: str) -> str:
        asked = prompt.rpartition("\n# Question\n")[2].partition("\n\n")[0]
        depths: list[int] = []
        nodes = []
        ids: list[str] = []
        for hop in self.plans[key(asked)]:
            depths.append(1 + max((depths[need - 1] for need in hop.needs), default=0))
            ids.append(f"{depths[-1]}.{depths.count(depths[-1])}")
            text = REFERENCE.sub(lambda found: f"<A{ids[int(found[1]) - 1]}>", hop.asked)
            nodes.append({"id": ids[-1], "ask": text, "needs": [ids[need - 1] for need in hop.needs]})
        return json.dumps({"nodes": nodes})

    def resolve(self, prompt: str) -> str:
        told = section(prompt, "Earlier questions and answers")
        answers = dict(re.findall(r"^Q(\d+\.\d+): .* -> (.*?)(?: \(not certain\))?$", told, re.M))
        return "Question: " + re.sub(r"<A(\d+\.\d+)>", lambda tag: answers[tag[1]], section(prompt, "Question"))

    def generate(self, prompt: str) -> str:
        number, hop = self.helping(prompt)
        if not number or hop is None:
            return "Answer: unknown\nQuote: none"
        sentences = re.split(r"(?<=[.!?])\s+", " ".join(clean_text(hop.gold.text).split()))
        quote = next((one for one in sentences if key(hop.answer) in key(one)), sentences[0])
        return f"Answer: {hop.answer}\nQuote: {quote}"

    def criticise(self, prompt: str) -> str:
        return "Evidence needed: " + ("no" if self.helping(prompt)[0] else "yes")

    def choose(self, prompt: str) -> str:
        number, _ = self.helping(prompt)
        return f"Helps: [{number}]" if number else "Helps: [No]"

    def rewrite(self, prompt: str) -> str:
        hops = self.known.get(key(section(prompt, "Question")), ())
        return "Search: " + next((hop.forms[-1] for hop in hops), section(prompt, "Question"))

    def aggregate(self, prompt: str) -> str:
        last = section(prompt, "Parts and their answers").splitlines()[-1]
        said = re.sub(r" \(not certain\)$", "", last.rpartition(" -> ")[2])
        return (
            "Final answer: none" if re.fullmatch(r"\(\w+\)", said) else f"Final answer: {said}\nBecause: the last part."
        )

    def helping(self, prompt: str) -> tuple[int, Hop | None]:
        """The number of the shown document that tells what is asked, and the hop; 0 where none does."""
        lines = section(prompt, "Documents").splitlines()
        for hop in self.known.get(key(section(prompt, "Question")), ()):
            text = " ".join(clean_text(hop.gold.text).split())
            for number, line in enumerate(lines, 1):
                if line.startswith(f"[{number}] ") and line.endswith(text):
                    return number, hop
        return 0, None


EXPERTS = {
    "Take the question apart": "plan",
    "A question refers by tags": "resolve",
    "Answer the question in a few words": "generate",
    "Judge whether an answer must be looked up": "criticise",
    "Which document answers the question": "choose",
    "Searches for a question found nothing": "rewrite",
    "A question was taken apart": "aggregate",
}


def section(prompt: str, name: str) -> str:
    """What stands under a heading, up to the next."""
    return re.split(r"\n# ", prompt.split(f"\n# {name}\n", 1)[1], maxsplit=1)[0].strip()
