"""CoT: think, act, look, and again, in one chain from beginning to end; or several, and one of their answers.

Yao et al., "ReAct", ICLR 2023 (a chain); Wang et al., "Self-Consistency", ICLR 2023 (the vote).

    repeat ``chains`` times
        t <- a new sequence from the root
    return the answer that most sequences ended with; where none has most, the one that JUDGE prefers
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from decisor.errors import BudgetExceeded
from decisor.runtime.run import Run
from decisor.techniques.shared.judge import compare_sequences
from decisor.techniques.shared.search_tree import Tree, TreeNode
from decisor.types import LLM, Decision, Question


@dataclass(frozen=True)
class CoT:
    """One chain of thoughts and actions, or several with a choice among their answers.

    ``choose``: by vote, by the judge, or ``auto``, that is by vote if more than half of the chains agree, else by the
    judge, because free-text answers seldom agree literally. Papers write CoT@n for n chains scored by whether any is
    right; the technique cannot know this, so benchmarks report it as ``found``.
    """

    chains: int = 1
    choose: Literal["auto", "vote", "judge"] = "auto"
    calls: int = 100
    max_steps: int = 12
    temperature: float = 1.0
    seed: int = 0
    judge: LLM | None = None

    async def __call__(self, question: Question, run: Run) -> Decision:
        tree = Tree.plant(question, run, self.calls, self.max_steps, self.temperature, self.seed)

        def count_votes() -> Counter[str]:
            return Counter(node.vote for node in tree.answers())

        def find_most_common_answer() -> TreeNode | None:
            votes = count_votes()
            return max(tree.answers(), key=lambda node: votes[node.vote], default=None)

        tree.best = find_most_common_answer
        with suppress(BudgetExceeded):
            for _ in range(self.chains):
                await tree.sequence(tree.root, differ=False)
        if self.chains == 1:
            return tree.decide(tree.best(), "The answer of one chain.")
        votes = count_votes()
        has_majority = not votes or 2 * max(votes.values()) > votes.total()
        if self.choose == "vote" or (self.choose == "auto" and has_majority):
            return tree.decide(tree.best(), f"The answer of most of {len(tree.sequences)} chains.")
        king = await self.judged(tree)
        return tree.decide(king, f"The answer that a judge preferred among {len(tree.sequences)} chains.")

    async def judged(self, tree: Tree) -> TreeNode | None:
        """Return the best of the different answers, each compared with the best so far in both orders.

        Ends early when the calls are used up.
        """
        judge = tree.run.using(llm=self.judge)
        king = tree.best()
        tree.best = lambda: king
        with suppress(BudgetExceeded):
            different = {node.vote: node for node in reversed(tree.answers())}
            for node in reversed(different.values()):
                if king is None or node.vote == king.vote:
                    continue
                if await compare_sequences(tree, node, king, judge) == 1:
                    king = node
        return king
