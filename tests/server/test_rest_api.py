"""The description of the API: whole, offline, and true: nothing that fits it, or nearly fits it, crashes the server."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import jsonschema  # type: ignore[import-untyped]
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.core.result import Ok

from decision_shops import database
from decisor.cli.request_options import option_of_field
from decisor.server.settings import ServerSettings
from decisor.session.request import AskRequest, QuestionRequest
from decisor.session.result import Result
from decisor.session.sources import build_sources
from decisor.types import Decision, Evidence, Figure, Option, Question, Ranking, Usage
from server.serving import Served, served
from servers.openai_server import serve_threaded
from session.test_whatif import MODEL, TABLES

Operation: TypeAlias = "APIOperation[Any, Any, Any, Any]"
ENDLESS = ("/api/events",)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("api")
    (folder / "offices.toml").write_text(MODEL, "utf-8")
    data = build_sources(db=database(folder, TABLES), model=folder / "offices.toml")
    with serve_threaded(lambda _: "no plan") as url, served(ServerSettings(data, {"m": f"m@{url}"})) as place:
        yield place


def operations(place: Served) -> Iterator[Operation]:
    schema = schemathesis.openapi.from_dict(place.client.get("/openapi.json").json())
    for result in schema.get_all_operations():
        assert isinstance(result, Ok)
        operation = result.ok()
        if operation.path not in ENDLESS:
            yield operation


def send(operation: Operation, place: Served, examples: int, **fixed: Any) -> Counter[int]:
    """The statuses of what fits the description and of what does not."""
    statuses: Counter[int] = Counter()
    headers = {} if operation.body else {"content-type": "application/json"}
    fits = operation.as_strategy(generation_mode=GenerationMode.POSITIVE, **fixed)
    near = operation.as_strategy(generation_mode=GenerationMode.NEGATIVE, **fixed)

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=fits | near)
    def run(case: Case[Any]) -> None:
        case.query.pop("wait", None)  # up to ten minutes each
        status = case.call(base_url=place.url, headers=headers, timeout=60).status_code
        statuses[status] += 1
        assert status < 500, (status, case.as_curl_command())

    run()
    return statuses


@pytest.mark.slow
def test_nothing_that_is_sent_crashes_the_server(place: Served) -> None:
    statuses: Counter[int] = Counter()
    for operation in operations(place):
        statuses += send(operation, place, 15)
        names = re.findall(r"{(\w+)}", operation.path)
        if names and operation.method.upper() != "DELETE":
            id = place.ask("Which office?", technique="exact", settings={})["id"]
            there = {"id": id, "name": "sql", "number": 1, "kind": "csv"}
            statuses += send(operation, place, 10, path_parameters={name: there[name] for name in names})
    assert {200, 404, 422} <= statuses.keys()  # that a question is taken (201), which few of few cases are, asking saw


def test_every_route_is_described_with_its_shapes(place: Served) -> None:
    description = place.client.get("/openapi.json").json()
    routes = [route for methods in description["paths"].values() for route in methods.values()]
    assert len(routes) >= 25
    assert not [route for route in routes if not route.get("description")]
    assert {name for name in description["paths"] if not name.startswith("/api/")} == {
        "/healthz",
        "/metrics",
        "/readyz",
    }
    answers = [
        answer for route in routes for status, answer in route["responses"].items() if status in ("200", "201", "202")
    ]
    shapes = [kind["schema"] for answer in answers for kind in answer.get("content", {}).values()]
    assert all(shapes) and len(shapes) >= len(answers)
    assert not [name for name, shape in description["components"]["schemas"].items() if "properties" not in shape]
    record = description["paths"]["/api/runs/{id}/record"]["get"]["responses"]["200"]["content"]["application/json"]
    assert record["schema"] == {"$ref": "#/components/schemas/DecisionRecord"}


def check_reply(description: dict[str, Any], path: str, reply: Any, method: str = "get") -> None:
    """Check a reply against the schema that the description has for it."""
    answers = description["paths"][path][method]["responses"]
    schema = next(answers[status] for status in ("200", "201") if status in answers)["content"]["application/json"]
    rest = {"components": description["components"]}
    jsonschema.Draft202012Validator({**schema["schema"], **rest}).validate(reply)


def test_replies_are_as_the_description_says(place: Served) -> None:
    description = place.client.get("/openapi.json").json()
    run = place.ended(place.ask("Which office?", technique="exact", settings={})["id"])
    assert run["result"]["ranking"]["options"]
    id = run["id"]
    for path in ("", "/json", "/story", "/entries/1", "/picture", "/record"):
        reply = place.client.get(f"/api/runs/{id}{path}").json()
        name = path.replace("/1", "/{number}")
        check_reply(description, f"/api/runs/{{id}}{name}", reply)
    verdict = place.client.post(f"/api/runs/{id}/record/verification", json={}).json()
    assert verdict["state"] == "holds" and verdict["faults"] == []
    check_reply(description, "/api/runs/{id}/record/verification", verdict, "post")
    for text in ("rank", "turning points", "set office.rent = office.rent * 2"):
        reply = place.client.post("/api/models/sql/whatif", json={"input": text}).json()
        check_reply(description, "/api/models/{name}/whatif", reply, "post")
    result = place.client.get(f"/api/runs/{id}/json").json()
    for path, wrong in (("stopped", "bored"), ("queries", [{"tool": "sql"}]), ("ranking", {"measure": "rent"})):
        with pytest.raises(jsonschema.ValidationError):
            check_reply(description, "/api/runs/{id}/json", {**result, path: wrong})


def test_a_result_with_infinite_outcomes_has_the_schema_of_results(place: Served) -> None:
    ranking = Ranking("rent", "min", (Option("oak", math.inf), Option("elm", math.nan)), margin=math.inf)
    decision = Decision("oak", Evidence(("o1.r1",), (Figure("4"),)), ranking, runner_up="elm")
    result = Result(Question("Which?"), decision, "exact", "", Usage(seconds=1.5))
    reply = result.to_dict()
    assert reply["ranking"]["options"][0]["outcome"] is None
    check_reply(place.client.get("/openapi.json").json(), "/api/runs/{id}/json", reply)


def test_the_page_of_the_api_needs_nothing_from_elsewhere(place: Served) -> None:
    page = place.client.get("/docs")
    assert "POST /api/ask" in page.text
    assert "AskBody" in page.text
    assert not re.search(r"(src|href)=.(https?:)?//|<script", page.text)
    assert set(re.findall(r'href="#(\w+)"', page.text)) <= set(re.findall(r'id="(\w+)"', page.text))


def test_a_field_of_a_request_says_the_same_in_the_api_and_in_the_help(place: Served) -> None:
    fields = place.client.get("/openapi.json").json()["components"]["schemas"]["AskBody"]["properties"]
    assert set(fields) == {*QuestionRequest.model_fields, "connections", "follows", "approve", "asks", "stream"}
    parameter = option_of_field("goal", AskRequest.model_fields["goal"]).annotation.__metadata__[0]
    assert fields["goal"]["description"] == parameter.help == AskRequest.model_fields["goal"].description


@pytest.mark.parametrize(
    "fields",
    [
        {"goal": "x" * 20_001},
        {"rules": "x" * 200_001},
        {"technique": "x" * 201},
        {"settings": {"a": "x" * 201}},
        {"limits": {"calls": 0}},
        {"limits": {"cals": 1}},
        {"db": "sqlite:///other.db"},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_a_client_sends_no_long_texts_no_wrong_limits_and_no_places(place: Served, fields: dict[str, Any]) -> None:
    assert place.client.post("/api/ask", json={"question": "Which?", **fields}).status_code == 422


def test_every_route_is_in_the_docs(place: Served) -> None:
    text = (Path(__file__).parent.parent.parent / "docs" / "server.md").read_text("utf-8")
    for path in place.client.get("/openapi.json").json()["paths"]:
        words = re.sub(r"{number}", "N", re.sub(r"{id}", "ID", path)).replace("{name}", "NAME")
        assert words in text or f"/{words.rpartition('/')[2]}`" in text, words
