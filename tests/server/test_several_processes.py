"""Servers on one PostgreSQL: any shows any run, a run outlives its process, and no reply is bought twice."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from decisor.history.postgres import PostgresPlace
from decisor.history.store import History
from decisor.server.settings import ServerSettings
from decisor.server.users import GroupBudget, User, Users, digest_of_token
from server.serving import SOON, Served, names, planner, served, sources
from servers.openai_server import completion, serve_app
from servers.sql_databases import postgres_database

pytest.importorskip("psycopg_pool")
BYTES = {"content-type": "application/octet-stream"}


@dataclass
class SlowLLM:
    """Plays a planner that takes its time. ``delivered``: prompts of the replies that a client has."""

    seconds: float = 0.0
    url: str = ""
    plays: Callable[[dict[str, Any]], str] = field(default_factory=planner)
    asked: list[str] = field(default_factory=list)
    delivered: list[str] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0

    async def chat(self, request: Any) -> Any:
        import asyncio

        from aiohttp import web

        body = await request.json()
        prompt = "\n".join(str(message["content"]) for message in body["messages"])
        self.asked.append(prompt)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(self.seconds)
        self.at_once -= 1
        response = web.json_response(completion(body, self.plays(body), "m"))
        await response.prepare(request)
        await response.write_eof()
        self.delivered.append(prompt)
        return response


@contextmanager
def slow_llm(seconds: float = 0.0) -> Iterator[SlowLLM]:
    import asyncio
    import threading

    from aiohttp import web

    llm, loop = SlowLLM(seconds), asyncio.new_event_loop()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", llm.chat)
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    context = serve_app(app)
    llm.url = asyncio.run_coroutine_threadsafe(context.__aenter__(), loop).result(SOON) + "/v1"
    try:
        yield llm
    finally:
        asyncio.run_coroutine_threadsafe(context.__aexit__(None, None, None), loop).result(SOON)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(SOON)
        loop.close()


@pytest.fixture
def store() -> Iterator[str]:
    with postgres_database(()) as url:
        yield url


@pytest.fixture
def llm() -> Iterator[SlowLLM]:
    with slow_llm() as llm:
        yield llm


@contextmanager
def site(store: str, folder: Path, llm: SlowLLM, **more: Any) -> Iterator[Served]:
    """Serve the two sites with a process's part of the line."""
    folder.mkdir(exist_ok=True)
    data = sources(folder)
    with served(ServerSettings(data, {"m": f"m@{llm.url}"}, **more), History(PostgresPlace(store))) as one:
        # FastAPI builds its routes at the first request: not in two threads at once, as no server of its own would.
        one.client.get("/nothing")
        yield one


@pytest.fixture
def pair(store: str, tmp_path: Path, llm: SlowLLM) -> Iterator[tuple[Served, Served]]:
    """Two servers on one store."""
    with site(store, tmp_path / "a", llm) as one, site(store, tmp_path / "b", llm) as other:
        yield one, other


def test_every_server_shows_every_run_to_its_end(pair: tuple[Served, Served]) -> None:
    one, other = pair
    runs = [one.ask() for _ in range(4)] + [other.ask() for _ in range(4)]
    for run in runs:
        ends = [place.events(f"/api/runs/{run['id']}/events") for place in pair]
        for events in ends:
            assert names(events)[-1] == "end" and events[-1][1]["result"]["answer"] == "elm"
            entries = [data["id"] for name, data in events if name == "entry"]
            assert entries == list(range(1, len(entries) + 1)) and len(entries) == events[-1][1]["entries"]
    assert one.client.get("/api/runs").json() == other.client.get("/api/runs").json()


def test_a_stream_of_all_runs_tells_those_of_other_servers(pair: tuple[Served, Served]) -> None:
    one, other = pair
    with ThreadPoolExecutor() as pool:
        heard = pool.submit(other.events, "/api/events", None, 2)
        time.sleep(0.5)
        id = one.ask()["id"]
        one.ended(id)
        assert {data["id"] for _, data in heard.result(SOON)} == {id}


def test_a_query_is_allowed_at_another_server(pair: tuple[Served, Served]) -> None:
    for at in (0, 1):
        id = pair[at].ask(approve=True)["id"]
        for place in pair:
            place.until(lambda: place.run(id), lambda run: bool(run["approvals"]))  # noqa: B023
        waiting = pair[1 - at].run(id)["approvals"][0]
        reply = pair[1 - at].client.post(f"/api/runs/{id}/approvals/{waiting['number']}", json={"allow": True})
        assert reply.status_code == 200
        assert [place.ended(id)["result"]["answer"] for place in pair] == ["elm", "elm"]


