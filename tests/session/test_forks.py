"""A process that forks while another thread imports, or asks its first question: the children can do the same."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")

SLOW = "import os, time\nif os.environ['PARENT'] == str(os.getpid()): time.sleep(60)\n"
PACKAGE = {
    "__init__.py": "from shop import prices\nfrom shop.stock import COUNT\n",
    "prices.py": "NAMES = ['pear']\n",
    "stock.py": SLOW + "COUNT = 7\n",
}
FAULTY = {"__init__.py": "", "stock.py": SLOW + "raise ImportError('no')\n"}

IMPORTS = """
import os, signal, sys, threading, time
import decisor

os.environ["PARENT"] = str(os.getpid())

def import_shop():
    import shop.stock

threading.Thread(target=import_shop, daemon=True).start()
while "shop.stock" not in sys.modules:
    time.sleep(0.001)
if not (child := os.fork()):
    signal.alarm(20)
    try:
        import shop, shop.stock
        print(shop.COUNT, shop.stock.COUNT, shop.prices.NAMES, flush=True)
    except ImportError as error:
        print(error, flush=True)
    os._exit(0)
os._exit(os.waitpid(child, 0)[1])
"""

QUESTIONS = """
import os, signal, sys, threading, time
import decisor

def reply(messages):
    if "[o1.r1]" not in messages[-1].content:
        return "Plan: [Step 1: look]\\nThought: x\\nAction: sql\\nAction input: SELECT 7 AS n"
    return "Final answer: 7\\nBecause: it is 7 [o1.r1]"

def ask():
    return decisor.ask("How many?", db="sqlite:///shop.db", llm=decisor.ScriptedLLM(reply), technique="plan_rag").answer

threading.Thread(target=ask, daemon=True).start()
children = []
for _ in range(5):
    time.sleep(0.06)
    if not (child := os.fork()):
        signal.alarm(90)  # a child that hangs is ended by it
        os._exit(0 if ask() == "7" else 3)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children], flush=True)
os._exit(0)
"""


def run_python(code: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=200)
    return done.stdout.strip() or done.stderr


@pytest.mark.parametrize(("package", "printed"), [(PACKAGE, "7 7 ['pear']"), (FAULTY, "no")])
def test_a_child_finishes_what_another_thread_was_importing(
    package: dict[str, str], printed: str, tmp_path: Path
) -> None:
    (tmp_path / "shop").mkdir()
    for name, text in package.items():
        (tmp_path / "shop" / name).write_text(text)
    assert run_python(IMPORTS, tmp_path) == printed


@pytest.mark.slow
def test_a_fork_while_the_first_question_is_asked_hangs_no_child(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as db, db:
        db.execute("CREATE TABLE t (x)")
    assert run_python(QUESTIONS, tmp_path) == str([0] * 5)
