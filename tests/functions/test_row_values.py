"""A value of a row goes to a tool only where a person lets it: captured at a real HTTP server that a tool calls."""

import asyncio
import base64
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_plus

import pytest

import decisor
from decisor.semantics.readings import OpenReading

SECRET = "TOPSECRET-42"
SEEN = ("TOPSECRET-42", "topsecret42", "VE9Q", "544f50")


@pytest.fixture
def api(tmp_path: Path) -> Iterator[tuple[str, list[str]]]:
    """An OpenAPI document whose GET is served here, and the targets that were asked for."""
    targets: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            targets.append(self.path)
            body = b'{"weather": "mild"}'
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    text = {"type": "string"}
    operation = {
        "operationId": "weather",
        "summary": "The weather of a place.",
        "parameters": [{"name": name, "in": "query", "schema": text} for name in ("place", "more")],
        "responses": {"200": {"description": "it"}},
    }
    document = {
        "openapi": "3.0.3",
        "info": {"title": "W", "version": "1"},
        "paths": {"/weather": {"get": operation}},
        "servers": [{"url": f"http://127.0.0.1:{server.server_port}"}],
    }
    path = tmp_path / "weather.json"
    path.write_text(json.dumps(document))
    yield str(path), targets
    server.shutdown()
    server.server_close()


@pytest.fixture
def shop(tmp_path: Path) -> str:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE site (name TEXT, code TEXT, rent REAL, note TEXT)")
        database.execute("CREATE TABLE staff (pay TEXT)")
        database.execute("INSERT INTO site VALUES ('elm', ?, 48213.5, 'Ask Ann Kowalski at gate B7-9931')", [SECRET])
    return str(path)


def sends(value: str, shop: str, tools: Any, query: str = "SELECT * FROM site", **words: Any) -> decisor.Result:
    """A run in which an LLM reads rows and then calls the API with this text."""
    arguments = value if value.startswith("{") else json.dumps({"place": value})
    replies = [
        f"Thought: read\nAction: sql\nAction input: {query}",
        f"Thought: send\nAction: weather\nAction input: {arguments}",
        *["Final answer: elm\nBecause: it is there [o1.r1]"] * 6,
    ]
    return decisor.ask(
        "Which site is best for plant Delta?",
        db=shop,
        tools=tools,
        llm=decisor.ScriptedLLM(replies),
        technique="iter_rag",
        settings={"calling": "text"},
        history=False,
        **{"readings": "off", **words},
    )


b64 = base64.b64encode
WAYS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in lower case": str.lower,
    "without its mark": lambda one: one.replace("-", ""),
    "with blanks": lambda one: " ".join(one),
    "within a text": lambda one: f"weather at {one} please",
    "in a URL": lambda one: "".join(f"%{ord(char):02X}" for char in one),
    "in a URL twice": lambda one: quote("".join(f"%{ord(char):02X}" for char in one)),
    "in base64": lambda one: b64(one.encode()).decode(),
    "in base64 for URLs": lambda one: base64.urlsafe_b64encode(one.encode()).decode().rstrip("="),
    "in base64 behind a letter": lambda one: f"x{b64(one.encode()).decode()}",
    "in base64 with others": lambda one: b64(f"a place called {one}!".encode()).decode(),
    "in base64 twice": lambda one: b64(b64(one.encode())).decode(),
    "in base64 of UTF-16": lambda one: b64(one.encode("utf-16-le")).decode(),
    "in base64 in lines": lambda one: "\n".join(b64(one.encode()).decode()[at : at + 4] for at in range(0, 16, 4)),
    "in base32": lambda one: base64.b32encode(one.encode()).decode(),
    "in hexadecimal": lambda one: one.encode().hex(),
    "in hexadecimal with colons": lambda one: one.encode().hex(":"),
    "in hexadecimal with dashes": lambda one: one.encode().hex("-"),
    "in hexadecimal as bytes": lambda one: "".join(f"\\x{byte:02x}" for byte in one.encode()),
    "in HTML": lambda one: "".join(f"&#{ord(char)};" for char in one),
    "in JSON": lambda one: '{"place": "' + "".join(f"\\u{ord(char):04x}" for char in one) + '"}',
    "in JSON twice": lambda one: json.dumps({"place": "".join(f"\\u{ord(char):04x}" for char in one)}),
    "backwards": lambda one: one[::-1],
    "in wide letters": lambda one: "".join(chr(ord(char) + 0xFEE0) for char in one),
    "with hidden letters": lambda one: "\u200b".join(one),
    "in two arguments": lambda one: json.dumps({"place": one[:6], "more": one[6:]}),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_value_of_a_row_does_not_leave_by_a_tool_however_it_is_written(
    way: str, shop: str, api: tuple[str, list[str]]
) -> None:
    document, targets = api
    result = sends(WAYS[way](SECRET), shop, document)
    assert targets == [], unquote_plus(targets[0])
    assert "nobody has allowed tools" in str([entry.event for entry in result.trace])


