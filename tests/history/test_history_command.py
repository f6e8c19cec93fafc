"""``decisor ask``, ``history`` and ``show`` as a person types them, each in a process of its own."""

import json
from pathlib import Path

import pytest

import decisor as library
from decisor.history.place import FolderPlace
from decisor.history.recorder import Keeping
from decisor.history.store import History
from local_llm import Decisor, LocalLLM

ASK = ("ask", "Which site is cheapest?", "--db", "sites.db")


@pytest.mark.slow
def test_a_run_is_kept_listed_searched_shown_marked_and_deleted(
    decisor: Decisor, local_llm: LocalLLM, sites: Path, tmp_path: Path
) -> None:
    assert "Saved as run 1. Show it: decisor history show 1" in decisor(*ASK, "--llm", local_llm.name).stdout
    as_object = json.loads(decisor(*ASK, "--llm", local_llm.name, "--json").stdout)
    assert as_object["number"] == 2
    lines = decisor("history").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["2", "1"]
    assert "Which site is cheapest?" in lines[1] and "elm" in lines[1]
    assert "No saved runs with 'roof'" in decisor("history", "--search", "roof").stderr
    decisor("history", "mark", "1", "wrong", "The roof leaked", "--answer", "oak")
    assert json.loads(decisor("history", "--search", "roof", "--json").stdout)[0]["mark"]["answer"] == "oak"

    story = decisor("history", "show", "1").stdout
    for part in (
        "Question: Which site is cheapest?",
        "SELECT name, rent",
        "Decision: elm",
        "[o1.r1]",
        "Marked wrong; right would be oak: The roof leaked",
    ):
        assert part in story
    again = json.loads(decisor("history", "show", "last", "--json").stdout)
    assert again == as_object | {"trace": None}
    decisor("history", "show", "2", "--html", "run.html", "--trace", "run.jsonl")
    assert "Which site is cheapest?" in (tmp_path / "run.html").read_text()
    assert "Decision: elm" in decisor("trace", "run.jsonl").stdout

    assert "1 run deleted" in decisor("history", "--delete", "2").stderr
    assert "no run 2" in decisor("history", "show", "2", code=2).stderr
    assert "1 run deleted" in decisor("history", "--delete", "all").stderr
    assert len(local_llm.prompts) == 4


@pytest.mark.slow
def test_a_run_is_not_kept_where_that_is_not_wanted(decisor: Decisor, local_llm: LocalLLM, sites: Path) -> None:
    assert json.loads(decisor(*ASK, "--llm", local_llm.name, "--json", "--no-history").stdout)["number"] is None
    assert not History().list()


@pytest.mark.slow
def test_a_password_is_nowhere_in_the_history(decisor: Decisor, local_llm: LocalLLM, sites: Path) -> None:
    decisor(*ASK, "--llm", f"test-model@{local_llm.url.replace('//', '//me:hunter22x@')}", code=None)
    decisor("ask", "Which?", "--db", "postgresql://me:hunter22x@127.0.0.1:9/shop", code=2)
    folder = FolderPlace().folder
    texts = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    assert not any(b"hunter22x" in text for text in texts)


def test_the_library_keeps_a_run_only_where_it_is_asked_to(local_llm: LocalLLM, sites: Path, tmp_path: Path) -> None:
    place = f"sqlite:///{sites}"
    assert library.ask("Which site?", db=place, llm=local_llm.name).number == 0
    assert not FolderPlace().folder.exists()
    assert library.ask("Which site?", db=place, llm=local_llm.name, history=True).number == 1
    assert History().read(1).inputs["db"] == [place]
    keeping = Keeping(History(tmp_path / "page"), owner="ann")
    assert library.ask("Which site?", db=place, llm=local_llm.name, history=keeping).number == 1
    assert History(tmp_path / "page").read(1, "ann").answer == "elm"


@pytest.mark.slow
def test_words_that_make_no_sense_are_one_line_with_what_to_do(decisor: Decisor) -> None:
    assert "its number, or last" in decisor("history", "show", "first", code=2).stderr
    assert "no run yet" in decisor("history", "show", code=2).stderr
    assert "or all" in decisor("history", "--delete", "x", code=2).stderr
    assert "There is no run 99999999999999999999" in decisor("history", "show", "9" * 20, code=2).stderr
    assert "right, wrong or none" in decisor("history", "mark", "1", "maybe", code=2).stderr
