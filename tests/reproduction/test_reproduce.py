"""decisor reproduce, through the command, a local HTTP server and functions that play a model, on small data."""

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from data import DATA
from decisor.cli import run_command_line
from decisor.lab.benchmark import Outcome
from decisor.lab.dqa.generator import generate_dataset
from decisor.lab.evaluation.store import open_store
from policies.papers import play_paper
from servers.openai_server import serve_threaded


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of data with a few made questions of each scenario."""
    folder = tmp_path_factory.mktemp("data")
    generate_dataset("locating", "small", 3, folder / "dqa", 4)
    generate_dataset("building", "small", 3, folder / "dqa", 4)
    return folder


@pytest.fixture(scope="module")
def planner(worlds: Path) -> Iterator[str]:
    with serve_threaded(play_paper("planrag", worlds)) as url:
        yield f"policy@{url}"


def shown(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> str:
    capsys.readouterr()
    assert run_command_line(["reproduce", *map(str, words)]) == code
    out, err = capsys.readouterr()
    return err if code else out


def test_papers_and_their_tables_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "planrag-early: PlanRAG, early version" in shown(capsys)
    listed = shown(capsys, "radagent")
    assert "figure 3" in listed and "21 published figures" in listed and "RestBench" in listed
    assert "There is no paper 'plan_rag'" in shown(capsys, "plan_rag", code=2)


def test_without_an_llm_and_a_store_the_paper_is_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    told = shown(capsys, "planrag", "11", "--store", tmp_path / "none.db", "--markdown")
    assert "| GPT-3.5, PlanRAG-LM | – / 0 | – / 4.0 | – / 1.0 | – / 1.0 |" in told
    assert not (tmp_path / "none.db").exists()


def test_a_table_is_run_printed_and_printed_again_from_its_store(
    worlds: Path, planner: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["planrag", "4", "--data", worlds, "--store", tmp_path / "run.db", "--markdown"]
    told = shown(capsys, *words, "--llm", planner)
    with closing(open_store(tmp_path / "run.db", create=False)) as store:
        outcomes = store.outcomes()
    assert {one.benchmark for one in outcomes} == {"dqa schema=bare", "dqa form=graph schema=bare"}
    assert len(outcomes) == 2 * 8 * 6 and not [one for one in outcomes if one.state == "crashed"]
    for name, group in (("PlanRAG-LM", "Locating"), ("SingleRAG-LM", "Building")):
        technique = "plan_rag preset=paper" if name == "PlanRAG-LM" else "single_rag preset=paper"
        part = [one for one in outcomes if one.technique == technique and one.group == group.casefold()]
        share = 100 * sum(one.state == "right" for one in part) / len(part)
        row = next(line for line in told.splitlines() if line.startswith(f"| {name} |")).split("|")
        assert row[2 if group == "Locating" else 3].startswith(f" {share:.1f} / ")
    assert "| printed rules, computed without an LLM | 100.0 / –" in told
    # From the store alone, and by the same command, which has nothing left to buy.
    assert shown(capsys, *words) == told
    capsys.readouterr()
    assert run_command_line(["reproduce", *map(str, words), "--llm", planner]) == 0
    assert "paid for now" not in capsys.readouterr().err


def test_every_table_of_the_paper_is_filled_in_every_form(
    worlds: Path, planner: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["planrag", "all", "--data", worlds, "--store", tmp_path / "run.db", "--llm", planner, "--share", "0.5"]
    tables = json.loads(shown(capsys, *words, "--json", "--html", tmp_path / "t.html"))
    assert len(tables) == 11
    ours = {table["name"]: [cell["ours"] for _, cells in table["rows"] for cell in cells] for table in tables}
    # Nothing was planned again here, so its kinds are shares of nothing.
    assert [name for name in ours if not any(ours[name])] == ["table 12"]
    assert shown(capsys, *words, "--latex").count(r"\begin{tabular}") == 11
    assert (tmp_path / "t.html").read_text().count("<table") == 11
    assert "Decision makers" in shown(capsys, *words)  # a terminal's


def test_a_share_is_the_same_questions_in_both_forms_and_part_of_a_larger_share(
    worlds: Path, planner: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["planrag", "5", "--data", worlds, "--store", tmp_path / "run.db", "--llm", planner, "--markdown"]
    cases = []
    for share in ("0.25", "0.5"):
        shown(capsys, *words, "--share", share)
        with closing(open_store(tmp_path / "run.db", create=False)) as store:
            of_form = {(one.benchmark, one.case) for one in store.outcomes()}
        sql, graph = ({case for bench, case in of_form if ("graph" in bench) is form} for form in (False, True))
        assert sql == graph
        cases.append(sql)
    assert (len(cases[0]), len(cases[1])) == (2, 4) and cases[0] < cases[1]


def test_what_it_would_cost_is_told_before_anything_is_bought(
    worlds: Path, planner: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["planrag", "5", "--data", worlds, "--store", tmp_path / "run.db", "--llm", f"{planner} price=30000,60000"]
    told = shown(capsys, *words, "--dry-run")
    rows = [line.split() for line in told.splitlines() if "_rag preset=paper" in line]
    assert len(rows) == 6 and all("scripted replies" in line for line in told.splitlines() if "_rag preset" in line)
    assert not (tmp_path / "run.db").exists()
    # Nobody is at the terminal of a test: above a dollar it wants to be told.
    assert "Write --yes" in shown(capsys, *words, code=2)
    assert not (tmp_path / "run.db").exists()
    shown(capsys, *words, "--yes", "--share", "0.25")
    left = shown(capsys, *words, "--dry-run")
    assert [
        row[row.index("preset=paper") + 2]
        for row in (line.split() for line in left.splitlines() if "_rag preset" in line)
    ] == ["6"] * 6


def test_a_price_by_the_name_needs_no_endpoint_and_no_key(
    worlds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "DECISOR_LLM", "DECISOR_PRICE"):
        monkeypatch.delenv(name, raising=False)
    words = ["planrag", "5", "--data", worlds, "--store", tmp_path / "run.db", "--llm", "gpt-4"]
    told = shown(capsys, *words, "--dry-run")
    assert told.count(" gpt-4 ") == 6 and "About $" in told
    assert "There is no endpoint for the LLM 'gpt-4'" in shown(capsys, *words, code=2)


def test_a_bound_for_the_whole_run_stops_it_and_a_higher_one_goes_on(
    worlds: Path, planner: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["planrag", "4", "--data", worlds, "--store", tmp_path / "run.db", "--cases-at-once", "1"]
    words += ["--llm", f"{planner} price=1,1", "--yes"]
    told = shown(capsys, *words, "--max-dollars", "0.02", code=1)
    assert "The bound of $0.02 for the whole run is reached" in told
    with closing(open_store(tmp_path / "run.db", create=False)) as store:
        spent = sum(one.usage.dollars or 0.0 for one in store.outcomes())
        first = len(store.outcomes())
    assert first and 0 < spent <= 0.02
    shown(capsys, *words, "--budget", "100", code=1)
    shown(capsys, *words, "--max-dollars", "2")
    with closing(open_store(tmp_path / "run.db", create=False)) as store:
        assert len(store.outcomes()) == 96 and not [one for one in store.outcomes() if one.state == "crashed"]


def test_a_bound_in_dollars_needs_a_price(worlds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["planrag", "4", "--data", worlds, "--llm", "m@http://example.com/v1", "--max-dollars", "1"]
    assert "max_dollars needs a price for m" in shown(capsys, *words, code=2)


@pytest.mark.skipif(not (DATA / "game24").is_dir(), reason=f"no test data in {DATA / 'game24'}")
def test_on_game_of_24_the_searches_are_real_and_found_is_apart_from_selected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """DFSDT goes on after a sequence that ended: it holds more of them than a chain, and finds more often."""
    (tmp_path / "game24").mkdir()
    shutil.copy(DATA / "game24" / "24.csv", tmp_path / "game24")
    with serve_threaded(play_paper("radagent", tmp_path)) as url:
        words = ["radagent", "1", "--data", tmp_path, "--store", tmp_path / "run.db", "--share", "0.12"]
        told = shown(capsys, *words, "--llm", f"policy@{url}", "--markdown")
    assert "webshop is left out" not in told  # that is on standard error
    with closing(open_store(tmp_path / "run.db", create=False)) as store:
        by_name: dict[str, list[Outcome]] = {}
        for one in store.outcomes():
            by_name.setdefault(one.technique, []).append(one)
    assert set(by_name) >= {"cot", "dfsdt width=3 answers=0", "radagent preset=paper"}
    sequences = {name: sum(one.counts["sequences"] for one in part) for name, part in by_name.items()}
    found = {name: sum(one.metrics["found"] for one in part) for name, part in by_name.items()}
    assert sequences["cot"] == 12 < 12 * 5 < sequences["dfsdt width=3 answers=0"]
    assert found["cot"] < found["dfsdt width=3 answers=0"]
    row = next(line for line in told.splitlines() if line.startswith("| DFSDT |")).split("|")
    assert row[2].startswith(f" {100 * found['dfsdt width=3 answers=0'] / 12:.1f} / 29.0 ") and "/ –" in row[3]
    assert row[4].strip() == "not run here / 57.25"


@pytest.mark.skipif(not (DATA / "multihop").is_dir(), reason=f"no test data in {DATA / 'multihop'}")
@pytest.mark.slow
@pytest.mark.parametrize(("paper", "table"), [("plan-rag", "3"), ("furepa", "main")])
def test_questions_over_documents_are_run_and_what_needs_weights_is_not(
    paper: str, table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve_threaded(play_paper(paper, DATA)) as url:
        words = [paper, table, "--data", DATA, "--store", tmp_path / "run.db", "--share", "0.002"]
        told = shown(capsys, *words, "--llm", f"policy@{url}", "--markdown")
    if paper == "plan-rag":
        assert "| Self-RAG-7B | not run here / 33.18 |" in told and "| rag, policy |" in told
        assert "trained weights of RQ-RAG" in told
    with closing(open_store(tmp_path / "run.db", create=False)) as store:
        assert not [one for one in store.outcomes() if one.state == "crashed"]
