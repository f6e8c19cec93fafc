"""DFSDT: depth first without scoring; a way that is given up makes room for another try from the node above.

Qin et al., "ToolLLM: Facilitating Large Language Models to Master 16000+ Real-World APIs", ICLR 2024.

    VISIT(d): repeat ``width`` times
                  child <- EXPLORE from d, shown its elder siblings
                  VISIT(child); where that ended, go ``back`` levels up

``back`` 1 tries the next child of the same parent (RadAgent's baseline); 2, as ToolLLM has it, skips the parent's
other children.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from decisor.errors import BudgetExceeded
from decisor.runtime.run import Run
from decisor.system.wording import format_count
from decisor.techniques.shared.search_tree import Tree, TreeNode
from decisor.types import Decision, Question


@dataclass(frozen=True)
class DFSDT:
    """Depth-first search without scoring.

    ``answers``: number of answers to stop at; 0 means until the tree of this width is used up. ``back``: levels to go
    up after an ended sequence.
    """

    width: int = 2
    answers: int = 1
    back: int = 1
    calls: int = 100
    max_steps: int = 12
    temperature: float = 1.0
    seed: int = 0

    async def __call__(self, question: Question, run: Run) -> Decision:
        tree = Tree.plant(question, run, self.calls, self.max_steps, self.temperature, self.seed)
        with suppress(BudgetExceeded):
            await self.visit(tree, tree.root)
        return tree.decide(tree.best(), f"The first of {format_count(len(tree.answers()), 'answer')}.")

    async def visit(self, tree: Tree, node: TreeNode) -> int:
        """Visit a node and its subtree; return the number of levels still to go up."""
        if node.ended:
            return self.back
        for _ in range(self.width):
            up = await self.visit(tree, await tree.grow(node))
            if self.answers and len(tree.answers()) >= self.answers:
                return up
            # This node is one of the levels to go up: its other children are skipped.
            if up > 1:
                return up - 1
        return 1
