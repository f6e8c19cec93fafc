"""The console commands of README.md and the docs run as they are printed, in a folder with what they name.

The LLM is a stand-in on this machine that looks at one table, or searches once, and cites what it saw.
"""

import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from decision_shops import CLOSE, SITES, database
from decisor.lab.benchmark import Outcome
from decisor.lab.evaluation.store import open_store
from definition_shops import DEFINITIONS, definitions_file, shop
from definitions.test_definitions_check import manifest
from servers.openai_server import serve_threaded
from test_docs import PAGES, ROOT

CONSOLE = re.compile(r"^```console\n(.*?)^```", re.M | re.S)
LMS = re.compile(r"gpt-4\.1-mini|qwen3:8b@\S+")
REASONS = {
    r"(git|make|podman|pip|curl|ollama|claude|codex|ssh-keygen|mkdir) ": "not a command of ours alone",
    r"decisor (serve|mcp) ": "serves until it is stopped: tests/server/test_serve_command.py, tests/mcp_server",
    r".*(postgresql|bolt|trino)://me@": "a database server of somebody's",
    r".*mcp:(uvx|https)": "an MCP server of somebody's",
    r"decisor eval -b \"dqa": "downloaded questions: tests/benchmarks",
    r"decisor reproduce .*--data DIR": "downloaded questions: tests/reproduction",
    r"decisor model draft": "an LLM that writes a model: tests/cli/test_draft.py",
    r".*--tools openapi.json --technique radagent": "an LLM that searches among calls: tests/techniques",
    r"decisor demo$": "writes a page, and needs nothing: tests/cli",
    r"decisor history resume": "a run that did not end: tests/history",
}
"""Why what begins so is not run here."""
FIRST = {"saved.md": "decisor ask 'Which two?' --db duckdb:///shop.duckdb --model close.toml --trace run.jsonl"}
"""The run that a page's run.jsonl and run 12 are of, where it is not of sites.db."""
SPEC = {
    "openapi": "3.0.0",
    "info": {"title": "plants", "version": "1"},
    "servers": [{"url": "http://127.0.0.1:9"}],
    "paths": {
        "/plants": {
            "get": {"operationId": "plants", "summary": "All plants.", "responses": {"200": {"description": "plants"}}}
        }
    },
}


def blocks_of(page: Path) -> list[list[str]]:
    """The commands of each block, without comments."""
    blocks = [one.replace("\\\n", " ").splitlines() for one in CONSOLE.findall(page.read_text("utf-8"))]
    return [[re.split(r"\s+# ", line)[0].strip() for line in block if line.strip()] for block in blocks]


def reason(command: str) -> str:
    return next((why for begin, why in REASONS.items() if re.match(begin, command)), "")


def reply(body: Mapping[str, object]) -> str:
    text = "\n".join(str(message["content"]) for message in body["messages"])  # type: ignore[attr-defined]
    if seen := re.findall(r"\bo\d+\.r1\b", text.rpartition("# So far")[2]):
        answer = next((name for name in ("oak", "Acme", "Basel", "Linz", "Ann") if name in text), "12.5")
        return f"Final answer: {answer}\nBecause: it stands there [{seen[-1]}]"
    tool = (re.findall(r"^### Tool: (\w+)", text, re.M) or ["sql"])[0]
    tables = re.findall(r"^(?:table|view) (\w+)", text, re.M) or ["site"]
    inner = {"passages": "recall because of rust", "freight": json.dumps({"city": "Ghent"})}
    return (
        "Plan: [Step 1: look]\nThought: Start.\n"
        f"Action: {tool}\nAction input: {inner.get(tool, f'SELECT * FROM {tables[0]}')}"
    )


