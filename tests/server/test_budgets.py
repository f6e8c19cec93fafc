"""What people and groups may spend: counted by an LLM that counts its own calls."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from decisor.errors import SetupError
from decisor.history.place import FolderPlace, Place
from decisor.history.postgres import PostgresPlace
from decisor.history.store import History, Spent
from decisor.server.budgets import Budgets
from decisor.server.settings import ServerSettings
from decisor.server.users import GroupBudget, Rights, SpendingLimits, User, Users, digest_of_token, user_of_rights
from decisor.types import Usage
from report.browser import FOUND, browser
from server.page import PICTURES, Page
from server.serving import Served, planner, served, sources
from servers.openai_server import serve_threaded
from servers.sql_databases import postgres_database

DOLLARS = 0.01
"""Price of each token of the LLM here."""


def user(name: str, **groups: GroupBudget) -> User:
    return user_of_rights(name, {key: Rights(budget=budget) for key, budget in groups.items()}, list(groups))


@contextmanager
def site(folder: Path, url: str, *users: User) -> Iterator[Served]:
    accounts = Users({digest_of_token(user.name): user for user in users})
    data = folder / f"data-{len(list(folder.iterdir()))}"
    data.mkdir()
    llm = f"m@{url} price={DOLLARS * 1e6:g},{DOLLARS * 1e6:g}"
    with served(ServerSettings(sources(data), {"m": llm}, users=accounts), History(folder / "history")) as one:
        yield one


def as_user(site: Served, name: str) -> Served:
    site.client.headers["authorization"] = f"Bearer {name}"
    return site


def spent(site: Served) -> list[tuple[str, float, int]]:
    return [
        (one["name"], one["spent_dollars"], one["spent_tokens"])
        for one in site.client.get("/api/choices").json()["budgets"]
    ]


def test_what_a_run_costs_is_booked_for_the_person_and_the_group(tmp_path: Path) -> None:
    budget = GroupBudget(SpendingLimits(1e6, 10**9), SpendingLimits(tokens=10**9), SpendingLimits(1e6))
    with serve_threaded(planner()) as url:
        with site(tmp_path, url, user("ann", analysts=budget), user("bob", analysts=budget)) as one:
            as_user(one, "ann")
            usage = [one.ended(one.ask()["id"])["usage"] for _ in range(2)]
            as_user(one, "bob")
            usage.append(one.ended(one.ask()["id"])["usage"])
            tokens = [one["prompt_tokens"] + one["completion_tokens"] for one in usage]
            of_bob = spent(one)
        # Another server on the same history knows it too.
        with site(tmp_path, url, user("ann", analysts=budget)) as one:
            of_ann = spent(as_user(one, "ann"))
    assert min(tokens) > 100
    everybody = sum(tokens)
    assert [(name, tokens) for name, _, tokens in of_bob] == [
        ("analysts, today", everybody),
        ("analysts, this month", everybody),
        ("you, today", tokens[2]),
    ]
    assert all(dollars == pytest.approx(tokens * DOLLARS) for _, dollars, tokens in of_bob)
    assert of_ann[0] == of_bob[0] and of_ann[2][2] == tokens[0] + tokens[1]


def test_no_call_is_made_once_a_budget_is_spent(tmp_path: Path) -> None:
    asked = list[object]()

    def count(body: dict[str, object]) -> str:
        asked.append(body)
        return planner()(body)

    small = GroupBudget(each_day=SpendingLimits(tokens=700))
    with serve_threaded(count) as url, site(tmp_path, url, user("ann", a=small), user("bob", a=small)) as one:
        as_user(one, "ann")
        first = one.ended(one.ask()["id"])
        calls = len(asked)
        assert first["stopped"] == "budget" and calls <= 2, first
        lines = one.client.get("/api/choices").json()["budgets"]
        assert [line["warns"] for line in lines] == [lines[0]["spent_tokens"] >= 560]
        History(tmp_path / "history").spend({("ann", f"{datetime.now(UTC):%Y-%m-%d}"): Spent(0, 700)}, (), "")
        body = {"question": "Which site?", "technique": "plan_rag", "settings": {"calling": "text"}}
        refused = one.client.post("/api/ask", json=body)
        assert refused.status_code == 400 and "The limit of 700 tokens is reached" in refused.json()["error"]
        assert len(asked) == calls
        as_user(one, "bob")
        assert one.client.post("/api/ask", json=body).status_code == 201


def test_a_group_has_so_many_runs_at_a_time(tmp_path: Path) -> None:
    people = user("ann", a=GroupBudget(at_once=1)), user("bob", b=GroupBudget())
    with serve_threaded(planner()) as url, site(tmp_path, url, *people) as one:
        as_user(one, "ann")
        first, second = (one.ask(approve=True)["id"] for _ in range(2))
        one.until(lambda: one.run(first), lambda run: bool(run["approvals"]))
        as_user(one, "bob")
        assert one.ended(one.ask()["id"])["state"] == "finished"
        as_user(one, "ann")
        assert one.run(second)["state"] == "waiting"
        one.client.post(f"/api/runs/{first}/stop", json={})
        one.until(lambda: one.run(second), lambda run: bool(run["approvals"]))


@pytest.mark.skipif(not FOUND, reason="needs chromium and chromedriver")
def test_the_page_says_that_a_budget_is_nearly_spent(tmp_path: Path) -> None:
    budget = GroupBudget(day=SpendingLimits(dollars=20), each_day=SpendingLimits(tokens=1_000_000))
    day, name = f"{datetime.now(UTC):%Y-%m-%d}", "an-analyst-of-the-shops"
    History(tmp_path / "history").spend({("group a", day): Spent(16.4, 5), (name, day): Spent(0, 799_999)}, (), "")
    with serve_threaded(planner()) as url, site(tmp_path, url, user(name, a=budget)) as one, browser() as driver:
        page = Page(driver, one.url)
        driver.open(f"{one.url}/#{name}")
        page.see("Spent of the budget of a, today: $16.40 of $20.00", "#links")
        assert "tokens" not in page.text("#links")
        PICTURES.mkdir(parents=True, exist_ok=True)
        driver.screenshot(PICTURES / "budget.png")


def test_what_is_spent_in_two_stores_at_once_adds_up(tmp_path: Path) -> None:
    one, other, day = History(tmp_path), History(tmp_path), "2026-11-28"
    for number in range(5):
        one.spend({("ann", day): Spent(0.1, number)}, (), "")
        other.spend({("ann", day): Spent(0.1, 1), ("ann", "2026-10-01"): Spent(9, 9)}, (), "")
    [(key, spent)] = one.spend({}, ["ann", "bob"], "2026-11").items()
    assert (key, spent.tokens) == (("ann", day), 15) and spent.dollars == pytest.approx(1.0)
    with pytest.raises(SetupError):
        History(Path("/proc/none")).spend({}, ["ann"], "")


def test_a_stopped_server_has_stored_what_was_spent(tmp_path: Path) -> None:
    budget = GroupBudget(SpendingLimits(tokens=10**9))
    with serve_threaded(planner()) as url, site(tmp_path, url, user("ann", a=budget)) as one:
        run = as_user(one, "ann").ended(one.ask()["id"])
    day = time.strftime("%Y-%m-%d", time.gmtime())
    stored = History(tmp_path / "history").spend({}, ["ann", "group a"], "")
    tokens = run["usage"]["prompt_tokens"] + run["usage"]["completion_tokens"]
    assert {key: spent.tokens for key, spent in stored.items()} == {("ann", day): tokens, ("group a", day): tokens}


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
async def test_what_is_spent_is_never_less_while_it_is_stored(tmp_path: Path, store: str) -> None:
    with ExitStack() as stack:
        place: Place = FolderPlace(tmp_path / "history")
        if store == "postgresql":
            pytest.importorskip("psycopg_pool")
            place = PostgresPlace(stack.enter_context(postgres_database(())))
            stack.callback(place.close)
        ann = user("ann", analysts=GroupBudget(day=SpendingLimits(tokens=10**9)))
        budgets = Budgets(History(place))
        for number in range(1, 101):
            budgets.book(ann, Usage(prompt_tokens=1, dollars=0.0))
            # As the process stores each second, while people ask.
            await asyncio.gather(budgets.store({"ann", "group analysts"}), *(budgets.lines(ann) for _ in range(4)))
            assert {spent.tokens for _, spent in budgets.balances(ann)} == {number}
