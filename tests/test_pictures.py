"""The picture at the top of the README shows what the demo does."""

import html
import re
import runpy
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"
SECONDS = re.compile(r"rows? in [\d.,]+ m?s")


def lines_of(svg: str) -> list[str]:
    texts = re.findall(r"<text[^>]*>(.*?)</text>", svg, re.S)
    return [SECONDS.sub("rows", html.unescape(text).replace("\xa0", " ").strip()) for text in texts]


def test_the_picture_of_a_run_is_that_of_the_demo(tmp_path: Path) -> None:
    svg, page = runpy.run_path(str(FOLDER / "make.py"))["draw"](tmp_path)
    assert lines_of(svg) == lines_of((FOLDER / "run.svg").read_text("utf-8"))
    assert page.exists()


def test_the_picture_fetches_nothing() -> None:
    svg = (FOLDER / "run.svg").read_text("utf-8")
    assert "@font-face" not in svg and "url(http" not in svg and "<image" not in svg
