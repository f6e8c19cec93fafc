"""Training on a encyclopaedia-up world, saving without pickle, and choosing well on questions that were archive out."""

from __future__ import annotations

import asyncio
import json
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decisor.documents.index import build_memory_index
from decisor.documents.passage import Passage
from decisor.errors import SetupError
from decisor.lab.training import (
    HopExample,
    MeasuredQueries,
    build_training_states,
    evaluate_choices,
    fit_query_scorer,
    measure_queries,
    parse_hop_example,
)
from decisor.techniques.shared.query_scorer import (
    NAMES,
    QueryContext,
    QueryScorer,
    Rarity,
    RuleScorer,
    Trees,
    compute_features,
    content_word_set,
    count_splits_by_feature,
    find_capitalised_names,
    grow_trees,
    list_content_words,
    load_query_scorer,
    open_scorer,
    save_query_scorer,
)
from decisor.types import Record
from learned.encyclopaedia import make_encyclopaedia


@lru_cache(maxsize=1)
def small() -> MeasuredQueries:
    """Candidates of 30 questions over 220 encyclopaedia-up passages."""
    encyclopaedia = make_encyclopaedia(questions=30, size=10, seed=5)
    index = build_memory_index(
        Passage(one.id, one.text, str(one.fields["title"])) for one in encyclopaedia.passages.values()
    )
    return asyncio.run(measure_queries(encyclopaedia.examples, encyclopaedia.passages, index))


@lru_cache(maxsize=1)
def fitted() -> QueryScorer:
    return fit_query_scorer(small(), trees=20)


@pytest.mark.slow
def test_the_chosen_query_beats_the_first_and_a_random_one_on_questions_never_seen() -> None:
    data = small()
    out = data.groups % 3 == 0
    choices = evaluate_choices(
        data.where(out), fit_query_scorer(data.where(~out), trees=40).trees.predict(data.rows[out])
    )
    assert choices.choice.mean() > choices.first.mean() + 0.05
    assert choices.choice.mean() > choices.random.mean() + 0.1
    assert choices.oracle.mean() >= choices.choice.mean()


@pytest.mark.slow
def test_a_saved_scorer_scores_the_same_and_its_files_hold_no_objects(tmp_path: Path) -> None:
    data = small()
    scorer = QueryScorer(fitted().trees, data.rarity, {"data": "made up"})
    save_query_scorer(scorer, tmp_path)
    again = load_query_scorer(tmp_path)
    assert np.array_equal(again.trees.predict(data.rows), scorer.trees.predict(data.rows))
    assert again.card["data"] == "made up"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["card.json", "trees.npz"]
    with np.load(tmp_path / "trees.npz", allow_pickle=False) as archive:
        assert all(archive[name].dtype.kind in "iuf" for name in archive.files)


def test_our_trees_predict_what_scikit_learn_predicts() -> None:
    pytest.importorskip("sklearn.ensemble", reason="needs room for scikit-learn: make test", exc_type=ImportError)
    from sklearn.ensemble import HistGradientBoostingRegressor

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1000, 5)).astype(np.float32)
    rows[::7, 2] = rows[0, 2]  # equal values, where a threshold must fall on the right side
    labels = (rows[:, 0] * (rows[:, 1] > 0) + rows[:, 2]).astype(np.float64)
    model = HistGradientBoostingRegressor(
        max_iter=20,
        learning_rate=0.06,
        max_leaf_nodes=31,
        min_samples_leaf=40,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=0,
    )
    assert np.allclose(
        grow_trees(rows, labels, trees=20).predict(rows), model.fit(rows, labels).predict(rows), atol=1e-5
    )


@pytest.mark.parametrize("harm", ["feature", "left", "roots"])
def test_trees_that_point_outside_themselves_are_refused(harm: str) -> None:
    arrays = fitted().trees.arrays()
    arrays[harm] = arrays[harm] + 10_000_000
    with pytest.raises(SetupError, match="point outside themselves"):
        Trees.of(arrays, len(NAMES))


def test_columns_have_names_and_the_built_in_scorer_says_which_it_splits_by() -> None:
    question, hit = Record("a", {"title": "Aune"}, "The Aune is a river."), Record("b", {"title": "Bel"}, "A town.")
    scene = QueryContext("Where does the Aune rise?", (question,), (question, hit))
    row = dict(zip(NAMES, compute_features(scene, "Bel town", [question, hit]), strict=True))
    assert (row["words"], row["evidence"], row["known_top"], row["new_rank"]) == (2, 1, 1, 2)
    assert (row["from_question"], row["from_nowhere"], row["new_covers"]) == (0, 1, 1)
    counts = count_splits_by_feature(load_query_scorer())
    assert set(counts) <= set(NAMES) and list(counts.values()) == sorted(counts.values(), reverse=True)
    assert load_query_scorer().card["features"] == list(NAMES)


