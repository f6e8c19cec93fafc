"""The figures of a server for Prometheus: runs, LLM calls, queries, refusals by a budget, and requests.

Processes of one server share a port, so that nobody can ask each of them: each writes its figures to a file in one
folder (the multiprocess mode of ``prometheus_client``), and whichever is asked answers for all of this machine. A label
is a technique, a state, a route or the like, never something of a person, a question, a query or the data.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from decisor.server.live import LiveRun
from decisor.trace.events import ActionResult, FailedCall, LLMCall, TraceEntry
from decisor.types import Usage

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Name of the variable with the folder of several processes; ``prometheus_client`` reads it when it is imported."""
SECONDS = (0.1, 0.3, 1, 3, 10, 30, 60, 120, 300, 600, 1800)
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")


class Metrics:
    """The figures of this process."""

    def __init__(self, places: int) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()

        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(f"decisor_{name}", about, labels, registry=registry)

        self.runs = counter("runs", "Runs that ended.", "technique", "state")
        self.run_seconds = Histogram(
            "decisor_run_seconds", "Seconds of a run.", ["technique"], registry=registry, buckets=SECONDS
        )
        self.calls = counter("llm_calls", "Calls of LLMs, without those that were bought before.", "outcome")
        self.tokens = counter("llm_tokens", "Tokens of LLM calls.", "kind")
        self.dollars = counter("llm_dollars", "Dollars of LLM calls with a known price.")
        self.queries = counter("queries", "Queries and other actions on data.", "outcome")
        self.query_seconds = Histogram(
            "decisor_query_seconds", "Seconds of a query.", registry=registry, buckets=SECONDS
        )
        self.refusals = counter("budget_refusals", "Runs and LLM calls that a spent budget refused.", "limit")
        self.requests = counter("http_requests", "Requests that were answered.", "method", "route", "status")
        self.waiting = Gauge(
            "decisor_runs_waiting", "Runs that wait.", registry=registry, multiprocess_mode="mostrecent"
        )
        # Those of dead processes do not count.
        self.free = Gauge(
            "decisor_places_free", "Runs that could begin at once.", registry=registry, multiprocess_mode="livesum"
        )
        self.free.set(places)

    @contextmanager
    def take_place(self) -> Iterator[None]:
        self.free.dec()
        try:
            yield
        finally:
            self.free.inc()

    def listen(self, hear: Callable[[TraceEntry], None]) -> Callable[[TraceEntry], None]:
        """Return a listener of a run that counts its calls and queries, and passes each entry on."""

        def count(entry: TraceEntry) -> None:
            match entry.event:
                case LLMCall(usage=usage, replayed=False):
                    self.count_call("answered", usage)
                case FailedCall(usage=usage):
                    self.count_call("failed", usage)
                case ActionResult() as result:
                    self.queries.labels("failed" if result.observation.error else "answered").inc()
                    self.query_seconds.observe(result.seconds)
            hear(entry)

        return count

    def count_call(self, outcome: str, usage: Usage) -> None:
        self.calls.labels(outcome).inc()
        self.tokens.labels("prompt").inc(usage.prompt_tokens)
        self.tokens.labels("completion").inc(usage.completion_tokens)
        self.dollars.inc(usage.dollars or 0.0)

    def count_run(self, live: LiveRun) -> None:
        """Count a run that is over."""
        self.runs.labels(live.past.technique, live.state).inc()
        self.run_seconds.labels(live.past.technique).observe(live.seconds)

    def text(self) -> bytes:
        """Return the figures of all processes of this machine, in Prometheus's text format."""
        from prometheus_client import CollectorRegistry, generate_latest
        from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

        if not (folder := os.environ.get(FOLDER)):
            return generate_latest(self.registry)
        for file in Path(folder).glob("gauge_live*.db"):
            process = int(file.stem.rpartition("_")[2])
            try:
                os.kill(process, 0)
            except OSError:
                # Another process may be asked at the same time.
                with suppress(FileNotFoundError):
                    mark_process_dead(process)  # type: ignore[no-untyped-call]
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


@dataclass(frozen=True)
class CountedRequests:
    """An ASGI application that counts the answers of another one, refusals too."""

    app: ASGIApp
    metrics: Metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def count(message: Message) -> None:
            if message["type"] == "http.response.start":
                # The path would have ids and names; the route has them as {id} and {name}.
                route = scope["route"].path if "route" in scope else ""
                method = scope["method"] if scope["method"] in METHODS else "other"
                self.metrics.requests.labels(method, route, message["status"]).inc()
            await send(message)

        await self.app(scope, receive, count)
