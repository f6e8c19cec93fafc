"""What the house promises about itself: who may import whom, and how long a file may be."""

import ast
from collections.abc import Collection
from itertools import chain
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "decisor"
LAYERS = [
    {"types", "nouns", "protocols", "version", "errors", "ranking", "evidence", "calling", "asking"},
    {
        "budget",
        "trace",
        "encoding",
        "replies",
        "aio",
        "secrets",
        "child_process",
        "plurals",
        "durations",
        "outside",
        "settings",
    }
    | {"log", "cache", "private_file", "calls", "rankings", "quoting", "extras", "finding", "cycles", "max_scan"}
    | {"counting", "forks"},
    {"run", "history", "config", "telemetry"},
    {"learned"},
    {"lms", "tools", "techniques", "decision_models"},  # side by side: none imports another
    {"render", "definitions"},
    {"story"},
    {"decision_record"},
    {"session"},
    {"demo"},
    {"outcome"},
    {"statistics"},
    {"judging"},
    {"benchmarks"},
    {"evaluation"},
    {"report"},
    {"server"},
    {"mcp"},
    {"cli"},
]
FLOOR = {room: number for number, rooms in enumerate(LAYERS) for room in rooms}
FILES = sorted(SOURCE.rglob("*.py"))


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports(path: Path) -> set[str]:
    found = ast.walk(parse(path))
    names = (
        [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        for node in found
        if isinstance(node, ast.Import | ast.ImportFrom)
    )
    return {name for name in chain.from_iterable(names) if name.startswith("decisor")}


@pytest.mark.slow
def test_imports_only_point_to_lower_floors() -> None:
    wrong = []
    for path in FILES:
        here = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if here in ("__init__", "__main__"):
            continue
        for name in imports(path):
            there = room(name)
            if not there or there == here:
                continue
            if FLOOR[there] >= FLOOR[here] and not (FLOOR[here] == FLOOR[there] and FLOOR[here] in (0, 1)):
                wrong.append(f"{path.relative_to(SOURCE)} imports {name}")
    assert not wrong


def file_of(module: str) -> Path | None:
    place = SOURCE.parent.joinpath(*module.split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.exists()), None)


def needs_of(path: Path) -> set[Path]:
    """Files of ours that a file imports, wherever in it, and for a type checker alone too."""
    files = set()
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "decisor":
            files |= {file_of(f"{node.module}.{alias.name}") or file_of(f"{node.module}") for alias in node.names}
    return {file for file in files if file is not None} - {path}


@pytest.mark.slow
def test_no_file_needs_itself_by_way_of_others() -> None:
    """A part of a query may be a source of another one: ``block`` and ``source`` are about each other."""
    needs = {path: needs_of(path) for path in FILES}
    pitfalls = SOURCE / "tools" / "databases" / "pitfalls"
    needs[pitfalls / "source.py"] -= {pitfalls / "block.py"}
    while free := [path for path, others in needs.items() if not others & needs.keys()]:
        for path in free:
            del needs[path]
    assert not sorted(needs)


def test_no_file_is_over_700_lines() -> None:
    lengths = sorted((len(path.read_text().splitlines()), str(path)) for path in FILES)
    assert lengths[-1][0] <= 700, lengths[-1]


PARTICIPLES = {"found", "told", "asked", "held", "said", "made", "given", "kept", "shown", "taken"}


def bound_names(tree: ast.Module) -> set[str]:
    """Of variables, parameters, functions and classes."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name.lower())
    return names


def test_no_past_participle_is_a_name() -> None:
    wrong = {str(path): names for path in FILES if (names := bound_names(parse(path)) & PARTICIPLES)}
    assert not wrong


@pytest.mark.slow
def test_nothing_evaluates_unpickles_or_shells_out() -> None:
    banned = {"eval", "exec", "pickle", "marshal", "shelve", "os.system"}
    wrong = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in banned:
                wrong.append(f"{path}: {ast.unparse(node.func)}")
            if isinstance(node, ast.Import | ast.ImportFrom) and banned & {alias.name for alias in node.names}:
                wrong.append(f"{path}: {ast.unparse(node)}")
    assert not wrong


STARTERS = (
    "subprocess.",
    "multiprocessing.",
    "concurrent.futures.ProcessPool",
    "pty.",
    "os.system",
    "os.exec",
    "os.spawn",
    "os.posix_spawn",
    "os.fork",
    "os.popen",
    "os.startfile",
    "asyncio.create_subprocess",
    "webbrowser.",
    "ctypes.util.find_library",
)
ENDERS = (".subprocess_exec", ".subprocess_shell", "ProcessPoolExecutor")
STARTING = {
    "child_process.py": {"subprocess.run", "subprocess.Popen"},
    "tools/databases/sandbox/child.py": {"loop.subprocess_exec"},
    "tools/functions/mcp_transport.py": {"asyncio.create_subprocess_exec"},
}
"""Who starts a process. Ray starts its own, in ray_executor.py."""
OPENING = {"cli/serve.py": {"webbrowser.open"}}
"""Who opens a person's own browser, on an address of our own."""


