"""What the house promises about itself: who may import whom, and how long a file may be."""

import ast
from collections import Counter
from collections.abc import Collection
from itertools import chain
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "decisor"
LAYERS = [
    {"types", "errors", "version"},
    {"system"},
    {"parsing"},
    {"trace"},
    {"runtime"},
    {"llms", "sandbox", "techniques", "history"},
    {"databases"},
    {"graphs", "documents", "decision_models"},
    {"tools", "semantics"},
    {"views"},
    {"decision_record"},
    {"session"},
    {"server", "demo", "testing"},
    {"mcp"},
    {"cli"},
    {"lab"},
]
UPWARD = {
    ("errors.py", "decisor.types"),
}
"""Imports within a floor. No other is added."""
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
    upward = set()
    for path in FILES:
        here = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if here in ("__init__", "__main__"):
            continue
        for name in imports(path):
            there = room(name)
            if there and there != here and FLOOR[there] >= FLOOR[here]:
                upward.add((str(path.relative_to(SOURCE)), name))
    assert upward == UPWARD


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
    needs = {path: needs_of(path) for path in FILES}
    while free := [path for path, others in needs.items() if not others & needs.keys()]:
        for path in free:
            del needs[path]
    assert not sorted(needs)


LEAVES = {"techniques", "engines", "pitfalls"}
"""Rooms of leaves: one technique, engine or rule a file, copied from its neighbour; as many as there are."""
SHORT = {"__init__.py", "__main__.py", "version.py"}


def test_a_room_has_at_most_20_files() -> None:
    sizes = Counter(path.parent for path in FILES if path.name != "__init__.py")
    assert not {str(room): size for room, size in sizes.items() if size > 20 and room.name not in LEAVES}


def test_a_file_has_at_most_700_lines_and_few_have_under_120() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in FILES}
    assert not {str(path): size for path, size in lengths.items() if size > 700}
    short = [path for path, size in lengths.items() if size < 120 and path.name not in SHORT]
    assert len([path for path in short if path.parent.name not in LEAVES]) <= 26  # a ratchet: only ever fewer


HOOKS = {"main", "command"}
"""Functions that each leaf of a kind has: what a child process runs, and a command that is alone in its file."""
NAMESAKES = {"Conclusion", "Data"}
"""Classes of a decision record whose names are those of its published schema."""


def test_a_public_function_or_class_has_a_name_of_its_own() -> None:
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    names = Counter(
        node.name
        for path in FILES
        for node in parse(path).body
        if isinstance(node, kinds) and not node.name.startswith("_")
    )
    assert {name for name, count in names.items() if count > 1} == HOOKS | NAMESAKES


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
    "system/processes.py": {"subprocess.run", "subprocess.Popen"},
    "system/fork_server.py": {"subprocess.Popen", "os.fork"},
    "sandbox/process.py": {"loop.subprocess_exec"},
    "tools/mcp_client.py": {"asyncio.create_subprocess_exec"},
    "history/backup.py": {"subprocess.run"},
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
            if ast.unparse(node.func) == "os.fork":  # it sets its own environment and folder: test_fork_server.py
                continue
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


SCORING = {"lab"}
"""The room where a decision meets its gold answer."""
BLIND = sorted(FLOOR.keys() - SCORING - {"cli", "server", "mcp"})


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
        "llms",
        "session",
        "views",
        "parsing",
        "trace",
    }
    scores = {str(path.relative_to(SOURCE)) for path in blind for name in imports(path) if room(name) in SCORING}
    gold = [str(path.relative_to(SOURCE)) for path in blind if reads_gold(parse(path))]
    assert not scores and not gold


def test_no_benchmark_puts_a_gold_answer_into_a_question_or_an_environment() -> None:
    """What a technique gets of a case is made by ``Question(...)`` and by the method ``environment``."""
    wrong, environments = [], 0
    for path in files_of({"lab"}):
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.AsyncFunctionDef) and node.name == "environment":
                environments += 1
            elif not (isinstance(node, ast.Call) and ast.unparse(node.func) == "Question"):
                continue
            if reads_gold(node):
                wrong.append(f"{path.relative_to(SOURCE)}, line {node.lineno}")
    assert environments >= 5
    assert not wrong
