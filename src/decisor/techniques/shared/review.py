"""All that the records say against an answer, once and at once, in every loop that queries data.

Evidence, comparison, computed ranking, pitfalls and definitions object only where it bears on the answer: an answer
that goes back costs a call, and objections that come one by one let the next error pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from decisor.errors import ParseError
from decisor.parsing.figures import (
    without_citations,
)
from decisor.parsing.labelled import LabelledReply
from decisor.techniques.shared.answer import (
    NO_ANSWER,
    EvidenceRule,
    Trajectory,
    build_answer_check,
    decide_from_reply,
)
from decisor.techniques.shared.compared import ComparedTable, explain_no_choice, find_compared_table, mentions_candidate
from decisor.techniques.shared.objections import holds_name
from decisor.techniques.shared.objections.reading import stem
from decisor.types import Goal, Objection, Observation, Pitfall

LEAST = re.compile(r"\b(?:(?<!at )least|lowest|cheapest|smallest|fewest|shortest|minim(?:um|al|i[sz]e))\b", re.I)
MOST = re.compile(r"\b(?:(?<!at )most|highest|largest|biggest|greatest|longest|maxim(?:um|al|i[sz]e))\b", re.I)

FIRST = (
    "Ordered by {measure}, your query puts {first} [{id}] before {name}. Answer {best}, or name in because each "
    "candidate that comes before {name} and why it may not be chosen."
)
WRONG_END = (
    "{name} has the {which} {measure} [{id}], and the question asks for the other extreme. Answer that one, or say in "
    "because why {name} is right."
)
UNCITED = ("no_citation", "unknown_source", "not_compared")
"""Complaints about an answer that are made together with the objections to it."""


class AnswerReview:
    """The review of the answers at one place of a loop. Objections to an answer are made once, all together."""

    def __init__(self, rule: EvidenceRule, trajectory: Trajectory) -> None:
        self.rule = rule
        self.trajectory = trajectory
        self.decide = build_answer_check(rule, trajectory, compares=True)
        self.objected = False

    def check(self, reply: LabelledReply) -> None:
        """Raise ParseError if an answer breaks the rule; the first time with every objection."""
        try:
            self.decide(reply)
        except ParseError as complaint:
            if self.rule == "free" or self.objected or complaint.reason not in UNCITED:
                raise
            self.objected = True
            texts = dict.fromkeys([str(complaint), *(one.text for one in list_objections(reply, self.trajectory))])
            raise ParseError(" ".join(texts), complaint.reason) from complaint

    def list_objections(self, reply: LabelledReply) -> Sequence[Objection | Pitfall]:
        """List the objections to an answer; empty where it went back already. Freed of evidence, as in the paper, only
        what contradicts its own citations."""
        if reply.answer is None or self.objected:
            return ()
        if self.rule == "free":
            return decide_from_reply(reply, self.trajectory, rule="free").evidence.objections
        return list({one.text: one for one in list_objections(reply, self.trajectory)}.values())


def list_objections(reply: LabelledReply, trajectory: Trajectory) -> Iterator[Objection | Pitfall]:
    """Iterate over all that the records say against an answer, so that one more call can mend all of it."""
    if NO_ANSWER.fullmatch(without_citations(reply.answer or "")):
        return
    try:
        decision = decide_from_reply(reply, trajectory, compares=True)
    except ParseError as complaint:
        yield Objection("candidate" if complaint.reason == "not_compared" else "row", str(complaint))
        decision = trajectory.decision(reply.answer or "", reply.because, runner_up=reply.runner_up)
    objections, compared = decision.evidence.objections, find_compared_table(decision.answer, trajectory.steps)
    is_best_left = compared is not None and compared.is_best_left(reply.because)
    if is_best_left:
        # The best that the rules allow need not be the first of a list that holds the others too.
        objections = tuple(objection for objection in objections if not is_of_place(objection, decision.answer))
    yield from objections
    is_told = is_best_left or is_best_from_below(str(trajectory.question), compared)
    is_told = is_told or any(objection.kind in ("candidate", "ranking") for objection in objections)
    if compared is not None and not is_told:
        best, row = compared.options[0], compared.records[0].id
        if not compared.is_best:
            first = f"{best.name} ({best.outcome:.7g})"
            text = FIRST.format(id=row, first=first, best=best.name, measure=compared.measure, name=decision.answer)
            yield Objection("ranking", text)
        elif is_wrong_end(trajectory.question.text, compared):
            which = "largest" if compared.goal == "max" else "smallest"
            text = WRONG_END.format(id=row, which=which, measure=compared.measure, name=decision.answer)
            yield Objection("ranking", text)
    cited = set(decision.evidence.ids)
    no_choice = explain_no_choice(decision.answer, cited, str(trajectory.question), trajectory.steps)
    if no_choice and not any(objection.kind == "candidate" for objection in objections):
        yield Objection("candidate", no_choice)
    for step in trajectory.steps:
        observation = step.observation
        if any(record.id in cited for record in observation.records):
            yield from (pitfall for pitfall in observation.pitfalls if bears_on(pitfall, observation, decision.answer))


def is_best_from_below(question: str, compared: ComparedTable | None) -> bool:
    """Return whether an answer is the last of all rows, and the question asks for the other extreme than the order."""
    if compared is None or compared.total != len(compared.options):
        return False
    return compared.place == len(compared.options) - 1 and is_other_end(question, compared.goal)


def is_other_end(question: str, goal: Goal) -> bool:
    """Return whether a question asks for one extreme, and that is not this one."""
    asked = {asked for asked, words in (("min", LEAST), ("max", MOST)) if words.search(question)}
    return len(asked) == 1 and goal not in asked


def is_wrong_end(question: str, compared: ComparedTable) -> bool:
    """Return whether an answer has the other extreme of a measure than the question asks for by the same words."""
    said = {stem(word) for word in re.findall(r"[a-z]+", question.lower())}
    measure = {stem(word) for word in re.findall(r"[a-z]+", compared.measure.lower())}
    return is_other_end(question, compared.goal) and len(compared.ties) < len(compared.options) and measure <= said


def is_of_place(objection: Objection, name: str) -> bool:
    return objection.kind in ("candidate", "rank") and mentions_candidate(objection.text, name.casefold())


def bears_on(pitfall: Pitfall, observation: Observation, name: str) -> bool:
    """Return whether a pitfall objects to this answer: a tie behind LIMIT only if the answer is in the last row."""
    is_tie = pitfall.kind == "limit_order" and "equal in ORDER BY" in pitfall.text
    return pitfall.strength == "wrong" and (not is_tie or holds_name(observation.records[-1], name.casefold()))
