"""What whoever runs a server sees of it: figures, the log, spans, and whether it is ready."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from decisor.history.postgres import PostgresPlace
from decisor.history.store import History, Spent
from decisor.server.settings import ServerSettings, show_log
from decisor.server.users import User, Users, digest_of_token, read_users
from decisor.system.extras import logger
from server.serving import SOON, Served, served, sources
from server.test_several_processes import serving_processes
from servers.spans import collect_spans
from servers.sql_databases import NAME, POSTGRES, postgres_database

parser = pytest.importorskip("prometheus_client.parser")
SECRET = "zqsecret"
USERS = f"""
[ann]
token = "{digest_of_token("ann")}"

[bob]
token = "{digest_of_token("bob")}"
budget = {{ day = {{ tokens = 5 }} }}

[prometheus]
token = "{digest_of_token("prometheus")}"
connections = []
metrics = true
"""


def figures(site: Served, **heads: str) -> dict[tuple[str, ...], float]:
    """Return each figure by its name and the values of its labels."""
    reply = site.client.get("/metrics", headers=heads)
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = parser.text_string_to_metric_families(reply.text)
    return {(one.name, *one.labels.values()): one.value for family in families for one in family.samples}


def test_figures_are_those_of_the_runs_and_name_nobody(tmp_path: Path, url: str) -> None:
    (tmp_path / "users.toml").write_text(USERS, "utf-8")
    users = read_users(tmp_path / "users.toml", ["sql"])
    serving = ServerSettings(sources(tmp_path), {"m": f"m@{url} price=10,20"}, users=users, at_once=7)
    ann, bob, prometheus = ({"authorization": f"Bearer {name}"} for name in ("ann", "bob", "prometheus"))
    history = History(tmp_path / "history")
    history.spend({("bob", f"{datetime.now(UTC):%Y-%m-%d}"): Spent(0, 5)}, (), "")
    with served(serving, history) as site:
        assert site.client.get("/metrics").status_code == 401
        assert site.client.get("/metrics", headers=ann).status_code == 403
        assert site.client.get("/api/runs/1", headers=prometheus).status_code == 404
        site.client.headers.update(ann)
        runs = [site.ended(site.ask(SECRET)["id"]) for _ in range(3)]
        site.client.headers.update(bob)
        assert site.client.post("/api/ask", json={"question": SECRET}).status_code == 400
        found = figures(site, **prometheus)
        usage = [run["usage"] for run in runs]
        states = [run["state"] for run in runs]
        assert found["decisor_runs_total", "finished", "plan_rag"] == states.count("finished") == len(runs)
        assert found["decisor_llm_calls_total", "answered"] == sum(one["calls"] for one in usage)
        for kind in ("prompt", "completion"):
            assert found["decisor_llm_tokens_total", kind] == sum(one[f"{kind}_tokens"] for one in usage)
        assert found["decisor_llm_dollars_total",] == pytest.approx(sum(one["dollars"] for one in usage))
        assert found["decisor_queries_total", "answered"] == sum(one["actions"] for one in usage)
        assert found["decisor_query_seconds_count",] == found["decisor_queries_total", "answered"]
        assert found["decisor_run_seconds_sum", "plan_rag"] == pytest.approx(sum(run["seconds"] for run in runs), 0.01)
        assert found["decisor_budget_refusals_total", "tokens"] == 1
        assert (found["decisor_places_free",], found["decisor_runs_waiting",]) == (7, 0)
        assert found["decisor_http_requests_total", "POST", "/api/ask", "201"] == len(runs)
        assert found["decisor_http_requests_total", "POST", "/api/ask", "400"] == 1
        assert found["decisor_http_requests_total", "GET", "/metrics", "403"] == 1
        text = site.client.get("/metrics", headers=prometheus).text
        assert not [word for word in (SECRET, "ann", "site", "elm", "127.0.0.1", str(tmp_path)) if word in text]


def test_a_run_that_goes_on_takes_a_place_and_others_wait(tmp_path: Path, url: str) -> None:
    with served(ServerSettings(sources(tmp_path), {"m": f"m@{url}"}, at_once=1)) as site:
        runs = [site.ask(approve=True)["id"] for _ in range(3)]
        site.until(lambda: site.run(runs[0]), lambda run: bool(run["approvals"]))
        found = figures(site)
        assert (found["decisor_places_free",], found["decisor_runs_waiting",]) == (0, 2)
        for id in reversed(runs):
            site.client.post(f"/api/runs/{id}/stop", json={})
        found = figures(site)
        assert (found["decisor_places_free",], found["decisor_runs_waiting",]) == (1, 0)


@pytest.fixture
def log() -> Iterator[Any]:
    """Give the lines of the log as they are written."""
    handlers, level = list(logger.handlers), logger.level
    yield lambda text: [json.loads(line) for line in text.splitlines()]
    logger.handlers[:] = handlers
    logger.setLevel(level)


def test_the_log_as_json_has_no_values(tmp_path: Path, capfd: pytest.CaptureFixture[str], log: Any, url: str) -> None:
    show_log("json")
    users = Users({digest_of_token("ann"): User("ann")})
    with served(ServerSettings(sources(tmp_path), {"m": f"m@{url}"}, users=users)) as site:
        site.client.headers["authorization"] = "Bearer ann"
        run = site.ended(site.ask(f"Which {SECRET}?")["id"])
        site.until(lambda: site.run(run["id"]), lambda run: run["state"] == "finished")
    try:
        raise ValueError(f"no such column: {SECRET}")
    except ValueError as error:
        logger.error("%s %s crashed", "GET", f"/api/{SECRET}", exc_info=error)
    text = capfd.readouterr().err
    assert SECRET not in text and "ann" not in text and "SELECT" not in text and str(tmp_path) not in text
    lines = log(text)
    (end,) = [line for line in lines if line["event"] == "run %s ended"]
    assert (end["level"], end["run"], end["state"], end["technique"]) == ("info", run["id"], "finished", "plan_rag")
    assert end["seconds"] == run["seconds"] and len(end["person"]) == 16 and end["time"].endswith("+00:00")
    crash = lines[-1]
    assert (crash["event"], crash["error"], crash["level"]) == ("%s %s crashed", "ValueError", "error")


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    monkeypatch.setenv("DECISOR_OTEL", "yes")
    with collect_spans() as exporter:
        yield exporter


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_a_run_is_a_span_of_the_trace_of_its_request(
    tmp_path: Path, collector: InMemorySpanExporter, url: str, store: str
) -> None:
    with ExitStack() as stack:
        place: Any = tmp_path / "history"
        if store == "postgresql":
            pytest.importorskip("psycopg_pool")
            place = PostgresPlace(stack.enter_context(postgres_database(())))
        serving = ServerSettings(sources(tmp_path), {"m": f"m@{url}"})
        site = stack.enter_context(served(serving, History(place)))
        parents = {f"{number:032x}": f"{number + 99:016x}" for number in (1, 2, 3)}
        for trace_id, span_id in parents.items():
            site.client.headers["traceparent"] = f"00-{trace_id}-{span_id}-01"
            site.ended(site.ask()["id"])
        site.client.headers["traceparent"] = "nonsense"
        site.ended(site.ask()["id"])
    there = {span.context.span_id: span for span in collector.get_finished_spans() if span.context}
    runs = [span for span in there.values() if span.name.startswith("invoke_agent")]
    found = {}
    for run in runs:
        # FastAPI may have a span of the request between.
        while run.parent and run.parent.span_id in there:
            run = there[run.parent.span_id]
        if run.context and run.parent:
            found[f"{run.context.trace_id:032x}"] = f"{run.parent.span_id:016x}"
    assert (found, len(runs)) == (parents, 4)


def test_a_server_whose_store_is_away_is_not_ready_and_says_so(tmp_path: Path, url: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    pytest.importorskip("psycopg_pool")
    with postgres_database(()) as store, psycopg.connect(f"{POSTGRES}/postgres", autocommit=True) as admin:
        serving = ServerSettings(sources(tmp_path), {"m": f"m@{url}"})
        with served(serving, History(PostgresPlace(store))) as site:

            def look() -> tuple[int, str]:
                reply = site.client.get("/readyz")
                return reply.status_code, reply.json()["missing"]

            site.until(look, lambda found: found == (200, ""))
            admin.execute(f"ALTER DATABASE {NAME} ALLOW_CONNECTIONS false")
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [NAME])
            site.until(look, lambda found: found == (503, "The store of runs cannot be reached."))
            assert site.client.get("/healthz").status_code == 200
            assert ("decisor_runs_waiting",) in figures(site)
            admin.execute(f"ALTER DATABASE {NAME} ALLOW_CONNECTIONS true")
            site.until(look, lambda found: found == (200, ""))
            assert site.client.get("/api/runs").status_code == 200
            assert site.ended(site.ask()["id"])["state"] == "finished"


@pytest.mark.slow
def test_one_process_tells_the_figures_of_all(tmp_path: Path, url: str) -> None:
    pytest.importorskip("psycopg_pool")
    with postgres_database(()) as store:
        command = [sys.executable, "-m", "decisor", "serve", "--store", store, "--workers", "2", "--port", "0"]
        command += ["--db", sources(tmp_path).places[0].place, "--llm", f"m@{url}", "--no-browser"]
        command += ["--log", "json", "--at-once", "5"]
        environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path)}
        with (
            (tmp_path / "log").open("w") as log,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment) as server,
        ):
            assert server.stdout is not None
            address = server.stdout.readline().split()[3].rstrip("/")
            try:
                with httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
                    site = Served(address, client)
                    figures_of_all(site, 10)
                    # No process has places for all of them.
                    ids = [site.ask(approve=True)["id"] for _ in range(8)]
                    for id in ids:
                        site.until(lambda: site.run(id), lambda run: bool(run["approvals"]))  # noqa: B023
                    figures_of_all(site, 2)
                    for id in ids:
                        site.client.post(f"/api/runs/{id}/approvals/1", json={"allow": True})
                    assert {site.ended(id)["state"] for id in ids} == {"finished"}
                    # The client keeps one connection: one process answers for both.
                    found = figures_of_all(site, 10)
                    assert found["decisor_runs_total", "finished", "plan_rag"] == 8
                    assert found["decisor_llm_calls_total", "answered"] == 16
                    os.kill(serving_processes(server.pid)[-1], signal.SIGKILL)
                    time.sleep(1)
                    found = figures_of_all(site, 10)
                    assert found["decisor_runs_total", "finished", "plan_rag"] == 8
            finally:
                server.send_signal(signal.SIGTERM)
                assert server.wait(SOON) == 0
    lines = [json.loads(line) for line in (tmp_path / "log").read_text("utf-8").splitlines()]
    ends = [line["run"] for line in lines if line["event"] == "run %s ended"]
    assert sorted(ends) == sorted(ids)
    assert len({line["process"] for line in lines}) >= 2, lines


def figures_of_all(site: Served, free: int) -> dict[tuple[str, ...], float]:
    """Return the figures once both processes together have so many free places."""

    def look() -> dict[tuple[str, ...], float]:
        try:
            return figures(site)
        except (httpx.HTTPError, AssertionError):  # of a process that begins or was just killed
            return {}

    found: dict[tuple[str, ...], float] = site.until(look, lambda found: found.get(("decisor_places_free",)) == free)
    return found
