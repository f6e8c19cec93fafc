"""Vanilla: the question, and the answer. Nothing is retrieved: what the model knows by itself.

The baseline of Verma et al., "Plan-RAG", 2024, and of most papers on retrieval.

    return ANSWER(question)
"""

from __future__ import annotations

from dataclasses import dataclass

from decisor.calls.prompt_parts import Template
from decisor.run import Run
from decisor.techniques.shared.decision import Trajectory
from decisor.techniques.shared.documents import ask_for_answer
from decisor.types import Decision, Question


@dataclass(frozen=True)
class Vanilla:
    async def __call__(self, question: Question, run: Run) -> Decision:
        return await ask_for_answer(ANSWER.substitute(question=question), Trajectory(question), run)


ANSWER = Template("""\
Answer the question from what you know. If you are not sure, give your best guess.

# Question
$question

# Form of your reply
Final answer: as few words as possible, and nothing else
""")
