"""How right what was retrieved and cited is: recall, rank, supporting facts, evidence triples, attribution, depth."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, TypeVar

from decisor.judging.text_match import NO_PUNCTUATION, em, harmonic, hotpot_overlap
from decisor.replies.attribution import attribute
from decisor.types import Record

K = TypeVar("K", bound=Hashable)
Triple = tuple[str, str, str]
Attribution = Literal["attributed", "declared", "unattributed"]


def recall(ranked: Sequence[K], gold: Iterable[K], k: int | None = None) -> float:
    """The share of gold in the first k (all by default); 0 where there is no gold.

    >>> recall(["b", "x", "a"], ["a", "b"], 2), recall(["b", "x", "a"], ["a", "b"])
    (0.5, 1.0)
    """
    all_gold = set(gold)
    return len(all_gold & set(ranked[:k])) / len(all_gold) if all_gold else 0.0


def all_recall(ranked: Sequence[K], gold: Iterable[K], k: int | None = None) -> float:
    """1 where every gold one is in the first k: what bounds an answer that needs all of them."""
    return float(recall(ranked, gold, k) == 1.0)


def reciprocal_rank(ranked: Sequence[K], gold: Iterable[K]) -> float:
    """One over the rank of the first gold one, 0 where there is none.

    >>> reciprocal_rank(["x", "a", "b"], ["a", "b"])
    0.5
    """
    all_gold = set(gold)
    return next((1 / rank for rank, item in enumerate(ranked, 1) if item in all_gold), 0.0)


def best_recall(ranked: Sequence[K], annotators: Sequence[Sequence[K]], k: int = 10) -> float:
    """StrategyQA's Recall@10: the best over annotators; one who marked no paragraph counts as 0, as released.

    >>> best_recall(["a", "x"], [["a", "b"], ["a"]])
    1.0
    """
    return max((recall(ranked, evidence, k) for evidence in annotators), default=0.0)


def interleaved(rankings: Sequence[Sequence[K]]) -> list[K]:
    """Several rankings as one: all firsts, then all seconds, each item once. So that k counts passages, however many
    queries brought them.

    >>> interleaved([["a", "b"], ["c", "a", "d"]])
    ['a', 'c', 'b', 'd']
    """
    rows = zip_longest(*([(item,) for item in ranking] for ranking in rankings))
    return list(dict.fromkeys(item[0] for row in rows for item in row if item is not None))


@dataclass(frozen=True, slots=True)
class Match:
    """Exact match, F1, precision and recall, each 0 to 1."""

    em: float
    f1: float
    precision: float
    recall: float

    def __mul__(self, other: Match) -> Match:
        """Joint: both must hold (HotpotQA: precision and recall multiply, F1 is made of the products)."""
        precision, recall = self.precision * other.precision, self.recall * other.recall
        return Match(self.em * other.em, harmonic(precision, recall), precision, recall)


def answer_match(predicted: str, gold: Sequence[str]) -> Match:
    """The answer's part of the joint score; with several accepted answers each number by the one that fits best."""
    fits = [hotpot_overlap(predicted, answer) for answer in gold] or [(0.0, 0.0, 0.0)]
    f1, precision, recall = (max(fit[i] for fit in fits) for i in range(3))
    return Match(em(predicted, gold), f1, precision, recall)


def set_match(predicted: Iterable[K], gold: Iterable[K]) -> Match:
    """Supporting facts as (title, sentence number), or cited passages. As HotpotQA: precision of nothing is 0. (The
    scorer of 2WikiMultiHopQA lower-cases titles first.)

    >>> set_match([("A", 0), ("B", 1)], [("A", 0)])
    Match(em=0.0, f1=0.6666666666666666, precision=0.5, recall=1.0)
    """
    ours, theirs = set(predicted), set(gold)
    common = len(ours & theirs)
    precision, share = common / len(ours) if ours else 0.0, common / len(theirs) if theirs else 0.0
    return Match(float(ours == theirs), harmonic(precision, share), precision, share)


