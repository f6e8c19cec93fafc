"""Documents that are not for everybody: nothing of the others is found, told of or sent to an LLM."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import decisor
from decisor.cli import run_command_line
from decisor.documents.tool import DocumentCondition, RestrictedRetriever
from decisor.errors import SetupError
from decisor.session.config import Connection
from decisor.types import Record
from servers.capturing_llm import endpoint
from servers.sql_databases import postgres_database

ROWS = {"passages.documents": "folder = 'open' OR folder LIKE 'open/%'"}
ASKED = (
    "salary of the director",
    "Vogel",
    "zebra",
    "lease in Linz",
    "what is secret",
    "pay",
    "open documents",
    "director",
    "path hr/pay.md",
    "folder <> 'open'",
    "* OR 1=1",
    "hr",
)
SECRETS = ("Vogel", "187431", "zebra", "Pay of 2024", "Board minutes")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("docs")
    texts = {
        "open/lease.md": "# Lease\n\nThe lease in Linz ends in May; the director of the site signs.",
        "open/sites/linz.md": "# Linz\n\nLinz has a salary office and 40 people.",
        "hr/pay.md": "# Pay of 2024\n\nThe salary of the director Vogel is 187431 zebra points; folder open.",
        "openly.md": "# Board minutes\n\nVogel said: the lease in Linz is secret zebra.",
    }
    for name, text in texts.items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(text)
    for n in range(60):  # more of them than are looked at first
        (base / "hr" / f"{n}.md").write_text(f"# Board minutes {n}\n\nThe lease in Linz, the lease in Linz: zebra {n}.")
    return base


@pytest.fixture(params=["folder", "index", "table"])
def place(request: pytest.FixtureRequest, folder: Path, tmp_path: Path) -> Iterator[str]:
    if request.param == "folder":
        yield str(folder)
    elif request.param == "index":
        assert run_command_line(["index", str(folder), "--out", str(tmp_path / "index")]) == 0
        yield str(tmp_path / "index")
    else:
        with postgres_database([]) as url:
            assert run_command_line(["index", str(folder), "--out", f"{url}/articles"]) == 0
            yield f"{url}/articles"


async def test_an_llm_is_sent_nothing_of_documents_that_are_not_for_who_asks(place: str, tmp_path: Path) -> None:
    replies = [f"Thought: look\nAction: passages\nAction input: {text}" for text in ASKED]
    async with (
        endpoint(replies) as (llm, bodies),
        decisor.open(docs=place, rows=ROWS, audit=tmp_path / "audit.jsonl") as data,
    ):
        settings = {"calling": "text", "max_steps": 20}
        result = await data.ask("What is there?", llm=llm, technique="iter_rag", settings=settings)
    assert result.usage.actions == len(ASKED)
    sent = "\n".join(bodies)
    for text in ASKED:
        sent = sent.replace(text, "")
    assert [one for one in SECRETS if one in sent] == [] and "ends in May" in sent
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    asked = [line for line in lines if line["by"] == "model" and line["source"] == "passages"]
    assert [line["statement"] for line in asked][:2] == list(ASKED[:2]) and asked[3]["rows"] == 2


async def test_a_connection_says_which_documents_are_for_everybody_who_asks(folder: Path, tmp_path: Path) -> None:
    connection = Connection(
        "reports", str(folder), rows={"documents": "path NOT LIKE 'hr/%' AND title <> 'Board minutes'"}
    )
    async with decisor.open(docs=connection) as data:
        observation = await data.tools[0].call("lease director zebra salary")
        assert {record.fields["title"] for record in observation.records} == {"Lease", "Linz"}
        assert not any(one in data.tools[0].describe() for one in SECRETS)


@dataclass
class Shelf:
    """Minutes of meetings."""

    async def find(self, query: str, limit: int = 10) -> tuple[Record, ...]:
        return tuple(Record(str(n), {"team": "a" if n % 9 == 0 else "b"}, f"text {n}") for n in range(limit))


class Liar(Shelf):
    """Says that it lies elsewhere."""

    async def find(self, query: str, limit: int = 10) -> tuple[Record, ...]:
        return (Record("hr/pay.md", {"path": "open/a.md", "folder": "open", "Path": "open/a.md"}, "text"),)


async def test_a_condition_on_what_a_retriever_of_ones_own_brings() -> None:
    retriever = RestrictedRetriever(Shelf(), DocumentCondition(("team = 'a'",)))
    assert [one.id for one in await retriever.find("x", 5)] == ["0", "9", "18", "27", "36"]
    assert (
        await RestrictedRetriever(Liar(), DocumentCondition(("path LIKE 'open/%' OR folder = 'open'",))).find("x", 5)
        == ()
    )
    assert (
        await RestrictedRetriever(Shelf(), DocumentCondition(("nosuch = 'a' OR nosuch IS NOT NULL",))).find("x", 5)
        == ()
    )


@pytest.mark.parametrize(
    ("rows", "mask", "complaint"),
    [
        ({"documents": "folder = 'open'"}, (), "There is nothing of which documents could be kept back"),
        ({"passages.folder": "x = 1"}, (), "passages is documents, which have no folder"),
        ({"passages.documents": "team = 'a'"}, (), "Documents have no team; they have path, folder, name"),
        ({"passages.documents": "folder ="}, (), "does not parse"),
        ({"passages.documents": "folder IN (SELECT 1)"}, (), "is not one condition"),
        ({"passages.documents": "1) OR (1"}, (), "is not one condition"),
        ({}, ("passages.title",), "have no columns to mask"),
    ],
)
async def test_what_cannot_be_kept_to_of_documents_is_said(
    folder: Path, rows: dict[str, str], mask: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(SetupError) as error:
        async with decisor.open(docs=str(folder), rows=rows, mask=mask):
            pass
    assert complaint in str(error.value)