def test_a_folder_that_is_no_scorer_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="decisor train query-scorer makes one"):
        open_scorer(str(tmp_path / "none"))
    (tmp_path / "trees.npz").write_bytes(b"not an archive")
    (tmp_path / "card.json").write_text("{}")
    with pytest.raises(SetupError, match="decisor train query-scorer makes one"):
        open_scorer(str(tmp_path))


def test_a_scorer_of_other_features_is_refused(tmp_path: Path) -> None:
    save_query_scorer(QueryScorer(fitted().trees), tmp_path)
    card = json.loads((tmp_path / "card.json").read_text())
    (tmp_path / "card.json").write_text(json.dumps({**card, "features": ["length"]}))
    with pytest.raises(SetupError, match="train it again"):
        open_scorer(str(tmp_path))


def test_the_rule_never_prefers_a_query_that_only_brings_back_what_is_known() -> None:
    known, new = Record("a", {"title": "Aune"}, "A river."), Record("b", {"title": "Bel"}, "A town.")
    scene = QueryContext("Where does the Aune rise?", (known,), (known,))
    hits = [[Record("x", known.fields, known.text, score=9.0)], [Record("y", new.fields, new.text, score=2.0)]]
    first, second = RuleScorer().score(scene, ["Aune river", "Bel town"], hits)
    assert second > first


def test_states_hold_only_hops_that_come_before_and_label_the_rest() -> None:
    encyclopaedia = make_encyclopaedia(questions=5, size=10, seed=2)
    import random

    for group, one in enumerate(encyclopaedia.examples):
        gold = [hop.gold for hop in one.hops]
        for state in build_training_states(group, one, encyclopaedia.passages, (), random.Random(0), ("Rome",)):
            evidence = [record.id for record in state.evidence]
            assert evidence == gold[: len(evidence)]
            assert state.missing == set(gold) - set(evidence)
            assert state.queries[0] == one.question
            assert len(set(state.queries)) == len(state.queries) == len(state.kinds)


def test_no_resolved_candidate_tells_an_answer_that_is_not_yet_known() -> None:
    import random

    one = HopExample("Q?", make_encyclopaedia(questions=1, size=10).examples[0].hops)
    passages = make_encyclopaedia(questions=1, size=10).passages
    first = next(iter(build_training_states(0, one, passages, (), random.Random(0), ("Zzz",))))
    later = one.hops[0].answer
    assert not any(later in query for query, kind in zip(first.queries, first.kinds, strict=True) if kind == "resolved")


@given(st.text(max_size=80), st.text(max_size=80), st.lists(st.text(max_size=60), max_size=4))
@settings(max_examples=30, deadline=None)
def test_features_are_finite_whatever_the_text(question: str, query: str, texts: list[str]) -> None:
    hits = [Record(str(n), {"title": text[:9]}, text, score=float(n)) for n, text in enumerate(texts)]
    row = compute_features(QueryContext(question, tuple(hits[:2]), tuple(hits), Rarity.of(texts or ["a"])), query, hits)
    assert len(row) == len(NAMES)
    assert np.isfinite(np.asarray(row)).all()


def test_rare_words_weigh_more_than_common_ones() -> None:
    rarity = Rarity.of(["the river Aune", "the river Bel", "the river Cor"])
    assert rarity.weight("aune") > rarity.weight("river") > 0
    assert list_content_words("Which rivers are in the towns?") == ("river", "town")
    assert find_capitalised_names("Where was Jane Austen born?") == ("Jane Austen",)
    assert content_word_set("A a the") == frozenset()


def test_gold_hops_are_read_from_each_kind_of_row() -> None:
    passages = {id: Record(id, {"title": title}, "") for id, title in (("1", "Emma"), ("2", "Jane Austen"))}
    triples = {
        "question": "Where was the author of Emma born?",
        "gold": ["2", "1"],
        "evidences": [["Emma", "author", "Jane Austen"], ["Jane Austen", "born in", "Steventon"]],
    }
    two_hops = parse_hop_example(triples, passages)
    assert [hop.gold for hop in two_hops.hops] == ["1", "2"]
    assert two_hops.hops[1].ask == "Who or what is the born in of #1?"
    bare = parse_hop_example({"question": "Where was the author of Emma born?", "gold": ["2", "1"]}, passages)
    assert [hop.gold for hop in bare.hops] == ["1", "2"]
