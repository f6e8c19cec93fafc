"""What opening costs, and what a question costs on data that are open: SQLite, one query, a scripted LLM. Best of 5.

python performance/open_once.py

Twenty seconds.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import decisor
from head import words
from session.conftest import database, planner

ROUNDS, MANY = 5, 50


async def measure(sites: Path) -> tuple[float, float, float]:
    """Seconds to open, for one question, and for many at once."""
    began = time.perf_counter()
    async with decisor.open(db=str(sites)) as data:
        opened = time.perf_counter()
        await data.ask("Which site?", llm=planner())  # imports what a run needs
        first = time.perf_counter()
        await data.ask("Which site?", llm=planner())
        second = time.perf_counter()
        await asyncio.gather(*(data.ask(f"Which site? ({at})", llm=planner()) for at in range(MANY)))
        return opened - began, second - first, time.perf_counter() - second


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        sites = database(Path(folder) / "sites.db", [("oak", 700.0), ("elm", 400.0)])
        rounds = [asyncio.run(measure(sites)) for _ in range(ROUNDS)]
        once = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            decisor.ask("Which site?", db=str(sites), llm=planner())
            once.append(time.perf_counter() - began)
    opening, question, many = (min(one[at] for one in rounds) for at in range(3))
    print(f"open                     {1000 * opening:7.1f} ms")
    print(f"a question then          {1000 * question:7.1f} ms")
    print(f"{MANY} at once               {1000 * many:7.1f} ms")
    print(f"open, ask and close      {1000 * min(once):7.1f} ms")


if __name__ == "__main__":
    words(__doc__)
    main()