def test_a_run_is_stopped_at_another_server(pair: tuple[Served, Served]) -> None:
    one, other = pair
    id = one.ask(approve=True)["id"]
    one.until(lambda: one.run(id), lambda run: bool(run["approvals"]))
    assert other.client.post(f"/api/runs/{id}/stop", json={}).json()["state"] == "stopped"
    assert one.ended(id)["state"] == "stopped"


def test_what_is_said_while_a_server_hears_nothing_comes_to_its_runs(pair: tuple[Served, Served], store: str) -> None:
    import psycopg

    one, other = pair
    allowed, stopped = (one.ask(approve=True)["id"] for _ in range(2))
    for id in (allowed, stopped):
        other.until(lambda: other.run(id), lambda run: bool(run["approvals"]))  # noqa: B023
    with psycopg.connect(store, autocommit=True) as connection:
        listening = "query LIKE 'LISTEN%' AND datname = current_database()"
        cut = connection.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {listening}")
        assert cut.fetchall() == [(True,), (True,)]
    # A server hears again after a second.
    assert other.client.post(f"/api/runs/{allowed}/approvals/1", json={"allow": True}).status_code == 200
    assert other.client.post(f"/api/runs/{stopped}/stop", json={}).status_code == 200
    assert one.ended(allowed)["result"]["answer"] == "elm"
    assert one.ended(stopped)["state"] == "stopped"


def test_a_server_without_places_leaves_its_runs_to_others(store: str, tmp_path: Path, llm: SlowLLM) -> None:
    with site(store, tmp_path / "a", llm, at_once=0) as front:
        id = front.ask()["id"]
        time.sleep(0.5)
        assert (front.run(id)["state"], llm.asked) == ("waiting", [])
        with site(store, tmp_path / "b", llm):
            assert front.ended(id)["result"]["answer"] == "elm"
            reply = front.client.post(f"/api/runs/{id}/record/verification", json={})
            assert reply.status_code == 200, reply.text


def test_a_worker_does_the_runs_of_a_server_without_places(store: str, tmp_path: Path) -> None:
    with slow_llm(0.5) as llm, site(store, tmp_path / "a", llm, at_once=0) as front:
        command = [sys.executable, "-m", "decisor", "worker", "--store", store, "--llm", f"m@{llm.url}"]
        command += ["--db", sources(tmp_path).places[0].place]
        environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path)}
        for end in (signal.SIGTERM, signal.SIGINT):
            with subprocess.Popen(command, env=environment) as worker:
                try:
                    done = front.ended(front.ask(question=f"Which site, {end.name}?")["id"])
                    assert done["result"]["answer"] == "elm"
                    id, count = front.ask(question=f"Which site after {end.name}?")["id"], len(llm.asked)
                    front.until(lambda: len(llm.asked), lambda asked: asked > count)  # noqa: B023
                finally:
                    worker.send_signal(end)
                    assert worker.wait(SOON) == 0
        # What was given back is done by the next.
        with site(store, tmp_path / "b", llm):
            assert front.ended(id)["result"]["answer"] == "elm"


def test_a_worker_without_users_does_no_run_of_one(store: str, tmp_path: Path, llm: SlowLLM) -> None:
    users = Users({digest_of_token("ann"): User("ann", ("sql",))})
    with site(store, tmp_path / "a", llm, at_once=0, users=users) as front:
        front.client.headers["authorization"] = "Bearer ann"
        id = front.ask()["id"]
        with site(store, tmp_path / "b", llm):
            run = front.ended(id)
    assert (run["state"], llm.asked) == ("failed", []) and "no user 'ann'" in run["error"]


def test_a_query_that_waits_when_its_server_ends_waits_at_the_next(store: str, tmp_path: Path, llm: SlowLLM) -> None:
    with site(store, tmp_path / "a", llm) as one:
        id = one.ask(approve=True)["id"]
        one.until(lambda: one.run(id), lambda run: bool(run["approvals"]))
    with site(store, tmp_path / "b", llm) as other:
        other.until(lambda: other.run(id), lambda run: bool(run["approvals"]))
        other.client.post(f"/api/runs/{id}/approvals/1", json={"allow": True})
        assert other.ended(id)["result"]["answer"] == "elm" and len(llm.asked) == 2


