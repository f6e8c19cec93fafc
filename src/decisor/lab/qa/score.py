"""The score of an answer to a question over documents: every metric of the papers.

Retrieval and citations are measured by recall, rank, supporting facts, evidence triples, attribution and plan depth.
Metrics of retrieval are of the passages that were put before the LLM: a technique may search more than it shows, and
passages that a scorer skipped, or that were cut, helped nobody to an answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, TypeVar

from decisor.lab import text_match as answers
from decisor.lab.benchmark import Case, Score
from decisor.lab.text_match import harmonic_mean
from decisor.parsing.attribution import attribute_answer
from decisor.trace.events import ActionResult, ActionStart, GraphResult, LLMCall, TraceEntry, events_of
from decisor.types import Decision, Record

K = TypeVar("K", bound=Hashable)


Attribution = Literal["attributed", "declared", "unattributed"]


def recall_at(ranked: Sequence[K], gold: Iterable[K], k: int | None = None) -> float:
    """Return the share of gold items in the first k (all by default), 0 if there is no gold.

    >>> recall_at(["b", "x", "a"], ["a", "b"], 2), recall_at(["b", "x", "a"], ["a", "b"])
    (0.5, 1.0)
    """
    all_gold = set(gold)
    return len(all_gold & set(ranked[:k])) / len(all_gold) if all_gold else 0.0


def reciprocal_gold_rank(ranked: Sequence[K], gold: Iterable[K]) -> float:
    """Return one over the rank of the first gold item, 0 if there is none.

    >>> reciprocal_gold_rank(["x", "a", "b"], ["a", "b"])
    0.5
    """
    all_gold = set(gold)
    return next((1 / rank for rank, item in enumerate(ranked, 1) if item in all_gold), 0.0)


def best_recall(ranked: Sequence[K], annotators: Sequence[Sequence[K]], k: int = 10) -> float:
    """Return the best recall over annotators, StrategyQA's Recall@10.

    An annotator who marked no paragraph counts as 0, as released.

    >>> best_recall(["a", "x"], [["a", "b"], ["a"]])
    1.0
    """
    return max((recall_at(ranked, evidence, k) for evidence in annotators), default=0.0)


def interleave_rankings(rankings: Sequence[Sequence[K]]) -> list[K]:
    """Merge several rankings into one: all firsts, then all seconds, each item once.

    So k counts passages, however many queries found them.

    >>> interleave_rankings([["a", "b"], ["c", "a", "d"]])
    ['a', 'c', 'b', 'd']
    """
    rows = zip_longest(*([(item,) for item in ranking] for ranking in rankings))
    return list(dict.fromkeys(item[0] for row in rows for item in row if item is not None))


@dataclass(frozen=True, slots=True)
class GoldMatch:
    """A comparison of sets with gold: exact match, F1, precision and recall, each 0 to 1."""

    em: float
    f1: float
    precision: float
    recall: float


def match_sets(predicted: Iterable[K], gold: Iterable[K]) -> GoldMatch:
    """Compare supporting facts (title, sentence number) or cited passages with gold.

    As HotpotQA: precision of nothing is 0. (The scorer of 2WikiMultiHopQA lower-cases titles first.)

    >>> match_sets([("A", 0), ("B", 1)], [("A", 0)])
    GoldMatch(em=0.0, f1=0.6666666666666666, precision=0.5, recall=1.0)
    """
    ours, theirs = set(predicted), set(gold)
    common = len(ours & theirs)
    precision, share = common / len(ours) if ours else 0.0, common / len(theirs) if theirs else 0.0
    return GoldMatch(float(ours == theirs), harmonic_mean(precision, share), precision, share)


def classify_attribution(answer: str, documents: Sequence[Record]) -> Attribution:
    """Return the kind of attribution of an answer.

    attributed: a document that it cites contains it, as whole words. declared: it cites none (the LLM's own knowledge).
    unattributed: no document that it cites contains it. Yes and no occur anywhere, so no document shows them.

    >>> paris, lyon = Record("r1", text="The capital is Paris."), Record("r2", text="No, Lyon is known.")
    >>> (classify_attribution("Paris", [lyon, paris]), classify_attribution("Paris", []),
    ...     classify_attribution("no", [lyon]))
    ('attributed', 'declared', 'unattributed')
    """
    kind, _, _ = attribute_answer(answer, "", documents, looked=bool(documents))
    return "attributed" if kind == "attributed" else "unattributed" if documents else "declared"


PROBE = 60
BARE = re.compile(r"\W+")


def find_prompted_ids(events: Sequence[TraceEntry]) -> frozenset[str]:
    """Return the ids of the records that a prompt of the run contains.

    A record is found by its id or the beginning of its text. All ids if no LLM was asked.
    """
    prompts = [strip_punctuation(message.content) for call in events_of(events, LLMCall) for message in call.messages]
    records = [record for result in events_of(events, ActionResult) for record in result.observation.records]
    if not prompts:
        return frozenset(record.id for record in records)
    whole = "\n".join(dict.fromkeys(prompts))
    ids = set()
    for record in records:
        # Prompts may cut a passage, so its beginning is looked for.
        probe = strip_punctuation(record.text)[:PROBE].strip()
        if f" {strip_punctuation(record.id)} " in whole or (probe and probe in whole):
            ids.add(record.id)
    return frozenset(ids)


def strip_punctuation(text: str) -> str:
    """Return only the words of a text, however a prompt quotes them.

    >>> strip_punctuation('[o1.r2] | "The \\\\"Loire\\\\" ends"')
    ' o1 r2 The Loire ends '
    """
    return f" {BARE.sub(' ', text).strip()} "


Right = Callable[[str, Case], bool]
OF_ANSWER: Mapping[str, Callable[[str, Sequence[str]], float]] = {
    "em": answers.em,
    "f1": answers.f1,
    "f1_hotpot": answers.f1_hotpot,
    "acc": answers.acc,
    "acc_word": answers.acc_word,
}
AT = (2, 5, 10)
PASSAGES = "passages"


def exact(answer: str, case: Case) -> bool:
    return answers.em(answer, case.gold) == 1


def equals_main_gold(answer: str, case: Case) -> bool:
    """Return whether an answer equals the main accepted answer.

    For answers that were read into the spelling of gold: a letter, yes or no.
    """
    return answer == case.gold[0]


def score_qa_answer(case: Case, decision: Decision, events: Sequence[TraceEntry], right: Right, answer: str) -> Score:
    """Score an answer with every metric of the papers.

    answer: the decision's answer as it was read (a letter, yes or no), empty if it contains none.
    Metrics of retrieval are of the passages that were put before the model; ``retrievals`` counts all searches.
    Attribution is a metric of right answers only, as in the Plan-RAG paper, so their means are its rates; one function
    finds it for all techniques.
    """
    won = bool(answer) and right(answer, case)
    # Sets of passages of which one is enough: StrategyQA has one of each annotator, the other data sets one in all.
    annotators = case.facts.get("annotators")
    sets = annotators if isinstance(annotators, list) else [case.facts.get("passages")]
    golds = [[str(id) for id in gold] for gold in sets if isinstance(gold, list | tuple) and gold]
    searches = list_rankings(events)
    # A passage that no prompt held helped nobody, so it is not retrieved for these metrics.
    rankings = list_rankings(events, find_prompted_ids(events))
    by_id = {record.id: record for record in list_trace_records(events)}
    citations = [by_id[id] for id in decision.evidence.ids if id in by_id]
    metrics = {name: rule(answer, case.gold) for name, rule in OF_ANSWER.items()}
    metrics |= compute_retrieval_metrics(
        rankings, golds, [record.source for record in citations]
    ) | compute_answer_recall(case, rankings, events)
    planned = [result.counts for result in events_of(events, GraphResult)]
    counts = {
        "retrievals": len(searches),
        "llm_calls": len([*events_of(events, LLMCall)]),
        "passages": len({source for ranking in rankings for source in ranking}),
        "cited": len(citations),
        # Of a technique with a plan: nodes, depth, plan_fallback, degraded and so on.
        **{name: number for name, number in (planned[-1] if planned else {}).items() if name != "retrievals"},
    }
    attribution = classify_attribution(decision.answer, citations)
    if won:
        metrics |= {name: float(attribution == name) for name in ("attributed", "declared", "unattributed")}
    return Score(
        won,
        answer,
        metrics,
        failure=classify_qa_failure(won, answer, golds, rankings),
        tags=(attribution,) if answer else (),
        counts=counts,
    )


def compute_retrieval_metrics(
    rankings: Sequence[Sequence[str]], golds: Sequence[Sequence[str]], citations: Sequence[str]
) -> dict[str, float]:
    """Return the recall of the gold passages, the rank and the quality of the citations.

    Recall is at k over all retrievals taken in turns, and over everything that was retrieved.
    """
    if not golds or not rankings:
        return {}
    order = interleave_rankings(rankings)
    metrics = {f"recall@{k}": best_recall(order, golds, k) for k in AT}
    metrics["recall"] = best_recall(order, golds, len(order))
    # All gold passages found: a bound for questions that need every hop.
    metrics |= {f"all_{name}": float(value == 1) for name, value in metrics.items() if name != "recall@2"}
    # Several annotators: the best match counts, as in StrategyQA.
    matches = [match_sets(citations, gold) for gold in golds]
    metrics["mrr"] = max(reciprocal_gold_rank(order, gold) for gold in golds)
    return metrics | {"cited_f1": max(match.f1 for match in matches), "cited_em": max(match.em for match in matches)}


def compute_answer_recall(
    case: Case, rankings: Sequence[Sequence[str]], events: Sequence[TraceEntry]
) -> dict[str, float]:
    """Return whether one of the first passages contains an accepted answer.

    This is FlashRAG's retrieval recall, for sets without gold passages. It means nothing for yes, no and letters, so
    those have none.
    """
    if not rankings or "choices" in case.facts or answers.normalise_answer(case.gold[0]) in ("yes", "no"):
        return {}
    text = {record.source: f"{record.fields.get('title', '')} {record.text}" for record in list_trace_records(events)}
    order = [text[source] for source in interleave_rankings(rankings)]
    return {
        f"holds_answer@{k}": max((answers.acc_word(one, case.gold) for one in order[:k]), default=0.0) for k in AT[1:]
    }


def list_rankings(events: Sequence[TraceEntry], read: frozenset[str] | None = None) -> list[list[str]]:
    """Return the passages of each retrieval by their stable ids, best first.

    A search that found nothing is one too. read: ids of records that count, None for all.
    """
    tools = {entry.id: entry.event.tool for entry in events if isinstance(entry.event, ActionStart)}
    rankings = []
    for result in events_of(events, ActionResult):
        passages = [
            record.source
            for record in result.observation.records
            if record.text and (read is None or record.id in read)
        ]
        if passages or tools.get(result.action) == PASSAGES:
            rankings.append(passages)
    return rankings


def list_trace_records(events: Sequence[TraceEntry]) -> list[Record]:
    return [record for result in events_of(events, ActionResult) for record in result.observation.records]


def classify_qa_failure(
    won: bool, answer: str, golds: Sequence[Sequence[str]], rankings: Sequence[Sequence[str]]
) -> str:
    """Return the failure class of an answer; empty if it is right.

    not_retrieved: the LLM did not read all gold passages. misread: it read all. wrong: there is no gold, or no
    retrieval.
    """
    if won or not answer:
        return "" if won else "no_answer"
    if not golds or not rankings:
        return "wrong"
    sources = {source for ranking in rankings for source in ranking}
    return "misread" if any(sources >= set(gold) for gold in golds) else "not_retrieved"
