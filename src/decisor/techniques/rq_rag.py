"""RQ-RAG: a model trained to rewrite, decompose or disambiguate a query; every way is tried, and one answer chosen.

Chan et al., "RQ-RAG: Learning to Refine Queries for Retrieval Augmented Generation", 2024: tree decoding over an
endpoint that serves the fine-tuned weights (zorowin123/rq_rag_llama2_7B).

    paths <- {question};  trajectories <- {WRITE(question [A_Response])}
    repeat max_depth times, all paths side by side
        for each path and way (rewrite, decompose, disambiguate)
            query <- WRITE(path way)                                               sampled at temperature 1
            paths <- path way query [EOS] [R_Evidences] FIND(query, k) [/R_Evidences]
        for each path: trajectories <- WRITE(path [A_Response])
    return SELECT(trajectories)

    ppl         the lowest perplexity of all that was written on the way
    confidence  the highest mean of the likeliest token's probability in the answer
    ensemble    the answer with the highest sum of confidences over the trajectories that give it

The released script takes the perplexity of the whole text, question and passages included; here it is of what the model
wrote, which needs no call more.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Literal

from decisor.errors import BudgetExceeded
from decisor.runtime.run import Run
from decisor.system.tasks import map_concurrently
from decisor.techniques.shared.answer import Trajectory, record_decision
from decisor.techniques.shared.passages import (
    LOGPROBS,
    Continuation,
    check_weights,
    continue_text,
    find_passages,
    find_passages_tool,
    strip_tokens,
)
from decisor.types import Decision, Question, Record, Sampling, Token

WAYS = ("[S_Rewritten_Query]", "[S_Decomposed_Query]", "[S_Disambiguated_Query]")
CONTROL = (
    *WAYS,
    "[A_Response]",
    "[R_Evidences]",
    "[/R_Evidences]",
    "[EOS]",
    "<s>",
    "</s>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
)
NEEDS = "RQ-RAG needs its fine-tuned weights (zorowin123/rq_rag_llama2_7B)"


@dataclass(frozen=True)
class QueryPath:
    """A trajectory so far."""

    text: str
    tokens: tuple[Token, ...] = ()
    """Those that the LLM wrote."""
    passages: tuple[Record, ...] = ()
    """Those in the text."""
    answer: Continuation | None = None
    """None before it is written."""

    @property
    def perplexity(self) -> float:
        total = sum(token.logprob for token in self.tokens)
        return math.exp(-total / len(self.tokens)) if self.tokens else math.inf

    @property
    def confidence(self) -> float:
        tokens = self.answer.tokens if self.answer else ()
        best = [math.exp(max([token.logprob, *token.top.values()])) for token in tokens]
        return sum(best) / len(best) if best else 0.0

    @property
    def answer_text(self) -> str:
        return " ".join(strip_tokens(self.answer.text, CONTROL).split()) if self.answer else ""


@dataclass(frozen=True)
class RQRAG:
    """Tree decoding of a model trained to refine queries.

    ``k``: passages for each query. ``max_depth``: 2 gives 1 + 3 + 9 trajectories and 12 searches.
    """

    max_depth: int = 2
    k: int = 3
    select: Literal["ppl", "confidence", "ensemble"] = "ensemble"

    async def __call__(self, question: Question, run: Run) -> Decision:
        if self.max_depth:
            find_passages_tool(run.env)
        trajectory, finished = Trajectory(question), list[QueryPath]()
        paths = [QueryPath(build_rq_rag_prompt(question))]
        try:
            # First the answer without a search: if the budget ends later, there is one.
            finished = [await write_path_answer(paths[0], run, final=True)]
            check_weights([path.answer for path in finished if path.answer], CONTROL, run, NEEDS)
            for _ in range(self.max_depth):
                pairs = [(path, way) for path in paths for way in WAYS]
                grown = await map_concurrently(lambda pair: self.with_search(*pair, question, run), pairs)
                paths = [path for path, _ in grown]
                steps = [step for _, grown_trajectory in grown for step in grown_trajectory.steps]
                trajectory = replace(trajectory, steps=(*trajectory.steps, *steps))
                finished += await map_concurrently(lambda path: write_path_answer(path, run), paths)
        except BudgetExceeded as error:
            if not finished:
                raise
            decision = replace(self.decision(finished, trajectory), reasons=(str(error),), stopped="budget")
            return record_decision(decision, run)
        return record_decision(self.decision(finished, trajectory), run)

    async def with_search(
        self, path: QueryPath, way: str, question: Question, run: Run
    ) -> tuple[QueryPath, Trajectory]:
        """Extend a path by one query and its passages."""
        continuation = await continue_text(path.text + way, run, QUERY, NEEDS)
        query = " ".join(strip_tokens(continuation.text, CONTROL).split())
        trajectory = await find_passages(query or question.text, self.k, Trajectory(question), run)
        passages = trajectory.steps[-1].observation.records
        evidence = "".join("Title: {}\nText: {}\n".format(*clean_title_and_text(passage)) for passage in passages)
        text = f"{path.text}{way}{query}[EOS][R_Evidences]{evidence}[/R_Evidences]"
        return QueryPath(text, (*path.tokens, *continuation.tokens), (*path.passages, *passages)), trajectory

    def decision(self, finished: list[QueryPath], trajectory: Trajectory) -> Decision:
        path = select_path(finished, self.select)
        citations = " ".join(f"[{record.id}]" for record in path.passages)
        certainty = f"perplexity {path.perplexity:.2f}, confidence {path.confidence:.2f}"
        many = "1 trajectory" if len(finished) == 1 else f"{len(finished)} trajectories"
        why = f"Chosen of {many} by {self.select}: {certainty}."
        decision = trajectory.decision(path.answer_text, citations, "answered" if path.answer_text else "no_answer")
        return replace(decision, reasons=(why,))


async def write_path_answer(path: QueryPath, run: Run, final: bool = False) -> QueryPath:
    answer = await continue_text(f"{path.text}[A_Response]", run, ANSWER, NEEDS, final)
    return replace(path, answer=answer, tokens=(*path.tokens, *answer.tokens))


def select_path(paths: list[QueryPath], select: str) -> QueryPath:
    """Select the first of the best paths. For ``ensemble`` it is the most confident path with the best answer."""
    if select == "ppl":
        return min(paths, key=lambda path: path.perplexity)
    if select == "ensemble":
        sums: dict[str, float] = defaultdict(float)
        for path in paths:
            sums[path.answer_text.casefold()] += path.confidence
        best = max(sums, key=lambda answer: sums[answer])
        paths = [path for path in paths if path.answer_text.casefold() == best]
    return max(paths, key=lambda path: path.confidence)


def clean_title_and_text(record: Record) -> tuple[str, str]:
    """Return the title and the text of a record, each on one line and without control tokens."""
    parts = (str(record.fields.get("title", "")), record.text)
    title, text = (strip_tokens(" ".join(part.split()), CONTROL) for part in parts)
    return title, text


def build_rq_rag_prompt(question: Question) -> str:
    """Build the prompt in the form that the weights were trained on."""
    instructions = "\n".join(part for part in (question.rules, question.goal) if part)
    system = f"<|system|>\n{strip_tokens(instructions, CONTROL)}</s>\n" if instructions else ""
    return f"<s>{system}<|user|>\n{strip_tokens(question.text, CONTROL)}</s>\n<|assistant|>\n"


QUERY = Sampling(stop=("[EOS]",), temperature=1.0, max_tokens=100, logprobs=LOGPROBS, continuation=True)
ANSWER = Sampling(stop=("[EOS]",), max_tokens=200, logprobs=LOGPROBS, continuation=True)
