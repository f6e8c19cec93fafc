"""No password and no key leaves by any way: errors, logs, doctor, traces; and a mistyped URL is shown without."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import decisor
from data import read_security_rows
from decisor.cli import run_command_line as command
from decisor.errors import LLMError, SetupError, ToolError
from decisor.runtime.run import Run
from decisor.system.extras import logger
from decisor.system.secrets import Secret, find_url_secrets, hide_password, redact, redact_known
from decisor.techniques.iter_rag import IterRAG
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import (
    ActionResult,
    Event,
    FailedCall,
    Note,
    Plan,
    PlanChange,
    QueryScores,
    SearchNode,
    Trace,
    Writers,
    Writing,
)
from decisor.trace.file import format_trace_array, format_trace_file, read_trace
from decisor.types import Action, Completion, Message, Observation, Question, Record, Sampling
from decisor.views.page import story_json
from decisor.views.transcript import tell_story

PASSWORD = "Tr0ub4dor"
MISTYPED = (
    f"mysql//me:{PASSWORD}@host",
    f"postgresql:/me:{PASSWORD}@h",
    f"mysql:me:{PASSWORD}@host/shop",
    f"me:{PASSWORD}@host/shop",
    f"posgresql://me:{PASSWORD}@host:5432/shop",
    f"rents=mysql//me:{PASSWORD}@host",
    f"shop.dbx?password={PASSWORD}",
    f"oracle://h/d?user=me&password={PASSWORD}",
    f"mysql//me:a@b/{PASSWORD}:c@host",
    f"mysql//me: {PASSWORD}@host",
)


def test_every_secret_of_the_list_is_hidden_and_harmless_text_stays() -> None:
    wrong = []
    for row in read_security_rows("secrets_redaction"):
        text = redact(row["text"], [Secret("CANARY-pw0rd")])
        if any(word in text for word in row["must_not_contain"]) or any(
            word not in text for word in row.get("must_contain", [])
        ):
            wrong.append((row["id"], text))
    assert wrong == []


@pytest.mark.parametrize(
    "text",
    [
        f"redis://:{PASSWORD}@h:6379/0",
        f"postgresql://bob:{PASSWORD}@h1:5432,h2:5432/d",
        f"jdbc:postgresql://h/d?user=u&password={PASSWORD}&x=1",
        f"Driver={{ODBC}};Server=h;UID=sa;PWD={{{PASSWORD}}};",
        f"host=h user=u password='{PASSWORD} x' dbname=d",
        f"connect(host='h', password='{PASSWORD}')",
        f"DefaultEndpointsProtocol=https;AccountKey={PASSWORD}==;EndpointSuffix=x",
        f"Set-Cookie: sid={PASSWORD}; HttpOnly",
        f"{{'Authorization': 'Bearer {PASSWORD}'}}",
        f"x-api-key:{PASSWORD}",
        f"['--password', '{PASSWORD}']",
        f"--token {PASSWORD}",
        f"PGPASSWORD={PASSWORD} psql",
        f"mysql -uroot -p{PASSWORD} -h x",
        f"curl -u me:{PASSWORD} https://x",
        f'{{\\"db_password\\": \\"{PASSWORD}\\"}}',
        f"-----BEGIN RSA PRIVATE KEY-----\n{PASSWORD}\n-----END RSA PRIVATE KEY-----",
        f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIi{PASSWORD}.abc-_d",
        f"xoxb-123456789012-{PASSWORD}",
        f"github_pat_11ABCDEFG0123456789_{PASSWORD}",
        f"Cannot open https://hooks.slack.com/services/T0/B0/{PASSWORD}",
    ],
)
def test_a_password_is_hidden_in_each_form_that_errors_show_it_in(text: str) -> None:
    assert PASSWORD not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "https://example.com:8080/@scope/x",
        "unexpected token: 'FROM' near line 3",
        "max_tokens=512, tokens: 9, token_count=5",
        "primary key: id; foreign key: region",
        'password authentication failed for user "bob"',
        "Access denied for user 'r'@'h' (using password: YES)",
        "no such column: password",
        "the secret of success: work",
        "bypass=1 compass=north author=bob",
        "no such column: t.token. Did you mean: tokens?",
        "a bearer token is needed",
    ],
)
def test_what_is_no_secret_stays_readable(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("url", MISTYPED)
def test_a_mistyped_url_is_shown_without_its_password(url: str) -> None:
    assert PASSWORD not in hide_password(url)
    with pytest.raises(SetupError) as failure:
        decisor.ask("Which?", db=url, llm=decisor.ScriptedLLM([]))
    assert PASSWORD not in str(failure.value)


@pytest.mark.slow
@pytest.mark.parametrize("words", [["ask", "Which?"], ["ask", "Which?", "--json"], ["doctor"], ["doctor", "--json"]])
@pytest.mark.parametrize("option", ["--db", "--llm"])
@pytest.mark.parametrize("url", MISTYPED)
def test_no_command_shows_the_password_of_a_mistyped_url(
    url: str, option: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    command([*words, option, url if option == "--db" else f"m@{url}"])
    output = capsys.readouterr()
    assert PASSWORD not in output.out + output.err and output.out + output.err


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["trace"],
        ["index"],
        ["report"],
        ["eval", "--store"],
        ["ask", "x", "--tools"],
        ["ask", "x", "--docs"],
        ["ask", "x", "--graph"],
        ["index", "--embed"],
    ],
)
def test_no_place_that_a_person_names_is_echoed_with_its_password(
    words: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for url in (*MISTYPED, f"https://me:{PASSWORD}@host/x", f"postgresql://me:{PASSWORD}@127.0.0.1:1/x"):
        command([*words, url])
        output = capsys.readouterr()
        assert PASSWORD not in output.out + output.err


def test_a_log_record_holds_no_password_and_no_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "decisor")
    try:
        raise ValueError(f"password={PASSWORD}")
    except ValueError:
        logger.exception("opened %s", f"postgresql://me:{PASSWORD}@host/shop")
    assert PASSWORD not in caplog.text and "postgresql://me:[hidden]@host/shop" in caplog.text


async def test_what_a_tool_and_an_endpoint_say_of_a_failure_is_traced_without_passwords() -> None:
    class Fails:
        name = "sql"

        def describe(self) -> str:
            return "A database."

        async def call(self, text: str) -> Observation:
            raise ToolError(f"cannot connect to mysql://me:{PASSWORD}@host")

        async def close(self) -> None: ...

    class Refuses:
        name = "m"

        async def complete(self, messages: object, sampling: Sampling = Sampling()) -> Completion:
            raise LLMError(f"the header was Authorization: Bearer {PASSWORD}")

    run = Run(Refuses(), Toolbox([Fails()]))
    await run.act(Action("sql", "SELECT 1"))
    with pytest.raises(LLMError):
        await run.complete([Message("user", "x")])
    (result,), (call,) = run.trace.of(ActionResult), run.trace.of(FailedCall)
    assert PASSWORD not in result.observation.note + call.text and "[hidden]" in result.observation.note


def test_what_a_driver_says_is_told_without_the_password_of_its_url() -> None:
    (whole, plain) = find_url_secrets(f"mysql://me:p%40{PASSWORD}@host")
    assert PASSWORD not in redact_known(f"host 'p@{PASSWORD}' is unknown; p%40{PASSWORD}", [whole, plain])
    assert find_url_secrets("postgresql://postgres:postgres@localhost/shop") == ()


def test_a_bug_is_printed_without_passwords(tmp_path: Path) -> None:
    script = tmp_path / "bug.py"
    script.write_text(
        "import decisor.cli as cli\n"
        f"def fails(words): raise RuntimeError('dsn=postgresql://me:{PASSWORD}@host')\n"
        "cli.run_command_line = fails\n"
        "cli.main(['ask'])\n"
    )
    ended = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=dict(os.environ))
    assert ended.returncode == 1 and "RuntimeError" in ended.stderr and "Traceback" in ended.stderr
    shown = [line for line in ended.stderr.splitlines() if not line.lstrip().startswith("def ")]
    assert PASSWORD not in "\n".join(shown)


async def test_a_secret_in_a_query_that_a_model_wrote_is_in_no_sink(tmp_path: Path) -> None:
    place, key = f"postgresql://me:{PASSWORD}@host/shop", "sk-proj-abcdefghijklmnopqrstuv"
    text = f"Thought: I connect as before.\nAction: sql\nAction input: ATTACH '{place}' -- {key}"
    prompts: list[str] = []

    class Writes:
        name = "m"

        async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
            prompts.append(messages[-1].content)
            return Completion((text if len(prompts) < 3 else "Final answer: none",))

    queries: list[str] = []

    class Takes:
        name = "sql"

        def describe(self) -> str:
            return "A database."

        async def call(self, text: str) -> Observation:
            queries.append(text)
            return Observation(note=f"{len(queries)} rows")

        async def close(self) -> None: ...

    run = Run(Writes(), Toolbox([Takes()]))
    await IterRAG()(Question("Which?"), run)
    assert place in queries[0] and place in prompts[-1], "what runs and what the model reads is as it wrote it"
    entries = run.trace.entries
    screen = StringIO()
    terminal = Console(file=screen, width=200)
    tell_story(entries, terminal, full=True)
    (tmp_path / "run.jsonl").write_text(format_trace_file(entries))
    again = read_trace(tmp_path / "run.jsonl")
    sinks = (
        format_trace_file(entries),
        format_trace_array(entries),
        story_json(entries),
        screen.getvalue(),
        format_trace_array(again),
        str(again),
    )
    for sink in sinks:
        assert PASSWORD not in sink and key not in sink and "[hidden]" in sink


@pytest.mark.parametrize(
    "event",
    [
        Plan((f"Connect with password={PASSWORD}", "Compare")),
        PlanChange(1, f"mysql://me:{PASSWORD}@host was refused", ("Compare",)),
        SearchNode(1, 0, Action("sql", f"ATTACH 'mysql://me:{PASSWORD}@host'"), f"password={PASSWORD}"),
        QueryScores((f"token={PASSWORD}",), (0.5,)),
        Note(f"Authorization: Bearer {PASSWORD}"),
    ],
)
def test_no_event_of_a_model_s_words_holds_a_password(event: Event) -> None:
    run = Trace()
    run.add(event)
    assert PASSWORD not in format_trace_file(run.entries) and "[hidden]" in format_trace_file(run.entries)


def test_what_a_tool_brought_stays_in_the_trace_as_it_is() -> None:
    record = Record("o1.r1", {"note": "password=spoken"}, source="sql")
    run = Trace()
    run.add(ActionResult(1, Observation((record,))))
    assert run.of(ActionResult)[0].observation.records == (record,)


def test_what_is_written_just_now_is_heard_without_passwords() -> None:
    pieces: list[Writing] = []
    with Writers(pieces.append).call(0) as on_text:
        on_text(f"ATTACH 'mysql://me:{PASSWORD}@host'")
    assert [piece.text for piece in pieces] == ["ATTACH 'mysql://me:[hidden]@host'"] * 2
