"""DFS: the children of a node are made first, compared pair by pair, and visited from the best on.

Tree of Thoughts (Yao et al., NeurIPS 2023) as the baseline of RadAgent (arXiv 2308.12519) has it.

    VISIT(d): children <- EXPLORE ``width`` times from d, each shown its elder siblings
              order    <- by wins of JUDGE over all pairs
              VISIT each in order, until ``answers`` sequences ended with an answer

A node costs ``width`` calls and ``width`` (``width`` - 1) of the judge.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from decisor.errors import BudgetExceeded
from decisor.runtime.run import Run
from decisor.system.wording import format_count
from decisor.techniques.shared.judge import compare_sequences
from decisor.techniques.shared.search_tree import Tree, TreeNode
from decisor.types import LLM, Decision, Question


@dataclass(frozen=True)
class DFS:
    """Depth-first search that visits the children of a node from the best on.

    ``answers``: number of answers to stop at; 0 means search to the end.
    """

    width: int = 2
    answers: int = 1
    calls: int = 100
    max_steps: int = 12
    votes: int = 1
    temperature: float = 1.0
    seed: int = 0
    judge: LLM | None = None

    async def __call__(self, question: Question, run: Run) -> Decision:
        tree = Tree.plant(question, run, self.calls, self.max_steps, self.temperature, self.seed)
        with suppress(BudgetExceeded):
            await self.visit(tree, tree.root, tree.run.using(llm=self.judge))
        return tree.decide(tree.best(), f"The first of {format_count(len(tree.answers()), 'answer')}.")

    async def visit(self, tree: Tree, node: TreeNode, judge: Run) -> None:
        children = [await tree.grow(node) for _ in range(self.width)]
        for child in await self.by_wins(tree, children, judge):
            if self.answers and len(tree.answers()) >= self.answers:
                return
            if not child.ended:
                await self.visit(tree, child, judge)

    async def by_wins(self, tree: Tree, children: list[TreeNode], judge: Run) -> list[TreeNode]:
        """Sort children by wins over all pairs, the earlier of equals first."""
        wins = dict.fromkeys(range(len(children)), 0.0)
        for x in range(len(children)):
            for y in range(x + 1, len(children)):
                score = await compare_sequences(tree, children[x], children[y], judge, self.votes)
                wins[x] += score
                wins[y] += 1 - score
        return [children[at] for at in sorted(wins, key=lambda at: -wins[at])]
