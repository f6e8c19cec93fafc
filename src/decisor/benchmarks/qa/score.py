"""The score of an answer to a question over documents: every metric of the papers, and what the run did to get it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from decisor.benchmarks.protocol import Case, Score
from decisor.benchmarks.qa import retrieval
from decisor.benchmarks.qa.reading import read_ids
from decisor.judging import text_match as answers
from decisor.trace.events import ActionResult, ActionStart, Entry, LMCall, events_of
from decisor.trace.graph_events import GraphResult
from decisor.types import Decision, Record

Right = Callable[[str, Case], bool]
OF_ANSWER: Mapping[str, Callable[[str, Sequence[str]], float]] = {
    "em": answers.em, "f1": answers.f1, "f1_hotpot": answers.f1_hotpot, "acc": answers.acc,
    "acc_word": answers.acc_word,
}  # fmt: skip
AT = (2, 5, 10)
PASSAGES = "passages"


def exact(answer: str, case: Case) -> bool:
    return answers.em(answer, case.gold) == 1


def contains_gold(answer: str, case: Case) -> bool:
    return answers.acc(answer, case.gold) == 1


def close_to(answer: str, case: Case) -> bool:
    return answers.near(answer, case.gold[0])


def same(answer: str, case: Case) -> bool:
    """For answers that were read into what gold is spelled like: a letter, yes or no."""
    return answer == case.gold[0]


def score(case: Case, decision: Decision, events: Sequence[Entry], right: Right, answer: str) -> Score:
    """``answer``: the decision's as it is read (a letter, yes or no), '' where it holds none.

    Metrics of retrieval are of the passages that were put before the model; ``retrievals`` counts all searches.
    Attribution is a metric of right answers only, as in the Plan-RAG paper, so their means are its rates; one function
    finds it for all techniques.
    """
    won = bool(answer) and right(answer, case)
    golds = gold_of(case)
    searches = ranked(events)
    rankings = ranked(events, read_ids(events))
    by_id = {record.id: record for record in records(events)}
    citations = [by_id[id] for id in decision.evidence.ids if id in by_id]
    metrics = {name: rule(answer, case.gold) for name, rule in OF_ANSWER.items()}
    metrics |= of_retrieval(rankings, golds, [record.source for record in citations]) | holding(case, rankings, events)
    counts = {
        "retrievals": len(searches),
        "llm_calls": len([*events_of(events, LMCall)]),
        "passages": len({source for ranking in rankings for source in ranking}),
        "cited": len(citations),
        **of_plan(events),
    }
    attribution = retrieval.attribution(decision.answer, citations)
    if won:
        metrics |= {name: float(attribution == name) for name in ("attributed", "declared", "unattributed")}
    return Score(
        won,
        answer,
        metrics,
        failure=failure_of(won, answer, golds, rankings),
        tags=(attribution,) if answer else (),
        counts=counts,
    )


def gold_of(case: Case) -> list[list[str]]:
    """Sets of passages of which one is enough: StrategyQA has one of each annotator, the others one in all."""
    annotators = case.facts.get("annotators")
    sets = annotators if isinstance(annotators, list) else [case.facts.get("passages")]
    return [gold for gold in map(texts, sets) if gold]


def of_retrieval(
    rankings: Sequence[Sequence[str]], golds: Sequence[Sequence[str]], citations: Sequence[str]
) -> dict[str, float]:
    """Recall of the gold passages: at k over all retrievals taken in turns, and of all that was retrieved."""
    if not golds or not rankings:
        return {}
    order = retrieval.interleaved(rankings)
    metrics = {f"recall@{k}": retrieval.best_recall(order, golds, k) for k in AT}
    metrics["recall"] = retrieval.best_recall(order, golds, len(order))
    metrics |= {f"all_{name}": float(value == 1) for name, value in metrics.items() if name != "recall@2"}
    matches = [retrieval.set_match(citations, gold) for gold in golds]
    metrics["mrr"] = max(retrieval.reciprocal_rank(order, gold) for gold in golds)
    return metrics | {"cited_f1": max(match.f1 for match in matches), "cited_em": max(match.em for match in matches)}


def holding(case: Case, rankings: Sequence[Sequence[str]], events: Sequence[Entry]) -> dict[str, float]:
    """Whether one of the first passages holds an accepted answer (FlashRAG's retrieval recall): for sets without gold
    passages. Says nothing of yes, no and letters, so those have none."""
    if not rankings or "choices" in case.facts or answers.normalise(case.gold[0]) in ("yes", "no"):
        return {}
    text = {record.source: f"{record.fields.get('title', '')} {record.text}" for record in records(events)}
    order = [text[source] for source in retrieval.interleaved(rankings)]
    return {
        f"holds_answer@{k}": max((answers.acc_word(one, case.gold) for one in order[:k]), default=0.0) for k in AT[1:]
    }


def ranked(events: Sequence[Entry], read: frozenset[str] | None = None) -> list[list[str]]:
    """The passages of each retrieval by their stable ids, best first; a search that found nothing is one too. ``read``:
    only records with these ids."""
    tools = {entry.id: entry.event.tool for entry in events if isinstance(entry.event, ActionStart)}
    rankings = []
    for result in events_of(events, ActionResult):
        passages = [record.source for record in result.observation.records
                    if record.text and (read is None or record.id in read)]  # fmt: skip
        if passages or tools.get(result.action) == PASSAGES:
            rankings.append(passages)
    return rankings


def records(events: Sequence[Entry]) -> list[Record]:
    return [record for result in events_of(events, ActionResult) for record in result.observation.records]


def of_plan(events: Sequence[Entry]) -> dict[str, int]:
    """What a technique with a plan counted: nodes, depth, plan_fallback, degraded, and the like."""
    counts = [result.counts for result in events_of(events, GraphResult)]
    return {name: number for name, number in (counts[-1] if counts else {}).items() if name != "retrievals"}


def failure_of(won: bool, answer: str, golds: Sequence[Sequence[str]], rankings: Sequence[Sequence[str]]) -> str:
    """no_answer; not_retrieved: the model never read a gold passage; misread: it read all."""
    if won or not answer:
        return "" if won else "no_answer"
    if not golds or not rankings:
        return "wrong"
    sources = {source for ranking in rankings for source in ranking}
    return "misread" if any(sources >= set(gold) for gold in golds) else "not_retrieved"


def texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list | tuple) else []
