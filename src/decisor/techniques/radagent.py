"""RadAgent: search whose utility is learned inside, by a judge's comparisons turned into Elo ratings.

Ye et al., "Rational Decision-Making Agent with Learning Internal Utility Judgment", ICLR 2025 (arXiv 2308.12519).

    repeat until the calls or the sequences are used up
        d   <- root; walk down by P = softmax(v / tau_d) over children and a rejection node (eq. 4, 5, 8)
        t   <- EXPLORE(d), a new sequence, its steps at Elo 0, where the rejection node is drawn
        t_i <- an earlier sequence; R <- JUDGE(t, t_i) and JUDGE(t_i, t)  (eq. 2, 6)
        v_t, v_ti <- Elo update with R (eq. 1, 3); their ancestors by a soft maximum, bottom-up (eq. 7)
    return the sequence whose last step has the highest Elo (eq. 9)

Failed and abandoned sequences stay and are judged; only one with an answer is returned. Every call counts, the judge's
too. ``paper`` is the paper's setting; ``tuned`` lets each new sequence play the best one, with larger steps.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Literal

from decisor.aio import each
from decisor.errors import BudgetExceeded, SetupError
from decisor.plurals import counted
from decisor.run import Run
from decisor.techniques.shared.elo import Anneal, Backup, backed_up_value, softmax, temperature_at, update
from decisor.techniques.shared.judge import compare
from decisor.techniques.shared.node import Node
from decisor.techniques.shared.tree import Tree
from decisor.trace.search_events import SearchMatch
from decisor.types import LM, Decision, Question

Opponent = Literal["random", "best", "nearest"]
Close = Literal["leaf", "parent"]


@dataclass(frozen=True)
class RadAgent:
    """What is None is as the preset has it.

    ``calls``: LM calls, all of them. ``sequences``: at most so many, 0 for no cap. ``explore``: Elo of the rejection
    node. ``matches``: opponents of a new sequence, 0 for none (no judge). ``close``: a leaf that ended is not walked
    into, nor is its parent. ``playoff``: so many of the best play each other at the end. ``check`` ends the search at
    the first answer that passes, and then nothing is judged: for a test that its user can run, never for gold.
    """

    preset: Literal["paper", "tuned"] = "tuned"
    calls: int = 100
    sequences: int | None = None
    max_steps: int = 12
    K: float | None = None
    r: float | None = None
    tau: float | None = None
    explore: float | None = field(default=None, metadata={"below_zero": True})
    opponent: Opponent | None = None
    matches: int | None = None
    anneal: Anneal | None = None
    backup: Backup | None = None
    close: Close | None = None
    playoff: int | None = None
    votes: int = 1
    at_once: int = 1
    temperature: float = 1.0
    seed: int = 0
    every: int = 30
    judge: LM | None = None
    check: Callable[[str], bool] | None = None

    async def __call__(self, question: Question, run: Run) -> Decision:
        search = Search.of(self, question, run)
        await search.explore()
        await search.play_off()
        highest = search.highest()
        played = counted(search.played, "comparison") if search.played else "no comparison"
        among = counted(len(search.tree.sequences), "sequence")
        return search.tree.decide(highest, f"Chosen by Elo among {among} after {played}.")

    def rules_of_search(self) -> Rules:
        """The settings of the search. Raises SetupError where one cannot be."""
        own = {name: value for name in RULES if (value := getattr(self, name)) is not None}
        rules = replace(PRESETS[self.preset], **own)
        if min(rules.tau, rules.r) <= 0 or min(self.calls, self.max_steps, self.votes, self.at_once) < 1:
            raise SetupError("radagent needs tau and r above 0, and calls, max_steps, votes and at_once of 1 or more.")
        return replace(rules, matches=0, playoff=0) if self.check else rules


@dataclass(frozen=True)
class Rules:
    """All of a preset."""

    sequences: int = 20
    K: float = 50.0
    r: float = 173.72
    tau: float = 173.72
    explore: float = 0.0
    opponent: Opponent = "random"
    matches: int = 1
    anneal: Anneal = "paper"
    backup: Backup = "soft"
    close: Close = "parent"
    playoff: int = 0


PRESETS = {"paper": Rules(), "tuned": Rules(sequences=0, K=200.0, explore=100.0, opponent="best")}
RULES = tuple(rule.name for rule in fields(Rules))


@dataclass
class Search:
    """One search under way. Comparisons take turns, so that a newcomer meets who is best then; sequences do not."""

    settings: RadAgent
    rules: Rules
    tree: Tree
    judge: Run
    luck: random.Random
    started: int = 0
    played: int = 0
    passed: Node | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @classmethod
    def of(cls, settings: RadAgent, question: Question, run: Run) -> Search:
        rules = settings.rules_of_search()
        tree = Tree.plant(
            question,
            run,
            calls=settings.calls,
            max_steps=settings.max_steps,
            temperature=settings.temperature,
            seed=settings.seed,
            every=settings.every,
        )
        judge = tree.run.using(lm=settings.judge)
        search = cls(settings, rules, tree, judge, luck=random.Random(settings.seed))
        tree.best = search.highest
        return search

    async def explore(self) -> None:
        """``at_once`` explorers share the tree; what changes it happens between two awaits."""
        keep = 2 * self.settings.votes * pairs(self.rules.playoff)

        async def explorer(_: int) -> None:
            try:
                while not self.passed and not (self.rules.sequences and self.started >= self.rules.sequences):
                    self.started += 1
                    await self.one(keep)
            except BudgetExceeded:
                return

        await each(explorer, range(self.settings.at_once), self.settings.at_once)

    async def one(self, keep: int) -> None:
        """One new sequence and its matches."""
        node = self.walk()
        while not node.ended:
            self.tree.need(keep + 1)
            node = await self.tree.grow(node)
        self.rate(node)
        if self.settings.check and node.answer and self.settings.check(node.answer):
            self.passed = node
        for _ in range(self.rules.matches):
            async with self.turn:
                if rival := self.rival(node):
                    self.tree.need(keep + 2 * self.settings.votes)
                    await self.match(node, rival)

    def walk(self) -> Node:
        """Eq. 4 and 5: down from the root until the rejection node is drawn."""
        node = self.tree.root
        while True:
            open_ = [child for child in node.children if child.rated and not child.closed]
            odds = softmax([*(child.elo for child in open_), self.rules.explore], self.tau(node))
            (place,) = self.luck.choices(range(len(odds)), odds)
            if place == len(open_):
                return node
            node = open_[place]

    def tau(self, node: Node) -> float:
        """Eq. 8."""
        return temperature_at(self.rules.tau, node.matches, self.rules.anneal)

    def rate(self, leaf: Node) -> None:
        """A sequence that ended enters the tree: all its new steps at Elo 0."""
        for node in leaf.path():
            node.rated = True
        leaf.closed = True
        if self.rules.close == "parent" and leaf.parent is not self.tree.root and leaf.parent is not None:
            leaf.parent.closed = True
        self.back_up(leaf)

    def rival(self, leaf: Node) -> Node | None:
        """Whom a new sequence plays. Only a random rival may have the same answer: to compare those decides nothing."""
        same = leaf.answer if self.rules.opponent != "random" else ""
        others = [node for node in self.tree.sequences
                  if node is not leaf and node.rated and not (same and node.answer == same)]  # fmt: skip
        if not others:
            return None
        if self.rules.opponent == "random":
            return self.luck.choice(others)
        if self.rules.opponent == "best":
            return max(others, key=lambda node: node.elo)
        return min(others, key=lambda node: abs(node.elo - leaf.elo))

    async def match(self, x: Node, y: Node) -> None:
        """Eq. 2, 3 and 6 on the two leaves, then eq. 7 on their ancestors."""
        score = await compare(self.tree, x, y, self.judge, self.settings.votes)
        self.played += 1
        x.elo, y.elo = update(x.elo, y.elo, score, self.rules.K, self.rules.r)
        for leaf in (x, y):
            for node in (self.tree.root, *leaf.path()):
                node.matches += 1
        for leaf in (x, y):
            self.back_up(leaf)
        match = SearchMatch((x.id, y.id), score, (round(x.elo, 3), round(y.elo, 3)))
        self.tree.run.trace.add(match, self.tree.run.span_id)

    def back_up(self, leaf: Node) -> None:
        """Eq. 7, bottom-up."""
        node = leaf.parent
        while node is not None:
            values = [child.elo for child in node.children if child.rated]
            node.elo = backed_up_value(values, self.tau(node), self.rules.backup)
            node = node.parent

    async def play_off(self) -> None:
        """The best sequences play each other, once a pair."""
        best = sorted(self.tree.answers(), key=lambda node: -node.elo)[: self.rules.playoff]
        try:
            for at, x in enumerate(best):
                for y in best[at + 1 :]:
                    await self.match(x, y)
        except BudgetExceeded:
            return

    def highest(self) -> Node | None:
        """Eq. 9: the highest Elo, the earliest of equals, among those with an answer."""
        answers = [node for node in self.tree.answers() if node.rated]
        return self.passed or max(answers, key=lambda node: node.elo, default=None)


def pairs(count: int) -> int:
    return count * (count - 1) // 2
