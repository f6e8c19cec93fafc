"""Vanilla: the question, and the answer. Nothing is retrieved: the model's own knowledge.

The baseline of Verma et al., "Plan-RAG", 2024, and of most papers on retrieval.

    return ANSWER(question)
"""

from __future__ import annotations

from dataclasses import dataclass

from decisor.runtime.prompt import PromptTemplate
from decisor.runtime.run import Run
from decisor.techniques.shared.answer import Trajectory
from decisor.techniques.shared.passages import ask_for_answer, build_cited_answer_form
from decisor.types import Decision, Question


@dataclass(frozen=True)
class Vanilla:
    async def __call__(self, question: Question, run: Run) -> Decision:
        trajectory = Trajectory(question)
        form = build_cited_answer_form(trajectory, (), FORM, {"final_answer": WANTED})
        prompt = ANSWER.substitute(question=question, form=run.wording(form))
        return await ask_for_answer(prompt, form, trajectory, run)


ANSWER = PromptTemplate("""\
Answer the question from what you know. If you are not sure, give your best guess.

# Question
$question

# Form of your reply
$form""")

WANTED = "the answer alone: a name, a date, a number, yes or no, or a short phrase"
FORM = f"Final answer: {WANTED}\n"
