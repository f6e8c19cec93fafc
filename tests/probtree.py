"""Real plans of GPT-3 (ProbTree, Cao et al., EMNLP 2023): question trees of 500 questions of each multi-hop set,
flattened into graphs of leaf questions. Test equipment; the data are read where they lie."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path

SETS = ("musique", "2wikimultihopqa", "hotpotqa")
REFERENCE = re.compile(r"#(\d)|<(\d)>")


@dataclass(frozen=True)
class Leaf:
    """A question with ``#k`` (1-based, over the whole plan) where an answer goes, and the k it refers to."""

    ask: str
    needs: tuple[int, ...]


def plans(data: Path, name: str) -> list[tuple[str, tuple[Leaf, ...]]]:
    """(question, leaves in order) of each tree."""
    path = data / "multihop" / name / "probtree_question_decompositions.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [flat(json.loads(line)["value"]) for line in lines]


def flat(tree: dict[str, list[object]]) -> tuple[str, tuple[Leaf, ...]]:
    """Leaves of a tree; a reference to a question with questions of its own is one to the last of them."""
    root = next(iter(tree))
    leaves: list[Leaf] = []

    def grow(question: str, path: tuple[str, ...], outer: dict[int, int]) -> int:
        subs = tree[question][0] if question in tree and question not in path else None
        if not isinstance(subs, list):
            needs = [outer.get(int(a or b), 0) for a, b in REFERENCE.findall(question)]
            ask = REFERENCE.sub(lambda m: f"#{outer.get(int(m[1] or m[2]), 0)}", question)
            leaves.append(Leaf(ask, tuple(dict.fromkeys(needs))))
            return len(leaves)
        places: dict[int, int] = {}
        for number, sub in enumerate(subs, 1):
            known = places if REFERENCE.search(str(sub)) else outer
            places[number] = grow(str(sub), (*path, question), dict(known))
        return len(leaves)

    grow(root, (), {})
    return root, tuple(leaves)
