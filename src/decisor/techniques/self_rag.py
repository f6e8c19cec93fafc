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

An answer that does not stand on its passage is written once more, with the objections behind the question.

As in the released script for short answers the likelihood of the answer is no part of its score. Unlike there, whether
to retrieve compares probabilities, as the paper says, and not their logarithms.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Literal

from decisor.errors import BudgetExceeded
from decisor.runtime.run import Run
from decisor.system.tasks import map_concurrently
from decisor.system.text import frame_text
from decisor.system.wording import format_count
from decisor.techniques.shared.answer import Trajectory, record_decision
from decisor.techniques.shared.passages import (
    LOGPROBS,
    Continuation,
    check_weights,
    continue_text,
    find_first_token,
    find_passages,
    find_passages_tool,
    normalize_token_chances,
    send_back,
    strip_tokens,
)
from decisor.types import Decision, Question, Record, Sampling

RETRIEVE = ("[Retrieval]", "[No Retrieval]")
RELEVANT = ("[Relevant]", "[Irrelevant]")
SUPPORTED = ("[Fully supported]", "[Partially supported]", "[No support / Contradictory]")
UTILITY = ("[Utility:1]", "[Utility:2]", "[Utility:3]", "[Utility:4]", "[Utility:5]")
CONTROL = (
    *RETRIEVE,
    *RELEVANT,
    *SUPPORTED,
    *UTILITY,
    "[Continue to Use Evidence]",
    "<paragraph>",
    "</paragraph>",
    "<s>",
    "</s>",
)
NEEDS = "Self-RAG needs its fine-tuned weights (selfrag/selfrag_llama2_7b or 13b)"


