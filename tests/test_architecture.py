"""What the house promises about itself: who may import whom, and how long a file may be."""

import ast
from itertools import chain
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "decisor"
LAYERS = [
    {"types", "errors"},
    {"budget", "trace", "replies", "aio", "secrets", "child_process", "plurals", "outside"},
    {"run"},
    {"learned"},
    {"lms", "tools", "techniques", "decision_models"},  # side by side: none imports another
    {"render"},
    {"story"},
    {"session"},
    {"outcome"},
    {"statistics"},
    {"judging"},
    {"benchmarks"},
    {"evaluation"},
    {"report"},
    {"cli", "server", "mcp"},
]
FLOOR = {room: number for number, rooms in enumerate(LAYERS) for room in rooms}
FILES = sorted(SOURCE.rglob("*.py"))


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def imports(path: Path) -> set[str]:
    found = ast.walk(ast.parse(path.read_text()))
    names = (
        [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        for node in found
        if isinstance(node, ast.Import | ast.ImportFrom)
    )
    return {name for name in chain.from_iterable(names) if name.startswith("decisor")}


def test_imports_only_point_to_lower_floors() -> None:
    wrong = []
    for path in FILES:
        here = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if here in ("__init__", "__main__"):
            continue
        for name in imports(path):
            there = room(name)
            if not there or there == here or (here == "types" and there == "run"):
                continue
            if FLOOR[there] >= FLOOR[here] and not (FLOOR[here] == FLOOR[there] and FLOOR[here] in (0, 1)):
                wrong.append(f"{path.relative_to(SOURCE)} imports {name}")
    assert not wrong


def test_no_file_is_over_350_lines_and_the_median_is_under_150() -> None:
    lengths = sorted((len(path.read_text().splitlines()), str(path)) for path in FILES)
    assert lengths[-1][0] <= 350, lengths[-1]
    assert lengths[len(lengths) // 2][0] < 150


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
