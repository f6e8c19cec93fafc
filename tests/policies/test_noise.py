"""A perfect policy stays right where three in ten of its replies are spoilt."""

import pytest

from data import DATA, SECURITY
from decisor.lab.benchmark import Outcome
from noisy_policy import dqa_trials, musique_trial, played
from policies.noise import Noise, forms_in

FORMS = SECURITY / "malformed_llm_outputs.jsonl"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (DATA / "dqa").is_dir(), reason=f"{DATA}/dqa is not there: set DECISOR_DATA"),
]


@pytest.mark.parametrize("name", ["iter_rag", "plan_rag"])
async def test_loops_on_tables_stay_right(name: str) -> None:
    outcomes: list[Outcome] = []
    for trial in dqa_trials(DATA, "sql", 8):
        rows = await played(trial, name, Noise(trial.policy, 0.3, forms_in(FORMS)), {})
        outcomes += [outcome for outcome, _ in rows]
        await trial.bench.close()
    calls = sum(outcome.usage.calls for outcome in outcomes)
    assert [outcome.state for outcome in outcomes] == ["right"] * 8
    assert calls <= 1.6 * 6 * len(outcomes)
    assert any(outcome.counts.get("unread_replies") for outcome in outcomes)


async def test_a_dag_on_documents_stays_right() -> None:
    trial = musique_trial(DATA, 8)
    rows = await played(trial, "reasoning_dag", Noise(trial.policy, 0.2, forms_in(FORMS)), {})
    await trial.bench.close()
    assert sum(outcome.state == "right" for outcome, _ in rows) >= 7
