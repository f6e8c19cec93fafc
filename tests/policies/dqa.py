"""A function that plays a perfect model on Decision QA, for the three techniques of the paper.

It reads what a model reads (schema, question, observations), plans, queries every value that the decision depends on,
reads what comes back, and answers with the records it was shown. Which candidate is best it is told at construction by
``choose`` (question text -> candidate), because a simulation is no text. Test equipment: never report its score as a
model's.

With ``share`` above 0 it makes one mistake in that share of questions. ``planted`` says which, by question text. Each
mistake belongs to one class of the failure analysis, by the class's definition (``CLASS``):

* wrong_column leaves ingoing (Locating) or pop_demand (Building) out of every query: MIS.
* forgotten_step leaves out the steps that bring ingoing and total_power, or pop_demand: MIS.
* bad_query misspells the queries for the candidates and for the best one, and never repairs them: QUR.
* wrong_candidate looks for the best among nodes where the country has no power, or among buildings that do not supply
  the goods, with every needed value: CAN.
* misread queries everything that the perfect policy queries, and then names another of the right candidates: DEEP.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from decisor.types import Message
from policies.dqa_queries import GOALS, STEPS, Asked, asked

Mistake = Literal["wrong_column", "bad_query", "wrong_candidate", "forgotten_step", "misread"]
MISTAKES: tuple[Mistake, ...] = ("wrong_column", "bad_query", "wrong_candidate", "forgotten_step", "misread")
CLASS: dict[Mistake, str] = {
    "wrong_column": "MIS",
    "bad_query": "QUR",
    "wrong_candidate": "CAN",
    "forgotten_step": "MIS",
    "misread": "DEEP",
}
LEFT_OUT = re.compile(r"(?:, (?:\w\.)?(?:ingoing|pop_demand)(?: AS \w+)?)\b")
FORGOTTEN = {"locating": ("home", "candidates", "choice"), "building": ("goods", "choice")}
UNABLE = {"locating": ("country", "home", "unable"), "building": ("goods", "demand", "unable")}


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
        question = question_in(user)
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


def question_in(prompt: str) -> str:
    """The question of a prompt with its rules and its goal, as ``str(Question)`` has it."""
    asked_part = re.split(r"\n# (?:So far|What came back|What you wrote before)\n", prompt)[0]
    parts = dict(
        re.findall(r"^# (Rules|Question|Goal)\n(.*?)(?=\n\n# (?:Question|Goal)\n|\Z)", asked_part, re.M | re.S)
    )
    return "\n\n".join(parts[name].strip() for name in ("Rules", "Question", "Goal") if name in parts)


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
        if self.mistake == "wrong_candidate":
            return UNABLE[self.asked.scenario]
        forgotten = FORGOTTEN[self.asked.scenario] if self.mistake == "forgotten_step" else ()
        return tuple(step for step in STEPS[self.asked.scenario] if step not in forgotten)

    @property
    def done(self) -> int:
        """Of its steps, how many were answered from the first on. Who makes mistakes counts what was tried."""
        if self.mistake:
            return self.shown.count("\nAction input: ")
        return next((at for at, step in enumerate(self.steps) if not self.answered(step)), len(self.steps))

    def answered(self, step: str) -> bool:
        """Whether its query was run, and brought no error."""
        _, *after = self.shown.split(f"\nAction input: {self.asked.query(step, self.tool, self.choice)}\n")
        return any(not text.removeprefix("Observation:\n").startswith("Error:") for text in after)

    def planned(self, replans: bool) -> str:
        done = self.done
        plan = ", ".join(f"Step {number}: {GOALS[step]}" for number, step in enumerate(self.steps, 1))
        if "\nWrite the plan" in self.shown:
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
        if self.done >= len(self.steps):
            return ""
        step = self.steps[self.done]
        query = self.broken(self.asked.query(step, self.tool, self.choice), step)
        return f"Thought: I need to {GOALS[step]}.\nAction: {self.tool}\nAction input: {query}"

    def only_query(self) -> str:
        step = "unable" if self.mistake == "wrong_candidate" else "all"
        if self.mistake == "forgotten_step":
            step = "flows" if self.asked.scenario == "locating" else "inputs"
        if self.mistake == "misread" and self.asked.scenario == "locating":
            step = "candidates"
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
            none = (self.choice, self.asked.names.get("home"))  # home is no candidate
            named = [row for row in self.considered(rows) if row[1][0] not in none]
            if not named:
                cited = f" [{rows[-1][0]}]" if rows else ""
                return f"Final answer: {self.elsewhere()}\nBecause: it has the best outcome{cited}."
        if not named:
            return "Final answer: none\nBecause: I have not seen the candidate."
        id, cells = named[-1]
        figure = next((cell for cell in cells[1:] if re.fullmatch(r"\d+\.\d+", cell)), "")
        told = f"with {float(figure):.4g} it has the best outcome" if figure else "it has the best outcome"
        return f"Final answer: {cells[0]}\nBecause: {told} [{id}]."

    def considered(self, rows: list[tuple[str, list[str]]]) -> list[tuple[str, list[str]]]:
        """The rows that hold candidates: those of the query for them; the rows of the only query where there is one."""
        steps = self.steps
        step = next((name for name in ("unable", "candidates") if name in steps), steps[-1])
        of_step = [row for row in rows if row[0].startswith(f"o{steps.index(step) + 1}.")]
        return of_step if any(not row[0].startswith("o1.") for row in rows) else rows

    def elsewhere(self) -> str:
        """A wrong answer where the database showed no second candidate; a misreading of one candidate is none."""
        if self.mistake == "misread":
            return self.choice
        return self.asked.names["home"] if self.asked.scenario == "locating" else str(int(self.choice) + 1)
