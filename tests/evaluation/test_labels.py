"""What a suite calls its parts: settings that change a case are in the label, where data lie is not."""

import pytest

from decisor.evaluation.bench import bench
from decisor.evaluation.suite import read_entry
from decisor.techniques import label


@pytest.mark.parametrize(("text", "named"), [
    ("dqa data=/x limit=3 form=sql db=postgresql://me:secret@h/d", "dqa"),
    ("dqa data=/x form=graph", "dqa form=graph"),
    ("hotpotqa data=/x limit=5", "hotpotqa limit=5"),
    ("hotpotqa limit=10 data=/x", "hotpotqa"),
])  # fmt: skip
def test_a_label_holds_what_changes_a_case(text: str, named: str) -> None:
    name, settings = read_entry(text)
    assert label(name, bench(name, **settings), settings) == named
