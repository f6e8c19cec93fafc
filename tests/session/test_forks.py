"""A process that forks while its first question is under way: the children can ask too."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FORKS = """
import os, signal, sys, threading, time
import decisor

def reply(messages):
    if "[o1.r1]" not in messages[-1].content:
        return "Plan: [Step 1: look]\\nThought: x\\nAction: sql\\nAction input: SELECT 7 AS n"
    return "Final answer: 7\\nBecause: it is 7 [o1.r1]"

def ask():
    return decisor.ask("How many?", db="sqlite:///shop.db", lm=decisor.ScriptedLM(reply), technique="plan_rag").answer

threading.Thread(target=ask, daemon=True).start()
children = []
for _ in range(5):
    time.sleep(0.03)
    if not (child := os.fork()):
        signal.alarm(90)  # a child that hangs is ended by it
        os._exit(0 if ask() == "7" else 3)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children])
os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_while_the_first_question_is_asked_hangs_no_child(tmp_path: Path) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(tmp_path / "shop.db")) as db, db:
        db.execute("CREATE TABLE t (x)")
    done = subprocess.run([sys.executable, "-c", FORKS], cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert done.stdout.strip() == str([0] * 5), done.stdout + done.stderr
