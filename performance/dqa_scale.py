"""How a large Building world is annotated: time and memory by number of candidates.

    python performance/dqa_scale.py [--goods N] [--buildings N] [--edges N]

Half a minute for 1,000 buildings, some minutes for all.

The world is generated (10,000 buildings and 200 goods unless told), and every building is a candidate. ``all goods``
computes every goods' price at once, as the annotator of the benchmark does.
"""

from __future__ import annotations

import argparse
import resource
import time

from decisor.lab.dqa import generated_worlds as generated
from decisor.lab.dqa.building import compute_goods_prices
from decisor.lab.dqa.generated_worlds import Balance, make_supply, simulate_supply


def main() -> None:
    import numpy as np

    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--goods", type=int, default=200)
    options.add_argument("--buildings", type=int, default=10_000)
    options.add_argument("--edges", type=int, default=40_000)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    began = time.perf_counter()
    world = make_supply(given.goods, given.buildings, given.edges, np.random.default_rng(given.seed))
    data = world.rows()
    rows = len(data.supply) + len(data.demand)
    print(f"world: {len(data.goods)} goods, {len(data.buildings):,} buildings, {rows:,} rows")
    print(f"made in {time.perf_counter() - began:.2f} s")
    print("model: whatif.building, bit-stable; products: the generator's matrix products, all goods at once")
    print(f"{'candidates':>10} {'model s':>8} {'its CPU':>8} {'products s':>10} {'peak MB':>8} {'same best':>9}")
    count = max(given.buildings // 100, 1)
    while count <= given.buildings:
        began, worked = time.perf_counter(), time.process_time()
        slow = compute_goods_prices(data, range(count), "paper")
        spent, busy = time.perf_counter() - began, time.process_time() - worked
        began = time.perf_counter()
        fast = generated.compute_supply_prices(world, *simulate_supply(world, Balance.of(world), np.arange(count))[:2])
        quick = time.perf_counter() - began
        at_best = fast[slow.argmin(0), np.arange(len(data.goods))]
        same = int((at_best <= fast.min(0) * (1 + 1e-9)).sum())
        print(
            f"{count:>10,} {spent:>8.2f} {busy:>8.2f} {quick:>10.2f} {peak():>8.0f} {same:>5}/{len(data.goods)}",
            flush=True,
        )
        count *= 10


def peak() -> float:
    """Of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