def evidence_match(predicted: Iterable[Triple], gold: Sequence[Iterable[Triple]]) -> Match:
    """2WikiMultiHopQA's evidence triples (subject, relation, object), without case and punctuation.

    ``gold``: for each fact every accepted spelling of it (``spellings``). As released a prediction counts once for the
    first fact it fits, and two predictions may fit one fact.

    >>> evidence_match([("Emma", "author", "J. Austen")], [spellings("Emma", "author", "Austen", others=["J Austen"])])
    Match(em=1.0, f1=1.0, precision=1.0, recall=1.0)
    """
    triples = {plain(triple) for triple in predicted}
    facts = [{plain(triple) for triple in fact} for fact in gold]
    fitting = sum(any(triple in fact for fact in facts) for triple in triples)
    precision, share = fitting / len(triples) if triples else 0.0, fitting / len(facts) if facts else 0.0
    return Match(float(fitting == len(triples) == len(facts)), harmonic(precision, share), precision, share)


def spellings(
    subject: str, relation: str, object_: str, subjects: Iterable[str] = (), others: Iterable[str] = ()
) -> list[Triple]:
    """A fact under every accepted name of its two ends."""
    return [(one, relation, other) for one in (subject, *subjects) for other in (object_, *others)]


def plain(triple: Triple) -> Triple:
    one, relation, other = (" ".join(part.lower().translate(NO_PUNCTUATION).split()) for part in triple)
    return one, relation, other


def attribution(answer: str, documents: Sequence[Record]) -> Attribution:
    """Where an answer comes from: a document that it cites holds it, as whole words; it cites none (declared: the
    model's own knowledge); or none that it cites holds it. Of yes and no, which stand anywhere, no document shows it.

    >>> paris, lyon = Record("r1", text="The capital is Paris."), Record("r2", text="No, Lyon is known.")
    >>> attribution("Paris", [lyon, paris]), attribution("Paris", []), attribution("no", [lyon])
    ('attributed', 'declared', 'unattributed')
    """
    kind, _, _ = attribute(answer, "", documents, looked=bool(documents))
    return "attributed" if kind == "attributed" else "unattributed" if documents else "declared"


def depth(needs: Mapping[K, Iterable[K]]) -> int:
    """The longest path of a plan, the main question being at 0: 0 without a plan, 1 for questions side by side.

    >>> depth({}), depth({"a": [], "b": []}), depth({"a": [], "b": ["a"], "c": ["a", "b"]})
    (0, 1, 3)

    Raises:
        ValueError: the needs go round in a circle.
    """
    depths: dict[K, int] = {}
    waiting = {part: [need for need in direct if need in needs] for part, direct in needs.items()}
    while waiting:
        ready = [part for part, direct in waiting.items() if all(need in depths for need in direct)]
        if not ready:
            raise ValueError("the plan goes round in a circle")
        for part in ready:
            depths[part] = 1 + max((depths[need] for need in waiting.pop(part)), default=0)
    return max(depths.values(), default=0)


def references(questions: Sequence[str]) -> dict[int, list[int]]:
    """Needs of numbered questions that refer to answers as #1 or <1>.

    >>> references(["Who wrote Emma?", "Where was #1 born?"])
    {1: [], 2: [1]}
    """
    return {
        number: sorted({int(a or b) for a, b in REFERENCE.findall(text) if 0 < int(a or b) < number})
        for number, text in enumerate(questions, 1)
    }


REFERENCE = re.compile(r"#(\d{1,2})\b|<(\d{1,2})>")


def depth_table(depths: Iterable[int]) -> dict[str, float]:
    """Per cent of plans of depth 0, 1, 2, 3 and 4 or more, as Plan-RAG's Table 2.

    >>> depth_table([2, 2, 2, 1])
    {'0': 0.0, '1': 25.0, '2': 75.0, '3': 0.0, '>=4': 0.0}
    """
    plans = Counter(min(number, 4) for number in depths)
    total = sum(plans.values()) or 1
    return {">=4" if number == 4 else str(number): 100 * plans[number] / total for number in range(5)}
