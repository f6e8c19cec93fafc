"""LATS: Monte Carlo tree search with an LLM that acts, values states, and writes down what failures teach.

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
from contextlib import suppress
from dataclasses import dataclass

from decisor.errors import BudgetExceeded
from decisor.runtime.run import Run
from decisor.system.wording import format_count
from decisor.techniques.reflexion import reflect_on_sequence
from decisor.techniques.shared.judge import rate_state
from decisor.techniques.shared.search_tree import Tree, TreeNode
from decisor.types import LLM, Decision, Question


@dataclass(frozen=True)
class LATS:
    """Monte Carlo tree search with values and lessons from an LLM.

    ``c``: weight of exploration. ``lessons``: maximum number of failures that give a lesson. ``low``: rating below
    which a sequence is a failure.
    """

    expand: int = 5
    c: float = math.sqrt(2)
    lessons: int = 3
    low: float = 0.5
    calls: int = 100
    max_steps: int = 12
    temperature: float = 1.0
    seed: int = 0
    judge: LLM | None = None

    async def __call__(self, question: Question, run: Run) -> Decision:
        tree = Tree.plant(question, run, self.calls, self.max_steps, self.temperature, self.seed)
        judge = tree.run.using(llm=self.judge)
        worth: dict[int, float] = {}
        tree.best = lambda: max(tree.answers(), key=lambda node: worth.get(node.id, -1.0), default=None)
        with suppress(BudgetExceeded):
            while node := self.select(tree.root):
                children = [await tree.grow(node) for _ in range(self.expand)]
                for child in children:
                    worth[child.id] = await rate_state(tree, child, judge)
                leaf = await tree.sequence(max(children, key=lambda child: worth[child.id]))
                if leaf.id not in worth:
                    worth[leaf.id] = await rate_state(tree, leaf, judge)
                for child in children:
                    back_up(child, worth[child.id])
                # A child that ended at once is the leaf itself, and was counted above.
                if leaf not in children:
                    back_up(leaf, worth[leaf.id])
                if worth[leaf.id] < self.low and len(tree.lessons) < self.lessons:
                    tree.lessons += [lesson for lesson in [await reflect_on_sequence(tree, leaf)] if lesson]
        return tree.decide(tree.best(), f"The highest value among {format_count(len(tree.answers()), 'answer')}.")

    def select(self, node: TreeNode) -> TreeNode | None:
        """Return the open leaf that UCT leads to. None if all children of a node on the way are done."""
        while node.children:
            open_ = [child for child in node.children if not done(child)]
            if not open_:
                return None
            node = max(open_, key=self.uct)
        return node

    def uct(self, node: TreeNode) -> float:
        assert node.parent is not None
        # A child that was not visited comes first: its UCT is infinite.
        if not node.visits:
            return math.inf
        return node.value / node.visits + self.c * math.sqrt(math.log(max(node.parent.visits, 1)) / node.visits)


def done(node: TreeNode) -> bool:
    return bool(node.ended) or (bool(node.children) and all(done(child) for child in node.children))


def back_up(leaf: TreeNode, value: float) -> None:
    node: TreeNode | None = leaf
    while node is not None:
        node.visits += 1
        node.value += value
        node = node.parent
