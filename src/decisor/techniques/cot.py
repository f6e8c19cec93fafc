"""CoT: think, act, look, and again, in one chain from beginning to end; or several, and one of their answers.

Yao et al., "ReAct", ICLR 2023 (a chain); Wang et al., "Self-Consistency", ICLR 2023 (the vote).

    repeat ``chains`` times
        t <- a new sequence from the root
    return the answer that most sequences ended with; where none has most, the one that JUDGE prefers
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from decisor.errors import BudgetExceeded
from decisor.run import Run
from decisor.techniques.shared.judge import compare
from decisor.techniques.shared.node import Node
from decisor.techniques.shared.tree import Tree
from decisor.types import LM, Decision, Question


@dataclass(frozen=True)
class CoT:
    """Papers write CoT@n for n chains scored by whether any is right, which nothing here may know: benchmarks tell it
    as ``found``. ``choose``: by vote, by the judge, or ``auto``: by vote where more than half agree, else by the judge,
    as answers in free text hardly ever agree to the letter."""

    chains: int = 1
    choose: Literal["auto", "vote", "judge"] = "auto"
    calls: int = 100
    max_steps: int = 12
    temperature: float = 1.0
    seed: int = 0
    judge: LM | None = None

    async def __call__(self, question: Question, run: Run) -> Decision:
        tree = Tree.plant(question, run, self.calls, self.max_steps, self.temperature, self.seed)
        tree.best = lambda: most_common(tree)
        try:
            for _ in range(self.chains):
                await tree.sequence(tree.root, differ=False)
        except BudgetExceeded:
            pass
        if self.chains == 1:
            return tree.decide(tree.best(), "The answer of one chain.")
        if self.choose == "vote" or (self.choose == "auto" and has_majority(tree)):
            return tree.decide(tree.best(), f"The answer of most of {len(tree.sequences)} chains.")
        king = await self.judged(tree)
        return tree.decide(king, f"The answer that a judge preferred among {len(tree.sequences)} chains.")

    async def judged(self, tree: Tree) -> Node | None:
        """Each different answer against the best so far, in both orders, as far as the calls go."""
        judge = tree.run.using(lm=self.judge)
        king = tree.best()
        tree.best = lambda: king
        try:
            different = {plain(node.answer): node for node in reversed(tree.answers())}
            for node in reversed(different.values()):
                if king is None or plain(node.answer) == plain(king.answer):
                    continue
                if await compare(tree, node, king, judge) == 1:
                    king = node
        except BudgetExceeded:
            pass
        return king


def plain(answer: str) -> str:
    """
    >>> plain("Oslo."), plain("  the  Rhine ")
    ('oslo', 'the rhine')
    """
    return " ".join(answer.casefold().split()).rstrip(".")


def most_common(tree: Tree) -> Node | None:
    """A node with the answer that most chains ended with, the earliest of equals."""
    answers = tree.answers()
    counts = Counter(plain(node.answer) for node in answers)
    return max(answers, key=lambda node: counts[plain(node.answer)], default=None)


def has_majority(tree: Tree) -> bool:
    counts = Counter(plain(node.answer) for node in tree.answers())
    return not counts or 2 * max(counts.values()) > counts.total()
