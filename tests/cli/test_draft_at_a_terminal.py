"""decisor model draft at a terminal: what the rules leave open is asked, a second LLM writes the second model, and a
person approves."""

import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from decision_shops import SITES, database
from servers.openai_server import serve_threaded
from techniques.test_model_first import QUESTION, Writer, reply_over_http

pty = pytest.importorskip("pty")
MOST_SECONDS = 300


def prompt_of(body: dict[str, Any]) -> str:
    return "\n".join(str(message["content"]) for message in body["messages"])


def read_until(terminal: int, words: str) -> str:
    """What stands on the terminal, up to these words."""
    text, end = "", time.monotonic() + MOST_SECONDS
    while words not in text:
        assert time.monotonic() < end, text
        if select.select([terminal], [], [], 1)[0]:
            text += os.read(terminal, 65536).decode(errors="replace")
    return text


def draft(folder: Path, answers: dict[str, str]) -> tuple[int, list[str], list[str], str]:
    """The exit code, the prompts of the first and the second LLM, and what stood on the terminal."""
    url = database(folder, SITES)
    prompts: list[str] = []
    others: list[str] = []
    write = reply_over_http(Writer())

    def first(body: dict[str, Any]) -> str:
        prompts.append(prompt_of(body))
        return write(body)

    def second(body: dict[str, Any]) -> str:
        others.append(prompt_of(body))
        return write(body)

    ours, theirs = pty.openpty()
    with serve_threaded(first) as llm, serve_threaded(second) as other:
        words = [
            "model",
            "draft",
            QUESTION,
            "--db",
            url,
            "--out",
            str(folder / "close.toml"),
            "--llm",
            f"m@{llm}",
            "-o",
            "trials=0",
            "-o",
            f"second_llm=m2@{other}",
        ]
        process = subprocess.Popen(
            [sys.executable, "-m", "decisor", *words],
            stdin=theirs,
            stderr=theirs,
            stdout=subprocess.DEVNULL,
            cwd=folder,
        )
        os.close(theirs)
        text = ""
        for question, answer in answers.items():
            text += read_until(ours, question)
            os.write(ours, f"{answer}\n".encode())
        code = process.wait(MOST_SECONDS)
    os.close(ours)
    return code, prompts, others, text


@pytest.mark.slow
def test_the_person_is_asked_the_second_llm_writes_and_the_approved_file_is_kept(tmp_path: Path) -> None:
    answers = {"Is rent paid for a closed warehouse?": "No, the lease ends.", "Is this what you mean?": "y"}
    code, prompts, others, text = draft(tmp_path, answers)
    assert code == 0 and (tmp_path / "close.toml").exists()
    assert "the two warehouses to close" in text
    assert "No, the lease ends." not in prompts[0] and all("No, the lease ends." in one for one in prompts[1:])
    assert len(prompts) == 4 and len(others) == 1 and "No, the lease ends." in others[0]
    assert "min(cost) AS cheapest" not in others[0]  # it does not see the first model


@pytest.mark.slow
def test_a_file_that_the_person_does_not_approve_is_not_written(tmp_path: Path) -> None:
    answers = {"Is rent paid for a closed warehouse?": "", "Is this what you mean?": "the lease costs half a year more"}
    code, prompts, _, _ = draft(tmp_path, answers)
    assert code == 4 and not (tmp_path / "close.toml").exists()
    assert any("The person does not know." in one for one in prompts[1:])
