"""Every paper's tables by functions that play a model, through ``decisor reproduce`` and a local HTTP server.

    python performance/reproduce_papers.py [PAPER ...] [--share 0.1] [--judge] [--usage] [--out DIR]

It checks that the tables are run, filled and printed; the scores are the functions', never a model's. With --usage it
writes ``lab/published/usage.toml``, the calls and tokens that ``--dry-run`` counts with (four letters a token).
A paper's store and printed tables (Markdown) lie in DIR, a temporary folder otherwise.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from decisor.lab.benchmark import Outcome
from decisor.lab.evaluation.store import open_store
from decisor.lab.reproduction.papers import PAPERS
from decisor.lab.reproduction.tables import drop_part_llms, measure_usage
from policies.papers import play_paper
from servers.openai_server import serve_threaded

USAGE = Path(__file__).parent.parent / "src/decisor/lab/published/usage.toml"
HEAD = """\
# Calls, prompt tokens and completion tokens of a case by scripted replies, at four letters a token: the mean over the
# cases of the data at hand. Made by performance/reproduce_papers.py --usage; of a real LLM all three are more.
usage = [
"""


def reproduce(paper: str, data: Path, out: Path, share: float, judge: bool) -> list[Outcome]:
    began = time.monotonic()
    with serve_threaded(play_paper(paper, data), "policy") as url:
        words = ["reproduce", paper, "all", "--llm", f"policy@{url}", "--markdown", "--yes"]
        words += ["--judge", f"policy@{url}"] if judge else []
        words += ["--data", str(data), "--share", str(share), "--store", str(out / f"{paper}.db")]
        done = subprocess.run([sys.executable, "-m", "decisor", *words], capture_output=True, text=True)
    (out / f"{paper}.md").write_text(done.stdout)
    print(f"{paper}: exit code {done.returncode}, {time.monotonic() - began:.0f} s, {out / f'{paper}.md'}")
    print(done.stderr, end="")
    with closing(open_store(str(out / f"{paper}.db"), create=False)) as store:
        return store.outcomes()


def write_usage(outcomes: list[Outcome]) -> None:
    parts: dict[tuple[str, str], list[Outcome]] = {}
    for one in outcomes:
        if one.model != "none" and one.state != "crashed":
            bench = " ".join(part for part in one.benchmark.split(" ") if not part.startswith("judge="))
            parts.setdefault((bench, drop_part_llms(one.technique)), []).append(one)
    rows = []
    for (bench, technique), part in sorted(parts.items()):
        usage = measure_usage(part)
        numbers = f"{usage.calls:.2f}, {usage.prompt_tokens:.0f}, {usage.completion_tokens:.0f}"
        rows.append(f'  ["{bench}", "{technique}", {numbers}],\n')
    USAGE.write_text(HEAD + "".join(rows) + "]\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("papers", nargs="*", default=list(PAPERS))
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--judge", action="store_true", help="the cells that are judged, too")
    parser.add_argument("--usage", action="store_true")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    data = Path(os.environ.get("DECISOR_DATA", "../shared/data"))
    with TemporaryDirectory(prefix="decisor-papers-") as folder:
        out = asked.out or Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        outcomes = [one for paper in asked.papers for one in reproduce(paper, data, out, asked.share, asked.judge)]
    if asked.usage:
        write_usage(outcomes)


if __name__ == "__main__":
    main()
