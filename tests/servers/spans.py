"""Spans of OpenTelemetry in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


@contextmanager
def collect_spans() -> Iterator[InMemorySpanExporter]:
    """Collect the spans that end within the block. A process has one provider for good, so it is shared."""
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        trace.set_tracer_provider(provider := TracerProvider())
    processor = SimpleSpanProcessor(exporter := InMemorySpanExporter())
    provider.add_span_processor(processor)
    yield exporter
    processor.shutdown()
