"""Plan-RAG: a plan of sub-questions as a graph, answered as soon as their inputs are known, each from one document.

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
blocks only the nodes that need it, and the answer of a plan's only last node is not put together again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Literal, TypeVar

from decisor.errors import BudgetExceeded, LLMError, ParseError
from decisor.parsing.plan import TAG, PlanGraph, PlanPart
from decisor.parsing.prompting import explain_error
from decisor.runtime.run import Run
from decisor.system.tasks import run_in_dependency_order
from decisor.techniques.dag.experts import (
    NONE,
    OURS,
    Experts,
    build_node_context,
    choose_part_sources,
    drop_repeated_records,
    name_tags,
    replace_tag,
)
from decisor.techniques.dag.nodes import (
    Chunk,
    attribute_graph_answer,
    build_graph_decision,
    build_node_answer,
    count_graph,
    find_deciding_node,
    format_plan_graph,
    record_node_answer,
)
from decisor.techniques.shared.analyst import list_tool_languages
from decisor.techniques.shared.answer import record_decision
from decisor.techniques.shared.passages import PASSAGES
from decisor.trace.events import GraphPlan, GraphResult, NodeAnswer, NodeSpan
from decisor.types import Action, Decision, Observation, Question, Record, Stopped

ROOT = "Q"
SHORT = 8
T = TypeVar("T")


@dataclass(frozen=True)
class ReasoningDAG:
    """A plan of sub-questions as a graph, answered node by node.

    ``critic="no"`` always retrieves, in one round. ``critic="auto"`` retrieves before the first draft if documents are
    the only source, and again if the answer is unknown; otherwise it asks the critic. ``relevance="none"`` keeps all
    documents. ``literal``: keep chunks that the critic rejects, as algorithm 2 is printed. ``chunk``: tokens of a
    chunk; 0 means sentences. ``schedule="levels"`` waits for whole levels, as in algorithm 1. ``context="filled"``
    shows a node its parents' questions with the grandparents' answers filled in. ``aggregator="auto"`` lets a single
    last node answer.
    """

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
        """Return the plan. If the question is simple or no plan is readable, the question is the only node."""
        why = ""
        try:
            plan = await self.experts.plan(run, question, self.max_nodes)
        # Without a plan the question is answered as its own only node (no plan is not the end of a run).
        except (ParseError, BudgetExceeded) as error:
            plan, why = PlanGraph((), simple=True, is_fallback=True), explain_error(error)
        if plan.simple:
            plan = replace(plan, parts=(PlanPart(ROOT, str(question)),))
        run.trace.add(GraphPlan(format_plan_graph(plan), plan, why), run.span_id)
        return plan

    async def carry_out(self, question: Question, plan: PlanGraph, run: Run) -> Decision:
        """Answer all nodes of the plan and aggregate (algorithm 1)."""
        parts = {part.id: part for part in plan.parts}

        async def act(id: str, done: Mapping[str, NodeAnswer]) -> NodeAnswer:
            return await self.node(parts[id], done, question, run)

        needs = {part.id: part.parents for part in plan.parts}
        answers = await run_in_dependency_order(act, needs, self.at_once, self.schedule == "levels")
        return await self.aggregate(question, plan, list(answers.values()), run)

    async def node(
        self, part: PlanPart, done: Mapping[str, NodeAnswer], question: Question, run: Run, hint: str = ""
    ) -> NodeAnswer:
        """Answer one node in a span of its own. Failures stay inside the node; only a permanent LLM error is raised."""
        parents = [done[id] for id in part.parents]
        with run.span(NodeSpan(part.id, part.query, part.parents, part.source)) as sub:
            if lost := [p.node for p in parents if p.missing or (self.unknown == "stop" and p.status == "unknown")]:
                why = f"it needs {', '.join(lost)}"
                return record_node_answer(NodeAnswer(part.id, part.query, status="blocked", why=why), sub)
            try:
                # One slow node must not hold up those that wait for it until the run's own limit.
                async with asyncio.timeout(self.node_seconds or None):
                    parents = [self.of_its_own(parent) for parent in parents]
                    sub_question = await self.put(part, parents, sub)
                    context = build_node_context(parents, question if part.degraded else None, hint)
                    return record_node_answer(await self.answer(part, parents, sub_question, context, sub), sub)
            except (BudgetExceeded, LLMError, ParseError, TimeoutError) as error:
                # A wrong key or an empty account would fail in every node: the run ends.
                if isinstance(error, LLMError) and error.permanent:
                    raise
                why = f"it took longer than {self.node_seconds:g} seconds"
                why = why if isinstance(error, TimeoutError) else explain_error(error)
                status: Literal["budget", "failed"] = "budget" if isinstance(error, BudgetExceeded) else "failed"
                return record_node_answer(NodeAnswer(part.id, part.query, status=status, why=why), sub)

    def of_its_own(self, parent: NodeAnswer) -> NodeAnswer:
        """Return a parent as its child sees it: without answers of other nodes in its question."""
        return (
            parent
            if self.context == "filled" or not parent.query
            else replace(parent, question=name_tags(parent.query))
        )

    async def put(self, part: PlanPart, parents: Sequence[NodeAnswer], run: Run) -> str:
        """Fill in the tags of a question.

        Short answers replace them as text, longer ones by the dynamic query expert; an unknown answer leaves its
        question in brackets.
        """
        by_node = {parent.node: parent for parent in parents}
        filled = [by_node[id] for id in part.tags]
        # A short answer fits where its tag stood: no call is needed (the paper always asks).
        short = all(len(parent.answer.split()) <= SHORT and "\n" not in parent.answer for parent in filled)
        plain = self.dynamic == "never" or (self.dynamic == "auto" and short)
        in_brackets = TAG.sub(lambda tag: replace_tag(by_node[f"Q{tag[1]}"]), part.query)
        if not filled or plain or any(parent.status == "unknown" for parent in filled):
            return in_brackets
        return await await_readable_reply(self.experts.resolve(run, part.query, filled), in_brackets)

    async def answer(
        self, part: PlanPart, parents: Sequence[NodeAnswer], question: str, context: str, run: Run
    ) -> NodeAnswer:
        """Answer a node by the kind of its source (algorithm 2)."""
        forms = list_tool_languages(run.env)
        sources = choose_part_sources(part, forms)
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
        # Doubt is handed down: what rests on an unknown answer is not certain.
        sure = all(parent.sure and parent.status != "unknown" for parent in parents)
        return build_node_answer(part, question, chunk, documents, retrievals, sure)

    async def write(
        self, question: str, context: str, sources: Sequence[str], run: Run
    ) -> tuple[Chunk, tuple[Record, ...], int]:
        """Write an answer, have it criticised, and write it again with evidence if needed."""
        documents: tuple[Record, ...] = ()
        count = 0
        if not self.asks_critic(run):
            chunk, search = Chunk(""), question
            for _ in range(self.rounds if self.critic == "auto" else 1):
                new, searches = await self.search(sources, search, question, "", documents, run)
                count += searches
                # Nothing new after the first round: another draft would have nothing more to go by.
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
            # The draft joins the search only after the first round: before, it is a guess from memory.
            search = f"{question} {chunk.text}".strip() if count else question
            new, searches = await self.search(sources, search, question, chunk.text, documents, run)
            count += searches
            if not new:
                break
            documents = new
        return chunk, documents, count

    async def doubts(self, question: str, context: str, chunk: Chunk, documents: tuple[Record, ...], run: Run) -> bool:
        """Return whether the critic wants evidence. An unreadable reply counts as yes."""
        return await await_readable_reply(self.experts.criticise(run, question, context, chunk.text, documents), True)

    def asks_critic(self, run: Run) -> bool:
        """Return whether the critic is asked.

        ``auto``: not if documents are the only source, because then nothing is answered from memory.
        """
        only_documents = set(list_tool_languages(run.env).values()) == {PASSAGES}
        return self.critic == "yes" or (self.critic == "auto" and not only_documents)

    async def write_on(
        self, question: str, context: str, sources: Sequence[str], run: Run
    ) -> tuple[Chunk, tuple[Record, ...], int]:
        """Write an answer chunk by chunk (algorithm 2).

        If ``literal``, evidence for a chunk helps only the next one; otherwise the chunk is written again with it.
        """
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
        """Retrieve from each source and keep the relevant records; rewrite the search if there are none.

        Return the records and the number of retrievals.
        """
        # Passages that were read already do not answer the question a second time.
        old = {record.text for record in earlier}
        searches: list[str] = []
        rejected: list[Record] = []
        while True:
            by_place = [(await run.act(Action(source, search))).records for source in sources]
            # Taken in turns, so that no source fills the places of another.
            mixed = [record for rank in zip_longest(*by_place) for record in rank if record is not None]
            records = [record for record in drop_repeated_records(mixed) if record.text not in old][: self.documents]
            old |= {record.text for record in records}
            relevant = tuple(records)
            if records and self.relevance != "none":
                choice = self.experts.choose(run, question, chunk, records, self.relevance == "many")
                relevant = await await_readable_reply(choice, relevant[:1])
            searches.append(search)
            rejected += records
            if relevant or len(searches) > self.retries:
                return relevant, len(searches)
            search = await await_readable_reply(self.experts.rewrite(run, question, searches, rejected), question)

    async def query(self, question: str, context: str, source: str, run: Run) -> tuple[tuple[Record, ...], str, int]:
        """Query a database; rewrite a query that fails or returns nothing.

        Return the rows, the last query and the number of attempts.
        """
        attempts: list[tuple[str, str]] = []
        while True:
            text = await await_readable_reply(self.experts.write_query(run, question, context, source, attempts), "")
            observation = await run.act(Action(source, text)) if text else Observation()
            attempts.append((text, observation.note or ("No rows came back." if text else "There was no query.")))
            if observation.records or len(attempts) > self.retries:
                return observation.records, text, len(attempts)

    async def aggregate(self, question: Question, plan: PlanGraph, answers: Sequence[NodeAnswer], run: Run) -> Decision:
        """Return the answer to the main question from all answers.

        If this fails, the last answered node stands. Without a plan, or with a single last node (``auto``), that node's
        answer is the final one.
        """
        if plan.simple and answers[0].status == "answered" and str(question) == question.text:
            return self.tell(build_graph_decision(question, plan, answers, answers[0].answer, ""), plan, answers, run)
        if self.aggregator == "auto" and (last := find_deciding_node(question, plan, answers)):
            return self.tell(build_graph_decision(question, plan, answers, last.answer, ""), plan, answers, run)
        try:
            answer, because = await self.experts.aggregate(run, question, answers)
            decision = build_graph_decision(question, plan, answers, answer, because)
        except (ParseError, BudgetExceeded, LLMError) as error:
            # The last answered node is the nearest to the main question.
            best = [one for one in answers if one.status == "answered"]
            if not best and isinstance(error, LLMError):
                raise
            stopped: Stopped = "budget" if isinstance(error, BudgetExceeded) else "failed"
            decision = build_graph_decision(question, plan, answers, best[-1].answer if best else "", "", stopped)
            why = f"The answers were not put together. {explain_error(error)}"
            decision = replace(decision, reasons=(why, *decision.reasons))
        return self.tell(decision, plan, answers, run)

    def tell(self, decision: Decision, plan: PlanGraph, answers: Sequence[NodeAnswer], run: Run) -> Decision:
        attribution, document = attribute_graph_answer(decision.answer, plan, answers)
        run.trace.add(GraphResult(count_graph(plan, answers), attribution, document), run.span_id)
        return record_decision(decision, run)


async def await_readable_reply(reply: Awaitable[T], otherwise: T) -> T:
    """Wait for an expert; return a fallback if none of its replies is readable. One expert must not end a run."""
    try:
        return await reply
    except ParseError:
        return otherwise
