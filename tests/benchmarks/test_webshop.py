"""The shop: pages word for word, forks, the search beside Lucene's ranks, the reward, and the released checks."""

import asyncio
import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import Stemmer
from hypothesis import given, settings
from hypothesis import strategies as st

from data import DATA
from decisor.errors import SetupError
from decisor.lab.webshop.bench import COLOURS, WebShopBench, find_nouns_by_rule, rate_purchase
from decisor.lab.webshop.products import Goal, Product, load_products, make_goals, product_search_text
from decisor.lab.webshop.shop import (
    STOP_WORDS,
    Shop,
    ShopView,
    WebShop,
    build_bm25_index,
    extract_terms,
    format_order,
    list_clickable,
    open_shop,
)
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.run import Run
from decisor.techniques.iter_rag import IterRAG
from decisor.techniques.shared.observations import show_observation
from decisor.trace.events import Trace
from decisor.types import Action, Observation

SMALL = DATA / "webshop"
needs_data = pytest.mark.skipif(not SMALL.is_dir(), reason=f"{SMALL} is not there: set DECISOR_DATA")


def released(number: int, name: str, price: str, **options: list[str]) -> dict[str, object]:
    """A product as the release's file has it; all names are invented."""
    custom = {kind: [{"value": value, "image": None} for value in values] for kind, values in options.items()}
    return {
        "asin": f"B{number:09}",
        "name": name,
        "full_description": f"About the {name}.",
        "pricing": price,
        "small_description": [f"{name} feature one", "feature two"],
        "customization_options": custom or "",
        "category": "home",
        "product_category": "Home › Lamps › Desk Lamps",
        "query": "Lamps ",
        "images": ["x"],
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("webshop")
    lamps = [
        released(1, "Brass Desk Lamp", "$19.99", Color=["Red", " Navy Blue"], Size=["S/M"]),
        released(2, "Oak Floor Lamp", "$40.00$60.00"),
        *[released(number, f"Paper Lamp number {number}", "") for number in range(3, 15)],
        released(1, "The same again", "$1.00"),
        {**released(99, "A name too long", "$1.00"), "asin": "B0000000000099"},
    ]
    first = {
        "attributes": ["hand made", "brass finish"],
        "instruction": "Find me a hand made desk lamp",
        "instruction_attributes": ["hand made"],
    }
    human = {
        "instruction": "a small red lamp.",
        "instruction_attributes": ["hand made"],
        "instruction_options": ["red"],
    }
    (path / "items_shuffle.json").write_text(json.dumps(lamps, indent=1))
    (path / "items_ins_v2.json").write_text(json.dumps({"B000000001": first, "B000000002": {"attributes": []}}))
    (path / "items_human_ins.json").write_text(
        json.dumps({"B000000001": [human, {**human, "instruction_attributes": []}]})
    )
    return path


@pytest.fixture(scope="module")
def shop(folder: Path) -> Shop:
    return open_shop(folder)


@cache
def small() -> Shop:
    return open_shop(SMALL)


def visit(env: WebShop, *actions: str) -> Observation:
    seen = Observation()
    for action in actions:
        seen = asyncio.run(env.step(Action(action.partition("[")[0], action)))
    return seen


def test_released_files_are_read_as_the_release_reads_them(shop: Shop) -> None:
    brass, oak, paper = (shop.products[number] for number in range(3))
    assert len(shop.products) == 14
    assert brass.options == {"color": ("red", "navy blue"), "size": ("s | m",)}
    assert (brass.price_tag, oak.price_tag, paper.price_tag) == ("$19.99", "$40.0 to $60.0", "$100.0")
    assert 40 <= shop.price(oak) <= 60
    assert (brass.query, brass.attributes, paper.attributes) == (
        "lamps",
        ("hand made", "brass finish"),
        ("DUMMY_ATTR",),
    )


def test_pages_are_word_for_word_those_of_the_release(shop: Shop) -> None:
    env = WebShop(shop, "a lamp")
    results = visit(env, "search[paper lamp]").records[0].text
    head = "Instruction: [SEP] a lamp [SEP] Back to Search [SEP] Page 1 (Total results: 14) [SEP] Next > [SEP] "
    assert results.startswith(head + "B000000003 [SEP] Paper Lamp number 3 [SEP] $100.0 [SEP] B000000004")
    second = visit(env, "click[Next >]").records[0].text
    assert second.startswith(
        "Instruction: [SEP] a lamp [SEP] Back to Search [SEP] Page 2 (Total results: 14) [SEP] < Prev"
    )
    assert "Next >" not in second
    item = visit(env, "search[brass]", "click[B000000001]").records[0].text
    assert item == (
        "Instruction: [SEP] a lamp [SEP] Back to Search [SEP] < Prev [SEP] color [SEP] red [SEP] navy blue [SEP] size "
        "[SEP] s | m [SEP] Brass Desk Lamp [SEP] Price: $19.99 [SEP] Rating: N.A. [SEP] Description [SEP] Features "
        "[SEP] Reviews [SEP] Buy Now"
    )
    features = visit(env, "click[features]").records[0].text
    assert features.endswith("Back to Search [SEP] < Prev [SEP] Brass Desk Lamp feature one [SEP] feature two")
    assert visit(env, "click[< prev]", "click[reviews]").records[0].text.endswith("Back to Search [SEP] < Prev")
    assert visit(env, "click[back to search]").records[0].text == "WebShop [SEP] Instruction: [SEP] a lamp [SEP] Search"


def test_an_order_holds_the_options_chosen_and_names_no_reward(shop: Shop) -> None:
    env = WebShop(shop, "a lamp")
    chosen = visit(env, "search[brass lamp]", "click[b000000001]", "click[red]", "click[Navy Blue]", "click[s | m]")
    assert chosen.note == "Chosen so far: color: navy blue, size: s | m"
    bought = visit(env, "click[description]", "click[< Prev]", "click[Buy Now]")
    assert bought.answer == "B000000001 (color: navy blue, size: s | m)"
    assert not re.search(r"reward|score|goal|gold|success", f"{show_observation(bought)} {env.describe()}", re.I)
    after = visit(env, "search[oak]")
    assert after.error and "order is placed" in after.note


def test_leaving_an_item_forgets_its_options(shop: Shop) -> None:
    env = WebShop(shop, "a lamp")
    visit(env, "search[brass]", "click[b000000001]", "click[red]", "click[< prev]", "click[b000000001]")
    assert visit(env, "click[buy now]").answer == "B000000001"


def test_what_cannot_be_clicked_changes_nothing_and_says_what_can(shop: Shop) -> None:
    env = WebShop(shop, "a lamp")
    page = visit(env, "search[oak floor]")
    wrong = visit(env, "click[Buy Now]")
    assert wrong.error and wrong.records[0].text == page.records[0].text
    assert "back to search, " in wrong.note and "b000000002" in wrong.note
    assert "Search first" in visit(WebShop(shop, ""), "click[red]").note


def test_goals_ask_for_every_combination_of_options(folder: Path) -> None:
    made = open_shop(folder).goals
    assert {goal.options for goal in made} == {
        (("color", "red"), ("size", "s | m")),
        (("color", "navy blue"), ("size", "s | m")),
    }
    form = r"Find me a hand made desk lamp with color: [a-z ]+, and size: s \| m, and price lower than \d0\.00 dollars"
    assert all(re.fullmatch(form, goal.text) and 30 <= goal.price_limit <= 50 for goal in made)
    (human,) = open_shop(folder, "human").goals
    assert human.text.startswith("a small red lamp, and price lower than") and human.options == ("red",)


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"items_shuffle\.json"):
        list(load_products(tmp_path))
    (tmp_path / "items_shuffle.json").write_text('[{"asin": "B1"}, {"as')
    (tmp_path / "items_ins_v2.json").write_text("{}")
    with pytest.raises(SetupError, match=r"not of the released form|is not JSON"):
        list(load_products(tmp_path))


