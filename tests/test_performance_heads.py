"""Each script of performance/ starts as it lies there, and says what it does."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench import Claim, Script, measure, page

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "performance"
SCRIPTS = [
    path for path in sorted(FOLDER.rglob("*.py")) if re.search(r"^if __name__ ==", path.read_text("utf-8"), re.M)
]


@pytest.mark.slow
@pytest.mark.parametrize("script", [one for one in SCRIPTS if one.parent.name != "peers"], ids=lambda path: path.name)
def test_a_script_tells_its_use(script: Path, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, script, "--help"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr[-1000:]
    assert len(ended.stdout.split()) > 10


def test_every_script_has_its_row_on_the_page_of_performance() -> None:
    page = (ROOT / "docs" / "performance.md").read_text("utf-8")
    names = [str(path.relative_to(ROOT)) for path in SCRIPTS if path.parent.name not in ("peers", "planted")]
    assert not [name for name in names if name not in page]


def test_the_page_of_performance_names_no_script_that_is_not_there() -> None:
    page = (ROOT / "docs" / "performance.md").read_text("utf-8")
    assert not [name for name in re.findall(r"performance/[\w/]+\.py", page) if not (ROOT / name).exists()]


def test_a_script_without_time_is_ended_and_the_page_says_so() -> None:
    figures, text = measure(Script("startup", (Claim("import", r"import decisor +([-\d.]+) ms", "ms", 100),)), 0.01)
    assert "too slow: ended after 0 s" in text and figures[0].ratio is None
    shown = page(figures, {"startup": text}, "1.0")
    assert "not measured" in shown and "too slow" in shown
