"""How deep and how wide plans are: gold decompositions and GPT-3's (ProbTree), beside the plans of the Plan-RAG paper.

    python performance/plan_depths.py [DIR]

Fifteen seconds.

Depth is the longest path with the main question at 0. Nodes / depth is the most that running parts side by side can
save where every part takes as long.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from decisor.lab.benchmark import read_question_rows
from decisor.lab.qa.bench import MUSIQUE, STRATEGYQA, TWOWIKI
from decisor.lab.reproduction.papers import read_paper
from head import words

Needs = Mapping[int, Sequence[int]]
REFERENCE = re.compile(r"#(\d{1,2})\b|<(\d{1,2})>")
SETS = ("musique", "2wikimultihopqa", "hotpotqa")


def main(data: Path) -> None:
    print("per cent of plans at depth 0, 1, 2, 3, 4 or more; parts a plan; parts / depth")
    show("MuSiQue, gold", [find_references([part["question"] for part in parts(case)]) for case in MUSIQUE.cases(data)])
    show("StrategyQA, gold", [find_references([str(part) for part in parts(case)]) for case in STRATEGYQA.cases(data)])
    show("2WikiMultiHopQA, evidence", [chained(case.facts["evidences"]) for case in TWOWIKI.cases(data)])
    for name in SETS:
        path = data / "multihop" / name / "probtree_question_decompositions.jsonl.gz"
        show(f"{name}, GPT-3", [tree(row["question"], row["value"]) for row in read_question_rows(path)])
    table = read_paper("plan-rag").table("2")
    for at, column in enumerate(table.columns):
        printed = [row.published[at] for row in table.rows]
        print(f"{column.head}, Plan-RAG's table 2 (questions, per cent): {printed}")


def find_references(questions: Sequence[str]) -> dict[int, list[int]]:
    """The needs of numbered questions that refer to answers as #1 or <1>."""
    return {
        number: sorted({int(a or b) for a, b in REFERENCE.findall(text) if 0 < int(a or b) < number})
        for number, text in enumerate(questions, 1)
    }


def plan_depth(needs: Needs) -> int:
    """The longest path of a plan without rings; 0 without a plan, 1 for questions side by side."""

    def depth(part: int) -> int:
        return 1 + max((depth(need) for need in needs[part] if need in needs), default=0)

    return max(map(depth, needs), default=0)


def show(what: str, plans: Sequence[Needs]) -> None:
    depths = [plan_depth(plan) for plan in plans]
    counts = Counter(min(depth, 4) for depth in depths)
    nodes = sum(len(plan) for plan in plans)
    shares = " ".join(f"{100 * counts[depth] / len(plans):.1f}" for depth in range(5))
    print(f"{what} ({len(plans):,}): {shares}; {nodes / len(plans):.2f}; {nodes / sum(depths):.2f}")


def parts(case: Any) -> list[Any]:
    found = case.facts["decomposition"]
    assert isinstance(found, list)
    return found


def chained(evidences: Any) -> Needs:
    """A fact needs the fact whose object is its subject; with several ends a last part compares them."""
    ends = [(str(one[0]).lower(), str(one[2]).lower()) for one in evidences]
    needs = {
        at: [before for before in range(1, at) if ends[before - 1][1] == ends[at - 1][0]]
        for at in range(1, len(ends) + 1)
    }
    needed = {need for held in needs.values() for need in held}
    last = [at for at in needs if at not in needed]
    return needs if len(last) == 1 else {**needs, len(ends) + 1: last}


def tree(question: str, value: Mapping[str, Any]) -> Needs:
    """A question's parts, and theirs where they are taken apart again; references count within one list."""
    needs: dict[int, list[int]] = {}

    def plain(text: str) -> str:
        return " ".join(text.split())

    known = {plain(asked): found[0] for asked, found in value.items()}

    def add(asked: str, outer: list[int], above: tuple[str, ...]) -> int:
        inner = known.get(plain(asked))
        if not inner or plain(asked) in above:
            needs[len(needs) + 1] = outer
            return len(needs)
        ends: dict[int, int] = {}
        refers = find_references(inner)
        for number, part in enumerate(inner, 1):
            ends[number] = add(part, [ends[one] for one in refers[number]] or outer, (*above, plain(asked)))
        return ends[len(inner)]

    add(question, [], ())
    return needs


if __name__ == "__main__":
    words(__doc__)
    main(Path(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("DECISOR_DATA", "../shared/data")))