def test_a_key_that_is_sent_to_two_servers_begins_one_run(pair: tuple[Served, Served]) -> None:
    body = {"question": "Which site?", "technique": "plan_rag", "settings": {"calling": "text"}}

    def ask(place: Served, question: str = "Which site?") -> httpx.Response:
        return httpx.post(
            f"{place.url}/api/ask", json={**body, "question": question}, headers={"idempotency-key": "k"}, timeout=SOON
        )

    with ThreadPoolExecutor() as pool:
        replies = list(pool.map(ask, pair * 4))
    assert len({reply.json()["id"] for reply in replies}) == 1
    assert "send a new one" in ask(pair[0], "Which other site?").json()["error"]
    assert len(pair[1].client.get("/api/runs").json()["runs"]) == 1


def test_a_server_that_ends_gives_its_runs_back(store: str, tmp_path: Path) -> None:
    with slow_llm(1.0) as llm:
        with site(store, tmp_path / "a", llm) as one:
            ids = [one.ask(question=f"Which site for {name}?")["id"] for name in ("Ann", "Bob", "Eve")]
            one.until(lambda: llm.delivered, lambda prompts: len(prompts) == 3)
            time.sleep(0.3)
        with site(store, tmp_path / "b", llm) as other:
            assert [other.ended(id)["result"]["answer"] for id in ids] == ["elm"] * 3
            usage = [other.run(id)["usage"]["calls"] for id in ids]
    assert usage == [2, 2, 2]
    assert Counter(llm.delivered).most_common(1)[0][1] == 1


def test_a_run_in_line_is_stopped_at_once_by_any_server(store: str, tmp_path: Path) -> None:
    with slow_llm(2.0) as llm:
        few: dict[str, Any] = {"at_once": 1}
        with site(store, tmp_path / "a", llm, **few) as one, site(store, tmp_path / "b", llm, **few) as other:
            first = [one.ask(question=f"Which site for {name}?")["id"] for name in ("Ann", "Bob")]
            one.until(lambda: len(llm.asked), lambda count: count == 2)
            waiting = [one.ask(question=f"Which site for {name}?")["id"] for name in ("Eve", "Joe")]
            assert {one.run(id)["state"] for id in waiting} == {"waiting"}
            began = time.monotonic()
            for place, id in zip((one, other), waiting, strict=True):
                assert place.client.post(f"/api/runs/{id}/stop", json={}).json()["state"] == "stopped"
            assert time.monotonic() - began < 2.0
            assert {place.run(id)["state"] for id in waiting for place in (one, other)} == {"stopped"}
            assert [other.ended(id)["state"] for id in first] == ["finished"] * 2
    assert not [prompt for prompt in llm.asked if "Eve" in prompt or "Joe" in prompt]


def test_a_crowd_has_only_some_runs_at_once_on_all_servers(store: str, tmp_path: Path) -> None:
    users = {digest_of_token("ann"): User("ann", budgets=(("team", GroupBudget(at_once=2)),))}
    with slow_llm(0.3) as llm:
        more: dict[str, Any] = {"users": Users(users)}
        with site(store, tmp_path / "a", llm, **more) as one, site(store, tmp_path / "b", llm, **more) as other:
            for place in (one, other):
                place.client.headers["authorization"] = "Bearer ann"
            ids = [place.ask(question=f"Which site {n}?")["id"] for n in range(4) for place in (one, other)]
            assert {other.ended(id)["state"] for id in ids} == {"finished"}
    assert llm.most_at_once == 2


