"""The measurements that are quick, one after the other, as one page: what was measured, its bar, and their ratio.

    python performance/bench.py [--out build/bench.html] [--only startup,graph_load] [--json]

A ratio of 1 or more: the bar is kept, by that factor (1,000 at most). Each figure is read from what the script prints,
which stands below the table. All of them together have 9 minutes, and each has 2: a script that needs more is ended,
and is called too slow. The load is on the page: other work on the machine makes times longer, and ratios to another
library in the same run hardly different.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).parent
SECONDS, TOTAL = 120.0, 540.0
"""For one script, and for all of them."""
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}"
    "td,th{padding:.3rem .6rem;border-bottom:1px solid #ccc;text-align:left}td.n{text-align:right}"
    ".missed{color:#b00020}pre{background:#f4f4f2;color:#222;padding:.8rem;overflow:auto}"
)


@dataclass(frozen=True)
class Claim:
    """``reads`` finds the figure, as its first group, in what the script prints. ``over``: the bar is another figure of
    the same run, times this. The smaller the figure the better."""

    what: str
    reads: str
    unit: str
    bar: float = 0.0
    over: str = ""


@dataclass(frozen=True)
class Script:
    name: str
    claims: tuple[Claim, ...]
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Figure:
    """``ratio``: the bar by the value; None where there is no value."""

    script: str
    what: str
    value: float | None
    bar: float | None
    unit: str

    @property
    def ratio(self) -> float | None:
        return self.bar / max(self.value, self.bar / 1000) if self.value is not None and self.bar is not None else None


SCRIPTS = (
    Script(
        "startup",
        (
            Claim("import decisor", r"import decisor +([-\d.]+) ms", "ms", 100),
            Claim("decisor --help", r"decisor --help +([\d.]+) ms", "ms", 250),
        ),
    ),
    Script(
        "llm_overhead",
        (
            Claim("CPU a call, one at a time", r"1 at once +([\d.]+)", "ms", 0.8),
            Claim(
                "the same beside the openai SDK",
                r"1 at once +([\d.]+)",
                "ms",
                over=r"1 at once +[\d.]+ +[\d.]+ +([\d.]+)",
            ),
        ),
    ),
    Script(
        "sandbox_overhead",
        (
            Claim("SQLite, added to a query of one row", r"engine sqlite .*?overhead ([-\d.]+)", "ms", 5),
            Claim("DuckDB, added to a query of one row", r"engine duckdb .*?overhead ([-\d.]+)", "ms", 5),
        ),
        ("--queries", "100"),
    ),
    Script("guard_parser", ()),
    Script(
        "open_once",
        (
            Claim(
                "a question of open data beside opening, asking and closing",
                r"a question then +([\d.]+)",
                "ms",
                over=r"open, ask and close +([\d.]+)",
            ),
        ),
    ),
    Script("pitfalls", (Claim("the rules on a query, the slowest", r"slowest ([\d.]+) ms", "ms", 50),)),
    Script("graph_load", (Claim("1,000 nodes, 2,000 relationships", r"best of 5: ([\d.]+) s", "s", 1),)),
    Script(
        "decision_models/speed",
        (
            Claim("1,000 candidates x 100,000 rows ranked", r"ranked in ([\d.]+) s", "s", 3),
            Claim("the same beside one by one", r"ranked in ([\d.]+) s", "s", over=r"one by one ([\d.]+) s"),
        ),
        ("--only", "sparse", "--trials", "20"),
    ),
    Script("dqa_scale", (), ("--buildings", "1000")),
)


def measure(script: Script, seconds: float = SECONDS) -> tuple[list[Figure], str]:
    """The figures, and all that it printed until it was ended."""
    command = [sys.executable, str(HERE / f"{script.name}.py"), *script.words]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        text = (
            ended.stdout
            if ended.returncode == 0
            else f"{ended.stdout}\n(ended with {ended.returncode})\n{ended.stderr}"
        )
    except subprocess.TimeoutExpired as error:
        text = f"{(error.stdout or b'').decode(errors='replace')}\n(too slow: ended after {seconds:.0f} s)"
    return [figure(script.name, claim, text) for claim in script.claims], text


def figure(script: str, claim: Claim, text: str) -> Figure:
    """
    >>> figure("x", Claim("a", r"took ([0-9.]+) s", "s", 3), "took 1.5 s").ratio
    2.0
    """
    bar = number(claim.over, text) if claim.over else claim.bar
    return Figure(script, claim.what, number(claim.reads, text), bar, claim.unit)


def number(pattern: str, text: str) -> float | None:
    match = re.search(pattern, text, re.S)
    return float(match[1]) if match else None


def rows(figures: Sequence[Figure]) -> Iterator[str]:
    for one in figures:
        value = f"{one.value:g} {one.unit}" if one.value is not None else "not measured"
        bar = f"{one.bar:g} {one.unit}" if one.bar is not None else ""
        ratio = f"{one.ratio:.2g}" if one.ratio is not None else ""
        state = "" if one.ratio is not None and one.ratio >= 1 else ' class="missed"'
        yield (
            f"<tr{state}><td><a href='#{one.script}'>{one.script}</a></td><td>{html.escape(one.what)}</td>"
            f"<td class=n>{value}</td><td class=n>{bar}</td><td class=n>{ratio}</td></tr>"
        )


def page(figures: Sequence[Figure], outputs: dict[str, str], load: str) -> str:
    about = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {load}"
    parts = [f"<h2 id='{name}'>{name}</h2><pre>{html.escape(text)}</pre>" for name, text in outputs.items()]
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Decisor, measured</title><style>{STYLE}</style>"
        f"<h1>Decisor, measured</h1><p>{about}. Ratio: the bar by the figure; 1 or more is kept.</p>"
        f"<table><tr><th>script<th>what<th>figure<th>bar<th>ratio</tr>{''.join(rows(figures))}</table>{''.join(parts)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build/bench.html"))
    parser.add_argument("--only", default="")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    load, figures, outputs = f"{os.getloadavg()[0]:.1f}", list[Figure](), dict[str, str]()
    ends = time.perf_counter() + TOTAL
    for script in SCRIPTS:
        if options.only and script.name not in options.only.split(","):
            continue
        began = time.perf_counter()
        own, outputs[script.name] = measure(script, max(1.0, min(SECONDS, ends - began)))
        figures += own
        print(f"{script.name}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(page(figures, outputs, load), "utf-8")
    if options.json:
        print(json.dumps([asdict(one) | {"ratio": one.ratio} for one in figures]))
    else:
        print(f"{options.out} has {len(figures)} figures.")


if __name__ == "__main__":
    main()
