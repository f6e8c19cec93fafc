"""What goes back to a model for a faulty reply is the same in every process, so caches and replays find it."""

import os
import subprocess
import sys

import pytest

COMPLAINTS = """
from decisor.decision_models.file import parse_model as parse_model
from decisor.semantics.definitions import parse_definitions as parse_definitions
from decisor.parsing.labelled import parse_labelled
from decisor.parsing.plan import parse_plan_graph
from decisor.parsing.whatif_request import parse_wish
from decisor.sandbox.engines.duckdb import DIALECT as DUCKDB
from decisor.sandbox.engines.sqlite import DIALECT as SQLITE
from decisor.sandbox.sql_guard import SqlGuard as Guard
from decisor.techniques.shared.analyst import build_action_shape, build_answer_shape, build_labelled_form

TOOLS = ("sql", "cypher", "search_passages", "finish", "think")
SHAPES = (build_action_shape(TOOLS), build_answer_shape())
FORM = build_labelled_form("action", "", TOOLS, 1, lambda reply: reply, SHAPES)
REPLIES = [
    "", "Action: sqll\\nAction input: x", "Action: a, b\\nAction: c", '{"tool": "sqk", "input": 1}', "{", "[]",
    '{"action": "sql", "tool": "cypher", "input": {"a": 1, "b": 2, "c": 3}}', "Final answer: a\\nFinal answer: b",
    "Q1 what? Q2 after Q9, Q8, Q7", '[{"id": "Q1", "query": "a Q3.0 Q4.0 Q5.0", "parents": ["Q7.0", "Q8.0"]}]',
    '{"Q1": "a", "Q2": {"query": "b", "needs": ["Q3", "Q4", "Q5"]}}', '[("a Q1", "b"), ("c", "d"), ("b", "a Q1")]',
    '[{"id": "a", "query": "x", "parents": ["b"]}, {"id": "b", "query": "y", "parents": ["c"]}, '
    '{"id": "c", "query": "z", "parents": ["a"]}]',
    "rank trials=x colour=1 shape=2 size=3", "scenario=", "set x.y = ", "close oak alpha=1 beta=2 gamma=3 delta=4",
    'format = 3\\ndecide = "x"\\nzeta = 1\\nalpha = 2\\nbeta = 3\\n[measure.a]\\ngoal = "mox"\\n'
    '[rule.r]\\nfoo = 1\\nbar = 2\\n',
    'format = 3\\ndecide = "x"\\nchoice.pick.rows = "SELECT 1"\\n'
    '[measure.a]\\ngoal = "min"\\nsql = "SELECT (SELECT p FROM pick) + (SELECT q FROM pick) + (SELECT r FROM pick)"\\n'
    '[measure.a.b]\\nc=1',
    '[metric.a]\\nfoo = 1\\nbar = 2\\nbaz = 3\\n[reading.r]\\nmetric = "q"\\n[mtric.x]\\n[jion.y]',
    "SELECT foo(1), bar(2), baz(3)", "SELECT * FROM a.b, sqlite_master, pragma_x, sqlite_dbpage", "DROP TABLE x",
    "SELECT load_extension('x'), readfile('y')", "SELECT 1; SELECT 2", "SELECT getenv('a'), read_csv('x'), uuid()",
]
READERS = [
    FORM.read,
    lambda text: parse_labelled(text, TOOLS, 1), lambda text: parse_plan_graph(text), parse_wish, parse_model,
    parse_definitions, Guard(SQLITE).check, Guard(DUCKDB).check,
]
for reply in REPLIES:
    for number, reader in enumerate(READERS):
        try:
            print(number, repr(reader(reply))[:400])
        except Exception as error:
            print(number, type(error).__name__, error)
"""


def said(seed: int) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    done = subprocess.run([sys.executable, "-c", COMPLAINTS], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_faulty_reply_is_complained_of_in_the_same_words_in_every_process() -> None:
    first = said(0)
    assert first.count("Error") > 60
    for seed in (1, 2, 3, 4):
        assert said(seed).splitlines() == first.splitlines()
