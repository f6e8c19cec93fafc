"""Self-RAG: a model trained to say by tokens whether to retrieve, and how relevant, supported and useful it was.

Asai et al., "Self-RAG: Learning to Retrieve, Generate, and Critique through Self-Reflection", ICLR 2024: the inference
for short answers, over an endpoint that serves the fine-tuned weights (selfrag/selfrag_llama2_7b or _13b).

    retrieve <- P([Retrieval]) / (P([Retrieval]) + P([No Retrieval])) > threshold       after the question
    if not retrieve: return WRITE(question [No Retrieval])
    for each passage of FIND(question, k), side by side
        answer <- WRITE(question [Retrieval]<paragraph>passage</paragraph>)
        score  <- w_rel * P([Relevant]) + w_sup * (P([Fully supported]) + P([Partially supported]) / 2)
                  + w_use * sum of u * P([Utility:i]), u = -1, -1/2, 0, 1/2, 1          each P among its own kind
    return the answer of the best score; closed: of the best sum of scores of the same answer

An answer that does not stand on its passage is written once more, with what was objected to behind the question.

As in the released script for short answers the likelihood of the answer is no part of its score. Unlike there, whether
to retrieve compares probabilities, as the paper says, and not their logarithms.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Literal

from decisor.aio import each
from decisor.errors import BudgetExceeded
from decisor.outside import framed
from decisor.plurals import counted
from decisor.run import Run
from decisor.techniques.shared.control_tokens import (
    LOGPROBS,
    Continuation,
    chances,
    check_weights,
    continue_text,
    first_of,
    send_back,
    strip_tokens,
)
from decisor.techniques.shared.decision import Trajectory, tell
from decisor.techniques.shared.documents import find, passages_tool
from decisor.types import Decision, Question, Record, Sampling

RETRIEVE = ("[Retrieval]", "[No Retrieval]")
RELEVANT = ("[Relevant]", "[Irrelevant]")
SUPPORTED = ("[Fully supported]", "[Partially supported]", "[No support / Contradictory]")
UTILITY = ("[Utility:1]", "[Utility:2]", "[Utility:3]", "[Utility:4]", "[Utility:5]")
CONTROL = (*RETRIEVE, *RELEVANT, *SUPPORTED, *UTILITY, "[Continue to Use Evidence]", "<paragraph>", "</paragraph>",
           "<s>", "</s>")  # fmt: skip
NEEDS = "Self-RAG needs its fine-tuned weights (selfrag/selfrag_llama2_7b or 13b)"


@dataclass(frozen=True)
class SelfRAG:
    """``closed``: scores of the same answer add up, for a question with a few possible answers (choices, yes or no)."""

    k: int = 10
    mode: Literal["adaptive", "always", "never"] = "adaptive"
    threshold: float = 0.2
    closed: bool = False
    w_rel: float = 1.0
    w_sup: float = 1.0
    w_use: float = 0.5

    async def __call__(self, question: Question, run: Run) -> Decision:
        if self.mode != "never":
            passages_tool(run.env)
        trajectory, prompt = Trajectory(question), prompt_of(question)
        continuations: list[tuple[Record, Continuation]] = []
        try:
            if await self.retrieves(prompt, run):
                trajectory = await find(question.text, self.k, trajectory, run)

                async def answer(passage: Record) -> None:
                    text = with_passage(prompt, passage)
                    continuations.append((passage, await continue_text(text, run, WRITE, NEEDS)))

                await each(answer, trajectory.steps[-1].observation.records)
        except BudgetExceeded as error:
            decision = await self.decide(continuations, trajectory, prompt, run)
            return tell(replace(decision, reasons=(*decision.reasons, str(error)), stopped="budget"), run)
        return tell(await self.decide(continuations, trajectory, prompt, run), run)

    async def decide(
        self, continuations: list[tuple[Record, Continuation]], trajectory: Trajectory, prompt: str, run: Run
    ) -> Decision:
        """The best of what was written, or an answer without a passage."""
        if not continuations:
            continuation = await continue_text(f"{prompt}[No Retrieval]", run, WRITE, NEEDS, final=True)
            check_weights([continuation], CONTROL, run, NEEDS)
            return trajectory.decision(
                plain(continuation.text), "", "answered" if plain(continuation.text) else "no_answer"
            )
        check_weights([one for _, one in continuations], CONTROL, run, NEEDS)
        order = {record.id: at for at, record in enumerate(trajectory.steps[-1].observation.records)}
        continuations = sorted(continuations, key=lambda one: order[one[0].id])
        scores = [self.score(continuation) for _, continuation in continuations]
        best = self.best([continuation for _, continuation in continuations], scores)
        passage, continuation = continuations[best]
        why = f"Score {scores[best]:.3f}, the best of {counted(len(scores), 'passage')}."

        def decision_of(text: str) -> Decision:
            decision = trajectory.decision(text, f"[{passage.id}]", "answered" if text else "no_answer")
            return replace(decision, reasons=(why,))

        async def correct(complaint: str) -> Decision:
            text = with_passage(prompt_of(trajectory.question, complaint), passage)
            return decision_of(plain((await continue_text(text, run, WRITE, NEEDS, final=True)).text))

        return await send_back(decision_of(plain(continuation.text)), run, correct)

    async def retrieves(self, prompt: str, run: Run) -> bool:
        if self.mode != "adaptive":
            return self.mode == "always"
        continuation = await continue_text(prompt, run, FIRST, NEEDS)
        check_weights([continuation], CONTROL, run, NEEDS)
        return (
            chances(continuation.tokens[0] if continuation.tokens else None, RETRIEVE)["[Retrieval]"] > self.threshold
        )

    def score(self, continuation: Continuation) -> float:
        """What the model's own tokens say of an answer; a kind of token that does not come counts 0."""
        relevant = chances(continuation.tokens[0] if continuation.tokens else None, RELEVANT)["[Relevant]"]
        support = chances(first_of(continuation.tokens, SUPPORTED), SUPPORTED)
        use = chances(first_of(continuation.tokens, UTILITY), UTILITY)
        supported = support["[Fully supported]"] + support["[Partially supported]"] / 2
        useful = sum((place - 2) / 2 * use[name] for place, name in enumerate(UTILITY))
        return self.w_rel * relevant + self.w_sup * supported + self.w_use * useful

    def best(self, continuations: list[Continuation], scores: list[float]) -> int:
        """Which one is taken: the first of the best score, and for closed answers the best of the best answer."""
        sums: dict[str, float] = defaultdict(float)
        names = [plain(one.text).casefold() if self.closed else str(at) for at, one in enumerate(continuations)]
        for name, score in zip(names, scores, strict=True):
            sums[name] += score
        return max(range(len(continuations)), key=lambda at: (sums[names[at]], scores[at], -at))


