"""What a suite calls its parts: settings that change a case are in the label, where data lie is not."""

import pytest

from decisor.benchmarks.paper_figures import figures_of_room
from decisor.benchmarks.protocol import BENCHES, bench
from decisor.evaluation.suite import read_entry
from decisor.settings import label
from decisor.techniques import TECHNIQUES, technique


@pytest.mark.parametrize(("text", "named"), [
    ("dqa data=/x limit=3 form=sql db=postgresql://me:secret@h/d", "dqa"),
    ("dqa data=/x form=graph", "dqa form=graph"),
    ("hotpotqa data=/x limit=5", "hotpotqa limit=5"),
    ("hotpotqa limit=10 data=/x", "hotpotqa"),
])  # fmt: skip
def test_a_label_holds_what_changes_a_case(text: str, named: str) -> None:
    name, settings = read_entry(text)
    assert label(name, bench(name, **settings), settings) == named


@pytest.mark.parametrize("text", sorted({one.technique for name in BENCHES for one in figures_of_room(name)}))
def test_a_published_figure_of_a_technique_that_is_here_has_the_label_that_a_run_of_it_would_have(text: str) -> None:
    named = text.partition(" (")[0]  # whose model it was
    if named.split()[0] not in TECHNIQUES or "," in named:
        return
    name, settings = read_entry(named)
    assert label(name, technique(name, **settings), settings) == named
