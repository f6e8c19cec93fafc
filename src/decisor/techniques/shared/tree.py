"""The search tree that every search technique grows: nodes, prompts, budget, snapshots, and the tree in the trace.

A node is one reply of the LM: a step (an action in a fork of its parent's environment, and its observation), or the
end of a sequence. A sequence runs from the root to a node that ended: it answered, gave up, or had no steps left. Every
reply costs one call. One that cannot be read is asked for again and is no node; only where ``TRIES`` of them cannot be
read does the sequence go on with a step whose observation is the complaint, so that it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from decisor.budget import Limits
from decisor.calls.prompt_parts import joined
from decisor.errors import BudgetExceeded, ParseError
from decisor.plurals import counted
from decisor.replies.form import Form
from decisor.replies.labelled import LabelledReply
from decisor.replies.moves import GIVE_UP, Move, parse_move, read_move
from decisor.replies.reasons import in_words
from decisor.run import Run
from decisor.techniques.shared.analyst_prompts import show_question
from decisor.techniques.shared.decision import Trajectory, tell
from decisor.techniques.shared.labelled_form import act_shape, answer_shape
from decisor.techniques.shared.node import UNREADABLE, Node, ended_below, tried_line
from decisor.techniques.shared.render import show_observation, show_steps
from decisor.techniques.shared.tree_prompts import (
    ACT,
    ANSWER,
    DIFFER,
    FORM,
    LESSONS,
    NEW_WAY,
    OTHER_WAY,
    SYSTEM,
    TO_ANSWER,
    UNREAD,
    USER,
)
from decisor.trace.search_events import AnswerSnapshot, Ended, NodeRating, SearchNode, SearchTree
from decisor.types import Action, Decision, Environment, Message, Objection, Observation, Question, Sampling, Step

T = TypeVar("T")
STOP = ("\nObservation:",)
TRIES = 3
"""Replies that are asked for at one place, where they cannot be read."""


@dataclass
class Tree:
    """``best``: the sequence that would be the answer now. ``every``: calls between two snapshots of it. ``halt``: the
    limit that was reached. ``as_printed``: what was tried is shown with its Elo, and something else is asked for."""

    question: Question
    run: Run
    root: Node
    max_steps: int
    temperature: float
    seed: int
    every: int = 30
    tools: tuple[str, ...] = ()
    as_printed: bool = False
    nodes: list[Node] = field(default_factory=list)
    sequences: list[Node] = field(default_factory=list)
    lessons: list[str] = field(default_factory=list)
    best: Callable[[], Node | None] = lambda: None
    sampled: int = 0
    marked: int = 0
    promised: int = 0
    halt: BudgetExceeded | None = None

    @classmethod
    def plant(
        cls, question: Question, run: Run, calls: int, max_steps: int, temperature: float = 1.0, seed: int = 0,
        every: int = 30,
    ) -> Tree:  # fmt: skip
        """A root in a fork of the run's environment. At most ``calls`` LM calls, and what the run itself allows."""
        run = replace(run, retries=0).using(budget=run.budget.child(Limits(calls=calls)))
        env = run.env.fork()
        root = Node(id=0, parent=None, depth=0, env=env, rated=True)
        tree = cls(
            question=question,
            run=run,
            root=root,
            max_steps=max_steps,
            temperature=temperature,
            seed=seed,
            every=every,
            tools=env.tools(),
            nodes=[root],
        )
        tree.best = lambda: tree.answers()[0] if tree.answers() else None
        return tree

    @property
    def used(self) -> int:
        """Calls made or under way."""
        return self.run.budget.spent.calls + self.run.budget.pending_calls

    def need(self, calls: int) -> None:
        """Raises BudgetExceeded where fewer calls than this are left, beside those promised to comparisons."""
        for budget in self.run.budget.chain():
            allowed = budget.limits.calls
            if allowed is not None and budget.spent.calls + budget.pending_calls + self.promised + calls > allowed:
                self.halt = BudgetExceeded("calls", allowed)
                raise self.halt

    @contextmanager
    def limits(self) -> Iterator[None]:
        """A limit that is reached is remembered: what it ends has not simply found no answer."""
        try:
            yield
        except BudgetExceeded as error:
            self.halt = error
            raise

    def spare(self) -> int:
        """Calls that are left beside those promised to comparisons."""
        limits = [(budget, budget.limits.calls) for budget in self.run.budget.chain()]
        left = [most - budget.spent.calls - budget.pending_calls for budget, most in limits if most is not None]
        return min(left, default=TRIES + self.promised) - self.promised

    def answers(self) -> list[Node]:
        return [node for node in self.sequences if node.ended == "answered"]

    async def ask(
        self, prompt: Sequence[Message], form: Form[T], run: Run | None = None, promised: bool = False, tries: int = 1
    ) -> T:
        """One call with a seed of its own, so that a prompt that comes again is a new sample; up to ``tries`` calls
        where replies cannot be read, and as far as they are not promised.

        Raises:
            ParseError: the reply cannot be read; it was paid for.
            BudgetExceeded: no call is left.
        """
        self.mark()
        self.promised -= promised
        self.need(1)
        self.sampled += 1
        sampling = Sampling(STOP, self.temperature, seed=self.seed * 100_003 + self.sampled)
        with self.limits():
            return await (run or self.run).ask(prompt, form, sampling, final=True, tries=min(tries, self.spare()))

    async def grow(self, node: Node, differ: bool = True) -> Node:
        """One reply from here. ``differ``: the model is shown what was tried from here, to do something else."""
        assert not node.ended
        try:
            move = await self.ask(self.prompt(node, differ), self.form(node), tries=TRIES)
        except ParseError as error:
            note = f"The reply could not be used: {in_words(error.reason)}."
            step = Step(Action(UNREADABLE, ""), Observation(note=note, error=True))
            example = self.run.example(self.form(), error.reason)
            text = UNREAD.substitute(complaint=error, example=example)
            return self.add(node, step, node.env, text=text)
        return await self.attempt(node, move)

    async def attempt(self, node: Node, move: Move) -> Node:
        """The child that a move leads to: its action is done in a fork."""
        if move.action is None:
            ending = "gave up" if not move.answer else "answered"
            step = Step(Action(ending, move.answer or move.because), Observation(), move.thought)
            return self.add(node, step, node.env, move.answer, move.because)
        env = node.env.fork()
        with self.limits():
            observation = await self.run.using(env=env).act(move.action)
        return self.add(node, Step(move.action, observation, move.thought), env, observation.answer)

    def add(
        self, node: Node, step: Step, env: Environment, answer: str | None = None, because: str = "", text: str = ""
    ) -> Node:
        """``text``: the step as the model reads it, where that is not how steps are shown."""
        depth = node.depth + 1
        ended: Ended = "" if answer is None else "answered" if answer.strip() else "gave_up"
        if not ended and depth >= self.max_steps:
            ended = "steps"
        child = Node(
            id=len(self.nodes),
            parent=node,
            depth=depth,
            env=env,
            step=step,
            text=text or show_steps([step]),
            ended=ended,
            answer=answer or "",
            because=because,
        )
        self.nodes.append(child)
        node.children.append(child)
        if ended:
            self.sequences.append(child)
        seen = show_observation(step.observation)[:300]
        event = SearchNode(child.id, node.id, step.action, step.thought, seen, step.observation.error, ended)
        self.run.trace.add(event, self.run.span_id)
        return child

    async def sequence(self, node: Node, differ: bool = True) -> Node:
        """From here to the end of a sequence; only the first step has siblings to differ from."""
        while not node.ended:
            node = await self.grow(node, differ)
        return node

    def form(self, node: Node | None = None) -> Form[Move]:
        """Of the next reply. After a ``node`` answers are held against what it has seen."""

        def objections(move: Move) -> Sequence[Objection]:
            return self.decision(node, move).evidence.objections if node and move.answer else ()

        act = act_shape(self.tools if GIVE_UP in self.tools else (*self.tools, GIVE_UP), ACT)
        return Form(
            "step",
            FORM.substitute(last=self.max_steps),
            lambda reply: parse_move(reply, self.tools),
            LabelledReply,
            (act, answer_shape(ANSWER, TO_ANSWER)),
            lambda value: read_move(value, self.tools),
            objections=objections,
        )

    def decision(self, node: Node, ending: Node | Move) -> Decision:
        """The answer that ends the path to a node."""
        steps = tuple(node.step for node in node.path() if node.step)
        return Trajectory(self.question, steps).decision(ending.answer or "", ending.because)

    def prompt(self, node: Node, differ: bool = True) -> list[Message]:
        form = self.run.wording(self.form())
        system = SYSTEM.substitute(tools=self.root.env.describe(), form=form)
        steps = joined("\n", [step.text for step in node.path()]) or "(nothing yet)\n"
        others = [child for child in node.children if child.step and child.step.action.tool != UNREADABLE]
        siblings = [f"{number}. {tried_line(child)}{self.value_of(child)}" for number, child in enumerate(others, 1)]
        answered = any(leaf.ended == "answered" for leaf in ended_below(node))
        advice = OTHER_WAY if answered and not self.as_printed else NEW_WAY
        more = DIFFER.substitute(tried="\n".join(siblings), advice=advice) if siblings and differ else ""
        lessons = LESSONS.substitute(lessons="\n".join(f"* {one}" for one in self.lessons)) if self.lessons else ""
        user = USER.substitute(question=show_question(self.question, "Task"), lessons=lessons, steps=steps, differ=more,
                               left=self.max_steps - node.depth)  # fmt: skip
        return [Message("system", system), Message("user", user)]

    def value_of(self, node: Node) -> str:
        return f"\n   Value: {node.elo:.0f}" if self.as_printed and node.rated else ""

    def mark(self, to: int | None = None) -> None:
        """Snapshots that are due: what the answer would be if the budget ended here."""
        while self.every and self.marked + self.every <= (self.used if to is None else to):
            self.marked += self.every
            best = self.best()
            self.run.trace.add(AnswerSnapshot(self.marked, best.answer if best else ""), self.run.span_id)

    def decide(self, chosen: Node | None, why: str) -> Decision:
        """The decision of a sequence, with the whole tree in the trace."""
        self.mark(min(limit for budget in self.run.budget.chain() if (limit := budget.limits.calls) is not None))
        tree = SearchTree(tuple(map(rating, self.nodes)), chosen.id if chosen else None)
        self.run.trace.add(tree, self.run.span_id)
        if chosen is None or chosen.ended != "answered":
            why = f"None of {counted(len(self.sequences), 'sequence')} ended with an answer."
            if self.halt is not None:
                return tell(Decision("", reasons=(why, str(self.halt)), stopped="budget"), self.run)
            return tell(Decision("", reasons=(why,), stopped="no_answer"), self.run)
        decision = self.decision(chosen, chosen)
        return tell(replace(decision, reasons=(*decision.reasons, why)), self.run)


def rating(node: Node) -> NodeRating:
    """As the trace keeps it."""
    parent = node.parent.id if node.parent else None
    return NodeRating(
        node.id, parent, elo=round(node.elo, 3), matches=node.matches, value=round(node.value, 4),
        ended=node.ended, answer=node.answer,
    )  # fmt: skip