@pytest.mark.slow
@pytest.mark.parametrize("value", ["48213.5", "48,213.50", "Ann Kowalski", "gate b7-9931", "ANN KOWALSKI at gate"])
def test_numbers_and_words_of_a_longer_text_are_values_too(value: str, shop: str, api: tuple[str, list[str]]) -> None:
    sends(value, shop, api[0])
    assert api[1] == []


@pytest.mark.slow
@pytest.mark.parametrize("value", ["Lisbon", "plant Delta", "Which site is best", "elm", "the weather of a place"])
def test_what_is_in_no_row_or_in_the_question_is_sent(value: str, shop: str, api: tuple[str, list[str]]) -> None:
    sends(value, shop, api[0])
    assert len(api[1]) == 1


def test_an_example_of_the_schema_is_a_value_of_a_row(shop: str, api: tuple[str, list[str]]) -> None:
    sends(SECRET, shop, api[0], query="SELECT COUNT(*) FROM site")
    assert api[1] == []


def test_a_value_that_a_complaint_or_a_computation_brings_is_one(shop: str, api: tuple[str, list[str]]) -> None:
    sends("96427", shop, api[0], query="SELECT rent * 2 AS twice FROM site")
    assert api[1] == []


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "count"), [("allow", 1), ("refuse", 0), ("ask", 0)])
def test_a_setting_says_it_where_nobody_is_there(
    policy: Any, count: int, shop: str, api: tuple[str, list[str]]
) -> None:
    sends(SECRET, shop, decisor.ToolSpecs([api[0]], row_values=policy))
    assert len(api[1]) == count


@pytest.mark.slow
@pytest.mark.parametrize(("says", "count"), [("2", 2), ("send it", 2), ("1", 0), ("", 0), ("yes", 0), ("3", 0)])
def test_a_person_is_asked_the_first_time_and_only_their_yes_sends(
    says: str, count: int, shop: str, api: tuple[str, list[str]]
) -> None:
    asked: list[str] = []

    async def reader(one: OpenReading) -> str:
        asked.append(one.line())
        return says

    call = "Thought: send\nAction: weather\nAction input: " + json.dumps({"place": SECRET})
    replies = [
        "Thought: read\nAction: sql\nAction input: SELECT * FROM site",
        call,
        call.replace("42", "42 "),
        *["Final answer: elm\nBecause: it is there [o1.r1]"] * 6,
    ]
    decisor.ask(
        "Which site?",
        db=shop,
        tools=api[0],
        llm=decisor.ScriptedLLM(replies),
        technique="iter_rag",
        settings={"calling": "text"},
        history=False,
        reader=reader,
        readings="off",
    )
    assert len(api[1]) == count
    assert len(asked) == 1 and SECRET in asked[0] and "weather" in asked[0]