@dataclass(frozen=True)
class SelfRAG:
    """Decoding of a model trained to judge retrieval by control tokens.

    ``closed``: add up the scores of equal answers, for a question with few possible answers (choices, yes or no).
    """

    k: int = 10
    mode: Literal["adaptive", "always", "never"] = "adaptive"
    threshold: float = 0.2
    closed: bool = False
    w_rel: float = 1.0
    w_sup: float = 1.0
    w_use: float = 0.5

    async def __call__(self, question: Question, run: Run) -> Decision:
        if self.mode != "never":
            find_passages_tool(run.env)
        trajectory, prompt = Trajectory(question), build_self_rag_prompt(question)
        continuations: list[tuple[Record, Continuation]] = []
        try:
            if await self.retrieves(prompt, run):
                trajectory = await find_passages(question.text, self.k, trajectory, run)

                async def answer(passage: Record) -> None:
                    text = with_passage(prompt, passage)
                    continuations.append((passage, await continue_text(text, run, WRITE, NEEDS)))

                await map_concurrently(answer, trajectory.steps[-1].observation.records)
        except BudgetExceeded as error:
            decision = await self.decide(continuations, trajectory, prompt, run)
            return record_decision(replace(decision, reasons=(*decision.reasons, str(error)), stopped="budget"), run)
        return record_decision(await self.decide(continuations, trajectory, prompt, run), run)

    async def decide(
        self, continuations: list[tuple[Record, Continuation]], trajectory: Trajectory, prompt: str, run: Run
    ) -> Decision:
        """Return the best of the written answers, or an answer without a passage."""
        if not continuations:
            continuation = await continue_text(f"{prompt}[No Retrieval]", run, WRITE, NEEDS, final=True)
            check_weights([continuation], CONTROL, run, NEEDS)
            text = remove_control_tokens(continuation.text)
            return trajectory.decision(text, "", "answered" if text else "no_answer")
        # Calls that run at once end in any order: the retriever's order decides between equal scores.
        order = {record.id: at for at, record in enumerate(trajectory.steps[-1].observation.records)}
        continuations = sorted(continuations, key=lambda pair: order[pair[0].id])
        written = [continuation for _, continuation in continuations]
        check_weights(written, CONTROL, run, NEEDS)
        scores = [self.score(continuation) for continuation in written]
        best = self.best(written, scores)
        passage, continuation = continuations[best]
        why = f"Score {scores[best]:.3f}, the best of {format_count(len(scores), 'passage')}."

        def decision_of(text: str) -> Decision:
            decision = trajectory.decision(text, f"[{passage.id}]", "answered" if text else "no_answer")
            return replace(decision, reasons=(why,))

        async def correct(complaint: str) -> Decision:
            text = with_passage(build_self_rag_prompt(trajectory.question, complaint), passage)
            return decision_of(remove_control_tokens((await continue_text(text, run, WRITE, NEEDS, final=True)).text))

        return await send_back(decision_of(remove_control_tokens(continuation.text)), run, correct)

    async def retrieves(self, prompt: str, run: Run) -> bool:
        if self.mode != "adaptive":
            return self.mode == "always"
        continuation = await continue_text(prompt, run, FIRST, NEEDS)
        check_weights([continuation], CONTROL, run, NEEDS)
        return normalize_token_chances(continuation.first, RETRIEVE)["[Retrieval]"] > self.threshold

    def score(self, continuation: Continuation) -> float:
        """Score an answer by its control tokens; a kind of token that is missing counts 0."""
        # The model writes [Relevant] or [Irrelevant] first; support and utility come at places of their own.
        relevant = normalize_token_chances(continuation.first, RELEVANT)["[Relevant]"]
        support = normalize_token_chances(find_first_token(continuation.tokens, SUPPORTED), SUPPORTED)
        use = normalize_token_chances(find_first_token(continuation.tokens, UTILITY), UTILITY)
        supported = support["[Fully supported]"] + support["[Partially supported]"] / 2
        useful = sum((place - 2) / 2 * use[name] for place, name in enumerate(UTILITY))
        return self.w_rel * relevant + self.w_sup * supported + self.w_use * useful

    def best(self, continuations: list[Continuation], scores: list[float]) -> int:
        """Return the index of the first best score; if ``closed``, of the best score for the best answer."""
        sums: dict[str, float] = defaultdict(float)
        answers = [remove_control_tokens(continuation.text).casefold() for continuation in continuations]
        # If not closed, each answer stands for itself.
        names = answers if self.closed else [str(at) for at in range(len(answers))]
        for name, score in zip(names, scores, strict=True):
            sums[name] += score
        return max(range(len(continuations)), key=lambda at: (sums[names[at]], scores[at], -at))


def build_self_rag_prompt(question: Question, complaint: str = "") -> str:
    """Build the prompt in the form that the weights were trained on.

    Rules and goal are the instruction, the question is its input, followed by the complaint.
    """
    instructions = [part for part in (question.rules, question.goal) if part]
    wording = f"{question.text}\n{complaint}".strip() if complaint else question.text
    text = "\n".join(instructions) + f"\n\n## Input:\n\n{wording}" if instructions else wording
    return f"### Instruction:\n{strip_tokens(text, CONTROL)}\n\n### Response:\n"


def with_passage(prompt: str, passage: Record) -> str:
    parts = (str(passage.fields.get("title", "")), passage.text)
    # A control token within a passage would be read as the model's own verdict.
    text = "\n".join(frame_text(remove_control_tokens(part)) for part in parts)
    return f"{prompt}[Retrieval]<paragraph>{text}</paragraph>"


def remove_control_tokens(text: str) -> str:
    """Remove control tokens and extra blanks from a text.

    >>> remove_control_tokens("[Relevant]Steventon[Fully supported][Utility:5]</s>")
    'Steventon'
    """
    return " ".join(strip_tokens(text, CONTROL).split())


FIRST = Sampling(max_tokens=1, logprobs=LOGPROBS, continuation=True)
WRITE = Sampling(max_tokens=100, logprobs=LOGPROBS, continuation=True)
