"""The demo from end to end: a made-up shop, a recorded run on it, the same decision computed, and a page.

The shop (suppliers, products, customers, purchases, returns) comes from one seed. The replies of the LLM are recorded,
the queries run on the shop. One figure of the recorded answer is in no record, on purpose: the run shows the objection
to it.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import date, timedelta
from importlib.resources import as_file, files
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from decisor.errors import SetupError
from decisor.llms.scripted import ScriptedLLM
from decisor.session.data import ask
from decisor.session.result import Result
from decisor.system.extras import decisor_command
from decisor.system.storage import check_writable
from decisor.types import Question
from decisor.views.terminal import LiveView

if TYPE_CHECKING:
    from rich.console import Console


QUESTION = Question(
    "Which supplier should we drop?",
    rules=(
        "Drop exactly one supplier, so that the profit of the year becomes as large as possible. Profit is price minus "
        "unit cost, times quantity, over all purchases, minus refunds for goods that came back faulty. Damage in "
        "transport is the carrier's affair, and a change of mind is nobody's. Where a supplier is dropped, the "
        "cheapest other supplier of each product delivers in its place, without faults. No product may be left without "
        "a supplier."
    ),
    goal="The largest profit of the year.",
)
UNSUPPORTED = "4,200"
"""A figure that the recorded answer states and that no record holds."""
RETURNS = """\
SELECT s.name, count(*) AS purchases, count(r.purchase) AS returns,
       round(100.0 * count(r.purchase) / count(*), 1) AS percent,
       sum(r.reason = 'faulty') AS faulty, sum(r.reason = 'damaged in transport') AS damaged
FROM purchase AS p JOIN supplier AS s ON s.id = p.supplier LEFT JOIN product_return AS r ON r.purchase = p.id
GROUP BY s.name ORDER BY percent DESC"""
PROFITS = """\
WITH line AS (
  SELECT p.supplier, p.product, p.quantity * g.price AS sales, p.quantity * o.unit_cost AS cost, p.quantity,
         CASE WHEN r.reason = 'faulty' THEN r.refund ELSE 0 END AS refund
  FROM purchase AS p JOIN product AS g ON g.id = p.product
  JOIN offer AS o ON o.supplier = p.supplier AND o.product = p.product
  LEFT JOIN product_return AS r ON r.purchase = p.id),
other AS (
  SELECT a.supplier, a.product, min(b.unit_cost) AS unit_cost
  FROM offer AS a LEFT JOIN offer AS b ON b.product = a.product AND b.supplier <> a.supplier
  GROUP BY a.supplier, a.product),
today AS (SELECT sum(sales - cost - refund) AS profit FROM line)
SELECT s.name, round(t.profit, 2) AS profit_today,
       round(t.profit - sum(l.sales - l.cost - l.refund) + sum(CASE WHEN x.unit_cost IS NULL THEN 0
             ELSE l.sales - l.quantity * x.unit_cost END), 2) AS profit_without,
       count(DISTINCT CASE WHEN x.unit_cost IS NULL THEN l.product END) AS products_lost
FROM line AS l JOIN other AS x ON x.supplier = l.supplier AND x.product = l.product
JOIN supplier AS s ON s.id = l.supplier CROSS JOIN today AS t
GROUP BY s.name, t.profit ORDER BY profit_without DESC"""
ANSWER = f"""\
Re-plan: N
Current step: Step 2
Thought: Norrik is first, and the only one with one of its products, so it has to stay. The next is allowed.
Final answer: Tamsin & Co
Because: Without Tamsin & Co the year's profit grows from 133,310.03 to 143,627.33 EUR [o2.r2], 10,317.30 more, and no \
product is lost [o2.r2]. Without Norrik it would be 151,728.80 EUR, but 1 product would have no supplier [o2.r1]. \
Veltra has the most returns, 19.9 % [o1.r1], of which 68 are the carrier's; dropping it would cost us profit [o2.r5]. \
Fewer parcels will save another {UNSUPPORTED} EUR.
Runner-up: Arlo Works, 135,440.84 EUR [o2.r3]
Assumptions: the other suppliers can deliver as much as is bought"""
REPLIES = (
    f"""\
