"""BFS: level by level, each kept node gets ``expand`` children, and a judge keeps the best ``width`` of all.

Tree of Thoughts (Yao et al., NeurIPS 2023) as the baseline of RadAgent (arXiv 2308.12519) has it.

    pool <- [root]
    repeat until nothing is open, or ``answers`` sequences ended with an answer
        children <- EXPLORE ``expand`` times from each of pool, each shown its elder siblings
        pool     <- the best ``width`` open children, each the winner of a round of JUDGE
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
class BFS:
    """Breadth-first search with a judge. ``answers``: number of answers to stop at; 0 means search to the end."""

    width: int = 2
    expand: int = 2
    answers: int = 1
    calls: int = 100
    max_steps: int = 12
    votes: int = 1
    temperature: float = 1.0
    seed: int = 0
    judge: LLM | None = None

    async def __call__(self, question: Question, run: Run) -> Decision:
        tree = Tree.plant(question, run, self.calls, self.max_steps, self.temperature, self.seed)
        judge = tree.run.using(llm=self.judge)
        pool = [tree.root]
        with suppress(BudgetExceeded):
            while pool and not (self.answers and len(tree.answers()) >= self.answers):
                children = [await tree.grow(node) for node in pool for _ in range(self.expand)]
                pool = await self.best(tree, [child for child in children if not child.ended], judge)
        return tree.decide(tree.best(), f"The first of {format_count(len(tree.answers()), 'answer')}.")

    async def best(self, tree: Tree, nodes: list[TreeNode], judge: Run) -> list[TreeNode]:
        """Return the winners of ``width`` rounds of running comparison."""
        winners: list[TreeNode] = []
        while nodes and len(winners) < self.width:
            if len(nodes) + len(winners) <= self.width:
                return winners + nodes
            winner = nodes[0]
            for node in nodes[1:]:
                if await compare_sequences(tree, node, winner, judge, self.votes) == 1:
                    winner = node
            winners.append(winner)
            nodes = [node for node in nodes if node is not winner]
        return winners