WORDS = [
    "search[lamp]",
    "search[brass oak]",
    "click[next >]",
    "click[< prev]",
    "click[b000000001]",
    "click[b000000002]",
    "click[red]",
    "click[s | m]",
    "click[features]",
    "click[back to search]",
    "click[buy now]",
    "click[x]",
]
WALKS = st.lists(st.sampled_from(WORDS), max_size=8)


@given(before=WALKS, one=WALKS, other=WALKS)
@settings(max_examples=60, deadline=None)
def test_forks_never_see_each_other(shop: Shop, before: list[str], one: list[str], other: list[str]) -> None:
    trunk, alone = WebShop(shop, "a lamp"), WebShop(shop, "a lamp")
    visit(trunk, *before)
    branch = trunk.fork()
    visit(branch, *one)
    visit(trunk, *other)
    visit(alone, *before, *one)
    assert branch.view == alone.view
    assert set(list_clickable(branch.view)) == set(list_clickable(alone.view))


def test_ids_are_given_once_in_all_forks(shop: Shop) -> None:
    trunk = WebShop(shop, "a lamp")
    branch = trunk.fork()
    ids = [visit(env, "search[lamp]").records[0].id for env in (trunk, branch, trunk, branch)]
    assert ids == ["o1.r1", "o2.r1", "o3.r1", "o4.r1"]


