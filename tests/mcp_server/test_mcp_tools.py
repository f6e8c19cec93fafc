"""The tools of ``decisor mcp``, called by the SDK's own client over both transports, in both ways of the protocol."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import TextContent, TextResourceContents

from mcp_server.clients import Transport, client, text
from server.serving import sites

QUESTION = {"question": "Which site should we open?"}
WAYS = [("stdio", "auto"), ("stdio", "legacy"), ("http", "auto"), ("http", "legacy")]


def words(folder: Path, llm: str) -> tuple[str, ...]:
    return ("--db", f"sqlite:///{sites(folder)}", "--llm", llm, "-o", "calling=text")


@pytest.mark.slow
@pytest.mark.parametrize(("transport", "mode"), WAYS)
async def test_a_client_gets_a_cited_decision_hears_its_steps_and_may_read_the_run_again(
    tmp_path: Path, llm: str, transport: Transport, mode: str
) -> None:
    steps: list[str] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        assert progress == len(steps) + 1
        steps.append(message or "")

    async with client(tmp_path, transport, *words(tmp_path, llm), mode=mode) as one:
        tools = (await one.list_tools()).tools
        assert not [tool.name for tool in tools if "  " in str(tool.description) or "\n" in str(tool.description)]
        names = [tool.name for tool in tools]
        assert names == ["decide", "describe_data", "query", "whatif", "explain_run", "verify_run", "approve_run"]
        decision = text(await one.call_tool("decide", QUESTION, progress_callback=hear))
        assert decision.startswith("Decision: elm\nit costs 400 [o1.r1], oak 700 [o1.r2]")
        assert "[o1.r1] | elm | 400" in decision and "Run 1 (" in decision
        assert "Plan: 1. compare the rents" in steps and "sql SELECT name, rent FROM site ORDER BY rent" in steps
        other = await one.call_tool("explain_run", {"number": 9})
        assert other.is_error and text(other).endswith("There is no run 9 of these data; the last one is 1.")
        story = text(await one.call_tool("explain_run", {"number": 1}))
        assert story == text(await one.call_tool("explain_run"))
        assert "SELECT name, rent FROM site" in story and "Decision: elm" in story


@pytest.mark.slow
async def test_a_decision_is_structured_runs_are_resources_and_a_missing_argument_is_told(
    tmp_path: Path, llm: str
) -> None:
    async with client(tmp_path, "stdio", *words(tmp_path, llm)) as one:
        schemas = {tool.name: tool.output_schema for tool in (await one.list_tools()).tools}
        schema: Any = schemas["decide"]
        assert {"answer", "evidence", "run"} <= set(schema["required"])
        assert schemas.keys() - {"decide"} == {name for name, schema in schemas.items() if schema is None}
        content: Any = (await one.call_tool("decide", QUESTION)).structured_content
        assert (content["answer"], content["run"], content["stopped"]) == ("elm", 1, "answered")
        assert content["evidence"][0] == {"id": "o1.r1", "fields": {"name": "elm", "rent": 400.0}, "text": ""}
        assert content["ranking"] == [{"name": "elm", "outcome": 400.0}, {"name": "oak", "outcome": 700.0}]
        missing = await one.call_tool("decide", {"rules": "Rent counts."})
        assert missing.is_error and text(missing) == "decide needs question: The decision to make, in words."
        places = {template.uri_template for template in (await one.list_resource_templates()).resource_templates}
        runs, connections = "decisor://runs/{number}", "decisor://connections/{name}"
        assert places == {runs, f"{runs}/record", connections}
        read: list[str] = []
        for place in ("runs/1", "runs/1/record", "connections/sql"):
            (resource,) = (await one.read_resource(f"decisor://{place}")).contents
            assert isinstance(resource, TextResourceContents)
            read.append(resource.text)
        assert "Decision: elm" in read[0] and "SELECT name, rent FROM site" in read[0]
        assert json.loads(read[1])["content"]["decision"]["answer"] == "elm" and "rent" in read[2]
        (message,) = (await one.get_prompt("decide", {"question": "Which site?"})).messages
        assert isinstance(message.content, TextContent)
        assert "Call decide" in message.content.text and "Which site?" in message.content.text


@pytest.mark.slow
async def test_a_query_meets_the_sandbox_and_its_rows_have_ids_that_no_run_uses(tmp_path: Path, llm: str) -> None:
    async with client(tmp_path, "stdio", *words(tmp_path, llm)) as one:
        assert "# sql (query takes SQL)" in text(await one.call_tool("describe_data"))
        for number in (1, 2):
            rows = text(await one.call_tool("query", {"query": "SELECT name FROM site ORDER BY rent"}))
            assert rows == f"record | name\n[q{number}.r1] | elm\n[q{number}.r2] | oak"
        refusal = await one.call_tool("query", {"query": "DELETE FROM site"})
        assert refusal.is_error and "Only reading is possible" in text(refusal)
        many = "SELECT a.value, hex(randomblob(500)) FROM generate_series(1, 900) a"
        assert len(text(await one.call_tool("query", {"query": many}))) < 9_000
        other = await one.call_tool("query", {"query": "SELECT 1", "connection": "hr"})
        assert other.is_error and text(other).endswith("Which connection? There is sql.")
        assert "No connection with a decision model" in text(await one.call_tool("whatif", {"input": "rank"}))
    with closing(sqlite3.connect(tmp_path / "sites.db")) as database:
        assert database.execute("SELECT count(*) FROM site").fetchone() == (2,)


@pytest.mark.slow
async def test_the_demo_decides_without_an_llm_and_answers_what_if(tmp_path: Path) -> None:
    async with client(tmp_path, "stdio", "--demo") as one:
        decision = text(await one.call_tool("decide", {"question": "Which supplier should we drop?"}))
        assert decision.startswith("Decision: Tamsin & Co\n") and "[o1.r1] | Tamsin & Co | 143627.3 | 1" in decision
        assert "Norrik" in text(await one.call_tool("whatif", {"input": "why Norrik"}))
    assert not (tmp_path / "xdg_data_home").exists()


async def folder_with_two(folder: Path, llm: str, named: tuple[str, ...]) -> tuple[list[str], str]:
    """The connections that a client sees, and what a question of one of them comes to."""
    config = folder / "xdg_config_home" / "decisor" / "decisor.toml"
    config.parent.mkdir(parents=True)
    path = sites(folder)
    config.write_text("".join(f'[connections.{name}]\nurl = "sqlite:///{path}"\n' for name in ("north", "south")))
    async with client(folder, "stdio", *named, "--llm", llm, "-o", "calling=text") as one:
        heads = [line for line in text(await one.call_tool("describe_data")).splitlines() if line.startswith("# ")]
        north = await one.call_tool("query", {"query": "SELECT rent FROM site ORDER BY 1", "connection": "north"})
        return heads, text(north)


@pytest.mark.slow
@pytest.mark.parametrize(("named", "names"), [((), ["north", "south"]), (("--db", "north"), ["north"])])
async def test_connections_of_the_config_go_by_their_names_all_where_none_is_named(
    tmp_path: Path, llm: str, named: tuple[str, ...], names: list[str]
) -> None:
    heads, rows = await folder_with_two(tmp_path, llm, named)
    assert heads == [f"# {name} (query takes SQL)" for name in names]
    assert "[q1.r1] | 400" in rows


async def run_of(one: Client, number: int) -> str:
    result = await one.call_tool("explain_run", {"number": number})
    return f"{'refused: ' if result.is_error else ''}{text(result)}"


@pytest.mark.slow
async def test_a_run_of_other_data_or_of_tables_that_are_denied_here_is_not_told(tmp_path: Path, llm: str) -> None:
    first = words(tmp_path, llm)
    (tmp_path / "other").mkdir()
    other = f"sqlite:///{sites(tmp_path / 'other')}"
    async with client(tmp_path, "stdio", *first) as one:
        await one.call_tool("decide", QUESTION)
    async with client(tmp_path, "stdio", *first) as one:
        assert "Decision: elm" in await run_of(one, 1)
    async with client(tmp_path, "stdio", "--db", other) as one:
        assert (await run_of(one, 1)).endswith("There is no run of these data yet: call decide.")
    async with client(tmp_path, "stdio", *first, "--tables", "site") as one:
        assert (await run_of(one, 1)).startswith("refused: ")


@pytest.mark.slow
async def test_a_decision_may_go_on_from_another(tmp_path: Path, llm: str) -> None:
    async with client(tmp_path, "stdio", *words(tmp_path, llm)) as one:
        await one.call_tool("decide", QUESTION)
        again = await one.call_tool("decide", {"question": "And without oak?", "after": 1})
        assert "Run 2 (" in text(again)
        missing = await one.call_tool("decide", {"question": "And without oak?", "after": 7})
        assert missing.is_error and "There is no run 7" in text(missing)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ['mask = { "site.rent" = "token" }', 'rows = { "site" = "name <> \'elm\'" }'])
async def test_a_run_from_before_rows_and_columns_were_kept_back_is_not_told(
    tmp_path: Path, llm: str, policy: str
) -> None:
    config = tmp_path / "xdg_config_home" / "decisor" / "decisor.toml"
    config.parent.mkdir(parents=True)
    connection = f'[connections.north]\nurl = "sqlite:///{sites(tmp_path)}"\n'
    config.write_text(connection)
    async with client(tmp_path, "stdio", "--llm", llm, "-o", "calling=text") as one:
        await one.call_tool("decide", QUESTION)
    config.write_text(connection + policy)
    async with client(tmp_path, "stdio", "--llm", llm, "-o", "calling=text") as one:
        assert (await run_of(one, 1)).startswith("refused: ")
        assert (await run_of(one, 0)).startswith("refused: ")
        after = await one.call_tool("decide", {"question": "And without oak?", "after": 1})
        assert after.is_error
        rents = await one.call_tool("query", {"query": "SELECT rent FROM site WHERE name = 'elm'"})
        assert "400" not in text(rents)
