"""A function that plays the techniques over documents on MuSiQue, one hop of the gold decomposition at a time.

It reads what a model reads: which hops it has done stands in the prompt. It never retries and cites nothing that it was
not shown. Test equipment: never report its score as a model's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from decisor.documents.passage import Passage
from decisor.lab.benchmark import Case
from policies.musique import Hop, hops_of


@dataclass
class HopPolicy:
    """``cases``: those that may be asked."""

    cases: Sequence[Case]
    passages: dict[str, Passage]
    plans: dict[str, list[Hop]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.plans = {case.question.text: hops_of(case, self.passages) for case in self.cases}

    def __call__(self, request: dict[str, Any]) -> str:
        """The reply to a chat request's body."""
        prompt = "\n".join(turn["content"] for turn in request["messages"])
        hops = next((hops for text, hops in self.plans.items() if text in prompt), None)
        if hops is None:  # a follow-up question by itself
            return f"Final answer: {self.reading(prompt)}"
        answer = f"Final answer: {hops[-1].answer}"
        if "Action: search" in prompt:
            steps = [
                (
                    f"Action input: {hop.resolved}",
                    f"Thought: I look for this.\nAction: search\nAction input: {hop.resolved}",
                )
                for hop in hops
            ]
            return next(
                (reply for mark, reply in steps if f"{mark}\n" not in prompt), f"Thought: That is it.\n{answer}"
            )
        if "Follow up:" in prompt:
            asked = [f"Follow up: {hop.resolved}" for hop in hops]
            return next((line for line in asked if f"{line}\n" not in prompt), answer)
        if "Thought:" in prompt or "next sentence" not in prompt:
            return f"Thought: {' '.join(map(sentence, hops))}\nBecause: none\n{answer}"
        sentences = [*map(sentence, hops), f"So the answer is: {hops[-1].answer}."]
        return next((one for one in sentences if one not in prompt), sentences[-1])

    def reading(self, prompt: str) -> str:
        hops = (hop for hops in self.plans.values() for hop in hops)
        return next((hop.answer for hop in hops if hop.resolved in prompt), "unknown")


def sentence(hop: Hop) -> str:
    return re.sub(r"[?.]*$", "", hop.resolved) + f": {hop.answer}."
