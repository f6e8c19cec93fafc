"""What a suite calls its parts: settings that change a case are in the label, where data lie is not."""

import pytest

from data import DATA
from decisor.lab.benchmark import BENCHES, open_bench
from decisor.lab.evaluation.suite import SuiteRequest, label_bench, label_technique, open_suite, parse_suite_entry
from decisor.lab.reproduction.papers import PAPERS, read_paper
from decisor.system.settings import label_with_settings


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


@pytest.mark.parametrize("name", PAPERS)
def test_every_cell_of_a_paper_names_a_technique_and_a_benchmark_that_there_are(name: str) -> None:
    for table in read_paper(name).tables:
        for cell in table.subjects():
            assert cell.benches and all(label_bench(bench).split()[0] in BENCHES for bench in cell.benches)
            assert (cell.measure or "").startswith("size ") or label_technique(cell.technique)


def test_a_technique_that_is_asked_in_another_way_is_an_entry_of_its_own() -> None:
    request = SuiteRequest(
        benches=(f"game24 data={DATA / 'game24'}",),
        techniques=("cot", "cot calling=json", "cot calling=text chains=2"),
        models=("m@http://127.0.0.1:9/v1",),
    )
    suite = open_suite(request, {})
    assert suite.callings == {"cot": "text", "cot calling=json": "json", "cot chains=2": "text"}
    assert list(suite.techniques) == list(suite.callings)
