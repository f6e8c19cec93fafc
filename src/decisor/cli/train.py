"""``decisor train``: what is learned from data, and saved without pickle."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decisor.cli.console import error_console
from decisor.types import Record, Value

if TYPE_CHECKING:
    from decisor.learned.examples import Example
    from decisor.learned.training import Candidates
    from decisor.learned.words import Rarity

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def root() -> None:
    """Train what techniques learn from data."""


@app.command("query-scorer")
def query_scorer(
    out: Annotated[Path, typer.Option(help="The folder to write: trees.npz and card.json.")],
    corpus: Annotated[Path | None, typer.Option(help="Passages as JSON lines: id, title, text (.gz too).")] = None,
    questions: Annotated[
        Path | None, typer.Option(help="Questions as JSON lines: question, gold (ids of passages), decomposition ...")
    ] = None,
    generated: Annotated[bool, typer.Option(help="Train on a made-up encyclopaedia instead of your data.")] = False,
    assess: Annotated[
        str, typer.Option(help="after or before: whether queries are scored after they are run.")
    ] = "after",
    seed: Annotated[int, typer.Option(help="Of the candidates and the trees.")] = 0,
) -> None:
    """Train the query scorer of furepa on measured retrieval ranks, and say how well it chooses on held-out questions.

    decisor train query-scorer --corpus corpus.jsonl --questions questions.jsonl --out scorer
    """
    from decisor.errors import SetupError
    from decisor.learned.query_scorer import QueryScorer, save, splits
    from decisor.learned.training import before_retrieval, fit
    from decisor.learned.words import Rarity

    if assess not in ("before", "after"):
        raise SetupError(f"--assess is before or after, not {assess!r}.")
    if generated == bool(corpus and questions):
        raise SetupError("Name --corpus and --questions, or --generated, and not both.")
    examples, passages, about = made_up() if generated else read(corpus, questions)
    if len(examples) < 10:
        raise SetupError(
            f"Only {len(examples)} of the questions have their gold passages in the corpus: at least 10 are needed."
        )
    candidates = asyncio.run(with_progress(examples, passages, seed, Rarity() if generated else None))
    candidates = before_retrieval(candidates) if assess == "before" else candidates
    figures = held_out(candidates, seed)
    scorer = fit(candidates, seed)
    card: dict[str, Value] = {
        "data": about,
        "assess": assess,
        "questions": len(examples),
        "candidates": len(candidates.ranks),
        **figures,
        "splits": splits(scorer),
    }
    # A scorer of made-up passages is asked about real ones: the untrained rule steadies it (docs/measurements).
    rule = 0.4 if generated and assess == "after" else 0.0
    save(QueryScorer(scorer.trees, scorer.rarity, card, rule), out)
    for name, value in figures.items():
        print(f"{name.replace('_', ' ')}: {value}")
    print(f"splits by feature: {listing(splits(scorer))}")
    option = " -o assess=before" if assess == "before" else ""
    print(f"Wrote {out}. Use it with: decisor ask ... --technique furepa -o scorer={out}{option}")


def read(corpus: Path | None, questions: Path | None) -> tuple[list[Example], dict[str, Record], str]:
    from decisor.benchmarks.qa.gold_hops import examples
    from decisor.tools.documents.passage import read_passages

    assert corpus and questions
    passages = {one.id: Record(one.id, {"title": one.title}, one.text) for one in read_passages(corpus)}
    return examples(questions, passages), passages, f"{questions.name} over {corpus.name}, {len(passages)} passages"


def made_up() -> tuple[list[Example], dict[str, Record], str]:
    from decisor.benchmarks.qa.encyclopaedia import world

    encyclopaedia = world()
    passages = dict(encyclopaedia.passages)
    return list(encyclopaedia.examples), passages, f"generated, {len(passages)} passages"


async def with_progress(
    examples: list[Example], passages: dict[str, Record], seed: int, weights: Rarity | None
) -> Candidates:
    from rich.progress import Progress

    from decisor.learned.training import measure
    from decisor.tools.documents.index import index_of
    from decisor.tools.documents.passage import Passage

    index = index_of(Passage(id, one.text, str(one.fields.get("title") or "")) for id, one in passages.items())
    with Progress(console=error_console(), transient=True) as bar:
        task = bar.add_task("Running candidate queries", total=len(examples))
        return await measure(examples, passages, index, seed, lambda count: bar.update(task, completed=count), weights)


def held_out(candidates: Candidates, seed: int) -> dict[str, Value]:
    """Mean reciprocal ranks on every fifth question, by a scorer that was trained on the others."""
    from decisor.learned.training import choose, fit

    out = candidates.groups % 5 == 0
    part = candidates.where(out)
    choices = choose(part, fit(candidates.where(~out), seed).trees.predict(part.rows))
    return {
        "held_out_questions": len(set(part.groups.tolist())),
        "held_out_mrr_chosen": round(float(choices.choice.mean()), 4),
        "held_out_mrr_first": round(float(choices.first.mean()), 4),
        "held_out_mrr_random": round(float(choices.random.mean()), 4),
        "held_out_mrr_best": round(float(choices.oracle.mean()), 4),
    }


def listing(counts: Mapping[str, int], most: int = 10) -> str:
    more = f" and {len(counts) - most} more" if len(counts) > most else ""
    return ", ".join(f"{name} {count}" for name, count in list(counts.items())[:most]) + more
