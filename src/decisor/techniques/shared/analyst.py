"""The prompts and forms that all techniques share which query data and decide.

They say how to work, how to answer, and the question with its rules and earlier decision. ``build_labelled_form`` is
the form of a reply in labels: an action, or the final answer. ``list_tool_languages`` tells the language of each tool
(sql, cypher, passages), whatever its name, because a run may have several databases and documents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from decisor.parsing.labelled import LabelledReply, parse_labelled, read_labelled
from decisor.parsing.reply_form import LABELS, Form, ReplyShape, Size, list_decision_objections
from decisor.runtime.prompt import PromptText, join_texts, sections_of
from decisor.techniques.shared.observations import show_steps
from decisor.types import Earlier, Environment, Objection, Pitfall, Question

T = TypeVar("T")
NO_SIZES: Mapping[str, Size] = MappingProxyType({})
THOUGHT = "what you know now and what you need next"
ACT = {
    "thought": THOUGHT,
    "action": "the name of one tool",
    "action_input": "what you give it (for a database, one query and nothing else)",
}
TABLE = "what it shows, with the id of the whole observation, like [o2]"
NAME = (
    'the name or id of the candidate, and nothing else; "none" where the data cannot decide; '
    f"where a table or a series is wanted, {TABLE}"
)
BECAUSE = "one to three sentences with the figures that decide, each with the id of its record, like [o2.r3]"
RUNNER_UP = "the next best candidate with its figure, or none"
ASSUMPTIONS = "what you took for granted where rules or data leave it open, or none"
ANSWER = {
    "thought": "how the candidates compare",
    "final_answer": NAME,
    "because": BECAUSE,
    "runner_up": RUNNER_UP,
    "assumptions": ASSUMPTIONS,
}


def format_labels(says: Mapping[str, str]) -> str:
    """Format what each key of a reply is as lines with labels.

    >>> format_labels({"thought": "what decides", "final_answer": "a name"})
    'Thought: what decides\\nFinal answer: a name\\n'
    """
    return "".join(f"{LABELS[key]}: {words}\n" for key, words in says.items())


TO_ACT, TO_ANSWER = "To act:", "To answer, when you know the best candidate:"


def build_action_shape(
    tools: Sequence[str], says: Mapping[str, str] = ACT, when: str = TO_ACT, sizes: Mapping[str, Size] = NO_SIZES
) -> ReplyShape:
    return ReplyShape(says, "act", when, {"action": tools}, sizes)


def build_answer_shape(says: Mapping[str, str] = ANSWER, when: str = TO_ANSWER) -> ReplyShape:
    return ReplyShape(says, "final_answer", when)


def build_labelled_form(
    name: str,
    text: str,
    tools: Sequence[str],
    observations: int,
    check: Callable[[LabelledReply], T],
    shapes: tuple[ReplyShape, ...],
    now: tuple[ReplyShape, ...] = (),
    objections: Callable[[LabelledReply], Sequence[Objection | Pitfall]] = list_decision_objections,
) -> Form[T]:
    """Build the form of a labelled reply.

    ``check``: turns the reply into the value that the technique needs, or raises ParseError. An answer is refused if
    ``observations`` is 0.
    """
    return Form(
        name,
        text,
        lambda reply: check(parse_labelled(reply, tools, observations)),
        LabelledReply,
        shapes,
        lambda value: check(read_labelled(value, tools, observations)),
        now,
        objections,
    )


def list_tool_languages(env: Environment) -> dict[str, str]:
    """Return tool name to its language (sql, cypher, passages).

    The tool's own name if the environment does not tell (method ``forms``).
    """
    forms: Callable[[], Mapping[str, str]] | None = getattr(env, "forms", None)
    known = forms() if forms is not None else {}
    return {name: known.get(name, name) for name in env.tools()}


THINK_TOOL = """\
### Tool: think
A note to yourself. It returns nothing and costs no action."""

HOW_TO_WORK = """\
# How to work
- First settle which candidates the question allows: what it wants to reach is rarely one of them.
- Turn the rules into formulas: a large stored value is not yet a large effect. Let one query compute the outcome of
  every candidate and rank them by it. Computed columns can be cited.
- A rule with two readings: compute both and test them on stored values; the reading that gives those holds. Where no
  row can tell, follow the wording. Say in Assumptions which one you took and what the other would choose.
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


def choose_work_instructions(env: Environment) -> str:
    """Choose the working instructions for the available tools: rows, or passages alone."""
    sources = {form for form in list_tool_languages(env).values() if form in ("sql", "cypher", "passages")}
    return HOW_TO_READ if sources == {"passages"} else HOW_TO_WORK


EARLIER = """\
# What was decided earlier
The question below goes on from this one, about the same data. What it leaves out is meant as it was here; where it says
something else, that holds."""
EVIDENCE = """\
It rests on the records below, which may be cited by the ids that they have. They answer the earlier question: where the
new one changes which rows or candidates count, or how, query again."""


def show_question(question: Question, heading: str = "Question") -> PromptText:
    """Format rules, earlier decision, question and goal, each under a heading.

    Parts that several questions share come first.

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
    return join_texts("\n\n", [*rules, *earlier, *text, *goal])


def show_earlier(earlier: Earlier) -> PromptText:
    """Format the earlier decision that a question continues from, with the records that may be cited."""
    lines = [f"{number}. {text}" for number, text in enumerate(earlier.before, 1)]
    before = ["Before that:", *lines] if lines else []
    reasons = [f"Because: {' '.join(earlier.reasons)}"] if earlier.reasons else []
    evidence = [EVIDENCE, show_steps(earlier.steps, thoughts=False)] if earlier.steps else []
    answer = earlier.answer or "none: it was not decided"
    assumed = [f"Taken for granted: {'; '.join(earlier.assumptions)}"] if earlier.assumptions else []
    texts = [EARLIER, *before, f"Question: {earlier.question}", f"Decision: {answer}", *reasons, *assumed, *evidence]
    # rstrip makes a plain text of it, so the records are put back.
    return PromptText(join_texts("\n", texts).rstrip(), sections_of(join_texts("\n", texts)))
