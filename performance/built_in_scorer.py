"""The query scorer that ships with furepa, trained again on a made-up encyclopaedia.

    python performance/built_in_scorer.py OUT [--before]

--before leaves out what a search brings, for ``assess=before``. Some minutes of CPU; it needs decisor[documents,lab].
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from decisor.documents.index import build_memory_index
from decisor.documents.passage import Passage
from decisor.lab.training import drop_hit_features, fit_query_scorer, measure_queries
from decisor.techniques.shared.query_scorer import QueryScorer, Rarity, count_splits_by_feature, save_query_scorer
from head import words
from learned.encyclopaedia import make_encyclopaedia


def main(out: Path, before: bool) -> None:
    made = make_encyclopaedia()
    index = build_memory_index(Passage(id, one.text, str(one.fields["title"])) for id, one in made.passages.items())
    # Every word weighs the same: how rare one is among made-up passages says nothing about real ones.
    candidates = asyncio.run(measure_queries(made.examples, made.passages, index, rarity=Rarity()))
    scorer = fit_query_scorer(drop_hit_features(candidates) if before else candidates)
    card = {
        "data": f"generated, {len(made.passages)} passages",
        "assess": "before" if before else "after",
        "questions": len(made.examples),
        "candidates": len(candidates.ranks),
        "splits": count_splits_by_feature(scorer),
    }
    # It is asked about real passages: the untrained rule steadies it (docs/measurements/documents.md).
    save_query_scorer(QueryScorer(scorer.trees, scorer.rarity, card, 0.0 if before else 0.4), out)


if __name__ == "__main__":
    words(__doc__)
    main(Path(sys.argv[1]), "--before" in sys.argv)
