"""ToT: propose next steps, value the states they lead to, keep the most promising, level by level.

Yao et al., "Tree of Thoughts: Deliberate Problem Solving with Large Language Models", NeurIPS 2023 (its search of Game
of 24).

    pool <- [root]
    repeat until all ended or the steps are used up
        states <- for each of pool the states that PROPOSE's actions lead to (one call), equal ones once
        values <- VALUE(state), the sum over ``samples`` calls of sure 20, likely 1, impossible 0.001
        pool   <- the best ``keep``; those that ended are answers
    return the answer of the highest value
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from decisor.calls.prompt_parts import Template
from decisor.errors import BudgetExceeded, ParseError
from decisor.plurals import counted
from decisor.replies.form import Form
from decisor.replies.moves import Move
from decisor.replies.shape import Shape, read_object
from decisor.replies.tool_names import match_tool
from decisor.run import Run
from decisor.techniques.shared.judge import chance
from decisor.techniques.shared.node import Node
from decisor.techniques.shared.render import show_observation
from decisor.techniques.shared.tree import TRIES, Tree
from decisor.types import LM, Action, Decision, Message, Question, Value


@dataclass(frozen=True)
class ToT:
    """``propose``: at most so many actions are asked for in one call."""

    keep: int = 5
    propose: int = 8
    samples: int = 3
    calls: int = 100
    max_steps: int = 12
    temperature: float = 1.0
    seed: int = 0
    judge: LM | None = None

    async def __call__(self, question: Question, run: Run) -> Decision:
        tree = Tree.plant(question, run, self.calls, self.max_steps, self.temperature, self.seed)
        tree.best = lambda: max(tree.answers(), key=lambda node: node.value, default=None)
        with suppress(BudgetExceeded):
            await self.search(tree, tree.run.using(lm=self.judge))
        return tree.decide(tree.best(), f"The highest value among {counted(len(tree.answers()), 'answer')}.")

    async def search(self, tree: Tree, judge: Run) -> None:
        pool = [tree.root]
        while pool:
            states: list[Node] = []
            for node in pool:
                for action in await propose_actions(tree, node, self.propose):
                    states.append(await tree.attempt(node, Move(action)))
            if not states:
                continue  # no list could be read: each is asked for again, a new sample, while there are calls
            states_met: set[str] = set()
            for state in states:
                if (what := state_of(state)) not in states_met:
                    states_met.add(what)
                    state.value = await chance(tree, state, judge, self.samples)
            best = sorted(states, key=lambda state: -state.value)[: self.keep]
            pool = [state for state in best if not state.ended]


async def propose_actions(tree: Tree, node: Node, count: int) -> tuple[Action, ...]:
    """Next actions from a state; none where no reply could be read."""
    system, user = tree.prompt(node, differ=False)
    form = proposals_form(tree.tools, count)
    ask = Message("user", user.content + "\n" + PROPOSE.substitute(count=count, form=tree.run.wording(form)))
    try:
        return (await tree.ask([system, ask], form, tries=TRIES))[:count]
    except ParseError:
        return ()


@dataclass(frozen=True, slots=True)
class Proposal:
    """One action of a list."""

    action: str = field(metadata={"says": "the name of one tool"})
    action_input: str = field(metadata={"says": "what you give it, and nothing else"})


@dataclass(frozen=True, slots=True)
class Proposals:
    actions: tuple[Proposal, ...]


def proposals_form(tools: tuple[str, ...], count: int) -> Form[tuple[Action, ...]]:
    def read(value: Mapping[str, Value]) -> tuple[Action, ...]:
        written: Proposals = read_object(Proposals, value)
        actions = [Action(match_tool(one.action, tools, []), one.action_input) for one in written.actions]
        if not actions:
            raise ParseError("Write at least one action.", "missing_field")
        return tuple(dict.fromkeys(actions))

    says = f"up to {count} different ones, each with its action (one of {', '.join(tools)}) and action_input"
    shape = Shape({"actions": says}, "next_actions", enums={"action": tools})
    return Form("next actions", LINES, lambda reply: parse_proposals(reply, tools), Proposals, (shape,), read)


def parse_proposals(reply: str, tools: tuple[str, ...]) -> tuple[Action, ...]:
    """
    >>> parse_proposals("1. combine: 10 - 4\\n2. combine: 4 * 5", ("combine",))
    (Action(tool='combine', input='10 - 4'), Action(tool='combine', input='4 * 5'))
    """
    names = "|".join(re.escape(tool) for tool in sorted(tools, key=len, reverse=True))
    lines = re.findall(rf"^[ \t]*(?:\d{{1,2}}[.)]|[-*])?[ \t]*`?({names})`?[ \t]*:[ \t]*(.+?)`?[ \t]*$", reply, re.M)
    if not lines:
        raise ParseError("Write one action a line, as tool: input", "missing_field")
    return tuple(dict.fromkeys(Action(tool, text) for tool, text in lines))


def state_of(node: Node) -> str:
    """What tells two states apart: what was last seen."""
    assert node.step is not None
    return show_observation(node.step.observation)


PROPOSE = Template("""\
Instead of one step, list up to $count different next actions that could be good, the most promising first. $form""")

LINES = """\
Write one a
line and nothing else, as
tool: input
"""
