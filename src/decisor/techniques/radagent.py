"""RadAgent: search whose utility is learned inside, by a judge's comparisons turned into Elo ratings.

Ye et al., "Rational Decision-Making Agent with Learning Internal Utility Judgment", ICLR 2025 (arXiv 2308.12519).

    repeat until the calls or the sequences are used up
        d   <- root; walk down by P = softmax(v / tau_d) over children and a rejection node (eq. 4, 5, 8)
        t   <- EXPLORE(d), a new sequence, its steps at Elo 0, where the rejection node is drawn
        t_i <- an earlier sequence; R <- JUDGE(t, t_i) and JUDGE(t_i, t)  (eq. 2, 6)
        v_t, v_ti <- Elo update with R (eq. 1, 3); their ancestors by a soft maximum, bottom-up (eq. 7)
    return the sequence whose last step has the highest Elo (eq. 9)

Failed and abandoned sequences stay and are judged; only one with an answer is returned. Every call counts, the judge's
too. ``paper`` is the paper as printed, ``release`` what its code does on WebShop (matches with the nearest Elo, then
between random pairs, three votes an order, its own annealing, parents of ended leaves closed); in both, who goes on
from a step is told the Elo of each try and to do something else. ``tuned`` lets each new sequence play the best one,
with larger steps.

v is an Elo rating, r its scale (173.72 = 400 / ln 10, so eq. 1 is the formula of chess), tau a temperature.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Literal

from decisor.errors import BudgetExceeded, SetupError
from decisor.runtime.run import Run
from decisor.system.tasks import map_concurrently
from decisor.system.wording import format_count
from decisor.techniques.shared.judge import compare_sequences
from decisor.techniques.shared.search_tree import Tree, TreeNode
from decisor.trace.events import SearchMatch
from decisor.types import LLM, Decision, Question

Anneal = Literal["paper", "code", "none"]
Backup = Literal["soft", "mean"]


def expected_score(x: float, y: float, r: float) -> float:
    """Return the expected score of x against y (eq. 1). E(x > y) = 1 / (1 + exp(-(v_x - v_y) / r)).

    >>> round(expected_score(191, 0, 173.72), 2)
    0.75
    """
    gap = (y - x) / r
    # math.exp raises OverflowError above about 709.
    return 1 / (1 + math.exp(gap)) if gap < 700 else 0.0


def update_ratings(x: float, y: float, score: float, k: float, r: float) -> tuple[float, float]:
    """Return both ratings after a comparison in which x got ``score`` (eq. 3; R of eq. 2: 1, 1/2 or 0).

    >>> update_ratings(0, 0, 1, 50, 173.72)
    (25.0, -25.0)
    """
    return x + k * (score - expected_score(x, y, r)), y + k * ((1 - score) - expected_score(y, x, r))


def softmax(values: Sequence[float], tau: float) -> list[float]:
    """Return the softmax of values at temperature tau (eq. 4 and 5). P(d_i) = exp(v_i / tau) / sum_j exp(v_j / tau)."""
    # Shifted by the largest value: the odds are the same, and exp cannot overflow.
    top = max(values)
    weights = [math.exp((value - top) / tau) for value in values]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def backed_up_value(values: Sequence[float], tau: float, backup: Backup = "soft") -> float:
    """Return the value of a parent by equation 7.

    v_parent = sum_j alpha_j v_j with alpha = softmax(v / tau). ``mean`` weighs all equally.
    """
    if backup == "mean":
        return math.fsum(values) / len(values)
    return math.fsum(weight * value for weight, value in zip(softmax(values, tau), values, strict=True))


def temperature_at(tau: float, matches: int, form: Anneal = "paper") -> float:
    """Return the temperature at a node by equation 8.

    tau_d = tau_0 / (1 + sqrt(ln(M_d + 1))). The authors' code has tau_0 / sqrt(1 + ln(M_d + 1)).

    >>> temperature_at(1, 0), round(temperature_at(1, 40), 3), round(temperature_at(1, 40, "code"), 3)
    (1.0, 0.342, 0.461)
    """
    if form == "none":
        return tau
    log = math.log(matches + 1)
    return tau / (1 + math.sqrt(log)) if form == "paper" else tau / math.sqrt(1 + log)


Opponent = Literal["random", "best", "nearest"]
Close = Literal["leaf", "parent"]


@dataclass(frozen=True)
class RadAgent:
    """A search guided by Elo ratings from a judge's comparisons. A field that is None has the value of the preset.

    ``calls``: LLM calls, all of them. ``sequences``: at most so many, 0 for no cap. ``explore``: Elo of the rejection
    node. ``matches``: opponents of a new sequence, 0 for none (no judge). ``side_matches``: then so many between two
    random sequences. ``close``: a leaf that ended is not walked into, nor is its parent. ``playoff``: so many of the
    best play each other at the end. ``settled``: the search ends once the best has won so many matches in both orders
    since it last lost one; 0 for never. ``equal``: or once so many sequences gave the same answer; 0 for never.
    ``select``: the highest Elo, or for comparison a random answer. ``check`` ends the search at the first answer that
    passes, and then nothing is judged: for a test that its user can run, never for gold.
    """

    preset: Literal["paper", "release", "tuned"] = "tuned"
    calls: int = 100
    sequences: int | None = None
    max_steps: int = 12
    K: float | None = None
    r: float | None = None
    tau: float | None = None
    explore: float | None = field(default=None, metadata={"below_zero": True})
    opponent: Opponent | None = None
    matches: int | None = None
    side_matches: int | None = None
    anneal: Anneal | None = None
    backup: Backup | None = None
    close: Close | None = None
    playoff: int | None = None
    votes: int | None = None
    settled: int = 0
    equal: int | None = None
    select: Literal["elo", "random"] = "elo"
    at_once: int = 1
    temperature: float = 1.0
    seed: int = 0
    every: int = 30
    judge: LLM | None = None
    check: Callable[[str], bool] | None = None

    async def __call__(self, question: Question, run: Run) -> Decision:
        search = EloSearch.of(self, question, run)
        await search.explore()
        await search.play_off()
        chosen = search.chosen()
        played = format_count(search.played, "comparison") if search.played else "no comparison"
        among = format_count(len(search.tree.sequences), "sequence")
        how = "by Elo" if self.select == "elo" else "at random"
        return search.tree.decide(chosen, f"Chosen {how} among {among} after {played}.")

    def rules_of_search(self) -> SearchRules:
        """Return the rules of the search. Raise SetupError if a setting is impossible."""
        own = {name: value for name in RULES if (value := getattr(self, name)) is not None}
        rules = replace(PRESETS[self.preset], **own)
        if min(rules.tau, rules.r) <= 0 or min(self.calls, self.max_steps, rules.votes, self.at_once) < 1:
            raise SetupError("radagent needs tau and r above 0, and calls, max_steps, votes and at_once of 1 or more.")
        # Where success can be tested, judging wastes calls: simulated on Game of 24, a tree without it finds more.
        return replace(rules, matches=0, side_matches=0, playoff=0) if self.check else rules


@dataclass(frozen=True)
class SearchRules:
    """All settings of a preset."""

    sequences: int = 20
    K: float = 50.0
    r: float = 173.72
    tau: float = 173.72
    explore: float = 0.0
    opponent: Opponent = "random"
    matches: int = 1
    side_matches: int = 0
    anneal: Anneal = "paper"
    backup: Backup = "soft"
    close: Close = "leaf"
    playoff: int = 0
    votes: int = 1
    equal: int = 0


PRESETS = {
    "paper": SearchRules(),
    "release": SearchRules(
        sequences=6, opponent="nearest", matches=3, side_matches=4, anneal="code", close="parent", votes=3
    ),
    "tuned": SearchRules(sequences=0, K=200.0, explore=100.0, opponent="best", close="parent", equal=3),
}
RULES = tuple(rule.name for rule in fields(SearchRules))


@dataclass
class EloSearch:
    """One search in progress.

    Comparisons take turns, so that a new sequence plays the currently best one; sequences run at the same time.
    """

    settings: RadAgent
    rules: SearchRules
    tree: Tree
    judge: Run
    luck: random.Random
    started: int = 0
    played: int = 0
    passed: TreeNode | None = None
    streaks: Counter[int] = field(default_factory=Counter)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @classmethod
    def of(cls, settings: RadAgent, question: Question, run: Run) -> EloSearch:
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
        tree.as_printed = settings.preset != "tuned"
        judge = tree.run.using(llm=settings.judge)
        search = cls(settings, rules, tree, judge, luck=random.Random(settings.seed))
        tree.best = search.chosen
        return search

    async def explore(self) -> None:
        """Run ``at_once`` explorers on the shared tree. Each change of the tree happens between two awaits."""
        pairs = self.rules.playoff * (self.rules.playoff - 1) // 2
        keep = 2 * self.rules.votes * pairs  # calls of the play-off, which comes last

        async def explorer(_: int) -> None:
            try:
                while not self.over() and not (self.rules.sequences and self.started >= self.rules.sequences):
                    self.started += 1
                    await self.one(keep)
            except BudgetExceeded:
                return

        await map_concurrently(explorer, range(self.settings.at_once), self.settings.at_once)

    async def one(self, keep: int) -> None:
        """Explore one new sequence and play its matches."""
        node = self.walk()
        while not node.ended:
            self.tree.need(keep + 1)
            node = await self.tree.grow(node)
        # Only a whole sequence is rated: a sequence that the budget cut off would make the ratings above it stale.
        self.rate(node)
        if self.settings.check and node.answer and self.settings.check(node.answer):
            self.passed = node
        for number in range(self.rules.matches + self.rules.side_matches):
            # One comparison at a time: the best sequence is known only once the last one is rated.
            async with self.turn:
                x = node if number < self.rules.matches else self.luck.choice(self.rated())
                if not self.over() and (rival := self.rival(x, number >= self.rules.matches)):
                    self.tree.need(keep + 2 * self.rules.votes)
                    await self.match(x, rival)

    def over(self) -> bool:
        """Return whether an answer passed the check, was given often enough, or the best has won often enough."""
        given = Counter(node.vote for node in self.tree.answers() if node.rated)
        if self.passed or (self.rules.equal and max(given.values(), default=0) >= self.rules.equal):
            return True
        best = self.highest() if self.settings.settled and self.played else None
        return bool(best and self.streaks[best.id] >= self.settings.settled)

    def rated(self) -> list[TreeNode]:
        return [node for node in self.tree.sequences if node.rated]

    def walk(self) -> TreeNode:
        """Walk down from the root until the rejection node is drawn (eq. 4 and 5)."""
        node = self.tree.root
        while True:
            open_ = [child for child in node.children if child.rated and not child.closed]
            # The rejection node is the last of the odds: drawn, it means that the search grows from here.
            odds = softmax([*(child.elo for child in open_), self.rules.explore], self.tau(node))
            (place,) = self.luck.choices(range(len(odds)), odds)
            if place == len(open_):
                return node
            node = open_[place]

    def tau(self, node: TreeNode) -> float:
        """Return the temperature at a node (eq. 8)."""
        return temperature_at(self.rules.tau, node.matches, self.rules.anneal)

    def rate(self, leaf: TreeNode) -> None:
        """Add an ended sequence to the tree, all its new steps at Elo 0."""
        for node in leaf.path():
            node.rated = True
        # An ended sequence has no next step, so the walk must not end in it.
        leaf.closed = True
        if self.rules.close == "parent" and leaf.parent is not self.tree.root and leaf.parent is not None:
            leaf.parent.closed = True
        self.back_up(leaf)

    def rival(self, leaf: TreeNode, at_random: bool = False) -> TreeNode | None:
        """Return the opponent of a sequence; None without one.

        Only a random opponent may have the same answer, because comparing equal answers decides nothing.
        """
        at_random = at_random or self.rules.opponent == "random"
        same = "" if at_random else leaf.answer
        others = [node for node in self.rated() if node is not leaf and not (same and node.answer == same)]
        if not others:
            return None
        if at_random:
            return self.luck.choice(others)
        if self.rules.opponent == "best":
            return max(others, key=lambda node: node.elo)
        return min(others, key=lambda node: abs(node.elo - leaf.elo))

    async def match(self, x: TreeNode, y: TreeNode) -> None:
        """Play two leaves (eq. 2, 3 and 6) and update their ancestors (eq. 7)."""
        score = await compare_sequences(self.tree, x, y, self.judge, self.rules.votes)
        self.played += 1
        for node, won in ((x, score == 1), (y, score == 0)):
            # A draw neither lengthens a streak nor ends it.
            self.streaks[node.id] = self.streaks[node.id] + won if won or score == 0.5 else 0
        x.elo, y.elo = update_ratings(x.elo, y.elo, score, self.rules.K, self.rules.r)
        for leaf in (x, y):
            # M_d of eq. 8: the matches through a node, so that the temperature falls where more is known.
            for node in (self.tree.root, *leaf.path()):
                node.matches += 1
        for leaf in (x, y):
            self.back_up(leaf)
        match = SearchMatch((x.id, y.id), score, (round(x.elo, 3), round(y.elo, 3)))
        self.tree.run.trace.add(match, self.tree.run.span_id)

    def back_up(self, leaf: TreeNode) -> None:
        """Update the ancestors of a leaf bottom-up (eq. 7)."""
        node = leaf.parent
        while node is not None:
            values = [child.elo for child in node.children if child.rated]
            node.elo = backed_up_value(values, self.tau(node), self.rules.backup)
            node = node.parent

    async def play_off(self) -> None:
        """Let each pair of the best sequences play one match."""
        best = sorted(self.tree.answers(), key=lambda node: -node.elo)[: self.rules.playoff]
        try:
            for at, x in enumerate(best):
                for y in best[at + 1 :]:
                    await self.match(x, y)
        except BudgetExceeded:
            return

    def chosen(self) -> TreeNode | None:
        """Return the answer by eq. 9, or a random one for comparison."""
        answers = [node for node in self.tree.answers() if node.rated]
        if self.settings.select == "random" and answers and not self.passed:
            # A generator of its own: to ask for the answer must not change the search.
            return random.Random(f"{self.settings.seed} {len(answers)}").choice(answers)
        return self.highest()

    def highest(self) -> TreeNode | None:
        """Return the answer that passed the check, else the one with the highest Elo (eq. 9), the first of equals."""
        answers = [node for node in self.tree.answers() if node.rated]
        return self.passed or max(answers, key=lambda node: node.elo, default=None)