TEXTS = st.text(st.sampled_from("abc red navy BLUE size 9%›-'"), max_size=12)
PRODUCTS = st.builds(
    Product,
    asin=st.just("B1"),
    title=TEXTS,
    description=TEXTS,
    bullets=st.tuples(TEXTS),
    prices=st.just((1.0,)),
    price_tag=st.just("$1.0"),
    options=st.just({}),
    attributes=st.tuples(TEXTS, TEXTS),
    category=TEXTS,
    categories=TEXTS,
    query=TEXTS,
)
GOALS = st.builds(
    Goal,
    text=TEXTS,
    asin=st.just("B1"),
    attributes=st.lists(TEXTS, max_size=3).map(tuple),
    options=st.lists(TEXTS | st.tuples(TEXTS, TEXTS), max_size=3).map(tuple),
    price_limit=st.sampled_from([10.0, 1_000_000.0]),
)


@given(bought=PRODUCTS, asked=PRODUCTS, goal=GOALS, options=st.dictionaries(TEXTS, TEXTS), price=st.floats(0, 20))
@settings(max_examples=50, deadline=None)
def test_a_reward_is_from_0_to_1(
    bought: Product, asked: Product, goal: Goal, options: dict[str, str], price: float
) -> None:
    got = rate_purchase(bought, options, price, goal, asked, find_nouns_by_rule)
    assert all(0 <= part <= 1 for part in (got.reward, got.type, got.attributes, got.options, got.price))
    assert (got.reward == 1) == (got.type == got.attributes == got.options == got.price == 1)


def test_a_worked_reward(shop: Shop) -> None:
    """Of 2 attributes, 2 options and the price (5 parts): both attributes by name, one option, the price: 4 / 5."""
    brass = shop.products[0]
    goal = Goal("", brass.asin, ("hand made", "desk lamp"), (("color", "red"), ("size", "s | m")), 20.0)
    assert rate_purchase(brass, {"color": "red"}, 19.99, goal, brass, find_nouns_by_rule).reward == pytest.approx(4 / 5)
    assert rate_purchase(brass, {"color": "red", "size": "s | m"}, 19.99, goal, brass, find_nouns_by_rule).reward == 1
    assert rate_purchase(
        brass, {"color": "red", "size": "s | m"}, 20.01, goal, brass, find_nouns_by_rule
    ).reward == pytest.approx(4 / 5)
    paper = shop.products[2]
    other = rate_purchase(paper, {}, 100.0, goal, brass, find_nouns_by_rule)
    assert (other.type, other.attributes, other.price, other.reward) == (1, 0, 0, 0)
    assert len(COLOURS) == 102


async def test_the_bench_scores_the_order_that_the_decision_names_and_the_first_and_the_best_apart(
    folder: Path,
) -> None:
    bench = WebShopBench(folder)
    (case,) = [case for case in bench.cases() if "red" in case.question.text]
    assert case.gold == ("B000000001 (color: red, size: s | m)",)
    script = [
        "Action: search\nAction input: desk lamp",
        "Action: click\nAction input: B000000001",
        "Action: click\nAction input: red",
        "Action: click\nAction input: s | m",
        "Action: click\nAction input: Buy Now",
        "Final answer: B000000001 (color: red, size: s | m)\nBecause: it is ordered [o6.r1]",
    ]
    trace = Trace()
    async with bench.environment(case) as env:
        other = env.fork()
        run = Run(ScriptedLLM(["", *script]), env, trace=trace)
        for action in (Action("search", "oak"), Action("click", "b000000002"), Action("click", "buy now")):
            await run.using(env=other).act(action)
        llm = ScriptedLLM([text.replace("o6", "o8") for text in script])
        decision = await IterRAG()(case.question, run.using(llm=llm))
    score = await bench.score(case, decision, trace.entries)
    assert score.right and score.answer == case.gold[0]
    assert score.metrics["reward"] == score.metrics["best_reward"] == 1 > score.metrics["first_reward"]
    assert score.counts == {"orders": 2, "searches": 2, "clicks": 6}
    assert any(tag.startswith("nouns:") for tag in score.tags)
    assert not any("reward" in text for text in llm.seen)