Plan: [Step 1: find the supplier whose goods come back most often, Step 2: see what its returns cost us, \
Step 3: check that every product keeps a supplier]
Current step: Step 1
Thought: A bad supplier shows in its returns. I count them by supplier and by reason.
Action: sql
Action input: {RETURNS}""",
    f"""\
Re-plan: Y, most of Veltra's returns are damage in transport, which the rules lay on the carrier: how often goods come \
back says nothing of the profit that is asked for
Plan: [Step 1: compute for each supplier the profit of the year without it, and how many products nobody else has, \
Step 2: of those that leave no product without a supplier take the largest profit]
Current step: Step 1
Thought: One query can compute this for all suppliers: take away what a supplier brings, and add what the cheapest \
other one would bring for the same purchases.
Action: sql
Action input: {PROFITS}""",
    ANSWER,
    ANSWER,
)
"""The last comes twice: the answer goes back with an objection, and the model keeps to it."""


SEED = 7
FIRST_DAY = date(2025, 1, 1)
PURCHASES = 2_400
SCHEMA = """
CREATE TABLE supplier (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT NOT NULL, since INTEGER NOT NULL);
CREATE TABLE product (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL NOT NULL);
CREATE TABLE offer (
    supplier INTEGER NOT NULL REFERENCES supplier (id), product INTEGER NOT NULL REFERENCES product (id),
    unit_cost REAL NOT NULL, PRIMARY KEY (supplier, product));
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT NOT NULL);
CREATE TABLE purchase (
    id INTEGER PRIMARY KEY, day TEXT NOT NULL, customer INTEGER NOT NULL REFERENCES customer (id),
    supplier INTEGER NOT NULL REFERENCES supplier (id), product INTEGER NOT NULL REFERENCES product (id),
    quantity INTEGER NOT NULL);
CREATE TABLE product_return (
    purchase INTEGER PRIMARY KEY REFERENCES purchase (id), reason TEXT NOT NULL, refund REAL NOT NULL);
"""
SUPPLIERS = (
    ("Arlo Works", "Ghent", 2016),
    ("Veltra", "Turin", 2018),
    ("Norrik", "Bergen", 2014),
    ("Tamsin & Co", "Leeds", 2020),
    ("Oskar Lind", "Malmo", 2012),
    ("Pelago", "Naples", 2019),
    ("Quill Bros", "Cork", 2015),
)
PRODUCTS = (
    ("desk lamp", 39.0),
    ("floor lamp", 89.0),
    ("oak stool", 59.0),
    ("beech stool", 49.0),
    ("side table", 119.0),
    ("coat rack", 69.0),
    ("wall shelf", 45.0),
    ("mirror", 99.0),
    ("linen rug", 149.0),
    ("wool rug", 219.0),
    ("tray", 25.0),
    ("vase", 35.0),
    ("clock", 55.0),
    ("planter", 29.0),
    ("bench", 189.0),
    ("basket", 32.0),
)
OFFERS = {
    "Arlo Works": {"desk lamp": 0.55, "floor lamp": 0.58, "clock": 0.52, "mirror": 0.60},
    "Veltra": {"mirror": 0.50, "vase": 0.46, "floor lamp": 0.52, "tray": 0.50, "planter": 0.49},
    "Norrik": {"wool rug": 0.93, "linen rug": 0.92, "bench": 0.90},
    "Tamsin & Co": {"desk lamp": 0.78, "wall shelf": 0.81, "coat rack": 0.80, "basket": 0.76},
    "Oskar Lind": {"oak stool": 0.57, "beech stool": 0.56, "side table": 0.60, "bench": 0.62, "wall shelf": 0.60},
    "Pelago": {"vase": 0.58, "basket": 0.55, "planter": 0.60, "tray": 0.57, "linen rug": 0.70},
    "Quill Bros": {"coat rack": 0.61, "clock": 0.60, "side table": 0.66, "oak stool": 0.64},
}
"""What each supplier asks for its products, as a share of our price. Only Norrik has wool rugs."""
FAULTS = {"Tamsin & Co": 0.12, "Norrik": 0.03}
"""How often a purchase comes back faulty; elsewhere one in fifty does."""
DAMAGE = {"Veltra": 0.17}
"""How often it breaks on its way: Veltra's glass goes by another carrier."""
TOWNS = ("Basel", "Lyon", "Genoa", "Bremen", "Graz", "Namur")


