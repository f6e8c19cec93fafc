"""What bad replies cost: perfect policies whose replies are spoilt at rate p (tests/policies/noise.py), over HTTP.

    python performance/noisy_policy.py [DATA] [--only dqa|musique|game24] [--technique NAME] [--cases 60] [--seed 0]
        [--shares 0,.1,.3] [--form sql|graph] [-o NAME=VALUE]

Right decisions, calls and tokens a question against p = 0, .1, .2, .3, .5. It measures the harness, not a model: what
is lost at p is lost because a reply could not be read, or was read as something that it does not say. Bars for plan_rag
and iter_rag: 99 % right at .1, 95 % at .3, and at .3 at most 1.5 times the calls of p = 0. The policy of Game of 24 is
fitted to a model's skill, so it is not right at p = 0 either.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from aiohttp import web

from data import DATA, SECURITY
from decisor.lab.benchmark import Bench, Case, Outcome
from decisor.lab.dqa.bench import DqaBench
from decisor.lab.dqa.worlds import Form, Scenario
from decisor.lab.evaluation.case_run import CaseAttempt, run_case
from decisor.lab.game24 import Game24Bench
from decisor.lab.qa.bench import MUSIQUE, MuSiQueBench
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.system.tasks import map_concurrently
from decisor.techniques import build_technique
from decisor.trace.events import UnreadableReply, events_of
from policies.dqa import DqaPolicy
from policies.game24 import Game24LLM
from policies.musique import MusiquePolicy
from policies.noise import Noise, forms_in
from servers.openai_server import completion, serve_app

SHARES = "0,.1,.2,.3,.5"
ON_TABLES = ("single_rag", "iter_rag", "plan_rag")
SEARCHES = ("best_of_n", "tot", "lats", "radagent")
CALLS = 60
Policy = Callable[[dict[str, Any]], str]
Row = tuple[Outcome, int]  # with the number of replies that could not be read


@dataclass(frozen=True)
class Trial:
    """A bench's cases, and who answers them."""

    label: str
    bench: Bench
    cases: Sequence[Case]
    policy: Policy
    settings: dict[str, str]


async def main(asked: argparse.Namespace) -> None:
    options = dict(pair.split("=", 1) for pair in asked.option)
    forms = forms_in(SECURITY / "malformed_llm_outputs.jsonl")
    print(f"{'':32} {'p':3}  {'right':>14}  {'calls':>6}  {'times':>5}  {'tokens':>7}  unread")
    for name, trials in trials_of(asked):
        base = 0.0
        for share in [float(text) for text in asked.shares.split(",")]:
            rows: list[Row] = []
            for trial in trials:
                rows += await played(trial, name, Noise(trial.policy, share, forms, asked.seed), options)
            base = base or mean_calls(rows)
            print(f"{trials[0].label:18} {name:13} {share:.1f}  {line(rows, base)}", flush=True)
            for outcome, _ in rows:
                if outcome.state == "crashed" or (asked.wrong and outcome.state != "right"):
                    print("   ", outcome.case, outcome.state, outcome.stopped, repr(outcome.answer), outcome.reasons)
        for trial in trials:
            await trial.bench.close()


def mean_calls(rows: Sequence[Row]) -> float:
    return sum(outcome.usage.calls for outcome, _ in rows) / len(rows)


def line(rows: Sequence[Row], base: float) -> str:
    """``base``: calls a question without noise."""
    calls = mean_calls(rows)
    right = sum(outcome.state == "right" for outcome, _ in rows)
    tokens = sum(outcome.usage.tokens for outcome, _ in rows) / len(rows)
    unread = sum(count for _, count in rows) / len(rows)
    return (
        f"{right:3}/{len(rows):3} {right / len(rows):6.1%}  {calls:6.2f}  {calls / base:5.2f}  {tokens:7.0f}  "
        f"{unread / calls:.1%}"
    )


def trials_of(asked: argparse.Namespace) -> list[tuple[str, list[Trial]]]:
    """By technique; each has benches of its own."""
    chosen: list[tuple[str, list[Trial]]] = []

    def wanted(bench: str, name: str) -> bool:
        return asked.only in (None, bench) and asked.technique in (None, name)

    forms: tuple[Form, ...] = (asked.form,) if asked.form else ("sql", "graph")
    for form in forms:
        chosen += [(name, dqa_trials(asked.data, form, asked.cases)) for name in ON_TABLES if wanted("dqa", name)]
    if wanted("musique", "reasoning_dag"):
        chosen.append(("reasoning_dag", [musique_trial(asked.data, asked.cases)]))
    chosen += [(name, [game24_trial(asked.data, asked.cases)]) for name in SEARCHES if wanted("game24", name)]
    return chosen


def dqa_trials(data: Path, form: Form, count: int) -> list[Trial]:
    """Half of the cases from each scenario, a trial for each database: a text is the question of one world only."""
    scenarios: tuple[Scenario, ...] = ("locating", "building")
    trials: list[Trial] = []
    for scenario in scenarios:
        bench = DqaBench(data / "dqa", scenario, form, count // 2)
        for _, group in groupby(bench.cases(), key=lambda case: bench.shared.cases[case.id].world.key):
            cases = list(group)
            policy = DqaPolicy({str(case.question): case.gold[0] for case in cases}.__getitem__)
            trials.append(Trial(f"dqa {form}", bench, cases, policy, {}))
    return trials


def musique_trial(data: Path, count: int) -> Trial:
    bench = MuSiQueBench(data)
    cases = bench.cases()
    some = [cases[at * len(cases) // count] for at in range(count)]
    passages = {passage.id: passage for passage in MUSIQUE.passages(data)}
    return Trial("musique", bench, some, MusiquePolicy(cases, passages), {})


def game24_trial(data: Path, count: int) -> Trial:
    bench = Game24Bench(data / "game24", 900, 899 + count)
    policy = Game24LLM(3)
    return Trial(
        "game24",
        bench,
        bench.cases(),
        lambda body: policy.reply(body["messages"][-1]["content"], body.get("seed") or 0),
        {"calls": str(CALLS)},
    )


async def played(trial: Trial, name: str, noise: Noise, options: Mapping[str, str]) -> list[Row]:
    async with serve(noise) as url:

        async def one(case: Case) -> Row:
            llm = OpenAICompatible(case.id, url)
            loop = build_technique(name, **{**trial.settings, **options})
            attempt = CaseAttempt("noise", trial.bench, name, loop, "policy", llm)
            outcome, entries = await run_case(case, attempt)
            await llm.close()
            return outcome, sum(1 for _ in events_of(entries, UnreadableReply))

        return await map_concurrently(one, trial.cases)


@asynccontextmanager
async def serve(noise: Noise) -> AsyncIterator[str]:
    """The base URL of a server that says what the noise leaves of a reply, and why it ends."""

    async def chat(request: web.Request) -> web.Response:
        body = await request.json()
        text, finish = noise(body)
        answer = completion(body, text, body["model"])
        for choice in answer["choices"]:
            choice["finish_reason"] = finish
        return web.json_response(answer)

    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_post("/v1/chat/completions", chat)
    async with serve_app(app) as origin:
        yield f"{origin}/v1"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", default=DATA)
    parser.add_argument("--only", choices=("dqa", "musique", "game24"))
    parser.add_argument("--technique")
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shares", default=SHARES)
    parser.add_argument("--form", choices=("sql", "graph"), help="of Decision QA; both without it")
    parser.add_argument("-o", "--option", action="append", default=[], help="NAME=VALUE of every technique")
    parser.add_argument("--wrong", action="store_true", help="show what was not right")
    asyncio.run(main(parser.parse_args()))
