"""What the techniques that query data and decide tell a model alike: how to work, how to answer, and the question."""

from __future__ import annotations

from decisor.techniques.shared.labelled_form import ASSUMPTIONS, RUNNER_UP
from decisor.types import Question

THINK_TOOL = """\
### Tool: think
A note to yourself, such as a comparison. It returns nothing and costs no action."""

HOW_TO_WORK = """\
# How to work
- First settle which candidates the question allows: what it wants to reach is rarely one of them.
- Put the rules into formulas: a large stored value is not yet a large effect. Then let one query compute the outcome
  for every candidate and rank them by it, best first. A computed column can be cited.
- Test an unclear rule on stored rows: does it give what is stored? Where two readings remain and choose differently,
  follow the wording of the rules, and say so in Assumptions.
- Where the data contradict themselves, find out what the rules mean, and name the other place.
- You see seven digits, a query all of them: compute in the query, and join on keys.
"""

FINAL_ANSWER = f"""\
Final answer: the name or id of the candidate, and nothing else
Because: one to three sentences with the figures that decide, each with the id of its record, like [o2.r3]
Runner-up: {RUNNER_UP}
Assumptions: {ASSUMPTIONS}

Cite only ids that you were shown. Where the data cannot decide: Final answer: none
"""


def show_question(question: Question, heading: str = "Question") -> str:
    """The rules, the question and the goal, each under a heading of its own. What several questions share comes first.

    >>> print(show_question(Question("Which site?", goal="Choose one.")))
    # Question
    Which site?
    <BLANKLINE>
    # Goal
    Choose one.
    """
    parts = (("Rules", question.rules), (heading, question.text), ("Goal", question.goal))
    return "\n\n".join(f"# {name}\n{text.strip()}" for name, text in parts if text.strip())
