"""A function that plays an LLM of given skill at Game of 24, as proposer and as judge. Test equipment: it solves the
puzzles to know what to be wrong about; its scores are never a model's.

Proposer: at a state it draws a move with weight exp(skill x [24 stays in reach] + spread x z), where z is normal and
fixed for each puzzle, state and move: what it prefers it prefers again, as a model does. ``skill``, ``spread`` and
``last`` (skill where two numbers are left) are fitted so that independent chains pass as GPT-4's released chains of
thought do: pass@1, 3, 5, 10, 20, 100 = .040 .100 .143 .215 .295 .49 (``performance/radagent_simulation.py --fit``).
It repeats a move that it is told to differ from in ``repeats`` of the cases.

Judge: in one order it prefers the better of two attempts (one that reached 24 or still can, over one that cannot) with
probability logistic(beta) where three or more numbers are left in one of them, and logistic(late) where not; a bias
favours the one shown first. In the released log of GPT-4's value prompt pairs of states with three numbers are told
apart at .76 (beta 1.15), and states with two at 1.00 (185 of 185 sure, none of 2,915 others): late is 3.9 (.98).
``late=1.1`` is a judge that errs in every fourth comparison even of finished attempts.
As a valuer of states it says sure, likely and impossible as often as GPT-4 did there.
"""

from __future__ import annotations

import math
import random
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import permutations
from statistics import NormalDist

from decisor.types import Completion, Message, Sampling, Usage

State = tuple[Fraction, ...]
TWENTY_FOUR = (Fraction(24),)
LEFT = re.compile(r"Left: ([-\d/ ]+)")
NORMAL = NormalDist()


@lru_cache(maxsize=200_000)
def state_of(numbers: str) -> State:
    return tuple(sorted(Fraction(number) for number in numbers.split()))


@lru_cache(maxsize=200_000)
def moves(state: State) -> tuple[tuple[str, State], ...]:
    """Every step from a state and where it leads, one step for each of the states that can follow."""
    found: dict[State, str] = {}
    for i, j in permutations(range(len(state)), 2):
        x, y = state[i], state[j]
        rest = [value for at, value in enumerate(state) if at not in (i, j)]
        results = [("-", x - y), *([("/", x / y)] if y else []), *([("+", x + y), ("*", x * y)] if i < j else [])]
        for op, value in results:
            found.setdefault(tuple(sorted([*rest, value])), f"{x} {op} {y}")
    return tuple((text, after) for after, text in found.items())


@lru_cache(maxsize=1_000_000)
def reachable(state: State) -> bool:
    """Whether 24 can still be made."""
    if len(state) == 1:
        return state == TWENTY_FOUR
    return any(reachable(after) for _, after in moves(state))


