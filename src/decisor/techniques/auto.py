"""Auto: the simplest technique that fits what is at hand; the trace says which, and why.

    a decision model                   -> exact: every candidate is computed, nothing is guessed
    databases                          -> plan_rag
    passages and nothing else          -> reasoning_dag
    other tools, a check of one's own  -> radagent without a judge: where success can be seen, judging wastes calls
    other tools, few calls             -> best_of_n, or one chain where there are not even calls for a comparison
    other tools                        -> radagent, tuned

The order and the limits are what was measured: docs/search.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from decisor.runtime.run import Run, Technique
from decisor.techniques.shared.analyst import list_tool_languages
from decisor.trace.events import TechniqueChoice
from decisor.types import Decision, Question

DATABASES = {"sql", "cypher"}
DOCUMENTS = {"passages", "calculator"}
FEW, TOO_FEW = 30, 8


@dataclass(frozen=True)
class Auto:
    """The simplest technique that fits the available tools.

    ``calls``: limit of LLM calls of a search. ``check``: test of an answer that its user can run, never gold (Python
    only).
    """

    calls: int = 100
    seed: int = 0
    check: Callable[[str], bool] | None = None

    calculates: ClassVar[bool] = True

    async def __call__(self, question: Question, run: Run) -> Decision:
        name, why, technique = self.choose(run)
        run.trace.add(TechniqueChoice(name, why), run.span_id)
        return await technique(question, run)

    def choose(self, run: Run) -> tuple[str, str, Technique]:
        """Return the name of a technique, the reason for the choice, and the technique."""
        tools = set(list_tool_languages(run.env).values())
        if "whatif" in tools:
            # Imported where it is chosen: each technique loads what it needs, and only one runs.
            from decisor.techniques.exact import Exact

            return "exact", "There is a decision model: every candidate can be computed.", Exact()
        if tools & DATABASES:
            from decisor.techniques.plan_rag import PlanRAG

            return "plan_rag", "There is a database: queries are planned, and planned again.", PlanRAG()
        if "passages" in tools and tools <= DOCUMENTS:
            from decisor.techniques.reasoning_dag import ReasoningDAG

            return "reasoning_dag", "There are documents only: sub-questions as a graph.", ReasoningDAG()
        limits = [(budget.limits.calls, budget.spent.calls) for budget in run.budget.chain()]
        return self.search(min([self.calls, *(most - spent for most, spent in limits if most is not None)]))

    def search(self, calls: int) -> tuple[str, str, Technique]:
        from decisor.techniques.best_of_n import BestOfN
        from decisor.techniques.cot import CoT
        from decisor.techniques.radagent import RadAgent

        if self.check is not None:
            search: Technique = RadAgent(calls=calls, seed=self.seed, check=self.check)
            return "radagent", "Success can be checked: a search without a judge stops at the first.", search
        if calls < TOO_FEW:
            return "cot", f"{calls} calls are for one chain.", CoT(calls=calls, seed=self.seed)
        if calls < FEW:
            few: Technique = BestOfN(calls=calls, seed=self.seed)
            return "best_of_n", f"{calls} calls are too few for a tree to pay: independent chains.", few
        return (
            "radagent",
            f"{calls} calls and no way to check an answer: Elo selects it.",
            RadAgent(calls=calls, seed=self.seed),
        )
