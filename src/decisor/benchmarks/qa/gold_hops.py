"""Questions with their gold hops in order, as the query scorer is trained on them.

A row has ``question`` and ``gold`` (ids of passages), and where the set knows them ``decomposition`` (MuSiQue: each
hop's question, answer, gold), ``evidences`` (2WikiMultiHopQA: subject, relation, object) and ``sub_questions`` that an
LM wrote. Without any, the passage whose title the question names comes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from decisor.benchmarks.qa.rows import Row, row_errors, rows
from decisor.learned.examples import Example, Hop
from decisor.learned.features import title_of
from decisor.learned.words import bag
from decisor.types import Record


def examples(path: Path, passages: Mapping[str, Record]) -> list[Example]:
    """In the order of the file; questions whose gold passages are not all in the corpus are left out.

    Raises:
        SetupError: the file cannot be read, or a row is no such question.
    """
    return list(read(path, passages))


def read(path: Path, passages: Mapping[str, Record]) -> Iterator[Example]:
    for number, row in enumerate(rows(path), 1):
        with row_errors(path, number, "questions with gold passages"):
            one = example(row, passages)
        if all(hop.gold in passages for hop in one.hops):
            yield one


def example(row: Row, passages: Mapping[str, Record]) -> Example:
    parts = row.get("decomposition") or []
    if parts and isinstance(parts[0], Mapping) and "gold" in parts[0]:
        hops = [Hop(str(part["question"]), str(part["answer"]), str(part["gold"])) for part in parts]
    elif row.get("evidences"):
        hops = hops_of_triples(row, passages)
    else:
        gold = [str(id) for id in row["gold"]]
        by_name = sorted(gold, key=lambda id: -share(title(id, passages), str(row["question"])))
        hops = [Hop("", title(id, passages), id) for id in by_name]
    return Example(str(row["question"]), tuple(hops), tuple(map(str, row.get("sub_questions", ()))))


def hops_of_triples(row: Row, passages: Mapping[str, Record]) -> list[Hop]:
    """One hop a triple; a subject that an earlier triple found is asked for by its number."""
    left, hops, hop_of = [str(id) for id in row["gold"]], list[Hop](), dict[str, int]()
    for subject, relation, value in row["evidences"]:
        near = max(left or row["gold"], key=lambda id: alike(title(id, passages), subject))
        who = f"#{hop_of[subject]}" if subject in hop_of else subject
        hops.append(Hop(f"Who or what is the {relation} of {who}?", str(value), near))
        hop_of[value] = len(hops)
        if near in left:
            left.remove(near)
    return [*hops, *(Hop("", title(id, passages), id) for id in left)]


def title(id: str, passages: Mapping[str, Record]) -> str:
    return title_of(passages[id]) if id in passages else ""


def share(part: str, whole: str) -> float:
    """Of the words of ``part``, how many are in ``whole``."""
    return len(bag(part) & bag(whole)) / (len(bag(part)) or 1)


def alike(a: str, b: str) -> float:
    return len(bag(a) & bag(b)) / (len(bag(a) | bag(b)) or 1)
