"""Retrievers of one's own, named by import path: what they find, what they raise, and what is no retriever."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import decisor
from decisor.documents.tool import CustomRetriever, open_custom_retriever
from decisor.errors import SetupError, ToolError
from decisor.llms.scripted import ScriptedLLM
from decisor.session.open_sources import open_documents
from decisor.types import Record

SEARCH = '''
import asyncio
from decisor.types import Record

class Ports:
    """Ports of the Mediterranean.

    Not for the model."""

    closed = []

    async def find(self, query, limit=10):
        if query == "gone":
            raise ConnectionError("no route to postgresql://me:hunter22@host/x")
        if query == "rows":
            return ["Genua"]
        if query == "slow":
            await asyncio.sleep(60)
        return [Record("port:1", {"title": "Genua"}, "It exports marble.", "port:1", 2.5)] * 20

    async def close(self):
        self.closed.append(True)

class Plain:
    def find(self, query, limit=10):
        return ()

class Needy(Ports):
    def __init__(self, url):
        pass
'''


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "own_search.py").write_text(SEARCH)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield
    sys.modules.pop("own_search", None)


async def test_a_retriever_is_named_by_its_import_path_and_closed_at_the_end() -> None:
    llm = ScriptedLLM(["Final answer: Genua\nBecause: it exports marble [o1.r1]"])
    async with decisor.open(docs="ports=own_search:Ports") as data:
        assert "Searches documents: Ports of the Mediterranean.\n" in data.tools[0].describe()
        result = await data.ask("Which port exports marble?", technique="rag", llm=llm)
    assert result.answer == "Genua"
    assert [record.source for record in result.records] == ["port:1"]
    assert sys.modules["own_search"].Ports.closed == [True]


@pytest.mark.parametrize(("query", "complaint"), [("gone", "failed: ConnectionError"), ("rows", "gave str where")])
async def test_what_it_raises_is_said_to_the_model_without_a_password(query: str, complaint: str) -> None:
    tool = await open_documents("own_search:Ports")
    with pytest.raises(ToolError, match=complaint) as raised:
        await tool.call(query)
    assert "hunter22" not in str(raised.value)
    assert raised.value.outage == (query == "gone")


async def test_one_that_takes_too_long_is_not_waited_for() -> None:
    own = CustomRetriever(open_custom_retriever("own_search:Ports").retriever, "Ports", seconds=0.05)
    with pytest.raises(ToolError, match="Ports took longer than"):
        await own.find("slow")


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("own_search:Plain", "is no retriever: it needs async def find"),
        ("own_search:Needy", "cannot be made: TypeError: .*made with its settings alone"),
        ("own_search:Nothing", "there is no class Nothing"),
        ("no_such_module:X", "there is no module no_such_module"),
    ],
)
def test_what_is_no_retriever_is_said_in_a_line(path: str, complaint: str) -> None:
    with pytest.raises(SetupError, match=complaint):
        asyncio.run(open_documents(path))


async def test_no_more_than_were_asked_for_come_back() -> None:
    records = await open_custom_retriever("own_search:Ports").find("marble", 3)
    assert records == (Record("port:1", {"title": "Genua"}, "It exports marble.", "port:1", 2.5),) * 3
