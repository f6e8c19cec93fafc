"""The pictures of the README, drawn anew from what the demo really does.

python docs/pictures/make.py    writes run.svg and, where Chromium is installed, decision.png beside this file
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.text import Text

from decisor.demo.demo import replay_recorded_run, write_shop

HERE = Path(__file__).parent
FONT = re.compile(r"@font-face\s*\{.*?\}", re.S)
TITLE = "decisor demo"
WIDTH = 118
LONGEST = 14
"""Lines of a query with its rows that are drawn; of a longer one the first four and the last seven."""


def draw(folder: Path) -> tuple[str, Path]:
    """The recorded run as an SVG that fetches nothing, and the page of the same run in ``folder``."""
    shop, page = folder / "shop.db", folder / "decision.html"
    write_shop(shop)
    console = drawing()
    result = replay_recorded_run(shop, console)
    result.html(page)
    shorter = drawing()
    for line in shortened(Text.from_ansi(console.export_text(styles=True)).split("\n")):
        shorter.print(line)
    svg = shorter.export_svg(title=TITLE, unique_id="run")
    return FONT.sub("", svg), page


def drawing() -> Console:
    return Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=False, color_system="truecolor")


def shortened(lines: Iterable[Text]) -> Iterator[Text]:
    """The lines of a run, long queries without their middle. A query stands below its tool, four spaces in."""
    for is_query, group in groupby(lines, lambda line: line.plain.startswith("    ")):
        part = list(group)
        if is_query and len(part) > LONGEST:
            part = [*part[:4], Text(f"    … {len(part) - 11} lines more", style="dim"), *part[-7:]]
        yield from part


def photograph(page: Path, picture: Path) -> None:
    """Does nothing where there is no Chromium."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("No Chromium: the picture of the page stays as it is.", file=sys.stderr)
        return
    words = [browser, "--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1100,760"]
    subprocess.run([*words, f"--screenshot={picture}", page.as_uri()], check=True, capture_output=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        svg, page = draw(Path(place))
        (HERE / "run.svg").write_text(svg, "utf-8")
        photograph(page, HERE / "decision.png")
