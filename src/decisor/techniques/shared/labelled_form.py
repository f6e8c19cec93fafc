"""The form of a reply in labels: an action, or the final answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from decisor.replies.form import Form, objections_of
from decisor.replies.labelled import LabelledReply, parse_labelled, read_labelled
from decisor.replies.shape import Shape, Size
from decisor.types import Objection

T = TypeVar("T")
NO_SIZES: Mapping[str, Size] = MappingProxyType({})
THOUGHT = "what you know now and what you need next"
ACT = {
    "thought": THOUGHT,
    "action": "the name of one tool",
    "action_input": "what you give it (for a database, one query and nothing else)",
}
TABLE = "what it shows, with the id of the whole observation, like [o2]"
NAME = ('the name or id of the candidate, and nothing else; "none" where the data cannot decide; '
        f"where a table or a series is wanted, {TABLE}")  # fmt: skip
BECAUSE = "one to three sentences with the figures that decide, each with the id of its record, like [o2.r3]"
RUNNER_UP = "the next best candidate with its figure, or none"
ASSUMPTIONS = "what you took for granted where rules or data leave it open, or none"
ANSWER = {"thought": "how the candidates compare", "final_answer": NAME, "because": BECAUSE, "runner_up": RUNNER_UP,
          "assumptions": ASSUMPTIONS}  # fmt: skip
TO_ACT, TO_ANSWER = "To act:", "To answer, when you know the best candidate:"


def act_shape(
    tools: Sequence[str], says: Mapping[str, str] = ACT, when: str = TO_ACT, sizes: Mapping[str, Size] = NO_SIZES
) -> Shape:
    return Shape(says, "act", when, {"action": tools}, sizes)


def answer_shape(says: Mapping[str, str] = ANSWER, when: str = TO_ANSWER) -> Shape:
    return Shape(says, "final_answer", when)


def labelled_form(
    name: str,
    text: str,
    tools: Sequence[str],
    observations: int,
    check: Callable[[LabelledReply], T],
    shapes: tuple[Shape, ...],
    now: tuple[Shape, ...] = (),
    objections: Callable[[LabelledReply], Sequence[Objection]] = objections_of,
) -> Form[T]:
    """``check`` makes of the reply what the technique needs, or raises ParseError. Where there are no ``observations``
    yet, an answer is refused."""
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
