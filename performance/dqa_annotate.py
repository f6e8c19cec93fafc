"""How long the best decision of every released question takes, from the dumps on, beside plain Python in the same run.

    python performance/dqa_annotate.py [--data FOLDER] [--form sql|graph] [--plain 6]

Half a minute with `--plain 0`.

``--plain``: how many questions of each scenario the plain-Python reference answers (0: none; its time is then scaled
to all questions). The folder has the released layout, or identical dumps once with a MANIFEST.tsv.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import dqa_reference
from decisor.decision_models.ranking import rank_what_if
from decisor.lab.dqa import worlds as dumps
from decisor.lab.dqa.building import BuildingData
from decisor.lab.dqa.locating import LocatingData, Semantics
from decisor.lab.dqa.worlds import DqaCase, Form, Scenario, read_dqa_questions

SCENARIOS: tuple[Scenario, ...] = ("locating", "building")
World = LocatingData | BuildingData


def worlds_of(asked: list[DqaCase]) -> dict[Path, World]:
    """Each distinct database, read once."""
    return {path: dumps.read_dump(path) for path in dict.fromkeys(case.database for case in asked)}


def annotate(asked: list[DqaCase], worlds: dict[Path, World], semantics: Semantics) -> tuple[int, int]:
    """How many decisions are the released one, strictly and within the tie set."""
    strict = tied = 0
    for case in asked:
        ranking = rank_what_if(worlds[case.database].model(case.subject, semantics), trials=0)
        strict += bool(ranking.options) and ranking.options[0].name == case.gold
        tied += case.gold in ranking.ties
    return strict, tied


def plain(case: DqaCase, world: World) -> str:
    if isinstance(world, LocatingData):
        return dqa_reference.best_place(world, case.subject)
    return dqa_reference.best_building(world, case.subject)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(os.environ.get("DECISOR_DATA", Path(__file__).parent.parent.parent / "shared" / "data")) / "dqa"
    parser.add_argument("--data", type=Path, default=default)
    parser.add_argument("--form", choices=["sql", "graph"], default="sql")
    parser.add_argument("--plain", type=int, default=6)
    options = parser.parse_args()
    form: Form = options.form
    total = 0.0
    print("scenario   questions databases  read s decide s  released tie-aware")
    for scenario in SCENARIOS:
        start = time.perf_counter()
        asked = read_dqa_questions(options.data, scenario, form)
        worlds = worlds_of(asked)
        read = time.perf_counter() - start
        strict, tied = annotate(asked, worlds, "released")
        decided = time.perf_counter() - start - read
        total += read + decided
        counts = f"{len(asked):10}{len(worlds):10}{read:8.2f}{decided:9.2f}"
        print(f"{scenario:10}{counts}{strict:>6}/{len(asked):<4}{tied:>5}/{len(asked)}")
        printed, printed_tied = annotate(asked, worlds, "paper")
        print(f"{'':10}the printed rules agree with {printed} ({printed_tied} within the tie set)")
        if options.plain:
            some = asked[:: max(1, len(asked) // options.plain)][: options.plain]
            start = time.perf_counter()
            right = sum(plain(case, worlds[case.database]) == case.gold for case in some)
            slow = (time.perf_counter() - start) / len(some) * len(asked)
            print(f"{'':10}plain Python: {right}/{len(some)} right, {slow:.0f} s for all (scaled from {len(some)})")
    print(f"all questions, from dumps to decisions, released semantics: {total:.2f} s")


if __name__ == "__main__":
    main()
