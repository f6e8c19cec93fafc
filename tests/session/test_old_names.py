"""Names of before: ``lm`` is taken for ``llm`` in Python, on the command line, in files and in the environment."""

import json
from pathlib import Path

import pytest

import decisor
from decisor.cli import run_command_line
from decisor.llms.choose import read_name_and_spec
from decisor.llms.scripted import ScriptedLLM
from decisor.session.config import resolve_config, trust_config_file
from decisor.session.request import AskRequest, read_kept_request
from session.conftest import planner


def test_python_takes_lm_and_the_names_of_before(sites: Path) -> None:
    assert decisor.ask("Which site?", db=str(sites), lm=planner()).answer == "elm"  # type: ignore[arg-type]
    assert decisor.ScriptedLM is ScriptedLLM and decisor.LMError is decisor.LLMError  # type: ignore[attr-defined]


@pytest.mark.parametrize("words", [["--lm", "none"], ["--lm=none"]])
def test_the_command_takes_lm(sites: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["ask", "Which site?", "--db", str(sites), "-t", "plan_rag", *words]) == 2
    assert "--llm" in capsys.readouterr().err


def test_the_old_and_the_new_option_together_are_one_option_twice(
    sites: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["ask", "Which site?", "--db", str(sites), "--lm", "none", "--llm", "none"]
    assert run_command_line(words) == 2
    assert "--llm is given twice" in capsys.readouterr().err


def test_requests_of_clients_and_of_the_history_are_read() -> None:
    body = {"lm": "m@http://127.0.0.1:9/v1", "settings": {"critic_lm": "n", "max_steps": 3}}
    for request in (AskRequest.model_validate(body), read_kept_request(body)):
        assert (request.llm, request.settings) == (body["lm"], {"critic_llm": "n", "max_steps": 3})
    assert "lm" not in json.loads(request.model_dump_json())


def test_files_and_the_environment_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b'lm = "m@http://127.0.0.1:9/v1"\n'
    (tmp_path / "decisor.toml").write_bytes(content)
    trust_config_file(tmp_path / "decisor.toml", content)
    monkeypatch.delenv("DECISOR_LLM", raising=False)
    assert resolve_config(tmp_path).text("llm") == "m@http://127.0.0.1:9/v1"
    monkeypatch.setenv("DECISOR_LM", "of-the-environment")
    assert resolve_config(tmp_path).text("llm") == "of-the-environment"
    assert read_name_and_spec(None, {"DECISOR_LM": "m"})[0] == "m"
