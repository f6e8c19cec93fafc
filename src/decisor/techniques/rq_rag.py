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

from decisor.aio import each
from decisor.errors import BudgetExceeded
from decisor.run import Run
from decisor.techniques.shared.control_tokens import LOGPROBS, Written, without, write_on
from decisor.techniques.shared.decision import Story, tell
from decisor.techniques.shared.documents import find, passages_tool
from decisor.types import Decision, Question, Record, Sampling, Token

WAYS = ("[S_Rewritten_Query]", "[S_Decomposed_Query]", "[S_Disambiguated_Query]")
CONTROL = (*WAYS, "[A_Response]", "[R_Evidences]", "[/R_Evidences]", "[EOS]", "<s>", "</s>", "<|system|>", "<|user|>",
           "<|assistant|>")  # fmt: skip
NEEDS = "RQ-RAG needs its fine-tuned weights (zorowin123/rq_rag_llama2_7B)"


@dataclass(frozen=True)
class Path:
    """A trajectory so far: its text, the tokens that the model wrote in it, the passages it holds, and its answer."""

    text: str
    tokens: tuple[Token, ...] = ()
    passages: tuple[Record, ...] = ()
    answer: Written | None = None

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
    def said(self) -> str:
        return " ".join(without(self.answer.text, CONTROL).split()) if self.answer else ""


@dataclass(frozen=True)
class RQRAG:
    """``k``: passages for each query. ``max_depth`` 2 gives 1 + 3 + 9 trajectories and 12 searches."""

    max_depth: int = 2
    k: int = 3
    select: Literal["ppl", "confidence", "ensemble"] = "ensemble"

    async def __call__(self, question: Question, run: Run) -> Decision:
        if self.max_depth:
            passages_tool(run.env)
        story, paths, finished = Story(question), [Path(prompt_of(question))], list[Path]()
        try:
            finished = [await answered(paths[0], run, final=True)]
            for _ in range(self.max_depth):
                pairs = [(path, way) for path in paths for way in WAYS]
                grown = await each(lambda pair: self.searched(*pair, question, run), pairs)
                paths = [path for path, _ in grown]
                story = replace(story, steps=(*story.steps, *(step for _, one in grown for step in one.steps)))
                finished += await each(lambda path: answered(path, run), paths)
        except BudgetExceeded as error:
            if not finished:
                raise
            return tell(replace(self.decision(finished, story), reasons=(str(error),), stopped="budget"), run)
        return tell(self.decision(finished, story), run)

    async def searched(self, path: Path, way: str, question: Question, run: Run) -> tuple[Path, Story]:
        """The path with one query more and what it found."""
        said = await write_on(path.text + way, run, QUERY, NEEDS)
        query = " ".join(without(said.text, CONTROL).split())
        story = await find(query or question.text, self.k, Story(question), run)
        passages = story.steps[-1].observation.records
        found = "".join(f"Title: {of_record(one)[0]}\nText: {of_record(one)[1]}\n" for one in passages)
        text = f"{path.text}{way}{query}[EOS][R_Evidences]{found}[/R_Evidences]"
        return Path(text, (*path.tokens, *said.tokens), (*path.passages, *passages)), story

    def decision(self, finished: list[Path], story: Story) -> Decision:
        path = chosen(finished, self.select)
        cited = " ".join(f"[{record.id}]" for record in path.passages)
        how = f"perplexity {path.perplexity:.2f}, confidence {path.confidence:.2f}"
        many = "1 trajectory" if len(finished) == 1 else f"{len(finished)} trajectories"
        why = f"Chosen of {many} by {self.select}: {how}."
        return replace(story.decision(path.said, cited, "answered" if path.said else "no_answer"), reasons=(why,))


async def answered(path: Path, run: Run, final: bool = False) -> Path:
    said = await write_on(f"{path.text}[A_Response]", run, ANSWER, NEEDS, final)
    return replace(path, answer=said, tokens=(*path.tokens, *said.tokens))


def chosen(paths: list[Path], select: str) -> Path:
    """The first of the best; with ``ensemble`` the most confident one that gives the chosen answer."""
    if select == "ppl":
        return min(paths, key=lambda path: path.perplexity)
    if select == "ensemble":
        sums: dict[str, float] = defaultdict(float)
        for path in paths:
            sums[path.said.casefold()] += path.confidence
        best = max(sums, key=lambda said: sums[said])
        paths = [path for path in paths if path.said.casefold() == best]
    return max(paths, key=lambda path: path.confidence)


def of_record(record: Record) -> tuple[str, str]:
    return without(str(record.fields.get("title", "")), CONTROL), without(record.text, CONTROL)


def prompt_of(question: Question) -> str:
    """In the form that the weights were trained on."""
    told = "\n".join(part for part in (question.rules, question.goal) if part)
    system = f"<|system|>\n{without(told, CONTROL)}</s>\n" if told else ""
    return f"<s>{system}<|user|>\n{without(question.text, CONTROL)}</s>\n<|assistant|>\n"


QUERY = Sampling(stop=("[EOS]",), temperature=1.0, max_tokens=100, logprobs=LOGPROBS, continuation=True)
ANSWER = Sampling(stop=("[EOS]",), max_tokens=200, logprobs=LOGPROBS, continuation=True)