def write_shop(path: Path) -> None:
    """Write the shop as an SQLite file; raise OSError if that fails."""
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(SCHEMA)
        suppliers = {name: number for number, (name, _, _) in enumerate(SUPPLIERS, 1)}
        products = {name: number for number, (name, _) in enumerate(PRODUCTS, 1)}
        prices = dict(PRODUCTS)
        database.executemany("INSERT INTO supplier VALUES (NULL, ?, ?, ?)", SUPPLIERS)
        database.executemany("INSERT INTO product VALUES (NULL, ?, ?)", PRODUCTS)
        rows = [
            (suppliers[supplier], products[product], round(prices[product] * share, 2))
            for supplier, shares in OFFERS.items()
            for product, share in shares.items()
        ]
        database.executemany("INSERT INTO offer VALUES (?, ?, ?)", rows)
        # Only random(): its numbers are the same in every version of Python, those of choice and shuffle need not be.
        random = Random(SEED)
        customers = [(f"customer {number}", TOWNS[int(random.random() * len(TOWNS))]) for number in range(1, 181)]
        database.executemany("INSERT INTO customer VALUES (NULL, ?, ?)", customers)
        for purchase, returned in generate_purchases(random, rows):
            database.execute("INSERT INTO purchase VALUES (?, ?, ?, ?, ?, ?)", purchase)
            if returned:
                reason, share = returned
                refund = round(share * purchase[5] * PRODUCTS[purchase[4] - 1][1], 2)
                database.execute("INSERT INTO product_return VALUES (?, ?, ?)", (purchase[0], reason, refund))


Purchase = tuple[int, str, int, int, int, int]


def generate_purchases(
    random: Random, offers: list[tuple[int, int, float]]
) -> Iterator[tuple[Purchase, tuple[str, float] | None]]:
    """Yield each purchase with the reason of its return and the share refunded, or None."""
    for number in range(1, PURCHASES + 1):
        supplier, product, _ = offers[int(random.random() * len(offers))]
        day = FIRST_DAY + timedelta(days=int(random.random() * 365))
        customer, quantity = 1 + int(random.random() * 180), 1 + int(random.random() * 4)
        name, chance = SUPPLIERS[supplier - 1][0], random.random()
        faults, damage = FAULTS.get(name, 0.02), DAMAGE.get(name, 0.02)
        reason = (
            ("faulty", 1.0)
            if chance < faults
            else ("damaged in transport", 1.0)
            if chance < faults + damage
            else ("changed mind", 0.9)
            if chance > 0.98
            else None
        )
        yield (number, day.isoformat(), customer, supplier, product, quantity), reason


RECORDED = "recorded replies"
TRIALS = {"trials": "40"}
PAGE = "decision.html"
NAME_FOLDER = "Name an empty folder: decisor demo --folder FOLDER"
ON_FILES = """\
In {folder}: decisor model whatif shop.toml "why Norrik" --db shop.db
A month later, Tamsin's prices fell: decisor history verify run.jsonl --db next-month.db"""
YOUR_TURN = """\
Your turn: an example without an LLM, then your own file with one. Ollama is free: install it (https://ollama.com), then
`ollama pull qwen3:8b`; or set OPENAI_API_KEY or ANTHROPIC_API_KEY, and leave out --llm.

    {decisor} ask --example trade
    {decisor} ask "Which supplier should we drop?" --db YOUR.csv --llm qwen3:8b@localhost:11434"""


