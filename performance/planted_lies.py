"""How many planted lies the check of answers objects to, and how many true answers.

    python performance/planted_lies.py [--n 2000] [--seed 1] [--set development|kept|last|fresh|second|third|
        fourth|fifth|sixth|seventh|eighth|ninth|tenth] [--show 5]

True answers about rows of Northwind, Chinook and worlds of our own are written in many ways; each is told once more
with one thing changed: a figure, unit, scale, rank, row, candidate, period, direction, runner-up or count. A lie is
false by its making: the place that it stands in knows the true value and its rounding. Bars: 98 % of the lies
objected to, at most 2 % of the true answers. Thirteen sets of phrasings: one to build the check with, one kept back,
one written last, ten written by somebody who had not seen the check.
It wants the databases of ``decisions`` in $DECISOR_DATA (default ../shared/data).
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from decisor.errors import ParseError
from decisor.lab.statistics import wilson
from decisor.techniques.shared.analyst import FINAL_ANSWER
from decisor.techniques.shared.answer import Trajectory, build_final_answer_form
from planted import (
    answer_texts,
    answer_texts_eighth,
    answer_texts_fifth,
    answer_texts_fourth,
    answer_texts_fresh,
    answer_texts_kept,
    answer_texts_last,
    answer_texts_ninth,
    answer_texts_second,
    answer_texts_seventh,
    answer_texts_sixth,
    answer_texts_tenth,
    answer_texts_third,
)
from planted.answer_slots import KINDS, Lie, Phrasing, fits, tell_lies, write
from planted.answer_worlds import Case, cases, wide_case

DATA = Path(os.environ.get("DECISOR_DATA", "../shared/data"))
SETS = {
    "development": answer_texts.TEXTS,
    "kept": answer_texts_kept.TEXTS,
    "last": answer_texts_last.TEXTS,
    "fresh": answer_texts_fresh.TEXTS,
    "second": answer_texts_second.TEXTS,
    "third": answer_texts_third.TEXTS,
    "fourth": answer_texts_fourth.TEXTS,
    "fifth": answer_texts_fifth.TEXTS,
    "sixth": answer_texts_sixth.TEXTS,
    "seventh": answer_texts_seventh.TEXTS,
    "eighth": answer_texts_eighth.TEXTS,
    "ninth": answer_texts_ninth.TEXTS,
    "tenth": answer_texts_tenth.TEXTS,
}


@dataclass(frozen=True)
class Pair:
    """A true answer and the same with one lie."""

    case: Case
    phrasing: str
    true: str
    lie: Lie


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=2000, help="true answers of a set")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", choices=SETS, action="append", help="phrasings (default: those that were read)")
    parser.add_argument("--show", type=int, default=0, help="misses and false alarms to print")
    arguments = parser.parse_args()
    made = cases(DATA, arguments.seed)
    for name in arguments.set or SETS:
        measure(name, list(pairs(made, SETS[name], arguments.n, arguments.seed)), arguments.show)
    began = time.process_time()
    rounds = 20
    case = wide_case(arguments.seed)
    text = write(SETS["development"][1], case, "speed")
    for _ in range(rounds):
        objections(case, text)
    print(f"{1000 * (time.process_time() - began) / rounds:.1f} ms of CPU for an answer about 200 rows of 10 columns")


def measure(name: str, told: Sequence[Pair], show: int) -> None:
    """Print what was objected to."""
    caught: Counter[str] = Counter()
    planted = Counter(pair.lie.kind for pair in told)
    alarms: Counter[str] = Counter()
    passed = caught_of_passed = shown = 0
    for pair in told:
        complaints = objections(pair.case, pair.true)
        is_caught = bool(objections(pair.case, pair.lie.text))
        alarms[pair.phrasing] += bool(complaints)
        caught[pair.lie.kind] += is_caught
        passed += not complaints
        caught_of_passed += is_caught and not complaints
        if shown < show and (complaints or not is_caught):
            shown += 1
            tell(pair, complaints)
    print(f"{name}: {len(told)} true answers in {len({pair.phrasing for pair in told})} phrasings, each with one lie")
    for kind in KINDS:
        print(f"  {kind:<10} {share(caught[kind], planted[kind])}")
    print(f"  all lies objected to {share(caught.total(), len(told))}")
    print(f"  lies objected to whose true answer passes {share(caught_of_passed, passed)}")
    print(f"  true answers objected to {share(alarms.total(), len(told))}")
    if alarms.total():
        print("  of them by phrasing: " + ", ".join(f"{phrasing} {n}" for phrasing, n in alarms.most_common() if n))


def objections(case: Case, text: str) -> list[str]:
    """What is said against an answer."""
    trajectory = Trajectory(case.asked, case.steps)
    try:
        decision = build_final_answer_form(trajectory, FINAL_ANSWER).read_text(text)
    except ParseError as complaint:
        return [str(complaint)]
    return [objection.text for objection in decision.evidence.objections]


def share(right: int, total: int) -> str:
    if not total:
        return "none"
    interval = wilson(right, total)
    return f"{100 * right / total:5.1f} % of {total} (95 %: {100 * interval.low:.1f} to {100 * interval.high:.1f})"


def tell(pair: Pair, complaints: Sequence[str]) -> None:
    if complaints:
        print(f"--- objected to, true [{pair.phrasing}]: {'; '.join(complaints)}\n{pair.true}")
    else:
        lie = pair.lie
        print(
            f"--- missed [{pair.phrasing}]: {lie.kind}, {lie.was.strip()!r} became {lie.is_now.strip()!r}\n{lie.text}"
        )


def pairs(made: Sequence[Case], phrasings: Sequence[Phrasing], n: int, seed: int) -> Iterator[Pair]:
    """As many pairs, no true answer twice, phrasings in turn, worlds and kinds of lies as even as they let them be."""
    told: Counter[str] = Counter()
    seen: set[str] = set()
    chance = random.Random(seed)
    worlds = [[case for case in made if case.world == world] for world in sorted({case.world for case in made})]
    for number in range(100 * n):
        phrasing, case, name = (
            phrasings[len(seen) % len(phrasings)],
            chance.choice(chance.choice(worlds)),
            f"{seed} {number}",
        )
        if number % 50 == 0:  # No case may be left that this phrasing fits.
            phrasing = chance.choice(phrasings)
        if not fits(phrasing, case) or (true := write(phrasing, case, name)) in seen:
            continue
        lies = {lie.kind: lie for lie in tell_lies(phrasing, case, name)}
        lie = lies[min(lies, key=lambda kind: told[kind])]
        told[lie.kind] += 1
        seen.add(true)
        yield Pair(case, phrasing.name, true, lie)
        if len(seen) == n:
            return


if __name__ == "__main__":
    main()
