"""What must not be seen is not, and what is no secret stays: the shapes and headers of the shared cases."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import quote

import pytest

from data import read_security_rows
from decisor.system.secrets import Secret, redact, redact_known
from decisor.trace.events import RunStart, Trace
from decisor.trace.file import format_trace_line
from decisor.types import Question


def test_shapes_of_keys_are_hidden_and_other_words_stay() -> None:
    rows = read_security_rows("secrets_redaction")
    shapes = [row for row in rows if row["kind"].startswith(("key:", "header", "must_keep"))]
    assert shapes
    for row in shapes:
        text = redact(row["text"])
        assert not [word for word in row["must_not_contain"] if word in text], row["id"]
        assert not [word for word in row.get("must_contain", []) if word not in text], row["id"]


@pytest.mark.parametrize(
    "form", [str, lambda key: quote(key, safe=""), lambda key: base64.b64encode(key.encode()).decode()]
)
def test_a_known_key_is_hidden_in_each_of_its_forms(form: Any) -> None:
    key = "pa/ss+word="
    assert key not in redact_known(f"a {form(key)} b", [Secret(key)])
    assert redact_known(f"a {form(key)} b", [Secret(key)]) == "a [hidden] b"


def test_a_key_in_a_trace_event_is_hidden() -> None:
    trace = Trace()
    trace.add(RunStart(Question("Where?"), settings={"key": Secret("pa/ss+word=")}))  # type: ignore[dict-item]
    assert "pa/ss" not in format_trace_line(trace.entries[0])
