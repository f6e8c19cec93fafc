"""Best of n: independent chains, and a judge that keeps the better of the champion and each newcomer.

The plain rival of a search: no tree, the same budget, king of the hill.

    king <- a new sequence
    repeat until the calls or the chains are used up
        t    <- a new sequence from the root
        king <- t where JUDGE prefers t in both orders
    return king
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
class BestOfN:
    """Independent chains and a judge that keeps the better answer.

    ``n``: number of chains; 0 means as many as the calls allow.
    """

    n: int = 0
    calls: int = 100
    max_steps: int = 12
    votes: int = 1
    temperature: float = 1.0
    seed: int = 0
    judge: LLM | None = None

    async def __call__(self, question: Question, run: Run) -> Decision:
        tree = Tree.plant(question, run, self.calls, self.max_steps, self.temperature, self.seed)
        judge = tree.run.using(llm=self.judge)
        king: TreeNode | None = None
        tree.best = lambda: king
        with suppress(BudgetExceeded):
            while not self.n or len(tree.sequences) < self.n:
                challenger = await tree.sequence(tree.root, differ=False)
                if challenger.ended != "answered":
                    continue
                if king is None or await compare_sequences(tree, challenger, king, judge, self.votes) == 1:
                    king = challenger
        return tree.decide(king, f"It held its place among {format_count(len(tree.answers()), 'independent answer')}.")
