"""What a suite calls its parts: settings that change a case are in the label, where data lie is not."""

import pytest

from data import DATA
from decisor.lab.benchmark import open_bench
from decisor.lab.evaluation.suite import SuiteRequest, open_suite, parse_suite_entry
from decisor.lab.papers import read_published
from decisor.system.settings import label_with_settings
from decisor.techniques import TECHNIQUES, build_technique


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("dqa data=/x limit=3 form=sql db=postgresql://me:secret@h/d", "dqa"),
        ("dqa data=/x form=graph", "dqa form=graph"),
        ("hotpotqa data=/x limit=5", "hotpotqa limit=5"),
        ("hotpotqa limit=10 data=/x", "hotpotqa"),
    ],
)
def test_a_label_holds_what_changes_a_case(text: str, named: str) -> None:
    name, settings = parse_suite_entry(text)
    assert label_with_settings(name, open_bench(name, **settings), settings) == named


@pytest.mark.parametrize("text", sorted({one.technique for one in read_published()[0]}))
def test_a_published_figure_of_a_technique_that_is_here_has_the_label_that_a_run_of_it_would_have(text: str) -> None:
    named = text.partition(" (")[0]  # whose model it was
    if named.split()[0] not in TECHNIQUES or "," in named:
        return
    name, settings = parse_suite_entry(named)
    assert label_with_settings(name, build_technique(name, **settings), settings) == named


def test_a_technique_that_is_asked_in_another_way_is_an_entry_of_its_own() -> None:
    request = SuiteRequest(
        benches=(f"game24 data={DATA / 'game24'}",),
        techniques=("cot", "cot calling=json", "cot calling=text chains=2"),
        models=("m@http://127.0.0.1:9/v1",),
    )
    suite = open_suite(request, {})
    assert suite.callings == {"cot": "text", "cot calling=json": "json", "cot chains=2": "text"}
    assert list(suite.techniques) == list(suite.callings)
