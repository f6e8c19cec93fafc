"""Plans that the released files hold or imply, as a model would write them, with the gold answer of each node.

MuSiQue and StrategyQA publish decompositions. 2WikiMultiHopQA publishes triples: one lookup each, chained where the
object of one is the subject of another, and a comparison at the end where the question compares. ParallelQA publishes
only how many things a question joins (branch): taken as that many lookups and one node on all of them.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decisor.parsing.attribution import normalize_answer
from decisor.parsing.plan import PlanGraph, parse_plan_graph


@dataclass(frozen=True)
class GoldPlan:
    """``reply``: the plan as numbered questions with ``#k``. ``answers`` and ``passages`` by the number of the node,
    from 1; '' where none is known."""

    id: str
    question: str
    answer: str
    reply: str
    answers: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()

    @property
    def asks(self) -> tuple[str, ...]:
        return tuple(re.sub(r"^\d+\. ", "", line) for line in self.reply.split("\n"))

    def graph(self) -> PlanGraph:
        return parse_plan_graph(self.reply, 30, mend=True)

    def filled(self, number: int, answers: tuple[str, ...] | None = None) -> str:
        """The question of a node with answers put in (the gold ones where none are given)."""
        known = self.answers if answers is None else answers
        return re.sub(r"#(\d+)", lambda tag: known[int(tag[1]) - 1], self.asks[number - 1])


def rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def reply_of(asks: list[str]) -> str:
    return "\n".join(f"{number}. {' '.join(ask.split())}" for number, ask in enumerate(asks, 1))


def musique(data: Path) -> list[GoldPlan]:
    """A relation (subject >> relation) is asked as "relation of subject"."""
    found = []
    for row in rows(data / "multihop" / "musique" / "questions.jsonl.gz"):
        steps = row["decomposition"]
        asks = [" of ".join(reversed(step["question"].split(" >> "))) for step in steps]
        found.append(
            GoldPlan(
                row["id"],
                row["question"],
                row["answer"],
                reply_of(asks),
                tuple(s["answer"] for s in steps),
                tuple(s["gold"] for s in steps),
            )
        )
    return found


def strategyqa(data: Path) -> list[GoldPlan]:
    path = data / "multihop" / "strategyqa" / "dev.jsonl.gz"
    return [GoldPlan(row["id"], row["question"], row["answer"], reply_of(row["decomposition"])) for row in rows(path)]


def twowiki(data: Path) -> list[GoldPlan]:
    titles = {row["id"]: row["title"] for row in rows(data / "multihop" / "2wikimultihopqa" / "corpus.jsonl.gz")}
    found = []
    for row in rows(data / "multihop" / "2wikimultihopqa" / "questions.jsonl.gz"):
        triples = row["evidences"]
        asks, answers, passages = [], [], []
        for place, (subject, relation, value) in enumerate(triples):
            before = [n for n in range(place) if same_name(triples[n][2], subject)]
            asks.append(f"{relation} of {f'#{before[-1] + 1}' if before else subject}")
            answers.append(value)
            passages.append(
                next(
                    (id for id in row["gold"] if normalize_answer(titles[id]).startswith(normalize_answer(subject))), ""
                )
            )
        if "comparison" in row["type"]:
            needed = {n for ask in asks for n in re.findall(r"#(\d+)", ask)}
            last = [f"#{n}" for n in range(1, len(asks) + 1) if str(n) not in needed]
            asks.append("which of " + " and ".join(last))
            answers.append(row["answer"])
            passages.append("")
        found.append(
            GoldPlan(row["id"], row["question"], row["answer"], reply_of(asks), tuple(answers), tuple(passages))
        )
    return found


def same_name(one: str, other: str) -> bool:
    """Names of one thing are not always written alike in the triples (André de Toth, Andre DeToth)."""
    left, right = (re.sub(r"[^a-z]", "", name.lower().replace("é", "e")) for name in (one, other))
    return bool(left) and (left == right or (len(left) > 5 and (left in right or right in left)))


def parallelqa(data: Path) -> list[GoldPlan]:
    found = []
    for row in rows(data / "multihop" / "llmcompiler" / "parallelqa.jsonl.gz"):
        branch = int(row["branch"])
        asks = [f"thing {n} of question {row['id']}" for n in range(1, branch + 1)]
        asks.append("compare " + " and ".join(f"#{n}" for n in range(1, branch + 1)))
        found.append(GoldPlan(row["id"], row["question"], str(row["answer"]), reply_of(asks)))
    return found
