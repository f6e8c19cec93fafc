"""How large a report page is, how long it takes to make, and how long a real browser needs to open it.

    python performance/report_page.py [CASES]     needs chromium and chromedriver

500 cases take half a minute.

Makes a run of CASES outcomes (5,000), writes its page, and opens it in headless Chromium five times (medians). Beside
it, in the same browser, a page of the same size whose data is one inert block: what any page of that size costs.
"""

import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from decisor.lab.evaluation.store import open_store
from decisor.lab.report.document import make_report
from decisor.lab.report.page import write_page
from head import words
from report.browser import Browser, browser
from report.made import TECHNIQUES, run

TIMES = """const entry = performance.getEntriesByType('navigation')[0];
const paint = performance.getEntriesByName('first-contentful-paint')[0];
return [paint ? paint.startTime : 0, entry.domContentLoadedEventEnd, entry.loadEventEnd]"""
SEARCH = """const began = performance.now(), box = document.getElementById('text'); box.value = 'krakow building-1';
document.querySelector('.chips button').click(); return performance.now() - began"""
STORY = """const began = performance.now(); document.querySelector('.row').click();
document.querySelector('.story').getBoundingClientRect(); return performance.now() - began"""


def main() -> None:
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    with TemporaryDirectory() as folder:
        file, plain = Path(folder) / "page.html", Path(folder) / "plain.html"
        write(cases, Path(folder) / "run.db", file)
        plain.write_text(f"<!doctype html><p>plain<script type='application/json'>{'x' * file.stat().st_size}</script>")
        with browser() as one:
            for path in (file, plain, file, plain):
                paint, ready, loaded = opened(one, path)
                print(f"{path.name:10}  first paint {paint:5.0f} ms, usable {ready:5.0f} ms, loaded {loaded:5.0f} ms")
            one.open(file.as_uri())
            print(f"filter {one.run(SEARCH):.0f} ms, open a story {one.run(STORY):.0f} ms")


def write(cases: int, database: Path, file: Path) -> None:
    store = open_store(database)
    store.begin({"suite": "made up"})
    with store.transaction():
        for made in run(cases // len(TECHNIQUES)):
            store.finish(made.outcome, made.entries)
    began = time.monotonic()
    report = make_report(store.outcomes(), store.about())
    read = time.monotonic()
    with file.open("w", encoding="utf-8") as out:
        write_page(report, lambda one: store.trace(one.key), out)
    ended = time.monotonic()
    store.close()
    print(
        f"{len(report.outcomes):,} outcomes, {file.stat().st_size / 1e6:.1f} MB; "
        f"statistics {read - began:.1f} s, page {ended - read:.1f} s"
    )


def opened(one: Browser, path: Path) -> tuple[float, float, float]:
    """Median milliseconds to the first paint, to a page that can be used, and to the end of loading."""
    found = []
    for _ in range(5):
        one.open(path.as_uri())
        found.append(one.run(TIMES))
    first, ready, loaded = (median(times) for times in zip(*found, strict=True))
    return first, ready, loaded


if __name__ == "__main__":
    words(__doc__)
    main()