def run_demo(console: Console, folder: Path | None = None) -> Path:
    """Show the demo on the console, write its page, and return the page's path.

    folder: keeps the shop, its decision model and the computed run beside the page; None keeps the page alone.

    Raises:
        SetupError: a file cannot be written, or is there already.
    """
    path = find_free_path(Path(PAGE)) if folder is None else folder / PAGE
    if folder is not None:
        check_empty_folder(folder)
    # Before anything is shown: a demo that fails at its last step is no demo.
    check_writable(path, NAME_FOLDER)
    with tempfile.TemporaryDirectory() as own:
        home = folder or Path(own)
        shop = home / "shop.db"
        write_shop(shop)
        (home / "shop.toml").write_bytes(files("decisor.demo").joinpath("shop.toml").read_bytes())
        print_heading(
            console,
            "1. A recorded run",
            "The shop is invented and the LLM's replies are recorded; the queries run now.",
        )
        result = replay_recorded_run(shop, console)
        print_heading(
            console,
            "2. The same question without an LLM",
            "A decision model (25 lines) says how dropping a supplier changes profit; every candidate is computed.",
        )
        compute_decision(shop, console).save(home / "run.jsonl")
        # The shop as it is a month later: Tamsin's prices fell by 30 %.
        shutil.copyfile(shop, home / "next-month.db")
        with closing(sqlite3.connect(home / "next-month.db")) as database, database:
            database.execute("UPDATE offer SET unit_cost = unit_cost * 0.7 WHERE supplier = 4")
    result.html(path)
    print_heading(
        console, "3. The page", f"{path} holds the whole run: plan, queries, rows, and the evidence of each figure."
    )
    if folder is not None:
        print_heading(console, "4. Ask what would change it, and check it again", ON_FILES.format(folder=folder))
    console.print(YOUR_TURN.format(decisor=decisor_command()), markup=False, soft_wrap=True)
    return path


def check_empty_folder(folder: Path) -> None:
    """Make a folder, unless it is there; raise SetupError if that fails or it has files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        has_files = any(folder.iterdir())
    except OSError as error:
        raise SetupError(f"Cannot use {folder}: {error.strerror}. {NAME_FOLDER}") from error
    if has_files:
        raise SetupError(f"{folder} has files. {NAME_FOLDER}")


def replay_recorded_run(shop: Path, console: Console | None = None) -> Result:
    """Replay the recorded replies to the technique, on the real shop.

    Raises:
        SetupError: the recording does not fit the shop any more.
    """
    llm, settings = ScriptedLLM(REPLIES, name=RECORDED), {"calling": "text"}
    place = f"sqlite:///{shop}"
    if console is None:
        result = ask(QUESTION, db=place, llm=llm, technique="plan_rag", settings=settings)
    else:
        with LiveView(console) as view:
            result = ask(QUESTION, db=place, llm=llm, technique="plan_rag", settings=settings, on_event=view.hear)
        result.show(console)
    # The recording and the shop must fit: the one objection is about the figure that no record holds.
    if [UNSUPPORTED in one.text for one in result.evidence.objections] != [True]:
        raise SetupError(f"The recording is stale: {[one.text for one in result.evidence.objections]}")
    return result


def compute_decision(shop: Path, console: Console | None = None) -> Result:
    """Decide the question by the decision model, which computes every supplier."""
    with as_file(files("decisor.demo") / "shop.toml") as model:
        result = ask(QUESTION, db=f"sqlite:///{shop}", model=model, llm="none", technique="exact", settings=TRIALS)
    if console is not None:
        result.show(console)
    return result


def print_heading(console: Console, title: str, text: str) -> None:
    console.print()
    console.print(title, style="bold", markup=False)
    console.print(text, style="dim", markup=False)
    console.print()


def find_free_path(path: Path) -> Path:
    """Return the path, with a number if a file is there already."""
    number, place = 1, path
    while place.exists():
        number += 1
        place = path.with_stem(f"{path.stem}-{number}")
    return place
