"""Reflexion: try, look back at what went wrong, and try again with the lesson in mind.

Shinn et al., "Reflexion: Language Agents with Verbal Reinforcement Learning", NeurIPS 2023.

    repeat ``trials`` times
        t      <- a new sequence, with the last ``memory`` lessons in its prompt
        lesson <- REFLECT(t); stop where it finds nothing to do better

The paper asks the environment whether a trial succeeded; here the model that looks back says so itself.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass

from decisor.errors import BudgetExceeded, ParseError
from decisor.parsing.reply_form import build_value_form
from decisor.runtime.prompt import PromptTemplate
from decisor.runtime.run import Run
from decisor.system.wording import format_count
from decisor.techniques.shared.search_tree import Tree, TreeNode, format_tree_sequence
from decisor.types import Decision, Message, Question


@dataclass(frozen=True)
class Reflexion:
    trials: int = 3
    memory: int = 3
    calls: int = 100
    max_steps: int = 12
    temperature: float = 1.0
    seed: int = 0

    async def __call__(self, question: Question, run: Run) -> Decision:
        tree = Tree.plant(question, run, self.calls, self.max_steps, self.temperature, self.seed)
        tree.best = lambda: tree.answers()[-1] if tree.answers() else None
        learned: list[str] = []
        with suppress(BudgetExceeded):
            for trial in range(self.trials):
                tree.lessons = learned[-self.memory :] if self.memory else []
                last = await tree.sequence(tree.root, differ=False)
                if trial + 1 == self.trials or not (lesson := await reflect_on_sequence(tree, last)):
                    break
                learned.append(lesson)
        trials, lessons = format_count(len(tree.sequences), "trial"), format_count(len(learned), "lesson")
        return tree.decide(tree.best(), f"The last of {trials}, with {lessons}.")


async def reflect_on_sequence(tree: Tree, node: TreeNode) -> str:
    """Return the lesson of a sequence; empty if nothing can be improved."""
    prompt = REFLECT.substitute(
        task=tree.question, steps=format_tree_sequence(node), form=tree.run.wording(LESSON_FORM)
    )
    try:
        return await tree.ask([Message("user", prompt)], LESSON_FORM)
    except ParseError:
        # An unreadable reply does not mean that the trial was right, so there is another one.
        return NO_LESSON


NO_LESSON = "Check every step against all that the task asks for."


def parse_lesson(reply: str) -> str:
    """Parse a lesson, at most 2,000 characters; empty for "none".

    >>> parse_lesson("It is right. Lesson: none"), parse_lesson("Lesson: begin with 6")
    ('', 'begin with 6')
    """
    matches = re.findall(r"lesson\W{1,6}(.+)", reply, re.I | re.S)
    if not matches:
        raise ParseError("Write it as Lesson: ...", "missing_field")
    lesson = str(matches[-1]).strip()
    return "" if re.fullmatch(r"\W*none\W*", lesson, re.I) else lesson[:2_000]


LESSON_TEXT = """\
If it did, write
Lesson: none
Else say in at most five sentences what went wrong, where, and what to do instead next time, as
Lesson: ...
"""
SAYS = {
    "thought": "what the task asks for, and whether it was done",
    "lesson": "none, if it was done; else in at most five sentences what went wrong, where, and what to do instead",
}
LESSON_FORM = build_value_form(
    "lesson", LESSON_TEXT, SAYS, parse_lesson, lambda lesson: parse_lesson(f"Lesson: {lesson}")
)

REFLECT = PromptTemplate("""\
Look back at an attempt at a task, yours.

# Task
$task

# The attempt
$steps

Check whether it did what the task asks for. $form""")