GOVERNED: list[dict[str, Any]] = [
    {"mask": "staff.pay"},
    {"rows": {"site": "rent > 1"}},
    {"deny_tables": "staff"},
    {"tables": "site"},
]


@pytest.mark.slow
@pytest.mark.parametrize("words", GOVERNED, ids=str)
def test_a_value_of_a_governed_source_never_leaves_whoever_allows_it(
    words: dict[str, Any], shop: str, api: tuple[str, list[str]]
) -> None:
    async def yes(one: object) -> str:
        return "2" if isinstance(one, OpenReading) else ""

    for policy in ("allow", "ask"):
        tools = decisor.ToolSpecs([api[0]], row_values=policy)
        for way in ("as it is", "in base64", "in two arguments"):
            sends(WAYS[way](SECRET), shop, tools, reader=yes, approve=yes, readings="off", **words)
    assert api[1] == []


DOCUMENTS: list[dict[str, Any]] = [{}, {"rows": {"passages.documents": "folder = 'open'"}}]


@pytest.mark.slow
@pytest.mark.parametrize("words", DOCUMENTS, ids=["open", "restricted"])
def test_a_word_of_a_document_leaves_where_a_person_allows_it_and_never_of_restricted_ones(
    words: dict[str, Any], tmp_path: Path, shop: str, api: tuple[str, list[str]]
) -> None:
    (tmp_path / "docs" / "open").mkdir(parents=True)
    (tmp_path / "docs" / "open" / "elm.md").write_text(f"# Elm\n\nThe elm site has the code {SECRET} of last year.\n")
    replies = [
        "Thought: read\nAction: passages\nAction input: elm site code",
        f"Thought: send\nAction: weather\nAction input: {json.dumps({'place': SECRET})}",
        *["Final answer: elm\nBecause: it is there [o1.r1]"] * 6,
    ]
    tools = decisor.ToolSpecs([api[0]], row_values="allow")
    result = decisor.ask(
        "Which site?",
        docs=str(tmp_path / "docs"),
        tools=tools,
        llm=decisor.ScriptedLLM(replies),
        technique="iter_rag",
        settings={"calling": "text"},
        history=False,
        readings="off",
        **words,
    )
    assert SECRET in str(result.records)
    assert len(api[1]) == (0 if words else 1)


def test_names_that_are_within_the_walls_cannot_be_given_to_tools_of_others() -> None:
    from decisor.session.sources import RESERVED
    from decisor.tools.row_values import INSIDE

    assert set(INSIDE) <= set(RESERVED)


@pytest.mark.slow
def test_a_function_gets_none_either_and_the_run_goes_on(shop: str) -> None:
    got: list[str] = []

    def weather(place: str) -> str:
        """The weather of a place."""
        got.append(place)
        return "mild"

    assert sends(SECRET, shop, weather).answer == "elm" and got == []
    assert sends(SECRET, shop, decisor.ToolSpecs([weather], row_values="allow")).answer == "elm" and got == [SECRET]


@pytest.mark.slow
def test_a_run_that_follows_knows_the_rows_of_the_one_before(shop: str, api: tuple[str, list[str]]) -> None:
    first = sends("Lisbon", shop, api[0])
    call = "Thought: send\nAction: weather\nAction input: " + json.dumps({"place": SECRET})
    llm = decisor.ScriptedLLM([call, *["Final answer: elm\nBecause: it is there [o1.r1]"] * 6])
    first.ask("And now?", llm=llm)
    assert len(api[1]) == 1


def test_many_values_and_a_long_input_are_compared_in_time() -> None:
    from decisor.tools.row_values import RowValues

    values = RowValues()
    values.add_texts((f"value {number} of {number * 7919}" for number in range(20_000)), "sql o1.r1", False)
    loop = asyncio.new_event_loop()
    began = loop.time()
    assert not values.find("{" + '"a": "hello world, this is a text" ' * 300)
    assert loop.time() - began < 3
    loop.close()
