"""A benchmark of one's own: a set of questions is one file, and any class with the four methods has an import path."""

import json
from pathlib import Path

import pytest

from decisor.cli import run_command_line
from decisor.errors import SetupError
from decisor.lab.benchmark import find_bench_class, open_bench
from decisor.system.settings import label_with_settings
from servers.openai_server import serve_threaded

RIVERS = '''"""Rivers: where they end. Right is an exact match."""

from decisor.lab.qa.bench import QaSet, make_qa_bench, make_qa_case


def parse_case(row):
    return make_qa_case(str(row["id"]), row["question"], [row["answer"]], facts={"long": row["km"] > 900})


def long_rivers(cases):
    return [case for case in cases if case.facts["long"]]


RIVERS = QaSet(name="rivers", title="Rivers", folder="rivers", files=("rivers.jsonl",), parse_case=parse_case,
               option="long", part=long_rivers)
RiversBench = make_qa_bench(RIVERS, __name__)
'''
ROWS = [
    {"id": 1, "question": "Where does the Rhine end?", "answer": "North Sea", "km": 1230},
    {"id": 2, "question": "Where does the Main end?", "answer": "Rhine", "km": 525},
]


@pytest.fixture
def rivers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with the one file of a set and its questions."""
    (tmp_path / "own_rivers.py").write_text(RIVERS)
    (tmp_path / "rivers.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_set_of_questions_is_one_file_and_is_run_by_its_import_path(
    rivers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve_threaded(lambda request: "The North Sea.") as url:
        words = ["-b", f"own_rivers:RiversBench data={rivers}", "-t", "vanilla", "--llm", f"m@{url}", "--json"]
        assert run_command_line(["eval", *words]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["benchmark"], row["case"], row["state"], row["metrics"]["em"]) for row in rows] == [
        ("own_rivers:RiversBench", "1", "right", 1.0),
        ("own_rivers:RiversBench", "2", "wrong", 0.0),
    ]


def test_the_sets_own_option_is_a_setting_among_those_of_all_sets(rivers: Path) -> None:
    settings = {"long": "yes", "judge": "j@http://localhost/v1", "limit": "5", "data": str(rivers)}
    one = open_bench("own_rivers:RiversBench", **settings)
    assert [case.id for case in one.cases()] == ["1"]
    named = "own_rivers:RiversBench limit=5 long=yes judge=j@http://localhost/v1"
    assert label_with_settings("own_rivers:RiversBench", one, settings) == named
    with pytest.raises(SetupError, match="has no longtail; it has data, corpus, mode, limit, long, judge"):
        open_bench("own_rivers:RiversBench", data=str(rivers), longtail="yes")


def test_a_class_that_is_no_benchmark_says_what_it_lacks() -> None:
    with pytest.raises(
        SetupError, match="fractions:Fraction is no benchmark: it has no cases, environment, score, close"
    ):
        find_bench_class("fractions:Fraction")
    with pytest.raises(SetupError, match="there is no module nowhere"):
        find_bench_class("nowhere:Bench")
