"""OpenTelemetry spans of a run: one for the run, one for each call of an LLM, one for each action.

They follow the semantic conventions for generative AI. A listener of the trace makes them; it is off unless
``DECISOR_OTEL`` is set.

    DECISOR_OTEL=yes        names, counts, times and kinds of failure
    DECISOR_OTEL=content    prompts, replies, queries and answers too, as the trace holds them: without keys

A request with a W3C ``traceparent`` is the parent of its run, whichever process does it: the job has it.
It needs the extra ``otel``; where spans go to is the business of the program or the environment (``OTEL_*``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING

from decisor.errors import SetupError
from decisor.system.extras import require_package
from decisor.system.secrets import redact
from decisor.system.serialization import json_text
from decisor.trace.events import (
    ActionResult,
    ActionStart,
    Conclusion,
    FailedCall,
    LLMCall,
    RunStart,
    RunUsage,
    TraceEntry,
)

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

VARIABLE = "DECISOR_OTEL"
WAYS = {"": "", "no": "", "0": "", "false": "", "yes": "yes", "1": "yes", "true": "yes", "content": "content"}
NANO = 1_000_000_000


@dataclass
class Telemetry:
    """The OpenTelemetry spans of one run, at the times of its trace; ``hear`` is a listener of the trace."""

    tracer: Tracer
    content: bool = False
    """Whether prompts, replies, queries and answers are sent too."""
    began: int = field(default_factory=time.time_ns)
    run: Span | None = None
    actions: dict[int, Span] = field(default_factory=dict)

    def hear(self, entry: TraceEntry) -> None:
        at = self.began + int(entry.at * NANO)
        match entry.event:
            case RunStart() as start if self.run is None:
                self.run = self.tracer.start_span("invoke_agent decisor", start_time=self.began)
                self.run.set_attribute("gen_ai.operation.name", "invoke_agent")
                self.run.set_attribute("gen_ai.agent.name", "decisor")
                self.run.set_attribute("gen_ai.request.model", start.llm)
                self.run.set_attribute("decisor.technique", start.technique)
                self.tell(self.run, "gen_ai.input.messages", {"role": "user", "content": str(start.question)})
            case LLMCall() as call:
                self.call(call, at)
            case FailedCall() as failure:
                # The event comes at the end of a call, so the span is dated back by the call's seconds.
                span = self.span("chat", at - int(failure.usage.seconds * NANO))
                span.set_attributes({"gen_ai.operation.name": "chat", "error.type": failure.reason})
                self.fail(span, failure.text)
                span.end(at)
            case ActionStart() as start:
                span = self.actions[entry.id] = self.span(f"execute_tool {start.tool}", at)
                span.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": start.tool})
                self.tell(span, "gen_ai.tool.call.arguments", start.input)
            case ActionResult() as result if result.action in self.actions:
                self.result(self.actions.pop(result.action), result, at)
            case Conclusion(decision=decision) if not entry.span and self.run is not None:
                self.run.set_attributes({"decisor.stopped": decision.stopped})
                self.tell(self.run, "gen_ai.output.messages", {"role": "assistant", "content": decision.answer})
            case RunUsage() as total:
                self.end(total, at)

    def call(self, call: LLMCall, at: int) -> None:
        usage = call.usage
        span = self.span(f"chat {call.model}", at - int(usage.seconds * NANO))
        span.set_attributes(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": call.model,
                "gen_ai.response.finish_reasons": [call.finish],
                "gen_ai.usage.input_tokens": usage.prompt_tokens,
                "gen_ai.usage.output_tokens": usage.completion_tokens,
                "decisor.replayed": call.replayed,
            }
        )
        self.tell(span, "gen_ai.input.messages", call.messages)
        self.tell(span, "gen_ai.output.messages", call.texts if call.turn is None else call.turn)
        span.end(at)

    def result(self, span: Span, result: ActionResult, at: int) -> None:
        span.set_attribute("decisor.records", len(result.observation.records))
        if result.observation.error:
            span.set_attribute("error.type", "tool_error")
            self.fail(span, result.observation.note)
        span.end(at)

    def end(self, total: RunUsage, at: int) -> None:
        """End the span of the run, and of actions that a stopped run left open."""
        for span in self.actions.values():
            span.end(at)
        self.actions.clear()
        if self.run is not None:
            self.run.set_attributes(
                {
                    "gen_ai.usage.input_tokens": total.usage.prompt_tokens,
                    "gen_ai.usage.output_tokens": total.usage.completion_tokens,
                }
            )
            self.run.end(at)

    def span(self, name: str, start: int) -> Span:
        # Imported here: the package is an extra, and most runs are not telemetered.
        from opentelemetry.trace import set_span_in_context

        context = set_span_in_context(self.run) if self.run is not None else None
        return self.tracer.start_span(name, context=context, start_time=start)

    def fail(self, span: Span, text: str) -> None:
        from opentelemetry.trace import Status, StatusCode

        # An error text may quote a query or a row, so it goes out only with content.
        span.set_status(Status(StatusCode.ERROR, redact(text) if self.content else None))

    def tell(self, span: Span, name: str, value: object) -> None:
        if self.content:
            span.set_attribute(name, redact(value if isinstance(value, str) else json_text(value)))


def find_traceparent() -> str:
    """Return the span under way as a W3C traceparent, '' if there is none."""
    carrier: dict[str, str] = {}
    if is_traced():
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        TraceContextTextMapPropagator().inject(carrier)
    return carrier.get("traceparent", "")


@contextmanager
def continue_trace(traceparent: str) -> Iterator[None]:
    """Make the spans that begin within the block children of one elsewhere; '' or an unreadable one is none."""
    if not (traceparent and is_traced()):
        yield
        return
    from opentelemetry.context import attach, detach
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    token = attach(TraceContextTextMapPropagator().extract({"traceparent": traceparent}))
    try:
        yield
    finally:
        detach(token)


def is_traced() -> bool:
    return bool(WAYS.get(os.environ.get(VARIABLE, "").lower())) and find_spec("opentelemetry") is not None


def open_telemetry() -> Telemetry | None:
    """Open the telemetry that ``DECISOR_OTEL`` asks for; None if it asks for none.

    Raises:
        SetupError: it says neither yes, no nor content, or the extra is not there.
    """
    way = WAYS.get(os.environ.get(VARIABLE, "").lower())
    if way is None:
        raise SetupError(f"{VARIABLE} is yes, no or content, not {os.environ[VARIABLE]!r:.80}.")
    if not way:
        return None
    with require_package("OpenTelemetry", "otel"):
        from opentelemetry.trace import get_tracer

    from decisor.version import __version__

    return Telemetry(get_tracer("decisor", __version__), way == "content")
