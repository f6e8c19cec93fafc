"""How often one technique's answers win over another's: of two runs of a case the one that passed wins; where both or
neither did, a judge prefers one, shown the steps that each chose (ToolBench's win rate, for any benchmark).

The judge is asked in both orders, ``votes`` times each. Only first tries of cases that both finished count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from decisor.benchmarks.toolbench.wins import TaskRun, Wins, wins
from decisor.errors import SetupError
from decisor.evaluation.failure_judge import StoreBook, spread
from decisor.evaluation.preference_ranks import answer_text, question_text, shared_cases
from decisor.evaluation.store.protocol import Store
from decisor.judging.lm_judge import judging
from decisor.judging.preference import TOOL_CRITERIA, Preference
from decisor.lms.journal import Journal
from decisor.outcome import Outcome
from decisor.statistics.compare import side
from decisor.types import LM


@dataclass(frozen=True, slots=True)
class WinRate:
    """Of ``technique`` over ``over``. Its rate is ``wins.rate``: the share of the cases with a winner."""

    judge: str
    benchmark: str
    technique: str
    over: str
    cases: int
    wins: Wins


async def win_rates(store: Store, lm: LM, judge: str, over: str, most: int = 100, votes: int = 1) -> list[WinRate]:
    """Of every technique over the one that is named, on at most ``most`` cases of each benchmark.

    Raises:
        LMError: the endpoint will not answer anything (key, quota, model).
        SetupError: no technique of that name shares a case with another.
    """
    journal, rates, names = Journal(StoreBook(store)), [], set[str]()
    for benchmark, cases in shared_cases(store).items():
        some = spread([outcomes[0] for outcomes in cases.values()], most)
        by_side: dict[str, dict[str, Outcome]] = {}
        for case in some:
            for one in cases[case.case]:
                by_side.setdefault(str(side(one)), {})[one.case] = one
        names |= by_side.keys()
        rival = next((name for name in by_side if name == over or name.partition(", ")[0] == over), None)
        if rival is None:
            continue
        for name, part in ((name, part) for name, part in by_side.items() if name != rival):
            result = await wins(tasks(part, store), tasks(by_side[rival], store), judging(journal.lm(lm)),
                                Preference(TOOL_CRITERIA, votes=votes))  # fmt: skip
            rates.append(WinRate(judge, benchmark, name, rival, len(part), result))
    if not rates:
        raise SetupError(f"--over {over} needs a case that it and another technique finished; there is "
                         f"{', '.join(sorted(names)) or 'none that two finished'}.")  # fmt: skip
    return rates


def tasks(part: Mapping[str, Outcome], store: Store) -> dict[str, TaskRun]:
    return {
        case: TaskRun(question_text(one, store), answer_text(one, store), one.state == "right")
        for case, one in part.items()
    }
