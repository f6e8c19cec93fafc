"""What the techniques that query data and decide tell a model alike: how to work, how to answer, and the question."""

from __future__ import annotations

from decisor.calls.prompt_parts import Text, joined, sections_of
from decisor.techniques.shared.forms import forms_of
from decisor.techniques.shared.labelled_form import ASSUMPTIONS, RUNNER_UP, TABLE
from decisor.techniques.shared.render import show_steps
from decisor.types import Earlier, Environment, Question

THINK_TOOL = """\
### Tool: think
A note to yourself. It returns nothing and costs no action."""

HOW_TO_WORK = """\
# How to work
- First settle which candidates the question allows: what it wants to reach is rarely one of them.
- Turn the rules into formulas: a large stored value is not yet a large effect. Let one query compute the outcome of
  every candidate and rank them by it. Computed columns can be cited.
- Test an unclear rule on stored rows. Where two readings choose differently, follow its wording; say so in Assumptions.
- Where data contradict each other, find out which the rules mean, and name the other.
- You see seven digits, a query all: compute in the query, join on keys.
"""

HOW_TO_READ = """\
# How to work
- First settle which candidates the question allows: what it wants to reach is rarely one of them.
- Turn the rules into formulas, and look for each figure that they need, of every candidate. A search finds the passages
  whose words fit best, so look for one thing at a time, by its full name, and in other words where that did not help.
- What was not found rules no candidate out. Where passages contradict each other, find out which the rules mean (often
  the later one), and name the other.
- Compute with numbers as they were written. Where two readings choose differently, say so in Assumptions.
"""
"""Where passages are all that there is."""

FINAL_ANSWER = f"""\
Final answer: the name or id of the candidate, nothing else
Because: one to three sentences with the figures that decide, each with its record's id, like [o2.r3]
Runner-up: {RUNNER_UP}
Assumptions: {ASSUMPTIONS}

Cite only ids that you were shown. Where the data cannot decide: Final answer: none
For a table or a series: Final answer: {TABLE}
"""


def how_to_work(env: Environment) -> str:
    """By what the tools bring: rows, or passages alone."""
    sources = {form for form in forms_of(env).values() if form in ("sql", "cypher", "passages")}
    return HOW_TO_READ if sources == {"passages"} else HOW_TO_WORK


EARLIER = """\
# What was decided earlier
The question below goes on from this one, about the same data. What it leaves out is meant as it was here; where it says
something else, that holds."""
EVIDENCE = """\
It rests on the records below, which may be cited by the ids that they have. They answer the earlier question: where the
new one changes which rows or candidates count, or how, query again."""


def show_question(question: Question, heading: str = "Question") -> Text:
    """The rules, what was decided earlier, the question and the goal, each under a heading of its own. What several
    questions share comes first.

    >>> print(show_question(Question("Which site?", goal="Choose one.")))
    # Question
    Which site?
    <BLANKLINE>
    # Goal
    Choose one.
    """
    earlier = [show_earlier(question.earlier)] if question.earlier else []
    rules, text, goal = (
        [f"# {name}\n{text.strip()}"] if text.strip() else []
        for name, text in (("Rules", question.rules), (heading, question.text), ("Goal", question.goal))
    )
    return joined("\n\n", [*rules, *earlier, *text, *goal])


def show_earlier(earlier: Earlier) -> Text:
    """What a question goes on from, with the records that may be cited."""
    lines = [f"{number}. {text}" for number, text in enumerate(earlier.before, 1)]
    before = ["Before that:", *lines] if lines else []
    reasons = [f"Because: {' '.join(earlier.reasons)}"] if earlier.reasons else []
    evidence = [EVIDENCE, show_steps(earlier.steps, thoughts=False)] if earlier.steps else []
    answer = earlier.answer or "none: it was not decided"
    assumed = [f"Taken for granted: {'; '.join(earlier.assumptions)}"] if earlier.assumptions else []
    texts = [EARLIER, *before, f"Question: {earlier.question}", f"Decision: {answer}", *reasons, *assumed, *evidence]
    return Text(joined("\n", texts).rstrip(), sections_of(joined("\n", texts)))
