"""Which limits hold on which system is said; where none could end a query, nothing is opened."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from decisor.cli import run_command_line
from decisor.errors import SetupError
from decisor.sandbox.limits import check_platform, limits_of_this_system, limits_on, memory_of, warn_once

MEMORY = "memory limit not enforced on this system"


def test_every_limit_holds_on_linux() -> None:
    limits = limits_on("linux", proc=True)
    assert limits.time and limits.memory and limits.server and limits.lines == []


@pytest.mark.parametrize(
    ("platform", "proc"), [("darwin", False), ("win32", False), ("freebsd14", True), ("linux", False)]
)
def test_where_memory_is_not_told_it_is_said_and_warned_of_once(
    platform: str, proc: bool, caplog: pytest.LogCaptureFixture
) -> None:
    limits = limits_on(platform, proc)
    assert limits.time and MEMORY in limits.lines
    warn_once.cache_clear()
    with caplog.at_level(logging.WARNING, "decisor"):
        check_platform(limits)
        check_platform(limits)
    assert [record.getMessage() for record in caplog.records].count(f"sandbox: {MEMORY}") == 1


def test_windows_has_no_alarm_and_tells_no_server() -> None:
    limits = limits_on("win32", proc=False)
    assert not limits.server and len(limits.lines) == 2


@pytest.mark.parametrize("platform", ["emscripten", "wasi", "ios"])
def test_where_no_process_can_be_killed_nothing_is_opened(platform: str) -> None:
    with pytest.raises(SetupError, match="could not be killed"):
        check_platform(limits_on(platform, proc=False))


def test_what_is_said_of_this_system_is_so() -> None:
    import os

    assert limits_of_this_system().memory == (memory_of(os.getpid()) > 0)
    assert limits_of_this_system() == limits_on(sys.platform, limits_of_this_system().memory)


def test_the_doctor_says_what_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["doctor", "--llm", "none"]) == 0
    text = capsys.readouterr().out
    assert all(
        f"sandbox: {line}" in text for line in limits_of_this_system().lines or ["every limit holds on this system"]
    )
    assert run_command_line(["doctor", "--llm", "none", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sandbox"]["time"] is True
