"""Benchmarks over documents: environments on a real index, and scores of whole runs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from decisor.documents.minilm import find_model_folder
from decisor.errors import SetupError
from decisor.lab.benchmark import BENCHES, Bench, Case, Score
from decisor.lab.qa.bench import ArcBench, HotpotQABench, MuSiQueBench, ParallelQABench, PopQABench, StrategyQABench
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.run import Run
from decisor.system.storage import cache_folder
from decisor.techniques import build_technique
from decisor.types import Action, Decision, Question, Usage
from servers.openai_server import serve

EMMA = {"id": "p1", "title": "Emma", "text": "A novel by Jane Austen."}
JANE = {"id": "p2", "title": "Jane Austen", "text": "She was born in Steventon."}
BATH = {"id": "p3", "title": "Bath", "text": "A town in Somerset."}
PARTS = [
    {"question": "Emma >> author", "answer": "Jane Austen", "gold": "p1"},
    {"question": "#1 >> born in", "answer": "Steventon", "gold": "p2"},
]
BORN = {
    "id": "2hop__1",
    "question": "Where was the author of Emma born?",
    "answer": "Steventon",
    "aliases": [],
    "type": "2hop",
    "gold": ["p1", "p2"],
    "decomposition": PARTS,
}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    import gzip

    text = "\n".join(json.dumps(row) for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.fixture
def musique(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    write(data / "questions.jsonl.gz", [BORN])
    write(data / "corpus.jsonl.gz", [EMMA, JANE, BATH])
    return data


async def scored(bench: Bench, replies: list[str], name: str = "rag") -> Score:
    case = bench.cases()[0]
    async with bench.environment(case) as env:
        run = Run(ScriptedLLM(replies), env)
        decision = await build_technique(name)(case.question, run)
    score = await bench.score(case, decision, run.trace.entries)
    await bench.close()
    return score


async def test_a_right_answer_with_its_passages(musique: Path) -> None:
    score = await scored(MuSiQueBench(musique), ["Final answer: Steventon\nBecause: [o1.r1] [o1.r2]"])
    assert (score.right, score.answer, score.failure, score.tags) == (True, "Steventon", "", ("attributed",))
    assert score.metrics["em"] == score.metrics["all_recall@5"] == score.metrics["cited_em"] == 1
    assert score.metrics["holds_answer@5"] == 1
    assert (score.metrics["attributed"], score.metrics["declared"]) == (1, 0)
    assert score.counts == {"retrievals": 1, "llm_calls": 1, "passages": 2, "cited": 2}


async def test_wrong_answers_are_told_apart(musique: Path) -> None:
    misread = await scored(MuSiQueBench(musique), ["Final answer: Bath\nBecause: [o1.r2]"])
    missed = await scored(MuSiQueBench(musique, limit=1), ["Final answer: Bath\nBecause: [o1.r1]"])
    silent = await scored(MuSiQueBench(musique), ["Final answer: none"])
    assert [one.failure for one in (misread, missed, silent)] == ["misread", "not_retrieved", "no_answer"]
    assert "attributed" not in misread.metrics  # a rate of right answers only
    assert misread.tags == ("unattributed",) and silent.tags == ()
    assert (missed.metrics["recall@10"], missed.metrics["holds_answer@10"]) == (0.5, 0)


async def test_what_a_search_brought_and_the_model_never_read_is_no_recall(musique: Path) -> None:
    bench = MuSiQueBench(musique)
    case = bench.cases()[0]
    async with bench.environment(case) as env:
        run = Run(ScriptedLLM(["Query: Steventon village\nQuery: Bath", "Final answer: Steventon"]), env)
        decision = await build_technique("furepa", first="0", k="1", scorer="rule", queries="2")(case.question, run)
    score = await bench.score(case, decision, run.trace.entries)
    await bench.close()
    assert score.counts["retrievals"] == 2 and score.counts["passages"] == 1
    assert score.metrics["recall"] <= 0.5


async def test_an_answer_that_cites_nothing_is_declared_as_own_knowledge(musique: Path) -> None:
    score = await scored(MuSiQueBench(musique), ["Steventon"], "vanilla")
    assert (score.right, score.tags, score.metrics["declared"]) == (True, ("declared",), 1)
    assert "recall@5" not in score.metrics and score.counts["retrievals"] == 0


async def test_each_case_counts_its_records_anew_on_one_shared_index(musique: Path) -> None:
    bench = MuSiQueBench(musique)
    case = bench.cases()[0]
    async with bench.environment(case) as one, bench.environment(case) as other:
        seen = [await env.step(Action("passages", "Jane Austen")) for env in (one, other)]
    assert [observation.records[0].id for observation in seen] == ["o1.r1", "o1.r1"]
    assert len(bench.tools) == 1
    await bench.close()


async def test_the_index_is_kept_and_follows_its_corpus(musique: Path) -> None:
    async def found(query: str) -> list[str]:
        bench = MuSiQueBench(musique)
        async with bench.environment(bench.cases()[0]) as env:
            records = (await env.step(Action("passages", query))).records
        await bench.close()
        return [record.source for record in records]

    assert await found("Somerset") == ["p3"]
    (place,) = [path for path in (cache_folder() / "corpora").iterdir() if path.is_dir()]
    before = sorted(path.name for path in place.iterdir())
    assert await found("Somerset") == ["p3"]
    assert sorted(path.name for path in place.iterdir()) == before  # not built again
    write(musique / "corpus.jsonl.gz", [EMMA, JANE, {"id": "p4", "title": "Wells", "text": "Also in Somerset."}])
    assert await found("Somerset") == ["p4"]


async def test_yes_or_no_is_read_out_of_the_answer(tmp_path: Path) -> None:
    row = {
        "id": "s",
        "question": "Is Emma a novel?",
        "answer": "yes",
        "facts": [],
        "decomposition": [],
        "evidence": [[[["p1"]]], [[["p1", "p9"]]]],
    }
    write(tmp_path / "dev.jsonl.gz", [row])
    write(tmp_path / "dev_corpus.jsonl.gz", [EMMA, JANE])
    score = await scored(StrategyQABench(tmp_path), ["Final answer: Yes, it is no play.\nBecause: [o1.r1]"])
    assert (score.right, score.answer, score.metrics["em"]) == (True, "yes", 1)
    assert score.metrics["recall@10"] == score.metrics["all_recall"] == 1  # by the annotator who fits best
    wrong = await scored(StrategyQABench(tmp_path), ["Final answer: No."])
    assert wrong.failure == "misread"  # what one annotator needed was there
    assert (await scored(StrategyQABench(tmp_path), ["Final answer: perhaps"])).failure == "no_answer"


async def test_a_choice_is_read_out_of_the_answer(tmp_path: Path) -> None:
    row = {"id": "a", "question": "What melts?", "choices": {"A": "ice", "B": "stone"}, "answer": "A"}
    data = write(tmp_path / "test.jsonl.gz", [row])
    score = await scored(ArcBench(data), ["Final answer: (A) ice"], "vanilla")
    assert (score.right, score.answer) == (True, "A")
    assert not (await scored(ArcBench(data), ["Final answer: stone"], "vanilla")).right


async def test_a_set_without_passages_asks_for_a_corpus(tmp_path: Path) -> None:
    row = {"id": "1", "question": "How many times is Everest as high as Snowdon?", "answer": "8.2", "branch": 2}
    data = write(tmp_path / "parallelqa.jsonl.gz", [row])
    with pytest.raises(SetupError, match="Give it documents"):
        await scored(ParallelQABench(data), [])
    hills = write(tmp_path / "hills.jsonl", [{"id": "h", "title": "Snowdon", "text": "It is 1,085 m high."}])
    score = await scored(ParallelQABench(data, str(hills)), ["Final answer: about 8.15\nBecause: [o1.r1]"])
    assert (score.right, score.metrics["em"], score.counts["retrievals"]) == (True, 0, 1)
    with pytest.raises(SetupError, match="There is no corpus"):
        await scored(ParallelQABench(data, str(tmp_path / "away")), [])


def test_an_answer_that_contains_an_accepted_one_is_right_in_popqa_only() -> None:
    case = Case("1", Question("Who?"), ("Jane Austen",), facts={"passages": []})
    decision = Decision("the novelist Jane Austen")

    async def right(bench: Bench) -> bool | None:
        return (await bench.score(case, decision, [])).right

    import asyncio

    assert asyncio.run(right(PopQABench(Path()))) is True
    assert asyncio.run(right(HotpotQABench(Path()))) is False


def test_every_set_is_on_the_list_of_benchmarks_and_imports() -> None:
    from dataclasses import fields
    from importlib import import_module

    for name in ("hotpotqa", "twowiki", "musique", "strategyqa", "arc", "popqa", "parallelqa"):
        module, _, kind = BENCHES[name].partition(":")
        found = getattr(import_module(module), kind)
        assert fields(found)[0].name == "data"
        assert found(Path()).name == name


async def test_a_judge_adds_its_verdict_and_changes_nothing_else(musique: Path) -> None:
    asked: list[str] = []

    def judge(body: dict[str, Any]) -> str:
        asked.append(body["messages"][-1]["content"])
        return "It names the village.\nVerdict: correct" if "village of" in asked[-1] else "I cannot say."

    async with serve(judge) as url:
        bench = MuSiQueBench(musique, judge=f"judge@{url}")
        long, odd = Decision("the village of Steventon"), Decision("Bath")
        case = bench.cases()[0]
        score = await bench.score(case, long, [])
        first = await bench.judged(score, case, long)
        unread = await bench.judged(await bench.score(case, odd, []), case, odd)
        await bench.close()
    assert (first.right, first.metrics["em"], first.metrics["llm_eval"]) == (False, 0, 1)
    assert replace(first, metrics=score.metrics, judging=Usage()) == score and score.judging.calls == 0
    assert first.judging.calls == 1 and unread.judging.calls == 3, "an unread verdict is paid for too"
    assert sum("village of" in text for text in asked) == 1
    assert "llm_eval" not in unread.metrics  # unscored is no zero


@pytest.mark.skipif(find_model_folder() is None, reason="the embedding model is not installed")
async def test_the_passages_are_embedded_where_the_mode_needs_it(musique: Path) -> None:
    bench = MuSiQueBench(musique, mode="dense", limit=1)
    async with bench.environment(bench.cases()[0]) as env:
        found = await env.step(Action("passages", "her birthplace"))
    await bench.close()
    assert [record.source for record in found.records] == ["p2"]


async def test_only_searches_count_as_retrievals(musique: Path) -> None:
    asked = [("think", "Emma?"), ("passages", "zzz"), ("passages", "Emma")]
    replies = [f"Thought: x\nAction: {tool}\nAction input: {text}" for tool, text in asked]
    replies.append("Final answer: Steventon\nBecause: [o2.r1]")
    score = await scored(MuSiQueBench(musique), replies, "iter_rag")
    assert (score.counts["retrievals"], score.counts["llm_calls"], score.counts["passages"]) == (2, 4, 1)
