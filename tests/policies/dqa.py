"""A function that plays a perfect model on Decision QA, for the three techniques of the paper.

It reads what a model reads (schema, question, observations), plans, queries every value that the decision depends on,
reads what comes back, and answers with the records it was shown. Which candidate is best it is told at construction by
``choose`` (question text -> candidate), because a simulation is no text. Test equipment: never report its score as a
model's.

With ``share`` above 0 it makes one mistake in that share of questions. ``planted`` says which, by question text.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from decisor.types import Message
from policies.dqa_queries import GOALS, STEPS, Asked, asked

Mistake = Literal["wrong_column", "bad_query", "wrong_candidate", "forgotten_step"]
MISTAKES: tuple[Mistake, ...] = ("wrong_column", "bad_query", "wrong_candidate", "forgotten_step")
LEFT_OUT = re.compile(r"(?:, (?:\w\.)?(?:ingoing|pop_demand)(?: AS \w+)?)\b")
FORGOTTEN = {"locating": ("home", "choice"), "building": ("goods", "choice")}


@dataclass
class DqaPolicy:
    choose: Callable[[str], str]
    share: float = 0.0
    seed: int = 0
    planted: dict[str, Mistake] = field(default_factory=dict)

    def __call__(self, request: dict[str, Any]) -> str:
        """The reply to a chat request's body."""
        return self.reply([Message(turn["role"], turn["content"]) for turn in request["messages"]])

    def reply(self, messages: Sequence[Message]) -> str:
        system = next(message.content for message in messages if message.role == "system")
        user = next(message.content for message in messages if message.role == "user")
        question = re.split(r"\n# So far\n|\n# What came back\n|\nWrite the plan", user.split("# Question\n", 1)[1])[0]
        mistake = self.mistake(question)
        tool = "cypher" if "### Tool: cypher" in system else "sql"
        game = Game(asked(question), self.choose(question.strip()), mistake, tool, user)
        if "query the data once" in system:
            return game.only_query()
        if "from the rows of one query" in system or "No more actions can be made" in messages[-1].content:
            return game.answer()
        if "Plan: [Step 1" in system:
            return game.planned("Re-plan: N" in system)
        return game.next_action() or f"Thought: I know the best now.\n{game.answer()}"

    def mistake(self, question: str) -> Mistake | None:
        """The same for each call about the same question."""
        dice = zlib.crc32(f"{self.seed} {question.strip()}".encode()) / 2**32
        if dice >= self.share:
            return None
        made = MISTAKES[zlib.crc32(question.strip().encode()) % len(MISTAKES)]
        return self.planted.setdefault(question.strip(), made)


@dataclass(frozen=True)
class Game:
    """One question at one moment: ``shown`` is the prompt with everything observed so far."""

    asked: Asked
    choice: str
    mistake: Mistake | None
    tool: str
    shown: str

    @property
    def steps(self) -> tuple[str, ...]:
        forgotten = FORGOTTEN[self.asked.scenario] if self.mistake == "forgotten_step" else ()
        return tuple(step for step in STEPS[self.asked.scenario] if step not in forgotten)

    def planned(self, replans: bool) -> str:
        done = self.shown.count("\nAction input: ")
        plan = ", ".join(f"Step {number}: {GOALS[step]}" for number, step in enumerate(self.steps, 1))
        if not done:
            return f"Plan: [{plan}]\nCurrent step: Step 1\n{self.next_action()}"
        head = ""
        if replans and done == 3 and len(self.rows()) < 3:
            head = f"Re-plan: Y, there are hardly any candidates\nPlan: [{plan}, Step {len(self.steps) + 1}: decide]\n"
        elif replans:
            head = "Re-plan: N\n"
        action = self.next_action()
        return head + (f"Current step: Step {done + 1}\n{action}" if action else self.answer())

    def next_action(self) -> str:
        """The next query, or nothing after the last."""
        done = self.shown.count("\nAction input: ")
        if done >= len(self.steps):
            return ""
        step = self.steps[done]
        query = self.broken(self.asked.query(step, self.tool, self.choice), step)
        return f"Thought: I need to {GOALS[step]}.\nAction: {self.tool}\nAction input: {query}"

    def only_query(self) -> str:
        step = "all" if self.asked.scenario == "locating" else "candidates"
        query = self.broken(self.asked.query(step, self.tool, self.choice), "candidates")
        return f"Thought: one query for all candidates\nAction: {self.tool}\nAction input: {query}"

    def broken(self, query: str, step: str) -> str:
        if self.mistake == "bad_query" and step in ("candidates", "choice"):
            return query.replace("SELECT", "SELEC").replace("RETURN", "RETURNS")
        return LEFT_OUT.sub("", query) if self.mistake == "wrong_column" else query

    def rows(self) -> list[tuple[str, list[str]]]:
        """Each record shown as (id, cells)."""
        lines = re.findall(r"^\[(o\d+\.r\d+)\] \| (.+)$", self.shown, re.M)
        return [(id, cells.split(" | ")) for id, cells in lines]

    def answer(self) -> str:
        rows = self.rows()
        named = [row for row in rows if row[1][0] == self.choice]
        if self.mistake:
            named = [row for row in rows if row[1][0] != self.choice][-1:]
        if not named:
            return "Final answer: none\nBecause: I have not seen the candidate."
        id, cells = named[-1]
        figure = next((cell for cell in cells[1:] if re.fullmatch(r"\d+\.\d+", cell)), "")
        told = f"with {float(figure):.4g} it has the best outcome" if figure else "it has the best outcome"
        return f"Final answer: {cells[0]}\nBecause: {told} [{id}]."
