"""Plan-RAG: a plan of sub-questions as a graph, answered as soon as what they need is known, each from one document.

Verma et al., "Plan-RAG: Planning-guided Retrieval Augmented Generation" (Plan*RAG), arXiv 2410.20753.

    plan <- PLAN(question)                                        algorithm 1
    for each node q, when its parents are answered
        q~        <- DYNAMIC_QUERY(q, answers of its parents)
        answer(q) <- ANSWER(q~)
    return AGGREGATE(question, all answers)

    ANSWER(q~):  G, r <- "", {}                                   algorithm 2
        repeat
            chunk <- GENERATE(q~, G, r)
            if CRITIC(chunk, q~, r):
                r <- RELEVANT(RETRIEVE(q~, chunk)), or rewrite the query and retry
            G <- G + chunk

A node sees its own question, its parents' answers and its documents, nothing else (equation 1). Beyond the paper: a
chunk that the critic rejects is written again instead of kept, a node may be served by a database, a node that fails
blocks only those that need it, and the answer of a plan's only last node is not put together again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Literal, TypeVar

from decisor.aio import in_order
from decisor.errors import BudgetExceeded, LMError, ParseError
from decisor.replies.plan_drafts import TAG
from decisor.replies.plan_graph import Part, PlanGraph
from decisor.replies.reasons import for_people
from decisor.run import Run
from decisor.techniques.plan_dag.experts.planner import NONE
from decisor.techniques.plan_dag.node_answer import Chunk, node_answer, note, show_graph
from decisor.techniques.plan_dag.node_input import bare, context_of, in_place, once, sources_of
from decisor.techniques.plan_dag.result import FALLBACK, attribution_of, conclusion, counts_of, only_last
from decisor.techniques.plan_dag.roles import OURS, Experts
from decisor.techniques.shared.decision import tell
from decisor.techniques.shared.documents import PASSAGES
from decisor.techniques.shared.forms import forms_of
from decisor.trace.graph_events import GraphPlan, GraphResult, NodeAnswer, NodeSpan
from decisor.types import Action, Decision, Observation, Question, Record, Stopped

ROOT = "Q"
SHORT = 8
T = TypeVar("T")


@dataclass(frozen=True)
class ReasoningDAG:
    """``critic="no"`` retrieves always, once; ``auto`` retrieves before the first draft where documents are all there
    is, and again where the answer is unknown, and asks the critic elsewhere. ``relevance="none"`` keeps all documents.
    ``literal`` keeps the chunks that the critic rejects, as algorithm 2 is printed; ``chunk``: their tokens, 0 for
    sentences. ``schedule="levels"`` waits for whole levels, as algorithm 1 is. ``context="filled"`` tells a node its
    parents' questions with the grandparents' answers filled in. ``aggregator="auto"`` lets an only last node
    answer."""

    critic: Literal["auto", "yes", "no"] = "auto"
    relevance: Literal["one", "many", "none"] = "one"
    literal: bool = False
    chunk: int = 0
    schedule: Literal["ready", "levels"] = "ready"
    context: Literal["own", "filled"] = "own"
    aggregator: Literal["auto", "always"] = "auto"
    dynamic: Literal["auto", "always", "never"] = "auto"
    unknown: Literal["ask", "stop"] = "ask"
    documents: int = 10
    rounds: int = 3
    retries: int = 2
    max_nodes: int = 8
    at_once: int = 8
    node_seconds: float = 300.0
    experts: Experts = OURS

    async def __call__(self, question: Question, run: Run) -> Decision:
        return await self.carry_out(question, await self.plan(question, run), run)

    async def plan(self, question: Question, run: Run) -> PlanGraph:
        """The plan, or the question itself as the only node: where it is simple, or where no plan could be read."""
        why = ""
        try:
            plan = await self.experts.plan(run, question, self.max_nodes)
        except (ParseError, BudgetExceeded) as error:
            plan, why = PlanGraph((), (FALLBACK,), simple=True), for_people(error)
        if plan.simple:
            plan = replace(plan, parts=(Part(ROOT, str(question)),))
        run.trace.add(GraphPlan(show_graph(plan), plan, why), run.span_id)
        return plan

    async def carry_out(self, question: Question, plan: PlanGraph, run: Run) -> Decision:
        """Algorithm 1."""
        parts = {part.id: part for part in plan.parts}

        async def act(id: str, done: Mapping[str, NodeAnswer]) -> NodeAnswer:
            return await self.node(parts[id], done, question, run)

        needs = {part.id: part.parents for part in plan.parts}
        answers = await in_order(act, needs, self.at_once, self.schedule == "levels")
        return await self.aggregate(question, plan, list(answers.values()), run)

    async def node(
        self, part: Part, done: Mapping[str, NodeAnswer], question: Question, run: Run, hint: str = ""
    ) -> NodeAnswer:
        """One node, in a span of its own. What goes wrong in it stays in it, but for an LM that is gone for good."""
        parents = [done[id] for id in part.parents]
        with run.span(NodeSpan(part.id, part.query, part.parents, part.source)) as sub:
            if lost := [p.node for p in parents if p.missing or (self.unknown == "stop" and p.status == "unknown")]:
                why = f"it needs {', '.join(lost)}"
                return note(NodeAnswer(part.id, part.query, status="blocked", why=why), sub)
            try:
                async with asyncio.timeout(self.node_seconds or None):
                    parents = [self.of_its_own(parent) for parent in parents]
                    sub_question = await self.put(part, parents, sub)
                    context = context_of(parents, question if part.degraded else None, hint)
                    return note(await self.answer(part, parents, sub_question, context, sub), sub)
            except BudgetExceeded as error:
                return note(NodeAnswer(part.id, part.query, status="budget", why=str(error)), sub)
            except LMError as error:
                if error.permanent:
                    raise
                return note(NodeAnswer(part.id, part.query, status="failed", why=str(error)), sub)
            except ParseError as error:
                return note(NodeAnswer(part.id, part.query, status="failed", why=for_people(error)), sub)
            except TimeoutError:
                why = f"it took longer than {self.node_seconds:g} seconds"
                return note(NodeAnswer(part.id, part.query, status="failed", why=why), sub)

    def of_its_own(self, parent: NodeAnswer) -> NodeAnswer:
        """A parent as a child is told of it: with nothing in its question that other nodes answered."""
        return parent if self.context == "filled" or not parent.query else replace(parent, question=bare(parent.query))

    async def put(self, part: Part, parents: Sequence[NodeAnswer], run: Run) -> str:
        """The question with its tags filled in: as texts where they are short, else by the dynamic query expert. In the
        place of an unknown answer stands its question in brackets."""
        by_node = {parent.node: parent for parent in parents}
        filled = [by_node[id] for id in part.tags]
        short = all(len(parent.answer.split()) <= SHORT and "\n" not in parent.answer for parent in filled)
        plain = self.dynamic == "never" or (self.dynamic == "auto" and short)
        in_brackets = TAG.sub(lambda tag: in_place(by_node[f"Q{tag[1]}"]), part.query)
        if not filled or plain or any(parent.status == "unknown" for parent in filled):
            return in_brackets
        return await or_else(self.experts.resolve(run, part.query, filled), in_brackets)

    async def answer(
        self, part: Part, parents: Sequence[NodeAnswer], question: str, context: str, run: Run
    ) -> NodeAnswer:
        """Algorithm 2, by what serves the node."""
        forms = forms_of(run.env)
        sources = sources_of(part, forms)
        documents: tuple[Record, ...] = ()
        retrievals = 0
        if sources == (NONE,):
            chunk = await self.experts.generate(run, question, context, (), None)
        elif forms.get(sources[0]) != PASSAGES:
            documents, query, retrievals = await self.query(question, context, sources[0], run)
            with_query = f"{context}\n# The documents are what this query brought\n{query}\n"
            chunk = await self.experts.generate(run, question, with_query, documents, None)
        elif self.literal or self.chunk:
            chunk, documents, retrievals = await self.write_on(question, context, sources, run)
        else:
            chunk, documents, retrievals = await self.write(question, context, sources, run)
        sure = all(parent.sure and parent.status != "unknown" for parent in parents)
        return node_answer(part, question, chunk, documents, retrievals, sure)

    async def write(
        self, question: str, context: str, sources: Sequence[str], run: Run
    ) -> tuple[Chunk, tuple[Record, ...], int]:
        """Write, criticise, and where evidence is needed look for it and write again."""
        documents: tuple[Record, ...] = ()
        count = 0
        if not self.asks_critic(run):
            chunk, search = Chunk(""), question
            for _ in range(self.rounds if self.critic == "auto" else 1):
                new, searches = await self.search(sources, search, question, "", documents, run)
                count += searches
                if not new and count > searches:
                    break
                documents = new
                chunk = await self.experts.generate(run, question, context, documents, None)
                if chunk.text or not documents:
                    break
            return chunk, documents, count
        for last in (*[False] * (self.rounds - 1), True):
            chunk = await self.experts.generate(run, question, context, documents, None)
            if last or (chunk.text and not await self.doubts(question, context, chunk, documents, run)):
                break
            search = f"{question} {chunk.text}".strip() if count else question
            new, searches = await self.search(sources, search, question, chunk.text, documents, run)
            count += searches
            if not new:
                break
            documents = new
        return chunk, documents, count

    async def doubts(self, question: str, context: str, chunk: Chunk, documents: tuple[Record, ...], run: Run) -> bool:
        """Whether the critic wants evidence; it does where it cannot be understood."""
        return await or_else(self.experts.criticise(run, question, context, chunk.text, documents), True)

    def asks_critic(self, run: Run) -> bool:
        """``auto``: not where documents are the only source, as nothing then is to be answered from memory."""
        only_documents = set(forms_of(run.env).values()) == {PASSAGES}
        return self.critic == "yes" or (self.critic == "auto" and not only_documents)

    async def write_on(
        self, question: str, context: str, sources: Sequence[str], run: Run
    ) -> tuple[Chunk, tuple[Record, ...], int]:
        """Algorithm 2, chunk by chunk. To the letter, evidence that a chunk was found to need only helps the next one;
        else the chunk is written again with it."""
        text, count = "", 0
        documents: tuple[Record, ...] = ()
        size = (self.chunk,) if self.chunk else ()
        for _ in range(self.rounds):
            chunk = await self.experts.generate(run, question, context, documents, text, *size)
            if not chunk.text:
                break
            if self.critic == "no" or await self.doubts(question, context, chunk, documents, run):
                search = f"{question} {chunk.text}"
                new, searches = await self.search(sources, search, question, chunk.text, (), run)
                count += searches
                if new and not self.literal:
                    chunk = await self.experts.generate(run, question, context, new, text, *size)
                documents = new or documents
            text = f"{text} {chunk.text}".strip()
        return Chunk(text), documents, count

    async def search(
        self, sources: Sequence[str], search: str, question: str, chunk: str, earlier: Sequence[Record], run: Run
    ) -> tuple[tuple[Record, ...], int]:
        """Retrieve, from each place in turn, and keep what is relevant; nothing relevant: rewrite and retry. Also how
        often was retrieved."""
        old = {record.text for record in earlier}
        searches: list[str] = []
        rejected: list[Record] = []
        while True:
            by_place = [(await run.act(Action(source, search))).records for source in sources]
            mixed = [record for rank in zip_longest(*by_place) for record in rank if record is not None]
            records = [record for record in once(mixed) if record.text not in old][: self.documents]
            old |= {record.text for record in records}
            relevant = tuple(records)
            if records and self.relevance != "none":
                choice = self.experts.choose(run, question, chunk, records, self.relevance == "many")
                relevant = await or_else(choice, relevant[:1])
            searches.append(search)
            rejected += records
            if relevant or len(searches) > self.retries:
                return relevant, len(searches)
            search = await or_else(self.experts.rewrite(run, question, searches, rejected), question)

    async def query(self, question: str, context: str, source: str, run: Run) -> tuple[tuple[Record, ...], str, int]:
        """Rows of a database and the query that brought them; one that fails or brings nothing is written again."""
        attempts: list[tuple[str, str]] = []
        while True:
            text = await or_else(self.experts.write_query(run, question, context, source, attempts), "")
            observation = await run.act(Action(source, text)) if text else Observation()
            attempts.append((text, observation.note or ("No rows came back." if text else "There was no query.")))
            if observation.records or len(attempts) > self.retries:
                return observation.records, text, len(attempts)

    async def aggregate(self, question: Question, plan: PlanGraph, answers: Sequence[NodeAnswer], run: Run) -> Decision:
        """The answer to the main question from all answers. Where that fails, the last node's stands. Without a plan
        the one node has answered it already; where just one node is last, that is the answer too."""
        if plan.simple and answers[0].status == "answered" and str(question) == question.text:
            return self.tell(conclusion(question, plan, answers, answers[0].answer, ""), plan, answers, run)
        if self.aggregator == "auto" and (last := only_last(question, plan, answers)):
            return self.tell(conclusion(question, plan, answers, last.answer, ""), plan, answers, run)
        try:
            answer, because = await self.experts.aggregate(run, question, answers)
            decision = conclusion(question, plan, answers, answer, because)
        except (ParseError, BudgetExceeded, LMError) as error:
            best = [one for one in answers if one.status == "answered"]
            if not best and isinstance(error, LMError):
                raise
            stopped: Stopped = "budget" if isinstance(error, BudgetExceeded) else "failed"
            decision = conclusion(question, plan, answers, best[-1].answer if best else "", "", stopped)
            why = f"The answers were not put together. {for_people(error)}"
            decision = replace(decision, reasons=(why, *decision.reasons))
        return self.tell(decision, plan, answers, run)

    def tell(self, decision: Decision, plan: PlanGraph, answers: Sequence[NodeAnswer], run: Run) -> Decision:
        attribution, document = attribution_of(decision.answer, plan, answers)
        run.trace.add(GraphResult(counts_of(plan, answers), attribution, document), run.span_id)
        return tell(decision, run)


async def or_else(reply: Awaitable[T], otherwise: T) -> T:
    """What an expert says, or this where none of its replies could be read: one expert does not end a run."""
    try:
        return await reply
    except ParseError:
        return otherwise
