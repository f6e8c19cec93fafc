"""A made-up run that looks like a real one: four techniques of very different strength on questions of trade."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from decisor.lab.benchmark import Outcome, State
from decisor.trace.events import (
    ActionResult,
    ActionStart,
    Conclusion,
    LLMCall,
    Plan,
    PlanChange,
    RunStart,
    Trace,
    TraceEntry,
)
from decisor.types import Decision, Evidence, Figure, Message, Observation, Option, Question, Ranking, Record, Usage

NODES = ("krakow", "novgorod", "sevilla", "genua", "valencia", "wien", "ragusa", "lubeck", "champagne", "venice")
TECHNIQUES = {"plan_rag": 0.66, "iter_rag": 0.49, "plan_rag replan=no": 0.55, "single_rag": 0.27}
PRICE = 0.000_002


@dataclass(frozen=True)
class Made:
    outcome: Outcome
    entries: tuple[TraceEntry, ...]


def run(
    cases: int = 60, seed: int = 1, techniques: dict[str, float] = TECHNIQUES, benchmark: str = "dqa"
) -> Iterator[Made]:
    """Every case by every technique; the same seed gives the same run."""
    for at in range(cases):
        for technique, strength in techniques.items():
            yield one(at, technique, strength, random.Random(f"{seed} {at} {technique}"), random.Random(at), benchmark)


def one(at: int, technique: str, strength: float, own: random.Random, shared: random.Random, benchmark: str) -> Made:
    group = "locating" if at % 2 else "building"
    hard = shared.random()
    ease = strength if group == "locating" else 0.7 * strength
    right = 0.5 * hard + 0.5 * own.random() > 1 - ease
    gold = shared.choice(NODES)
    answer = gold if right else own.choice([name for name in NODES if name != gold])
    fate = own.random()
    state: State = "right" if right else "wrong"
    if fate > 0.985:
        state = "crashed"
    elif fate > 0.965:
        state = "unscored"
    elif fate > 0.93 and not right:
        state = "over_budget"
    replans = own.choice((0, 0, 1, 1, 2, 3)) if technique == "plan_rag" else 0
    queries = 1 if technique == "single_rag" else 2 + replans + own.randrange(3)
    calls = queries + 1 + replans
    prompt, written = 900 * calls + own.randrange(4000), 120 * calls + own.randrange(300)
    outcome = Outcome(
        benchmark,
        f"{group}-{at + 1}",
        technique,
        "gpt-large-2026",
        0,
        state,
        group,
        "" if state in ("crashed", "over_budget") else answer,
        f"I would choose {answer}.",
        (gold,),
        "answered" if state in ("right", "wrong", "unscored") else "budget" if state == "over_budget" else "failed",
        () if state != "over_budget" else ("The limit of 12 calls is reached.",),
        "" if state == "right" else own.choice(("MIS", "DEEP", "DEEP", "CAN", "QUR")),
        ("SR",) if queries == 1 else ("MR",),
        {"tie_right": float(right), "margin": round(own.random(), 3)},
        {"replans": replans, "retrievals": queries},
        Usage(calls, prompt, written, round((prompt + 4 * written) * PRICE, 6), 1.4 * calls, queries),
        round(1.5 * calls + own.random(), 3),
        round(1.4 * calls, 3),
        {n: right and n >= calls - 1 for n in range(2, calls + 1, 2)},
    )
    return Made(outcome, tuple(entries_of(outcome, gold, queries, replans, own)))


def entries_of(outcome: Outcome, gold: str, queries: int, replans: int, own: random.Random) -> list[TraceEntry]:
    """The trace of a run as a technique writes it."""
    trace = Trace(began=0.0)
    question = Question(
        f"Which trading node should country {own.choice('ABCDEF')}AU strengthen to gain the most?",
        "A node's value flows on in shares of the power there.",
        "The largest profit.",
    )
    trace.add(RunStart(question, outcome.technique, outcome.model))
    plan = ("Find the nodes where the country has power", "Read the flow into each", "Compare the profit of each")
    if outcome.technique.startswith("plan"):
        trace.add(Plan(plan))
    shown = []
    for number in range(1, queries + 1):
        said = f"Thought: the flow of node {number} is needed next.\nAction: sql\nAction input: SELECT ..."
        prompt = [Message("user", str(question))]
        trace.add(LLMCall(outcome.model, prompt, (said,), usage=Usage(1, 900, 120, 0.002, 1.4)))
        at = trace.add(
            ActionStart(
                "sql",
                f"SELECT source, SUM(flow) AS total\nFROM flow WHERE day = {number} "
                "GROUP BY source ORDER BY total DESC LIMIT 6",
            )
        )
        records = tuple(
            Record(f"o{number}.r{row}", {"source": name, "total": round(own.uniform(5, 90), 3), "local": row % 2 == 0})
            for row, name in enumerate(own.sample(NODES, 6), 1)
        )
        failed = number == 2 and own.random() < 0.2
        shown += [] if failed else [record.id for record in records]
        observation = Observation(note="no such column: total_power", error=True) if failed else Observation(records)
        trace.add(ActionResult(at, observation, 0.0123))
        if number <= replans:
            trace.add(PlanChange(number, "The flow alone does not decide it.", (*plan, "Check the power")))
    ranking = Ranking(
        "profit", "max", tuple(Option(name, round(90 - 7.31 * at, 4)) for at, name in enumerate(NODES)), (gold,)
    )
    evidence = Evidence(tuple(shown[:3]), (Figure("88.1", shown[0]), Figure("412", "")) if shown else ())
    decision = Decision(
        outcome.answer,
        evidence,
        ranking if own.random() < 0.4 else None,
        plan,
        reasons=("It has the largest flow of all nodes where the country has power.",),
    )
    if outcome.state != "crashed":
        trace.add(Conclusion(decision))
    return [replace(entry, at=float(entry.id)) for entry in trace.entries]
