"""A process of its own that runs the small benchmark on the Ray cluster of $RAY_ADDRESS: STORE LLM CASES."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Mapping

from decisor.lab.evaluation.ray import KeptStore, evaluate_on_ray, run_suite_share
from decisor.lab.evaluation.runner import Tally
from decisor.lab.evaluation.store import open_store
from decisor.lab.evaluation.suite import SuiteRequest

AT_ONCE = 2


def share_small(wanted: SuiteRequest, environment: Mapping[str, str], store: KeptStore) -> Tally:
    """On a worker: the same, with the small benchmark known there."""
    import evaluation.small  # noqa: F401

    return run_suite_share(wanted, environment, store)


def main(url: str, base_url: str, many: int) -> None:
    import ray

    from evaluation.ray_run import share_small  # by its name, as the workers find it

    for _ in range(60):  # it may still be starting
        with contextlib.suppress(ConnectionError, RuntimeError):
            ray.init(log_to_driver=False)
            break
        time.sleep(1)
    wanted = SuiteRequest(url, (f"small many={many}",), ("plan_rag",), (f"m@{base_url}",), cases_at_once=AT_ONCE)
    store = open_store(url)
    tally = evaluate_on_ray(wanted, store, 2, run=share_small)
    print(json.dumps([tally.done, tally.total, tally.usage.calls]))
    store.close()
    ray.shutdown()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
