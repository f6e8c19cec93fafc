"""Spans of a run in an in-memory collector."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import decisor
from decisor.errors import SetupError
from decisor.llms.scripted import ScriptedLLM
from server.serving import ANSWER, PLAN, QUERY, sites
from servers.spans import collect_spans

SECRET = "sk-proj-abcdefghij0123456789abcdefghij"


@pytest.fixture
def collector() -> Iterator[InMemorySpanExporter]:
    with collect_spans() as exporter:
        yield exporter


def spans(collector: InMemorySpanExporter, folder: Path, queries: tuple[str, ...] = (QUERY,)) -> list[ReadableSpan]:
    llm = ScriptedLLM([*(PLAN.format(query=query) for query in queries), ANSWER.replace("o1", f"o{len(queries)}")])
    decisor.ask(
        f"Which site? {SECRET}",
        db=f"sqlite:///{sites(folder)}",
        llm=llm,
        technique="plan_rag",
        settings={"calling": "text", "replan": "no"},
        readings="off",
    )
    return list(collector.get_finished_spans())


def test_a_run_is_no_span_unless_it_is_wanted(tmp_path: Path, collector: InMemorySpanExporter) -> None:
    assert spans(collector, tmp_path) == []


def test_a_run_its_calls_and_its_actions_are_spans_without_what_was_written(
    tmp_path: Path, collector: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DECISOR_OTEL", "yes")
    there = spans(collector, tmp_path)
    assert [span.name for span in there] == [
        "chat scripted",
        "execute_tool sql",
        "chat scripted",
        "invoke_agent decisor",
    ]
    call, action, _, run = there
    assert run.context is not None
    assert all(one.parent and one.parent.span_id == run.context.span_id for one in there[:3])
    assert call.attributes is not None and call.attributes["gen_ai.operation.name"] == "chat"
    assert call.attributes["gen_ai.request.model"] == "scripted"
    assert action.attributes is not None and action.attributes["gen_ai.tool.name"] == "sql"
    assert action.attributes["decisor.records"] == 2
    assert not [word for word in ("ORDER BY", "elm", SECRET) for span in there if word in str(span.to_json())]


def test_what_was_written_is_told_where_that_is_wanted_and_no_key(
    tmp_path: Path, collector: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DECISOR_OTEL", "content")
    there = spans(collector, tmp_path, ("SELECT nothing FROM site", QUERY))
    text = "".join(span.to_json() for span in there)
    assert QUERY in text and "elm" in text and SECRET not in text
    failure = next(span for span in there if span.name == "execute_tool sql")
    assert not failure.status.is_ok and failure.attributes is not None
    assert failure.attributes["error.type"] == "tool_error"


def test_another_word_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECISOR_OTEL", "maybe")
    with pytest.raises(SetupError, match="DECISOR_OTEL is yes, no or content"):
        decisor.ask("Which site?", db=f"sqlite:///{sites(tmp_path)}", llm=ScriptedLLM([]))
