"""Ctrl-C before a command has begun, while modules are imported: no traceback, and the code of an interrupt."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["signal", "decisor.errors", "typer", "decisor.cli.output", "decisor.trace.events"])
def test_an_interrupt_while_modules_are_imported_ends_the_command_without_a_traceback(module: str) -> None:
    """``-v`` names each module as soon as it is there.

    Python drops an interrupt that comes while it cleans up, and it is raised again a moment later. So the command must
    not be able to end by itself: it waits for its question on a standard input that stays open.
    """
    words = [sys.executable, "-v", "-m", "decisor", "ask", "-", "--db", "none.db"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stderr=pipe, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        names_decisor = False
        for line in process.stderr:
            names_decisor |= line.startswith("import 'decisor'")
            if names_decisor and line.startswith(f"import '{module}'"):
                process.send_signal(signal.SIGINT)
                break
        else:
            pytest.fail(f"{module} is not imported")
        rest = process.stderr.read()
        assert process.wait(30) in (130, -signal.SIGINT)
    assert "Traceback" not in rest and "KeyboardInterrupt" not in rest
