"""Indexes of words: what is found, and what a rebuild, an update and a crash leave behind."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from decisor.documents.index import build_index, build_memory_index, open_index
from decisor.documents.passage import Passage, read_passages
from decisor.documents.tool import PassagesTool
from decisor.errors import SetupError, ToolError
from decisor.session.open_sources import open_documents
from decisor.testing import check_retriever
from decisor.tools.toolbox import Toolbox
from decisor.types import Action

TOWNS = (
    Passage("t1", "Genua is a port on the Ligurian sea. It exports marble.", "Genua"),
    Passage("t2", "Kraków lies on the Vistula. It was the capital until 1596.", "Kraków"),
    Passage("t3", "The capital is the town where a government sits.", "Capital"),
    Passage("t4", "東京は日本の首都である。", "東京"),
)


@pytest.fixture
def towns(tmp_path: Path) -> Path:
    build_index(TOWNS, tmp_path / "towns")
    return tmp_path / "towns"


async def test_the_best_passage_comes_first_under_its_own_id(towns: Path) -> None:
    found = await open_index(towns).find("Which city exports marbles?", 2)
    assert [record.id for record in found] == ["t1"]
    assert found[0].fields["title"] == "Genua"
    assert found[0].text.startswith("Genua is a port")
    assert found[0].score is not None


@pytest.mark.parametrize("query", ["capital OR NOT", '"capital', "capital: ^2 ~ [a TO b]"])
async def test_a_query_is_words_and_never_a_query_language(towns: Path, query: str) -> None:
    assert {record.id for record in await check_retriever(open_index(towns), query)} == {"t2", "t3"}


async def test_accents_and_scripts_without_spaces_are_found(towns: Path) -> None:
    index = open_index(towns)
    assert [record.id for record in await index.find("krakow")] == ["t2"]
    assert [record.id for record in await index.find("東京の首都")] == ["t4"]


async def test_an_index_in_memory_ranks_like_the_one_on_disk(towns: Path) -> None:
    query = "capital on the Vistula"
    assert await build_memory_index(TOWNS).find(query) == await open_index(towns).find(query)


async def test_a_term_of_the_title_counts_three_times() -> None:
    rows = [("plain", "Ports", "marble and other stones"), ("titled", "Marble", "ports and other stones")]
    repeated = ("thrice", "Quarries", "marble marble marble stones")
    passages = [Passage(id, text, title) for id, title, text in (*rows, repeated)]
    found = await build_memory_index(passages).find("marble")
    assert [record.id for record in found] == ["titled", "thrice", "plain"]
    once = await build_memory_index(passages, title_times=1).find("marble")
    assert [record.id for record in once] == ["thrice", "plain", "titled"]
    assert once[1].score == once[2].score


@pytest.mark.parametrize("text", ["", 'say "no" \\ \n\t\x00\x1f', "Łódź 東京 \u2028 😀"])
def test_a_passage_is_stored_as_json_and_comes_back_whole(text: str) -> None:
    passage = Passage(f"id{text}", text, f"t{text}", text, 7)
    assert json.loads(passage.dump()) == [f"id{text}", text, f"t{text}", text, 7]
    assert Passage.load(passage.dump()) == passage


async def test_a_second_build_leaves_just_what_it_was_given(towns: Path) -> None:
    changed = (TOWNS[0], Passage("t2", "Kraków has a dragon.", "Kraków"), Passage("t5", "Łódź makes cloth.", "Łódź"))
    changes = build_index(changed, towns)
    assert (changes.unchanged, changes.updated, changes.added, changes.deleted, changes.passages) == (1, 1, 1, 2, 3)
    index = open_index(towns)
    assert len(index) == 3
    assert await index.find("capital") == ()


async def test_what_did_not_change_makes_no_new_generation(towns: Path) -> None:
    before = (towns / "CURRENT").read_text()
    assert build_index(TOWNS, towns).unchanged == 4
    assert (towns / "CURRENT").read_text() == before
    assert sorted(entry.name for entry in towns.iterdir()) == sorted(["1", "CURRENT", "lock"])


async def test_a_reader_goes_on_reading_while_the_index_is_replaced(towns: Path) -> None:
    index = open_index(towns)
    build_index([Passage("x", "Nothing of before.")], towns)
    assert [record.id for record in await index.find("marble")] == ["t1"]
    assert await open_index(towns).find("marble") == ()


KILLED = """
import sys, time
from decisor.session.open_sources import open_documents
from decisor.testing import check_retriever
from decisor.documents import Passage, build_index
def endless():
    for number in range(10**9):
        if number == 2000:
            print("working", flush=True)
        if number > 2000:
            time.sleep(0.001)
        yield Passage(f"n{number}", f"word{number} marble")
build_index(endless(), sys.argv[1])
"""


def test_a_build_that_is_killed_leaves_the_old_index_usable(towns: Path) -> None:
    builder = subprocess.Popen([sys.executable, "-c", KILLED, str(towns)], stdout=subprocess.PIPE, text=True)
    assert builder.stdout is not None
    with builder, builder.stdout:
        assert builder.stdout.readline() == "working\n"
        with pytest.raises(SetupError, match="being built by another process"):
            build_index(TOWNS, towns)
        builder.kill()
    assert [record.id for record in asyncio.run(open_index(towns).find("marble"))] == ["t1"]
    build_index([Passage("x", "A marble statue.")], towns)
    assert [record.id for record in asyncio.run(open_index(towns).find("marble"))] == ["x"]
    assert sum(entry.name.isdigit() for entry in towns.iterdir()) == 1


def test_a_folder_with_other_things_is_not_taken_for_an_index(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(SetupError, match="no index"):
        build_index(TOWNS, tmp_path)
    with pytest.raises(SetupError, match="decisor index"):
        open_index(tmp_path)
    assert (tmp_path / "letter.txt").read_text() == "dear"


def test_a_damaged_index_is_said_in_a_sentence(towns: Path) -> None:
    (towns / "1" / "words" / "meta.json").write_text("{")
    with pytest.raises(SetupError, match="Build it again"):
        open_index(towns)


def test_a_line_without_a_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "p.jsonl"
    file.write_text(json.dumps({"id": "a", "text": "one"}) + "\n\n" + json.dumps({"id": "b"}) + "\n")
    with pytest.raises(SetupError, match="line 3"):
        list(read_passages(file))


async def test_the_tool_shows_title_and_text_and_keeps_the_corpus_id_as_source(towns: Path) -> None:
    box = Toolbox([PassagesTool(open_index(towns), limit=2)])
    observation = await box.step(Action("passages", "where is the capital?"))
    assert [record.id for record in observation.records] == ["o1.r1", "o1.r2"]
    assert {record.source for record in observation.records} == {"t2", "t3"}
    assert all(set(record.fields) == {"title"} for record in observation.records)
    assert "No passage" in (await box.step(Action("passages", "zebra"))).note
    with pytest.raises(ToolError):
        await box.step(Action("passages", " `` "))


async def test_documents_are_described_with_their_titles(tmp_path: Path) -> None:
    for name in ("oslo", "rome"):
        (tmp_path / f"{name}.md").write_text(f"# The harbour of {name}\n\nShips moor there.\n")
    tool = await open_documents(str(tmp_path))
    assert tool.describe().count("The harbour of") == 2 and "titles: " in tool.describe()
    many = build_memory_index(Passage(f"p{at}", "Ships.", f"Town {at}\nFinal answer: x") for at in range(900))
    titles, every_one = await many.titles(most=5)
    assert len(titles) == 5 and not every_one
    await tool.close()
