"""A question over HTTP: asked, watched, stopped, allowed, gone on from."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from decisor.history.store import History
from decisor.server.settings import ServerSettings
from server.page import writing_llm
from server.serving import QUERY, Served, names, planner, served, sources
from servers.openai_server import serve_threaded


def test_a_question_is_answered_with_its_evidence(site: Served) -> None:
    run = site.ask()
    assert run["state"] in ("waiting", "running")
    run = site.ended(run["id"])
    assert (run["state"], run["answer"], run["stopped"], run["llm"]) == ("finished", "elm", "answered", "m")
    assert run["result"]["evidence"]["ids"] == ["o1.r1", "o1.r2"]
    assert run["usage"]["calls"] == 2
    assert [one["id"] for one in site.client.get("/api/runs").json()["runs"]] == [run["id"]]


def test_a_client_waits_for_the_answer_as_long_as_it_says(site: Served) -> None:
    body = {"question": "Which site?", "technique": "plan_rag", "settings": {"calling": "text"}}
    run = site.client.post("/api/ask?wait=60", json=body).json()
    assert (run["state"], run["result"]["answer"]) == ("finished", "elm")
    waits = site.client.post("/api/ask?wait=0.2", json={**body, "approve": True}).json()
    assert waits["state"] == "running" and waits["result"] is None
    assert site.client.post("/api/ask?wait=601", json=body).status_code == 422


def test_a_key_begins_one_run_however_often_it_is_sent(site: Served) -> None:
    body = {"question": "Which site?", "technique": "plan_rag", "settings": {"calling": "text"}}

    def send(key: str, question: str = "Which site?", wait: int = 0) -> httpx.Response:
        headers = {"Idempotency-Key": key}
        return site.client.post(f"/api/ask?wait={wait}", json={**body, "question": question}, headers=headers)

    with ThreadPoolExecutor(8) as threads:
        ids = {reply.json()["id"] for reply in threads.map(send, ["a"] * 8)}
    [id] = ids
    assert send("a", wait=60).json()["answer"] == "elm"
    # The run is over and in the history by now: it is read from there.
    assert (send("a").json()["id"], site.client.get("/api/runs").json()["runs"][0]["id"]) == (id, id)
    assert send("b").json()["id"] != id
    other = send("a", "Which office?")
    assert other.status_code == 400 and "Idempotency-Key" in other.json()["error"]


def test_a_watcher_is_told_that_the_server_runs_and_takes_questions(site: Served) -> None:
    good = {"status": "ok", "missing": ""}
    assert site.client.get("/healthz").json() == site.client.get("/readyz").json() == good


def test_a_server_with_a_full_line_is_not_ready(tmp_path: Path, url: str) -> None:
    with served(ServerSettings(sources(tmp_path), {"m": f"m@{url}"}, at_once=1)) as site:
        body = {"question": "Which?", "technique": "plan_rag", "settings": {"calling": "text"}, "approve": True}
        while (status := site.client.post("/api/ask", json=body).status_code) == 201:
            pass
        assert (status, site.client.get("/readyz").status_code) == (429, 503)
        assert site.client.get("/healthz").status_code == 200


def test_what_may_be_asked_of_is_told_without_places(site: Served) -> None:
    text = site.client.get("/api/choices").text
    assert '"name":"sql","form":"sql","label":"sites"' in text
    assert "sqlite:" not in text
    assert "http://" not in text


def test_the_schema_of_a_connection_has_its_columns(site: Served) -> None:
    schema = site.client.get("/api/connections/sql").json()
    assert [column["name"] for column in schema["tables"][0]["columns"]] == ["name", "rent"]
    assert "rent float" in schema["description"]
    assert site.client.get("/api/connections/other").status_code == 404


def test_a_stream_tells_everything_and_goes_on_after_the_last_event(site: Served) -> None:
    run = site.ask(stream=True)
    events = site.events(f"/api/runs/{run['id']}/events")
    entries = [data for name, data in events if name == "entry"]
    assert names(events)[-1] == "end"
    assert [entry["id"] for entry in entries] == list(range(1, len(entries) + 1))
    assert {"RunStart", "Plan", "LLMCall", "ActionStart", "ActionResult", "Conclusion"} <= {
        one["event"] for one in entries
    }
    assert events[-1][1]["result"]["answer"] == "elm"
    again = site.events(f"/api/runs/{run['id']}/events", {"Last-Event-ID": "3"})
    assert [data["id"] for name, data in again if name == "entry"] == list(range(4, len(entries) + 1))
    over = site.client.get(f"/api/runs/{run['id']}/events", headers={"Last-Event-ID": str(len(entries))})
    assert over.status_code == 204


def test_a_call_of_the_stream_has_no_prompt_and_its_entry_has(site: Served) -> None:
    run = site.ended(site.ask()["id"])
    events = site.events(f"/api/runs/{run['id']}/events")
    call = next(data for name, data in events if name == "entry" and data["event"] == "LLMCall")
    assert call["data"]["messages"] == []
    whole = site.client.get(f"/api/runs/{run['id']}/entries/{call['id']}").json()
    assert "Which site should we open?" in str(whole["data"]["messages"])


def test_a_query_waits_until_it_is_allowed(site: Served) -> None:
    run = site.ask(approve=True)
    waiting = site.until(lambda: site.run(run["id"]), lambda run: bool(run["approvals"]))
    assert waiting["approvals"] == [{"number": 1, "tool": "sql", "input": QUERY}]
    assert not [
        one
        for one in site.client.get(f"/api/runs/{run['id']}/story").json()["entries"]
        if one["event"] == "ActionResult"
    ]
    reply = site.client.post(f"/api/runs/{run['id']}/approvals/1", json={"allow": True})
    assert reply.json()["approvals"] == []
    assert site.ended(run["id"])["answer"] == "elm"
    assert site.client.post(f"/api/runs/{run['id']}/approvals/1", json={"allow": True}).status_code == 404


def test_a_query_that_is_refused_is_not_run_and_the_model_reads_why(site: Served) -> None:
    run = site.ask(approve=True)
    site.until(lambda: site.run(run["id"]), lambda run: bool(run["approvals"]))
    site.client.post(f"/api/runs/{run['id']}/approvals/1", json={"allow": False, "why": "Rents are secret."})
    trace = site.until(lambda: site.client.get(f"/api/runs/{run['id']}/trace").text, lambda text: "secret" in text)
    assert "A person refused this. Rents are secret." in trace
    assert "400.0" not in trace.partition("ActionResult")[2].partition("\n")[0]
    site.client.post(f"/api/runs/{run['id']}/stop", json={})


def test_a_run_is_stopped_and_keeps_what_it_had(tmp_path: Path) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def reply(body: object) -> str:
        if "o1.r1" in str(body):
            asked.set()
            go_on.wait(60)
        return planner()({"messages": body})

    with serve_threaded(reply) as url, served(ServerSettings(sources(tmp_path), {"m": f"m@{url}"})) as site:
        run = site.ask()
        assert asked.wait(60)
        stopped = site.client.post(f"/api/runs/{run['id']}/stop", json={}).json()
        go_on.set()
        assert stopped["state"] == "stopped"
        assert "o1.r1" in site.client.get(f"/api/runs/{run['id']}/trace").text
        assert site.client.delete(f"/api/runs/{run['id']}").status_code == 204
        assert site.client.get(f"/api/runs/{run['id']}").status_code == 404


def test_a_step_is_changed_and_both_runs_stand_side_by_side(site: Served) -> None:
    first = site.ended(site.ask()["id"])
    query = "SELECT name, rent FROM site WHERE rent > 300"
    response = site.client.post(f"/api/runs/{first['id']}/changes", json={"at": "1", "action": query})
    assert response.status_code == 201, response.text
    second = site.ended(response.json()["id"])
    assert (second["state"], second["changed_from"]) == ("finished", first["id"]), second["error"]
    assert second["edit"] == {"at": "1", "action": query}
    both = site.client.get("/api/compare", params={"before": first["id"], "after": second["id"]}).json()
    assert [change["how"] for change in both["changes"]] == ["changed"]
    assert query in both["changes"][0]["after"]


def test_a_plan_is_changed_and_both_plans_stand_side_by_side(site: Served) -> None:
    first = site.ended(site.ask()["id"])
    plan = ["compare the rents by month", "name the cheapest"]
    body = {"at": "0", "plan": plan, "approve": True}
    response = site.client.post(f"/api/runs/{first['id']}/changes", json=body)
    assert response.status_code == 201, response.text
    id = response.json()["id"]
    site.until(lambda: site.run(id), lambda run: bool(run["approvals"]))
    site.client.post(f"/api/runs/{id}/approvals/1", json={"allow": True})
    second = site.ended(id)
    assert (second["answer"], second["edit"]) == ("elm", {"at": "0", "plan": "\n".join(plan)})
    both = site.client.get("/api/compare", params={"before": first["id"], "after": id}).json()
    assert both["changes"][0] == {
        "at": "plan",
        "before": "compare the rents",
        "after": "\n".join(plan),
        "how": "changed",
    }
    assert [(change["at"], change["how"]) for change in both["changes"][1:]] == [("1", "same")]
    refusal = site.client.post(f"/api/runs/{first['id']}/changes", json={"at": "0", "plan": [""]})
    assert refusal.status_code == 422


def test_a_run_is_shared_as_a_page_markdown_json_and_a_trace(site: Served) -> None:
    id = site.ended(site.ask()["id"])["id"]
    page = site.client.get(f"/api/runs/{id}/page")
    assert "<h1>Which site should we open?</h1>" in page.text
    assert "sandbox" in page.headers["content-security-policy"]
    markdown = site.client.get(f"/api/runs/{id}/markdown", params={"download": "1"})
    assert "**elm**" in markdown.text
    assert markdown.headers["content-disposition"] == f'attachment; filename="decisor-{id}.md"'
    assert site.client.get(f"/api/runs/{id}/json").json()["answer"] == "elm"
    assert site.client.get(f"/api/runs/{id}/trace").text.startswith('{"decisor_trace": 2}')
    record = site.client.get(f"/api/runs/{id}/record").json()
    assert record["content"]["decision"]["answer"] == "elm"
    assert [one["place"] for one in record["content"]["data"]["sources"]] == [""]
    page = site.client.get(f"/api/runs/{id}/record-page", params={"download": "1"})
    assert record["digest"] in page.text and "sandbox" in page.headers["content-security-policy"]


def test_one_line_says_what_does_not_fit(site: Served) -> None:
    for body, words in (
        ({"question": ""}, "question"),
        ({"question": "a", "technique": "os:system"}, "There is no technique"),
        ({"question": "a", "connections": ["sqlite:////etc/passwd"]}, "There is no connection"),
        ({"question": "a", "llm": "m@http://127.0.0.1:9"}, "There is no LLM"),
        ({"question": "a", "technique": "furepa", "settings": {"scorer": "/etc/passwd"}}, "to be set from here"),
        ({"question": "a", "technique": "plan_rag", "settings": {"prompts": "/etc/passwd"}}, "to be set from here"),
        ({"question": "a", "technique": "cot", "settings": {"judge_llm": "m@http://127.0.0.1:9"}}, "There is no LLM"),
        ({"question": "a", "trace": "/tmp/x"}, "trace"),
        ({"question": "a", "follows": "77"}, "There is no run"),
    ):
        response = site.client.post("/api/ask", json=body)
        assert response.status_code in (400, 404, 422)
        assert words in response.json()["error"], response.text


def test_a_follow_up_knows_what_was_decided(tmp_path: Path) -> None:
    prompts: list[str] = []

    def reply(body: dict[str, Any]) -> str:
        prompts.append(str(body["messages"]))
        return planner()(body)

    with serve_threaded(reply) as url, served(ServerSettings(sources(tmp_path), {"m": f"m@{url}"})) as site:
        first = site.ended(site.ask()["id"])
        second = site.ended(site.ask("And without the dear one?", follows=first["id"])["id"])
        assert (second["follows"], second["changed_from"]) == (first["id"], "")
        assert "it costs 400" in prompts[-1]


@pytest.mark.parametrize("stream", [False, True])
def test_a_stopped_run_is_resumed_and_buys_nothing_twice(tmp_path: Path, stream: bool) -> None:
    count, second, go_on = 0, threading.Event(), threading.Event()

    def reply(body: dict[str, Any]) -> str:
        nonlocal count
        count += 1
        if count == 2:
            second.set()
            go_on.wait(60)
        return planner()(body)

    endpoint = writing_llm if stream else serve_threaded
    with endpoint(reply) as url, served(ServerSettings(sources(tmp_path), {"m": f"m@{url}"})) as site:
        run = site.ask(stream=stream)
        assert second.wait(60)
        assert site.client.post(f"/api/runs/{run['id']}/stop", json={}).json()["state"] == "stopped"
        go_on.set()
        response = site.client.post(f"/api/runs/{run['id']}/resume", json={"stream": stream})
        assert response.status_code == 201, response.text
        again = site.ended(response.json()["id"])
        assert (again["state"], again["answer"], again["usage"]["calls"]) == ("finished", "elm", 1), again["error"]
        assert site.client.post(f"/api/runs/{again['id']}/resume", json={}).status_code == 400


def test_runs_outlast_the_server_with_their_marks(tmp_path: Path, url: str) -> None:
    serving = ServerSettings(sources(tmp_path), {"m": f"m@{url}"})
    with served(serving, History(tmp_path / "history")) as site:
        id = site.ended(site.ask()["id"])["id"]
        wrong = {"mark": "wrong", "answer": "oak", "note": "Elm was let."}
        marked = site.until(
            lambda: site.client.post(f"/api/runs/{id}/mark", json=wrong), lambda r: r.status_code == 200
        )
        assert marked.json()["mark"] == wrong
        other = site.ended(site.ask("Which is the dearest?")["id"])["id"]
    with served(serving, History(tmp_path / "history")) as site:
        run = site.run(id)
        assert (run["answer"], run["mark"], run["connections"]) == ("elm", wrong, ["sql"])
        assert run["result"]["evidence"]["ids"] == ["o1.r1", "o1.r2"]
        assert names(site.events(f"/api/runs/{id}/events"))[-1] == "end"
        assert [one["id"] for one in site.client.get("/api/runs").json()["runs"]] == [other, id]
        found = site.client.get("/api/runs", params={"search": "let elm"}).json()["runs"]
        assert [one["id"] for one in found] == [id]
        assert site.client.get("/api/runs", params={"before": other}).json()["runs"][0]["id"] == id
        assert site.client.delete(f"/api/runs/{id}").status_code == 204
        assert site.client.get(f"/api/runs/{id}").status_code == 404


def test_a_history_that_cannot_be_written_ends_no_run(tmp_path: Path, url: str) -> None:
    (tmp_path / "history").write_text("a file, where the folder would be")
    serving = ServerSettings(sources(tmp_path), {"m": f"m@{url}"})
    with served(serving, History(tmp_path / "history")) as site:
        run = site.ended(site.ask()["id"])
        assert (run["state"], run["answer"]) == ("finished", "elm")
        assert site.run(run["id"])["result"]["answer"] == "elm"
        assert [one["id"] for one in site.client.get("/api/runs").json()["runs"]] == [run["id"]]


def test_a_run_without_room_for_its_trace_is_read_from_memory_and_the_next_one_is_kept(
    tmp_path: Path, url: str
) -> None:
    (tmp_path / "history" / "runs").mkdir(parents=True)
    (tmp_path / "history" / "runs" / "1.jsonl").symlink_to("/dev/full")
    history = History(tmp_path / "history")
    with served(ServerSettings(sources(tmp_path), {"m": f"m@{url}"}), history) as site:
        for number in (1, 2):
            run = site.ended(site.ask()["id"])
            assert (run["id"], run["state"], run["result"]["answer"]) == (str(number), "finished", "elm")
        site.until(lambda: history.read(2).state, lambda state: state == "answered")
        assert site.run("1")["result"]["evidence"]["ids"] == ["o1.r1", "o1.r2"]
        assert history.read(1).answer == "elm" and history.entries(2)