def test_a_file_that_one_server_took_is_asked_and_removed_at_another(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    query = "SELECT shop, sales FROM sales ORDER BY sales"
    with slow_llm() as llm:
        plan = planner(query, "Final answer: oak\nBecause: it sells 900 [o1.r1]")
        llm.plays = lambda body: plan(body).replace("Action: sql", "Action: sales")
        with site(store, tmp_path / "a", llm) as one, site(store, tmp_path / "b", llm) as other:
            assert not [name for name in connection_names(other) if "sales" in name]
            kept = one.client.put("/api/files/sales.csv", content="shop,sales\nelm,1200\noak,900\n", headers=BYTES)
            assert kept.status_code == 201 and "sales" in connection_names(other)
            run = other.ended(other.ask(question="Which shop sells least?", connections=["sales"])["id"])
            assert run["result"]["answer"] == "oak", run["error"]
            waits = other.ask(question="Which shop sells least of all?", connections=["sales"], approve=True)["id"]
            one.until(lambda: one.run(waits), lambda run: bool(run["approvals"]))
            for refused in (
                one.client.delete("/api/files/sales"),
                one.client.put("/api/files/sales.csv", content="shop,sales\nelm,7\n", headers=BYTES),
                one.client.post("/api/files/sales", json={"decimal": "comma"}),
            ):
                assert refused.status_code == 400 and "under way" in refused.json()["error"], refused.text
            one.client.post(f"/api/runs/{waits}/approvals/1", json={"allow": True})
            assert one.ended(waits)["result"]["answer"] == "oak"
            again = other.client.put("/api/files/sales.csv", content="shop,sales\nelm,7\n", headers=BYTES)
            assert again.status_code == 201, again.text
            rows = one.ended(one.ask(question="Which shop is it now?", connections=["sales"])["id"])
            assert "'sales': 7" in str(rows["result"]), rows["result"]
            assert one.client.delete("/api/files/sales").status_code in (200, 204)
            assert "sales" not in connection_names(other)


def connection_names(place: Served) -> list[str]:
    return [one["name"] for one in place.client.get("/api/choices").json()["connections"]]


def test_one_person_with_many_runs_does_not_starve_another(store: str, tmp_path: Path) -> None:
    users = {digest_of_token(name): User(name) for name in ("ann", "bob")}
    with slow_llm(0.2) as llm, site(store, tmp_path / "a", llm, at_once=1, users=Users(users)) as one:

        def ask(name: str, question: str) -> str:
            one.client.headers["authorization"] = f"Bearer {name}"
            return str(one.ask(question=question)["id"])

        for number in range(6):
            ask("ann", f"Which site for Ann, number {number}?")
        one.ended(ask("bob", "Which site for Bob?"))
        done = sum("for Ann" in prompt for prompt in llm.delivered)
    # Two calls a run: at most two runs of Ann's six were before Bob's.
    assert done <= 5


def test_a_store_that_is_not_there_is_told_at_the_start() -> None:
    command = [sys.executable, "-m", "decisor", "serve", "--demo", "--port", "0", "--no-browser", "--workers", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "--store" in done.stderr


@pytest.mark.slow
def test_a_run_goes_on_when_its_process_is_killed(store: str, tmp_path: Path) -> None:
    with slow_llm(0.5) as llm:
        command = [sys.executable, "-m", "decisor", "serve", "--store", store, "--workers", "2", "--port", "0"]
        command += ["--db", sources(tmp_path).places[0].place, "--llm", f"m@{llm.url}", "--no-browser"]
        environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path)}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
            assert server.stdout is not None
            url = server.stdout.readline().split()[3].rstrip("/")
            try:
                with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
                    place = Served(url, client)
                    place.until(lambda: is_ready(client), bool)
                    ids = []
                    for number in range(2):
                        ids += [ask_until_taken(client, f"Which site for {name}{number}?") for name in "abcde"]
                        time.sleep(0.7)
                        os.kill(serving_processes(server.pid)[-1], signal.SIGKILL)
                    end = time.monotonic() + 90
                    while states := {state_of(client, id) for id in ids} - {"finished"}:
                        assert time.monotonic() < end, states
                        time.sleep(0.5)
            finally:
                server.send_signal(signal.SIGTERM)
                assert server.wait(SOON) == 0
    # A call that was under way when its process was killed is made anew; a reply that was there is not bought again.
    twice = [count for count in Counter(llm.delivered).values() if count > 1]
    assert len(ids) == 10 and len(twice) <= 2, twice


def ask_until_taken(client: httpx.Client, question: str) -> str:
    """Ask, again where the process that was asked is killed: the key begins one run, however often it is sent."""
    body = {"question": question, "technique": "plan_rag", "settings": {"calling": "text"}}
    while True:
        try:
            response = client.post("/api/ask", json=body, headers={"idempotency-key": question})
            return str(response.json()["id"])
        except httpx.HTTPError:
            time.sleep(0.1)


def serving_processes(supervisor: int) -> list[int]:
    """Return the processes that serve, without the one that multiprocessing has beside them."""
    found = subprocess.run(["pgrep", "-P", str(supervisor), "-f", "spawn_main"], capture_output=True, text=True)
    return [int(line) for line in found.stdout.split()]


def is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").status_code == 200
    except httpx.HTTPError:
        return False


def state_of(client: httpx.Client, id: str) -> str:
    try:
        return str(client.get(f"/api/runs/{id}").json()["state"])
    except httpx.HTTPError:  # of a process that was just killed
        return "unknown"