def build_world(folder: Path) -> None:
    folder.mkdir()
    database(folder, SITES)
    with duckdb.connect(str(folder / "shop.duckdb")) as source:
        for name in ("sites", "parts", "sales"):
            with closing(sqlite3.connect(folder / f"{name}.db")) as db, db:
                for (table,) in source.execute("SELECT table_name FROM duckdb_tables()").fetchall():
                    cursor = source.execute(f"SELECT * FROM {table}")
                    head = [one[0] for one in cursor.description]
                    db.execute(f"CREATE TABLE {table} ({', '.join(head)})")
                    db.executemany(
                        f"INSERT INTO {table} VALUES ({', '.join('?' * len(head))})",
                        ([float(one) if isinstance(one, Decimal) else one for one in row] for row in cursor.fetchall()),
                    )
    for name in ("run", "earlier"):
        with closing(open_store(folder / f"{name}.db")) as store:
            store.begin({"benchmarks": "dqa"})
            store.finish(Outcome("dqa", "c1", "plan_rag", "m", 0, "right", answer="Lyon", gold=("Lyon",)), [])
    (folder / "sites.toml").write_text(
        'format = 3\ndecide = "the site"\nchoice.pick.rows = "SELECT name FROM site"\n[measure.rent]\ngoal = "min"\n'
        'sql = "SELECT s.rent FROM site s JOIN pick c USING (name)"\n[input]\n"site.rent" = { spread = "5 % each" }\n'
    )
    (folder / "offers.csv").write_text("supplier,part,price,recalls\nAcme,bolt,1.2,3\nBorealis,bolt,1.1,9\n")
    (folder / "rules.txt").write_text("Recalls count more than price.\n")
    (folder / "reports" / "open" / "2026").mkdir(parents=True)
    (folder / "reports" / "open" / "2026" / "acme.txt").write_text(
        "Acme had a recall because of rust. The lease ends in May."
    )
    (folder / "offices").mkdir()
    (folder / "offices" / "office.csv").write_text("name,rent,seats\noak,900,30\nelm,700,24\nfir,500,8\n")
    (folder / "offices" / "team.csv").write_text("people\n20\n")
    tutorial = (ROOT / "docs" / "tutorials" / "own-decision-model.md").read_text("utf-8")
    (folder / "office.toml").write_text(re.findall(r"^```toml\n(.*?)^```", tutorial, re.M | re.S)[0])
    (folder / "costs.py").write_text(
        'def freight(city: str) -> float:\n    """The freight to a city, in EUR."""\n    return 12.5\n'
    )
    (folder / "plants.openapi.json").write_text(json.dumps(SPEC))
    (folder / "decisor.toml").write_text(
        '[connections.sales]\nurl = "sqlite:///sales.db"\n[connections.sites]\nurl = "sqlite:///sites.db"\n'
    )
    (folder / "close.toml").write_text(CLOSE)
    shop(folder)
    definitions_file(folder, re.sub(r"\[reading.best_customer\]\n(.+\n)+", "", DEFINITIONS))
    (folder / "target").mkdir()
    (folder / "target" / "semantic_manifest.json").write_text(json.dumps(manifest()))


def run(command: str, folder: Path, llm: str) -> subprocess.CompletedProcess[str]:
    words = shlex.split(LMS.sub(llm, command))
    words, out = (words[: words.index(">")], words[-1]) if ">" in words else (words, "")
    if "--out definitions.toml" in command:  # it writes over nothing
        (folder / "definitions.toml").unlink()
    environment = {**os.environ, "DECISOR_LLM": llm, "PYTHONPATH": f"{ROOT / 'src'}:{folder}"}
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        env=environment,
        stdin=subprocess.DEVNULL,
    )
    if out:
        (folder / out).write_text(done.stdout)
    return done


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page)], ids=lambda page: page.name)
def test_the_commands_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faults = []
    with serve_threaded(reply) as url:
        for number, block in enumerate(blocks_of(page)):
            if all(map(reason, block)):
                continue
            folder = tmp_path / str(number)
            build_world(folder)
            monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
            first = FIRST.get(page.name, "decisor ask 'Which site?' --db sqlite:///sites.db --trace run.jsonl")
            for command in (first, "decisor history mark 1 right", *(one for one in block if not reason(one))):
                done = run(re.sub(r"\b1[23]\b", "1", command), folder, f"test-model@{url}")
                if done.returncode:
                    faults.append(f"{command}\n    {done.returncode}: {done.stderr[-600:]} {done.stdout[-300:]}")
    assert not faults, "\n".join(faults)
