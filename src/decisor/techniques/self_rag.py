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

As in the released script for short answers the likelihood of the answer is no part of its score. Unlike there, whether
to retrieve compares probabilities, as the paper says, and not their logarithms.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Literal

from decisor.aio import each
from decisor.errors import BudgetExceeded
from decisor.plurals import counted
from decisor.run import Run
from decisor.techniques.shared.control_tokens import LOGPROBS, Written, chances, first_of, without, write_on
from decisor.techniques.shared.decision import Story, tell
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
        story, prompt = Story(question), prompt_of(question)
        written: list[tuple[Record, Written]] = []
        try:
            if await self.retrieves(prompt, run):
                story = await find(question.text, self.k, story, run)

                async def answer(passage: Record) -> None:
                    text = f"{prompt}[Retrieval]<paragraph>{shown(passage)}</paragraph>"
                    written.append((passage, await write_on(text, run, WRITE, NEEDS)))

                await each(answer, story.steps[-1].observation.records)
        except BudgetExceeded as error:
            decision = await self.decide(written, story, prompt, run)
            return tell(replace(decision, reasons=(*decision.reasons, str(error)), stopped="budget"), run)
        return tell(await self.decide(written, story, prompt, run), run)

    async def decide(self, written: list[tuple[Record, Written]], story: Story, prompt: str, run: Run) -> Decision:
        """The best of what was written, or an answer without a passage."""
        if not written:
            said = await write_on(f"{prompt}[No Retrieval]", run, WRITE, NEEDS, final=True)
            return story.decision(plain(said.text), "", "answered" if plain(said.text) else "no_answer")
        order = {record.id: at for at, record in enumerate(story.steps[-1].observation.records)}
        written = sorted(written, key=lambda one: order[one[0].id])
        scores = [self.score(said) for _, said in written]
        best = self.best([said for _, said in written], scores)
        passage, said = written[best]
        decision = story.decision(plain(said.text), f"[{passage.id}]", "answered" if plain(said.text) else "no_answer")
        return replace(decision, reasons=(f"Score {scores[best]:.3f}, the best of {counted(len(scores), 'passage')}.",))

    async def retrieves(self, prompt: str, run: Run) -> bool:
        if self.mode != "adaptive":
            return self.mode == "always"
        said = await write_on(prompt, run, FIRST, NEEDS)
        return chances(said.tokens[0] if said.tokens else None, RETRIEVE)["[Retrieval]"] > self.threshold

    def score(self, said: Written) -> float:
        """What the model's own tokens say of an answer; a kind of token that does not come counts 0."""
        relevant = chances(said.tokens[0] if said.tokens else None, RELEVANT)["[Relevant]"]
        support = chances(first_of(said.tokens, SUPPORTED), SUPPORTED)
        use = chances(first_of(said.tokens, UTILITY), UTILITY)
        supported = support["[Fully supported]"] + support["[Partially supported]"] / 2
        useful = sum((place - 2) / 2 * use[name] for place, name in enumerate(UTILITY))
        return self.w_rel * relevant + self.w_sup * supported + self.w_use * useful

    def best(self, written: list[Written], scores: list[float]) -> int:
        """Which one is taken: the first of the best score, and for closed answers the best of the best answer."""
        sums: dict[str, float] = defaultdict(float)
        names = [plain(one.text).casefold() if self.closed else str(at) for at, one in enumerate(written)]
        for name, score in zip(names, scores, strict=True):
            sums[name] += score
        return max(range(len(written)), key=lambda at: (sums[names[at]], scores[at], -at))


def prompt_of(question: Question) -> str:
    """In the form that the weights were trained on. The goal is the instruction, the question its input."""
    told = [part for part in (question.rules, question.goal) if part]
    text = "\n".join(told) + f"\n\n## Input:\n\n{question.text}" if told else question.text
    return f"### Instruction:\n{without(text, CONTROL)}\n\n### Response:\n"


def shown(passage: Record) -> str:
    return without(f"{passage.fields.get('title', '')}\n{passage.text}", CONTROL)


def plain(text: str) -> str:
    """
    >>> plain("[Relevant]Steventon[Fully supported][Utility:5]</s>")
    'Steventon'
    """
    return " ".join(without(text, CONTROL).split())


FIRST = Sampling(max_tokens=1, logprobs=LOGPROBS, continuation=True)
WRITE = Sampling(max_tokens=100, logprobs=LOGPROBS, continuation=True)