def prompt_of(question: Question, complaint: str = "") -> str:
    """In the form that the weights were trained on. The goal is the instruction, the question its input, with what was
    objected to behind it."""
    instructions = [part for part in (question.rules, question.goal) if part]
    wording = f"{question.text}\n{complaint}".strip() if complaint else question.text
    text = "\n".join(instructions) + f"\n\n## Input:\n\n{wording}" if instructions else wording
    return f"### Instruction:\n{strip_tokens(text, CONTROL)}\n\n### Response:\n"


def with_passage(prompt: str, passage: Record) -> str:
    return f"{prompt}[Retrieval]<paragraph>{passage_text(passage)}</paragraph>"


def passage_text(passage: Record) -> str:
    """Title and text, each on a line of its own."""
    parts = (str(passage.fields.get("title", "")), passage.text)
    return "\n".join(framed(strip_tokens(" ".join(part.split()), CONTROL)) for part in parts)


def plain(text: str) -> str:
    """
    >>> plain("[Relevant]Steventon[Fully supported][Utility:5]</s>")
    'Steventon'
    """
    return " ".join(strip_tokens(text, CONTROL).split())


FIRST = Sampling(max_tokens=1, logprobs=LOGPROBS, continuation=True)
WRITE = Sampling(max_tokens=100, logprobs=LOGPROBS, continuation=True)
