"""CoT: think, act, look, and again, in one chain from beginning to end; or several, and the answer most of them gave.

Yao et al., "ReAct", ICLR 2023 (a chain); Wang et al., "Self-Consistency", ICLR 2023 (the vote).

    repeat ``chains`` times
        t <- a new sequence from the root
    return the answer that most sequences ended with, the earliest of equals
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from decisor.errors import BudgetExceeded
from decisor.run import Run
from decisor.techniques.shared.node import Node
from decisor.techniques.shared.tree import Tree
from decisor.types import Decision, Question


@dataclass(frozen=True)
class CoT:
    """Papers write CoT@n for n chains scored by whether any is right; here ``chains`` votes, as nothing may tell."""

    chains: int = 1
    calls: int = 100
    max_steps: int = 12
    temperature: float = 1.0
    seed: int = 0

    async def __call__(self, question: Question, run: Run) -> Decision:
        tree = Tree.plant(question, run, self.calls, self.max_steps, self.temperature, self.seed)
        tree.best = lambda: most_common(tree)
        try:
            for _ in range(self.chains):
                await tree.sequence(tree.root, differ=False)
        except BudgetExceeded:
            pass
        why = f"The answer of most of {len(tree.sequences)} chains." if self.chains > 1 else "The answer of one chain."
        return tree.decide(tree.best(), why)


def most_common(tree: Tree) -> Node | None:
    answers = tree.answers()
    counts = Counter(node.answer for node in answers)
    return max(answers, key=lambda node: counts[node.answer], default=None)
