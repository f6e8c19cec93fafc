"""FuRePA as transcripts on a real index: what it is shown, which query runs, and what happens when it is stuck."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from decisor.errors import ParseError, SetupError
from decisor.runtime.budget import Budget, Limits
from decisor.runtime.run import Run
from decisor.techniques import build_technique
from decisor.techniques.furepa import FuRePA, parse_query_proposal
from decisor.techniques.shared.answer import Trajectory
from decisor.techniques.shared.query_scorer import DEFAULT
from decisor.trace.events import ActionStart, QueryScores, SearchProblem, UnreadableReply
from decisor.types import Completion, Decision, Message, Question, Sampling, Usage
from techniques.shelf import shelf

WHERE = Question("In which county was the author of Emma born?")
AUTHOR = "Thought: Zwischenstand one.\nQuery: Jane Austen born\nQuery: In which county was the author of Emma born?"
VILLAGE = "Thought: She was born in Steventon.\nQuery: Steventon village"
DONE = "Thought: Steventon is in Hampshire.\nFinal answer: Hampshire\nBecause: it lies there"


@dataclass
class Sampled:
    """Plays rounds: each a tuple of texts, one for each sample asked for."""

    rounds: Sequence[tuple[str, ...]]
    name: str = "sampled"
    prompts: list[str] = field(default_factory=list)
    samplings: list[Sampling] = field(default_factory=list)

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        self.prompts.append(messages[-1].content)
        self.samplings.append(sampling)
        return Completion(self.rounds[len(self.prompts) - 1][: sampling.n], Usage(calls=1))


async def ask(how: FuRePA, *rounds: str | tuple[str, ...], limits: Limits = Limits()) -> tuple[Decision, Sampled, Run]:
    llm = Sampled([(one,) if isinstance(one, str) else one for one in rounds])
    run = Run(llm, shelf(), Budget(limits))
    return await how(WHERE, run), llm, run


def problems(run: Run) -> list[str]:
    return ["reply" if isinstance(event, UnreadableReply) else event.problem for event in problem_events(run)]


def problem_events(run: Run) -> list[UnreadableReply | SearchProblem]:
    return [one.event for one in run.trace.entries if isinstance(one.event, UnreadableReply | SearchProblem)]


def kept(prompt: str) -> list[str]:
    """Ids of the passages in the evidence of a prompt."""
    return re.findall(r"^\[(o\d+\.r\d+)\]", prompt, re.M)


SHORT = FuRePA(first=1, k=1, scorer="rule")


async def test_earlier_thoughts_and_queries_are_masked() -> None:
    decision, llm, _ = await ask(SHORT, AUTHOR, VILLAGE, DONE)
    assert decision.answer == "Hampshire"
    assert not any("Zwischenstand" in prompt or "Jane Austen born" in prompt for prompt in llm.prompts)
    assert [len(kept(prompt)) for prompt in llm.prompts] == [1, 2, 3]


async def test_without_the_mask_they_are_shown() -> None:
    _, llm, _ = await ask(FuRePA(first=1, k=1, scorer="rule", mask=False), AUTHOR, VILLAGE, DONE)
    assert "Zwischenstand" not in llm.prompts[0]
    assert "Thought: Zwischenstand one.\nQuery: Jane Austen born\n" in llm.prompts[1]


async def test_the_question_itself_is_never_run_twice_and_equal_queries_are_one() -> None:
    again = "Query: In which county was the author of Emma born\nQuery: Jane Austen\nQuery: jane austen?"
    _, _, run = await ask(SHORT, again, DONE)
    assert [action.input for action in run.trace.of(ActionStart)] == [
        WHERE.text,
        "Jane Austen",
    ]


async def test_the_best_scored_query_becomes_evidence_and_all_scores_are_in_the_trace() -> None:
    useless = "Query: the\nQuery: Jane Austen Steventon born"
    _, llm, run = await ask(SHORT, useless, DONE)
    (scores,) = run.trace.of(QueryScores)
    assert scores.queries == ("the", "Jane Austen Steventon born")
    assert scores.scores[1] > scores.scores[0]
    assert "was born in Steventon" in llm.prompts[1]


async def test_a_candidate_that_lost_is_not_searched_for_again() -> None:
    lost, then = "Query: planted\n", "Query: Steventon village"
    decision, llm, run = await ask(SHORT, f"{lost}Query: Jane Austen Steventon born", f"{lost}{then}", DONE)
    assert decision.answer == "Hampshire"
    assert [action.input for action in run.trace.of(ActionStart)] == [
        WHERE.text,
        "planted",
        "Jane Austen Steventon born",
        "Steventon village",
    ]
    scores = run.trace.of(QueryScores)
    assert scores[1].queries == ("planted", "Steventon village"), "it is scored again: the evidence is another"
    assert [len(kept(prompt)) for prompt in llm.prompts] == [1, 2, 3]


async def test_a_candidate_that_lost_may_win_later_and_becomes_evidence_then() -> None:
    both = "Query: Steventon village\nQuery: Jane Austen Steventon born"
    _, llm, run = await ask(SHORT, both, both, DONE)
    assert len(run.trace.of(ActionStart)) == 3
    assert len(kept(llm.prompts[2])) == 3


async def test_a_scorer_that_is_not_there_is_noticed_before_anything_is_asked() -> None:
    llm = Sampled([])
    run = Run(llm, shelf(), Budget())
    with pytest.raises(SetupError, match="no query scorer in nosuch"):
        await FuRePA(scorer="nosuch")(WHERE, run)
    assert not run.trace.entries


async def test_the_first_query_runs_where_no_scorer_is_asked() -> None:
    _, llm, run = await ask(FuRePA(first=1, k=1, choose="first"), "Query: Hampshire\nQuery: Jane Austen", DONE)
    assert "largest city" in llm.prompts[1]
    assert not run.trace.of(QueryScores)


async def test_a_random_choice_is_the_same_with_the_same_seed() -> None:
    proposals = "Query: Hampshire\nQuery: Jane Austen\nQuery: planted"
    runs = [await ask(FuRePA(choose="random", seed=seed, first=1), proposals, DONE) for seed in (3, 3)]
    assert runs[0][1].prompts == runs[1][1].prompts


async def test_a_stuck_model_is_asked_at_a_higher_temperature_until_something_new_comes() -> None:
    stuck = "Query: In which county was the author of Emma born?"
    _, llm, run = await ask(SHORT, stuck, stuck, AUTHOR, DONE)
    assert [round(sampling.temperature, 2) for sampling in llm.samplings] == [0.2, 1.0, 1.8, 0.2]
    assert problems(run) == ["repeated_queries", "repeated_queries"]


async def test_a_model_that_stays_stuck_answers_from_what_there_is() -> None:
    stuck = "Query: In which county was the author of Emma born?"
    decision, llm, run = await ask(SHORT, stuck, stuck, stuck, "Final answer: Hampshire")
    assert decision.answer == "Hampshire"
    assert "Nothing more can be looked for." in llm.prompts[-1]
    assert problems(run) == ["repeated_queries"] * 3


async def test_without_raising_it_answers_the_first_time_it_is_stuck() -> None:
    stuck = "Query: In which county was the author of Emma born?"
    _, llm, _ = await ask(FuRePA(raises=False, scorer="rule"), stuck, "Final answer: Hampshire")
    assert len(llm.prompts) == 2


async def test_many_rounds_and_low_scores_are_signals() -> None:
    _, _, run = await ask(FuRePA(max_rounds=1, scorer="rule"), AUTHOR, "Final answer: Hampshire")
    assert problems(run) == ["many_rounds"]
    _, _, run = await ask(FuRePA(below=100.0, scorer="rule"), AUTHOR, "Final answer: Hampshire")
    assert problems(run) == ["low_score"]


async def test_half_of_the_samples_decide_and_the_commonest_answer_wins() -> None:
    how = FuRePA(samples=4, temperature="sampled", scorer="rule")
    other = "Final answer: Kent"
    decision, llm, _ = await ask(
        how, (DONE, AUTHOR, AUTHOR, VILLAGE), (DONE, other, "Final answer: the Hampshire", "?")
    )
    assert decision.answer == "Hampshire"
    assert [(s.temperature, s.n) for s in llm.samplings] == [(1.0, 4), (1.0, 4)]


async def test_where_no_sample_can_be_read_one_more_is_asked_for() -> None:
    how = FuRePA(samples=2, scorer="rule")
    decision, llm, run = await ask(how, ("well", "hm\nhm"), DONE)
    assert decision.answer == "Hampshire"
    assert problems(run) == ["reply", "reply"]
    assert [sampling.n for sampling in llm.samplings] == [2, 1]


async def test_a_budget_that_ends_still_gives_an_answer() -> None:
    limits = Limits(calls=2)
    decision, _, _ = await ask(SHORT, AUTHOR, "Final answer: Hampshire\nBecause: [o2.r1]", limits=limits)
    assert (decision.answer, decision.stopped) == ("Hampshire", "budget")


async def test_a_citation_of_what_is_no_evidence_goes_back() -> None:
    wrong = "Final answer: Hampshire\nBecause: [o9.r9]"
    decision, llm, _ = await ask(SHORT, wrong, DONE)
    assert "o9.r9, which you have not been shown" in llm.prompts[1]
    assert decision.answer == "Hampshire"


@pytest.mark.parametrize(
    ("reply", "queries"),
    [
        ("Thought: x\nQuery: a b\nQuery: c", ("a b", "c")),
        ("**Query 1:** a b\n**Query 2:** c", ("a b", "c")),
        ("Queries:\n1. a b\n2. c", ("a b", "c")),
        ('- Query: "a b"', ("a b",)),
        ("<think>hm</think>query: a b", ("a b",)),
    ],
)
def test_queries_are_read_as_models_write_them(reply: str, queries: tuple[str, ...]) -> None:
    assert parse_query_proposal(reply, Trajectory(WHERE), ()).queries == queries


def test_a_reply_with_neither_goes_back() -> None:
    with pytest.raises(ParseError, match="at least one line Query"):
        parse_query_proposal("I would look for the author.", Trajectory(WHERE), ())


def test_it_is_made_by_name_with_its_ablations() -> None:
    assert build_technique("furepa", mask="no", choose="first", raises="no", temperature="sampled") == FuRePA(
        mask=False, choose="first", raises=False, temperature="sampled"
    )


async def test_before_retrieval_only_the_best_query_is_run_and_all_are_scored() -> None:
    useless = "Query: the\nQuery: Jane Austen Steventon born"
    _, _, run = await ask(FuRePA(first=1, k=1, assess="before"), useless, DONE)
    (scores,) = run.trace.of(QueryScores)
    assert scores.queries == ("the", "Jane Austen Steventon born")
    best = scores.queries[scores.scores.index(max(scores.scores))]
    assert [action.input for action in run.trace.of(ActionStart)] == [WHERE.text, best]


@pytest.mark.parametrize("scorer", ["rule", str(DEFAULT)])
async def test_a_scorer_of_the_other_kind_is_refused_before_anything_is_asked(scorer: str) -> None:
    with pytest.raises(SetupError, match="assess=after"):
        await ask(FuRePA(scorer=scorer, assess="before"))


async def test_the_temperatures_are_settings() -> None:
    old = f"Query: {WHERE.text}"
    _, llm, _ = await ask(
        FuRePA(first=1, k=1, scorer="rule", start=0.3, step=0.4, hottest=1.0, raise_times=3), old, old, old, DONE
    )
    assert [round(one.temperature, 2) for one in llm.samplings] == [0.3, 0.7, 1.0, 1.0]