def starts(path: Path) -> list[ast.Call]:
    """Every call that starts a process, by whatever name it was imported."""
    tree = ast.parse(path.read_text())
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {one.asname: one.name for one in node.names if one.asname}
        if isinstance(node, ast.ImportFrom):
            names |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            head, dot, rest = ast.unparse(node.func).partition(".")
            name = f"{names.get(head, head)}{dot}{rest}"
            if name.startswith(STARTERS) or name.endswith(
                (".subprocess_exec", ".subprocess_shell", "ProcessPoolExecutor")
            ):
                found.append(node)
    return found


@pytest.mark.slow
def test_a_process_is_started_in_one_way_only() -> None:
    ways = set().union(*STARTING.values(), *OPENING.values())
    assert {ast.unparse(node.func) for path in FILES for node in starts(path)} == ways
    for path in FILES:
        name = str(path.relative_to(SOURCE))
        allowed = STARTING.get(name, set())
        for node in starts(path):
            if ast.unparse(node.func) in OPENING.get(name, set()):
                continue
            assert ast.unparse(node.func) in allowed, (
                f"{path}, line {node.lineno}: start it through decisor.system.processes"
            )
            given = {word.arg: ast.unparse(word.value) for word in node.keywords}
            assert (given["env"], given["cwd"]) == ("start.environment", "start.folder"), path
            assert "start.command" in {ast.unparse(word).lstrip("*") for word in node.args}, path


def test_every_way_to_start_a_process_is_noticed(tmp_path: Path) -> None:
    ways = [
        "import subprocess as s; s.run(['x'])",
        "from subprocess import Popen as P; P(['x'])",
        "import os; os.fork()",
        "import os; os.posix_spawnp('x', [], {})",
        "from os import execv; execv('x', [])",
        "import asyncio; asyncio.create_subprocess_exec('x')",
        "from asyncio import create_subprocess_shell; create_subprocess_shell('x')",
        "loop.subprocess_shell(x, 'x')",
        "import multiprocessing; multiprocessing.Process(target=x)",
        "from concurrent.futures import ProcessPoolExecutor; ProcessPoolExecutor()",
        "from concurrent import futures; futures.ProcessPoolExecutor()",
    ]
    for number, way in enumerate(ways):
        path = tmp_path / f"{number}.py"
        path.write_text(way)
        assert len(starts(path)) == 1, way


SCORING = {"outcome", "statistics", "judging", "benchmarks", "evaluation", "report"}
"""The rooms where a decision meets its gold answer, and those above them."""
BLIND = sorted(FLOOR.keys() - SCORING - {"cli", "server", "mcp"})
TRAINING = {SOURCE / "learned" / "examples.py", SOURCE / "learned" / "training.py"}
"""Gold passages train the query scorer here, before any run."""


def files_of(rooms: Collection[str]) -> list[Path]:
    return [path for path in FILES if path.relative_to(SOURCE).parts[0].removesuffix(".py") in rooms]


def reads_gold(tree: ast.AST) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == "gold" for node in ast.walk(tree))


@pytest.mark.slow
def test_no_technique_sees_a_score_or_a_gold_answer() -> None:
    """Neither by importing what scores nor by the attribute; what trains the scorer is imported by no technique."""
    blind = files_of(BLIND)
    assert {path.parent.name for path in blind} >= {
        "techniques",
        "tools",
        "lms",
        "session",
        "story",
        "replies",
        "trace",
    }
    scores = [
        f"{path.relative_to(SOURCE)} imports {name}"
        for path in blind
        for name in imports(path)
        if room(name) in SCORING
    ]
    gold = [str(path.relative_to(SOURCE)) for path in blind if path not in TRAINING and reads_gold(parse(path))]
    trainers = [
        str(path.relative_to(SOURCE))
        for path in files_of({*BLIND} - {"learned"})
        if "decisor.lab.training" in imports(path)
    ]
    assert (scores, gold, trainers) == ([], [], [])


def test_no_benchmark_puts_a_gold_answer_into_a_question_or_an_environment() -> None:
    """What a technique gets of a case is made by ``Question(...)`` and by the method ``environment``."""
    wrong, environments = [], 0
    for path in files_of({"benchmarks"}):
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.AsyncFunctionDef) and node.name == "environment":
                environments += 1
            elif not (isinstance(node, ast.Call) and ast.unparse(node.func) == "Question"):
                continue
            if reads_gold(node):
                wrong.append(f"{path.relative_to(SOURCE)}, line {node.lineno}")
    assert environments >= 5
    assert not wrong
