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

from decisor.errors import BudgetExceeded, ParseError
from decisor.parsing.labelled import LabelledReply, WrittenCall
from decisor.parsing.reply_form import Form, ReplyShape, read_dataclass
from decisor.parsing.unlabelled import match_tool
from decisor.runtime.prompt import PromptTemplate
from decisor.runtime.run import Run
from decisor.system.wording import format_count
from decisor.techniques.shared.judge import rate_chance
from decisor.techniques.shared.observations import show_observation
from decisor.techniques.shared.search_tree import TRIES, Tree, TreeNode
from decisor.types import LLM, Action, Decision, Message, Question, Value


@dataclass(frozen=True)
class ToT:
    """A level-by-level search that keeps the most promising states.

    ``propose``: maximum number of actions asked for in one call.
    """

    keep: int = 5
    propose: int = 8
    samples: int = 3
    calls: int = 100
    max_steps: int = 12
    temperature: float = 1.0
    seed: int = 0
    judge: LLM | None = None

    async def __call__(self, question: Question, run: Run) -> Decision:
        tree = Tree.plant(question, run, self.calls, self.max_steps, self.temperature, self.seed)
        tree.best = lambda: max(tree.answers(), key=lambda node: node.value, default=None)
        with suppress(BudgetExceeded):
            await self.search(tree, tree.run.using(llm=self.judge))
        return tree.decide(tree.best(), f"The highest value among {format_count(len(tree.answers()), 'answer')}.")

    async def search(self, tree: Tree, judge: Run) -> None:
        pool = [tree.root]
        while pool:
            states: list[TreeNode] = []
            for node in pool:
                for action in await propose_actions(tree, node, self.propose):
                    states.append(await tree.attempt(node, LabelledReply(WrittenCall(action.tool, action.input))))
            if not states:
                continue  # no list could be read: each is asked for again, a new sample, while there are calls
            states_met: set[str] = set()
            for state in states:
                # Two ways to one state are valued once; the later one keeps the value 0, so it comes last.
                if (what := read_state_key(state)) not in states_met:
                    states_met.add(what)
                    state.value = await rate_chance(tree, state, judge, self.samples)
            best = sorted(states, key=lambda state: -state.value)[: self.keep]
            pool = [state for state in best if not state.ended]


async def propose_actions(tree: Tree, node: TreeNode, count: int) -> tuple[Action, ...]:
    """Return the next actions that the LLM proposes; empty if no reply is readable."""
    system, user = tree.prompt(node, differ=False)
    form = build_proposed_actions_form(tree.tools, count)
    ask = Message("user", user.content + "\n" + PROPOSE.substitute(count=count, form=tree.run.wording(form)))
    try:
        return (await tree.ask([system, ask], form, tries=TRIES))[:count]
    except ParseError:
        return ()


@dataclass(frozen=True, slots=True)
class ProposedAction:
    """One action of a list of proposals."""

    action: str = field(metadata={"says": "the name of one tool"})
    action_input: str = field(metadata={"says": "what you give it, and nothing else"})


@dataclass(frozen=True, slots=True)
class ProposedActions:
    actions: tuple[ProposedAction, ...]


def build_proposed_actions_form(tools: tuple[str, ...], count: int) -> Form[tuple[Action, ...]]:
    def read(value: Mapping[str, Value]) -> tuple[Action, ...]:
        written: ProposedActions = read_dataclass(ProposedActions, value)
        actions = [Action(match_tool(one.action, tools), one.action_input) for one in written.actions]
        if not actions:
            raise ParseError("Write at least one action.", "missing_field")
        return tuple(dict.fromkeys(actions))

    says = f"up to {count} different ones, each with its action (one of {', '.join(tools)}) and action_input"
    shape = ReplyShape({"actions": says}, "next_actions", enums={"action": tools})
    return Form(
        "next actions", LINES, lambda reply: parse_proposed_actions(reply, tools), ProposedActions, (shape,), read
    )


def parse_proposed_actions(reply: str, tools: tuple[str, ...]) -> tuple[Action, ...]:
    """Parse proposed actions, one on each line, without duplicates.

    >>> parse_proposed_actions("1. combine: 10 - 4\\n2. combine: 4 * 5", ("combine",))
    (Action(tool='combine', input='10 - 4'), Action(tool='combine', input='4 * 5'))
    """
    names = "|".join(re.escape(tool) for tool in sorted(tools, key=len, reverse=True))
    lines = re.findall(rf"^[ \t]*(?:\d{{1,2}}[.)]|[-*])?[ \t]*`?({names})`?[ \t]*:[ \t]*(.+?)`?[ \t]*$", reply, re.M)
    if not lines:
        raise ParseError("Write one action a line, as tool: input", "missing_field")
    return tuple(dict.fromkeys(Action(tool, text) for tool, text in lines))


def read_state_key(node: TreeNode) -> str:
    """Return the last observation of a node, which identifies its state."""
    assert node.step is not None
    return show_observation(node.step.observation)


PROPOSE = PromptTemplate("""\
Instead of one step, list up to $count different next actions that could be good, the most promising first. $form""")

LINES = """\
Write one a
line and nothing else, as
tool: input
"""
