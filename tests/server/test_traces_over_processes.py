"""Spans of a request, of its run in another process, of the LLM calls and of the queries reach a receiver as one trace.

The receiver is an HTTP server that reads OTLP with opentelemetry-proto. It needs opentelemetry-exporter-otlp-proto-http
(pip install), which brings it; without it the test is skipped.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from server.serving import SOON, Served, planner, sources
from servers.openai_server import serve_threaded
from servers.sql_databases import postgres_database

pytest.importorskip("psycopg_pool")
exporter = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter", reason="no OTLP exporter")
service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")

TRACED = """
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import set_tracer_provider
from decisor.cli import main

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
set_tracer_provider(provider)
main()
"""
"""A program that says where the spans of Decisor go to."""
TRACE, CLIENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@contextmanager
def receiver() -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """Receive spans; yield its address, and the name of the process and the span of each."""
    spans: list[tuple[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = service.ExportTraceServiceRequest()
            request.ParseFromString(self.rfile.read(int(self.headers["content-length"])))
            assert self.path == "/v1/traces"
            for one in request.resource_spans:
                facts = {fact.key: fact.value.string_value for fact in one.resource.attributes}
                spans.extend((facts["service.name"], span) for scope in one.scope_spans for span in scope.spans)
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.end_headers()
            self.wfile.write(service.ExportTraceServiceResponse().SerializeToString())

        def log_message(self, format: str, *words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", spans
        server.shutdown()


@contextmanager
def process(name: str, folder: Path, otlp: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    own = {"XDG_DATA_HOME": str(folder), "OTEL_SERVICE_NAME": name, "DECISOR_OTEL": "yes"}
    command, environment = (
        [sys.executable, "-c", TRACED, *words],
        os.environ | own | {"OTEL_EXPORTER_OTLP_ENDPOINT": otlp},
    )
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as started:
        try:
            yield started
        finally:
            started.send_signal(signal.SIGTERM)
            assert started.wait(SOON) == 0


@pytest.mark.slow
def test_a_request_and_its_run_in_another_process_are_one_trace(tmp_path: Path) -> None:
    with ExitStack() as stack:
        otlp, spans = stack.enter_context(receiver())
        url = stack.enter_context(serve_threaded(planner()))
        store = stack.enter_context(postgres_database(()))
        data = ["--store", store, "--db", sources(tmp_path).places[0].place, "--llm", f"m@{url}"]
        front = ["serve", "--at-once", "0", "--port", "0", "--no-browser", *data]
        serving = stack.enter_context(process("front", tmp_path, otlp, *front))
        stack.enter_context(process("worker", tmp_path, otlp, "worker", *data))
        assert serving.stdout is not None
        address = serving.stdout.readline().split()[3].rstrip("/")
        client = stack.enter_context(httpx.Client(base_url=address, timeout=SOON, trust_env=False))
        client.headers["traceparent"] = f"00-{TRACE}-{CLIENT}-01"
        site = Served(address, client)
        assert site.ended(site.ask()["id"])["result"]["answer"] == "elm"
        site.until(lambda: [span.name for _, span in spans], lambda found: "invoke_agent decisor" in found)
    by_id = {span.span_id: (name, span) for name, span in spans if span.trace_id.hex() == TRACE}
    ((name, run),) = [one for one in by_id.values() if one[1].name == "invoke_agent decisor"]
    assert name == "worker"
    parents = [run.parent_span_id]
    # The server may have spans of the request between.
    while parents[-1] in by_id:
        assert by_id[parents[-1]][0] == "front"
        parents.append(by_id[parents[-1]][1].parent_span_id)
    assert parents[-1].hex() == CLIENT
    steps = sorted((name, span.name) for name, span in by_id.values() if span.parent_span_id == run.span_id)
    assert steps == [("worker", "chat m"), ("worker", "chat m"), ("worker", "execute_tool sql")]
    calls = [span for _, span in by_id.values() if span.name == "chat m"]
    tokens = [
        {fact.key: fact.value.int_value for fact in span.attributes}["gen_ai.usage.input_tokens"] for span in calls
    ]
    assert all(count > 0 for count in tokens) and all(
        run.start_time_unix_nano <= one.start_time_unix_nano for one in calls
    )
