"""LATS: Monte Carlo tree search with an LM that acts, values states, and writes down what failures teach.

Zhou et al., "Language Agent Tree Search Unifies Reasoning, Acting and Planning in Language Models", ICML 2024.

    repeat until the calls are used up
        d <- from the root down by UCT = value / visits + c sqrt(ln(visits of the parent) / visits)
        children <- EXPLORE ``expand`` times from d, each valued by RATE
        t <- from the best child on to the end of a sequence; its value is RATE(t)
        the value is added to every node on the way up; a low one gives a lesson for later prompts
    return the answer of the highest value

The paper's code takes rewards from the environment; here every value is the model's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from decisor.errors import BudgetExceeded
from decisor.plurals import counted
from decisor.run import Run
from decisor.techniques.reflexion import reflect
from decisor.techniques.shared.judge import rating
from decisor.techniques.shared.node import Node
from decisor.techniques.shared.tree import Tree
from decisor.types import LM, Decision, Question


@dataclass(frozen=True)
class LATS:
    """``c``: weight of exploration. ``lessons``: of how many failures at most. A rating below ``low`` is a failure."""

    expand: int = 5
    c: float = math.sqrt(2)
    lessons: int = 3
    low: float = 0.5
    calls: int = 100
    max_steps: int = 12
    temperature: float = 1.0
    seed: int = 0
    judge: LM | None = None

    async def __call__(self, question: Question, run: Run) -> Decision:
        tree = Tree.plant(question, run, self.calls, self.max_steps, self.temperature, self.seed)
        judge = tree.run.using(lm=self.judge)
        worth: dict[int, float] = {}
        tree.best = lambda: max(tree.answers(), key=lambda node: worth.get(node.id, -1.0), default=None)
        try:
            while node := self.select(tree.root):
                children = [await tree.grow(node) for _ in range(self.expand)]
                for child in children:
                    worth[child.id] = await rating(tree, child, judge)
                leaf = await tree.sequence(max(children, key=lambda child: worth[child.id]))
                if leaf.id not in worth:
                    worth[leaf.id] = await rating(tree, leaf, judge)
                for child in children:
                    back_up(child, worth[child.id])
                if leaf not in children:
                    back_up(leaf, worth[leaf.id])
                if worth[leaf.id] < self.low and len(tree.lessons) < self.lessons:
                    tree.lessons += [lesson for lesson in [await reflect(tree, leaf)] if lesson]
        except BudgetExceeded:
            pass
        return tree.decide(tree.best(), f"The highest value among {counted(len(tree.answers()), 'answer')}.")

    def select(self, node: Node) -> Node | None:
        """The open leaf that UCT leads to; a node all of whose children are done is done too."""
        while node.children:
            open_ = [child for child in node.children if not done(child)]
            if not open_:
                return None
            node = max(open_, key=self.uct)
        return node

    def uct(self, node: Node) -> float:
        assert node.parent is not None
        if not node.visits:
            return math.inf
        return node.value / node.visits + self.c * math.sqrt(math.log(max(node.parent.visits, 1)) / node.visits)


def done(node: Node) -> bool:
    return bool(node.ended) or (bool(node.children) and all(done(child) for child in node.children))


def back_up(leaf: Node, value: float) -> None:
    node: Node | None = leaf
    while node is not None:
        node.visits += 1
        node.value += value
        node = node.parent