@dataclass
class Game24LLM:
    """Satisfies ``types.LLM``. The same prompt with the same seed gets the same reply."""

    seed: int = 0
    skill: float = 1.2
    spread: float = 2.8
    last: float = 2.5
    beta: float = 1.15
    late: float = 3.9
    bias: float = 0.2
    repeats: float = 0.1
    name: str = "game24-policy"
    calls: dict[str, int] = field(default_factory=dict)
    known: dict[State, list[float]] = field(default_factory=dict)

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        return Completion((self.reply(messages[-1].content, sampling.seed or 0),), Usage(1), model=self.name)

    def reply(self, prompt: str, seed: int) -> str:
        luck = random.Random(zlib.crc32(prompt.encode()) ^ (seed * 2_654_435_761 + self.seed))
        for words, kind in KINDS:
            if words in prompt:
                self.calls[kind] = self.calls.get(kind, 0) + 1
                return str(getattr(self, kind)(prompt, luck))
        raise ValueError(f"No prompt of the search techniques: {prompt[:200]}")

    def weights(self, state: State) -> list[float]:
        """Of each of ``moves(state)``, not normalised."""
        if state in self.known:
            return self.known[state]
        skill = self.last if len(state) == 2 else self.skill
        made = [math.exp(skill * reachable(after) + self.spread * self.z(state, text)) for text, after in moves(state)]
        self.known[state] = made
        return made

    def z(self, state: State, text: str) -> float:
        """Normal, fixed for the state and the move."""
        shown = " ".join(map(str, state))
        return NORMAL.inv_cdf((zlib.crc32(f"{self.seed}|{shown}|{text}".encode()) + 0.5) / 2**32)

    def propose(self, prompt: str, luck: random.Random) -> str:
        steps, _, rest = prompt.partition("# Steps so far")[2].partition("# Tried from here")
        state = now(prompt, steps)
        tried = {tuple(sorted(state_of(left))) for left in LEFT.findall(rest)}
        options, weights = moves(state), self.weights(state)
        if tried and luck.random() >= self.repeats:
            fresh = [0.0 if after in tried else w for (_, after), w in zip(options, weights, strict=True)]
            weights = fresh if sum(fresh) else weights
        ((text, _),) = luck.choices(options, weights)
        return f"Thought: {text} looks good.\nAction: combine\nAction input: {text}"

    def list_moves(self, prompt: str, luck: random.Random) -> str:
        state = now(prompt, prompt.partition("# Steps so far")[2])
        options, weights = list(moves(state)), self.weights(state)
        order = sorted(range(len(options)), key=lambda at: -weights[at] * luck.random())
        return "\n".join(f"combine: {options[at][0]}" for at in order[:8])

    def judge(self, prompt: str, luck: random.Random) -> str:
        head, _, both = prompt.partition("# Attempt A")
        first, _, second = both.partition("# Attempt B")
        states = now(head, first), now(head, second.partition("# How to compare")[0])
        skill = self.beta if max(map(len, states)) > 2 else self.late
        gap = skill * (reachable(states[0]) - reachable(states[1])) + self.bias
        return "Better: A" if luck.random() < 1 / (1 + math.exp(-gap)) else "Better: B"

    def value(self, prompt: str, luck: random.Random) -> str:
        state = now(prompt, prompt.partition("# The attempt so far")[2])
        odds = SAID[min(max(len(state), 2), 3), reachable(state)]
        return luck.choices(("sure", "likely", "impossible"), odds)[0]

    def rate(self, prompt: str, luck: random.Random) -> str:
        return f"Rating: {RATED[self.value(prompt, luck)]}"

    def reflect(self, prompt: str, luck: random.Random) -> str:
        state = now(prompt, prompt.partition("# The attempt")[2])
        right = luck.random() < 1 / (1 + math.exp(-self.late))
        return "Lesson: none" if reachable(state) == right else "Lesson: look for factors of 24."

    def chain(self, state: State) -> float:
        """The probability that one independent chain ends at 24."""
        if len(state) == 1:
            return float(state == TWENTY_FOUR)
        if not reachable(state):
            return 0.0
        weights = self.weights(state)
        total = math.fsum(weights)
        return math.fsum(w / total * self.chain(after) for (_, after), w in zip(moves(state), weights, strict=True))


def now(prompt: str, steps: str) -> State:
    """The numbers left after these steps, else those of the task."""
    if left := LEFT.findall(steps):
        return state_of(left[-1])
    task = re.search(r"from the numbers ([\d ]+)", prompt)
    assert task
    return state_of(task[1])


KINDS = (
    ("Better: A, or", "judge"),
    ("one last word: sure", "value"),
    ("Rating: a number", "rate"),
    ("Lesson: none", "reflect"),
    ("list up to", "list_moves"),
    ("Write the next step.", "propose"),
)
SAID = {(3, True): (119, 99, 14), (3, False): (4, 610, 89), (2, True): (1, 0, 0), (2, False): (0, 1273, 1642)}
RATED = {"sure": 9, "likely": 5, "impossible": 1}