def ranks(shop: Shop, found: list[list[int]]) -> tuple[int, int, int]:
    """For the goals 0 to 499: how often the gold item is first, in the first ten but not first, and missing."""
    at = [
        hits.index(shop.numbers[goal.asin]) if shop.numbers[goal.asin] in hits else -1
        for goal, hits in zip(shop.goals, found, strict=False)
    ]
    return at.count(0), sum(0 < one < 10 for one in at), at.count(-1)


@needs_data
def test_the_gold_items_ranks_are_those_of_lucene_and_those_of_the_specification() -> None:
    """281, 173 and 1 is what Lucene 10.5 itself gives (performance/webshop.py); 273, 181 and 2 is with plain words."""
    shop = small()
    assert len(shop.goals) == 6910
    queries = [goal.text.lower() for goal in shop.goals[:500]]
    assert ranks(shop, [shop.index.find(query, 50) for query in queries]) == (281, 173, 1)

    stem = Stemmer.Stemmer("porter").stemWord

    def plain(text: str) -> list[str]:
        stems = [stem(word) for word in re.findall(r"\w+", text) if word not in STOP_WORDS]
        return [one for one in stems if one.strip("_")]

    index = build_bm25_index((product_search_text(shop.products[number]) for number in range(1000)), plain)
    # Plain words split "40.00", so the draws of price limits count: 269 to 274 for the seeds 0 to 5.
    drawn = replace(shop, goals=make_goals(shop.products, "synthetic", seed=2))
    found = [index.find(goal.text.lower(), 50) for goal in drawn.goals[:500]]
    assert ranks(drawn, found) == (273, 181, 2)


@needs_data
def test_rules_of_thumb_get_the_rewards_of_the_specification() -> None:
    """Expected: first hit .53 and 2 %, with its best options .74 and 50 %, the gold item with its options .994."""
    shop = small()
    sums = {"first": [0.0, 0.0], "options": [0.0, 0.0], "gold": [0.0, 0.0]}
    for goal in shop.goals[:500]:
        asked, text = shop.item(goal.asin), goal.text.lower()
        hit = shop.find(text)[0]
        told = {name: [value for value in values if value in text] for name, values in hit.options.items()}
        options = {name: max(values, key=len) for name, values in told.items() if values}
        pairs = dict(option for option in goal.options if isinstance(option, tuple))
        for name, item, taken in (("first", hit, {}), ("options", hit, options), ("gold", asked, pairs)):
            reward = rate_purchase(item, taken, shop.price(item), goal, asked, find_nouns_by_rule).reward
            sums[name] = [sums[name][0] + reward, sums[name][1] + (reward == 1)]
    means = {name: (total / 500, right / 500) for name, (total, right) in sums.items()}
    assert means["first"] == pytest.approx((0.53, 0.02), abs=0.01)
    assert means["options"] == pytest.approx((0.74, 0.55), abs=0.01)
    assert means["gold"][0] == pytest.approx(0.994, abs=0.001)


@needs_data
def test_the_order_of_goals_does_not_hang_on_the_seed_of_prices() -> None:
    shop = small()
    again = make_goals(shop.products, "synthetic", seed=7)
    assert [(goal.asin, goal.options) for goal in again] == [(goal.asin, goal.options) for goal in shop.goals]


def test_terms_are_lucenes() -> None:
    """Expected: EnglishAnalyzer of Lucene 10.5."""
    told = "a.b 3.5 40.00 men's x_y a:b 5\" 10' 日本 rock'n'roll 1,000 abc.5 assembly technology us ★ ☆"
    assert extract_terms(told) == [
        "a.b",
        "3.5",
        "40.00",
        "men",
        "x_y",
        "a:b",
        "5",
        "10",
        "日",
        "本",
        "rock'n'rol",
        "1,000",
        "abc",
        "5",
        "assembl",
        "technolog",
        "us",
        "★",
    ]


def test_an_empty_search_page_offers_nothing_to_click() -> None:
    assert list_clickable(ShopView()) == []
    assert format_order("B1", {}) == "B1"
