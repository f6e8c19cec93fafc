"""How long a newcomer waits: `import decisor` (bar 100 ms) and `decisor --help` (bar 250 ms), medians of 15.

python performance/startup.py

Fifteen seconds.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from head import words


def median_ms(command: list[str], rounds: int = 15) -> float:
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    return 1000 * statistics.median(times)


def main() -> None:
    bare = median_ms([sys.executable, "-c", "pass"])
    imported = median_ms([sys.executable, "-c", "import decisor"])
    helped = median_ms([sys.executable, "-m", "decisor", "--help"])
    print(f"python itself      {bare:6.1f} ms")
    print(f"import decisor     {imported - bare:6.1f} ms more   (bar 100)")
    print(f"decisor --help     {helped:6.1f} ms in all (bar 250)")


if __name__ == "__main__":
    words(__doc__)
    main()
