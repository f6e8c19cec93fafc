"""The page of ``decisor serve`` in a real Chromium: how soon it is painted, and how a long run and a large tree scroll.

    python performance/page.py

Two minutes. Needs chromium and chromedriver.

Prints the first contentful paint of a page that is opened anew (the median of 9), how long a run of 5,000 events takes
until all of it stands there, what a frame costs while it and a search tree of 3,000 nodes are scrolled (the page's own
work, of 16.7 ms that a screen leaves, and how long frames took on this machine, whose other work counts too), and the
same while the run happens, 500 events a second, with the window at its end: there also the tasks that kept the page
from answering for more than 50 ms, by its own work and by the clock.
"""

from __future__ import annotations

import os
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from decisor.server.settings import ServerSettings
from head import words
from server.page import Page, window
from server.test_page_reach import MANY, long_run, wide_search

PAINT = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
SCROLL = """const done = arguments[2], [where, step] = arguments, box = where ? document.querySelector(where) : null;
const times = []; let last = performance.now(), count = 0;
function frame(now) {
  times.push(now - last); last = now;
  if (box) box.scrollTop += step; else scrollBy(0, step);
  if (++count < 120) requestAnimationFrame(frame); else done(times.slice(1));
}
requestAnimationFrame(frame);"""


TASKS = "toplevel,blink.user_timing"
WORK = """window.times = []; let last = performance.now();
function frame(now) { window.times.push(now - last); last = now; requestAnimationFrame(frame); }
requestAnimationFrame(frame);"""


def while_live() -> str:
    """In a browser of its own, which keeps what each task took."""
    with window(ServerSettings(), {}, {"live": long_run()}, TASKS) as page:
        page.open("/runs/live")
        page.run(WORK)
        page.until("document.querySelector('.run.over')")
        times = sorted(page.run("return window.times"))
        is_at_end = page.run("return scrollY + innerHeight > document.documentElement.scrollHeight - 1000")
        page.run("performance.mark('all-there')")
        page.browser.open("about:blank")
        traces = page.browser.traces()
    end_at = next(one["ts"] for one in traces if one["name"] == "all-there")
    threads = {(one["pid"], one["tid"]) for one in traces if one.get("args", {}).get("name") == "CrRendererMain"}
    tasks = [
        one for one in traces if one.get("ph") == "X" and one["ts"] < end_at and (one["pid"], one["tid"]) in threads
    ]
    worked, took = ([one.get(key, 0) / 1000 for one in tasks] for key in ("tdur", "dur"))
    return (
        f"{sum(worked) / 1000:.1f} s of own work in {sum(times) / 1000:.0f} s, {'' if is_at_end else 'not '}at its "
        f"end; tasks over 50 ms: {sum(one > 50 for one in worked)} by own work, the longest {max(worked):.0f} ms, "
        f"{sum(one > 50 for one in took)} with what other programs took meanwhile; frames: median "
        f"{statistics.median(times):.1f} ms, 95 % within {times[int(0.95 * len(times))]:.1f} ms"
    )


def scroll(page: Page, where: str, step: int) -> str:
    """120 frames; ``step`` pixels each."""
    page.browser.cdp("Performance.enable", {"timeDomain": "threadTicks"})
    before = busy(page)
    times = sorted(page.browser.call("POST", "/execute/async", {"script": SCROLL, "args": [where, step]}))
    own = 1000 * (busy(page) - before) / len(times)
    high = times[int(0.95 * len(times))]
    return (
        f"{own:.1f} ms of own work a frame; frames: median {statistics.median(times):.1f} ms, 95 % within {high:.1f} ms"
    )


def busy(page: Page) -> float:
    """Seconds that the page's thread has worked."""
    metrics = page.browser.cdp("Performance.getMetrics", {})["metrics"]
    return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))


def main() -> None:
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"{MANY:,} events, live: {while_live()}")
    with window(ServerSettings(), {"long": long_run(), "wide": wide_search()}) as page:
        paints = []
        for _ in range(9):
            page.browser.cdp("Network.clearBrowserCache", {})
            page.open("/")
            page.until("performance.getEntriesByName('first-contentful-paint').length")
            paints.append(float(page.run(PAINT)))
        print(f"first contentful paint: median {statistics.median(paints):.0f} ms of {len(paints)}")
        page.open("/runs/long")
        page.until(f"document.querySelectorAll('.steps .acts').length === {(MANY - 4) // 2}")
        seconds = page.run("return performance.now()") / 1000
        print(f"{MANY:,} events: all there {seconds:.2f} s after the page was opened")
        print(f"{MANY:,} events, scrolled: {scroll(page, '', 100)}")
        page.open("/runs/wide")
        page.until("document.querySelectorAll('.canvas .node').length")
        print(f"search tree of 3,000 nodes, scrolled: {scroll(page, '.canvas', 300)}")


if __name__ == "__main__":
    words(__doc__)
    main()
