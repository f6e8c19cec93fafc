"""Takes the question apart into a graph of sub-questions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from decisor.calls.prompt_parts import Template
from decisor.errors import ParseError
from decisor.replies.form import Form
from decisor.replies.plan_graph import PlanGraph
from decisor.replies.plan_reply import parse_plan_graph
from decisor.replies.shape import Shape
from decisor.run import Run
from decisor.techniques.shared.documents import PASSAGES
from decisor.techniques.shared.forms import forms_of
from decisor.types import Question

NONE = "none"
"""The source of a part that follows from the answers of others."""


async def plan(run: Run, question: Question, max_nodes: int) -> PlanGraph:
    sources = run.env.tools()
    one_index = [form == PASSAGES for form in forms_of(run.env).values()] == [True]
    mixed = MIXED.substitute(tools=run.env.describe()) if sources and not one_index else ""
    first = True

    def read(reply: str) -> PlanGraph:
        nonlocal first
        mend, first = not first, False
        graph = parse_plan_graph(reply, max_nodes, (*sources, NONE) if mixed else (), mend)
        if mixed and not mend and (without := [part.id for part in graph.parts if not part.source]):
            raise ParseError(f"{', '.join(without)}: name the source, one of {', '.join(sources)} or none.", "source")
        return graph

    kind, says = (SourcedPlan, SOURCED) if mixed else (Plan, SAYS)
    shape = Shape(says, "plan", enums={"source": (*sources, NONE), "depth": DEPTHS}, sizes={"nodes": (1, max_nodes)})
    form = Form("plan of parts", TEXT, read, kind, (shape,))
    prompt = PLAN.substitute(question=question, most=max_nodes, mixed=mixed, form=run.wording(form))
    with run.span("planner") as sub:
        return await replace(sub, retries=3).ask(prompt, form)


@dataclass(frozen=True, slots=True)
class Node:
    depth: str = field(metadata={"says": "1 where it needs no other, 2 where it uses answers of depth 1, and so on"})
    ask: str = field(metadata={"says": "the sub-question"})


@dataclass(frozen=True, slots=True)
class SourcedNode(Node):
    source: str = field(metadata={"says": "the tool that can tell it, or none"})


@dataclass(frozen=True, slots=True)
class Plan:
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class SourcedPlan:
    nodes: tuple[SourcedNode, ...]


DEPTHS = tuple("123456789")
TAGS = """\
the sub-questions; those that need no other have the depth "1", those that use their answers "2", and so on. <A1.2> \
stands for the answer of the second one of depth 1. One alone where the question is one such thing. Each has"""
SAYS = {"nodes": f"{TAGS} depth and ask"}
SOURCED = {"nodes": f"{TAGS} depth, ask and source"}
TEXT = """\
One JSON object and nothing else:
{"nodes": [{"id": "1.1", "ask": "Who directed the film Arrival?", "needs": []},
           {"id": "2.1", "ask": "In which city was <A1.1> born?", "needs": ["1.1"]}]}
or, where the question is already one such thing: {"simple": true}

An id is DEPTH.INDEX: parts of depth 1 need no other part, parts of depth 2 need one of depth 1, and so on. "needs"
lists the parts whose answers a part uses. No part needs itself, and there are no circles.
"""


PLAN = Template("""\
Take the question apart into the smallest set of sub-questions that answers it. Each asks for one thing that a single
document or record can tell. Sub-questions that do not need each other's answers are answered at the same time.

# Form of your reply
$form
# Rules
- <A1.1> stands for the answer of part 1.1. A part sees only its own question with these answers filled in, never the
  main question: write each so that it can be understood alone, with full names.
- At most $most parts, and no more than the question takes. The answers are put together at the end by someone who sees
  the main question: a last part is only needed where something must still be found out or compared.
$mixed
# Question
$question
""")

MIXED = Template("""\
- Each node also has "source": the name of the tool that can tell it, or "none" where it follows from the answers of
  other parts alone (a comparison, a sum). A part asks one source, so take apart what lies in two of them.

# Tools
$tools
""")
