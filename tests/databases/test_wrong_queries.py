"""Rules that hold a query against its question and its keys: a wrong query of each kind, and a right one beside it."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

import decisor
from decisor.databases.pitfalls.question import AskedQuestion, QuestionLog
from decisor.databases.sql import SqlTool
from decisor.llms.scripted import ScriptedLLM

SHOP = """
    CREATE TABLE sets (id INTEGER PRIMARY KEY, code TEXT UNIQUE, name TEXT, block TEXT);
    CREATE TABLE cards (id INTEGER PRIMARY KEY, set_code TEXT REFERENCES sets(code), name TEXT, border TEXT,
        price REAL, reprint INTEGER, released TEXT);
    CREATE TABLE prices (id INTEGER PRIMARY KEY, card_id INTEGER REFERENCES cards(id), shop TEXT, amount REAL);
    CREATE TABLE foils (id INTEGER PRIMARY KEY REFERENCES cards(id));
    INSERT INTO sets VALUES (1, 'CSP', 'Coldsnap', 'Ice Age'), (2, 'LEA', 'Alpha', 'Core'),
        (3, '*', 'Star', 'Core');
    INSERT INTO cards VALUES (1, 'CSP', 'Molimo, Maro-Sorcerer', 'black', 5, 0, '2006-07-21'),
        (2, 'LEA', 'Black Lotus', 'white', 900, 1, '1993-08-05'), (3, 'CSP', 'Snow Fox', 'black', 1, 0, '2006-07-21');
    INSERT INTO prices VALUES (1, 1, 'north', 4), (2, 1, 'south', 6), (3, 2, 'north', 900);
    INSERT INTO foils VALUES (1);
    CREATE TABLE artists (id INTEGER PRIMARY KEY, first_name TEXT, last_name TEXT, birthday TEXT);
    INSERT INTO artists VALUES (1, 'Ada', 'Rivera', '1970-05-06'), (2, 'Dalia', 'Reyes', '1981-02-03');
"""
KEY = "SELECT c.name FROM cards c JOIN sets s ON {} WHERE s.name = 'Coldsnap'"
ABOUT_SET = "Which cards are in the set Coldsnap?"
FOXES = "SELECT COUNT(*) FROM cards WHERE name LIKE '%Fox%'"
CASES: list[tuple[str, str, str, str, str]] = [
    # rule, question, rules, a wrong query, a right one
    ("keyless_join", ABOUT_SET, "", KEY.format("c.id = s.id"), KEY.format("c.set_code = s.code")),
    (
        "keyless_join",
        ABOUT_SET,
        "",
        KEY.format("s.name = c.name"),
        KEY.format("s.code = c.set_code AND s.name <> c.name"),
    ),
    (
        "keyless_join",
        "What is paid for cards of Coldsnap?",
        "",
        "SELECT p.amount FROM prices p JOIN sets s ON p.card_id = s.id WHERE s.name = 'Coldsnap'",
        "SELECT p.amount FROM prices p JOIN cards c ON p.card_id = c.id JOIN sets s ON c.set_code = s.code "
        "WHERE s.name = 'Coldsnap'",
    ),
    (
        "idle_table",
        "Which sets were sold?",
        "",
        "SELECT s.code FROM sets s JOIN cards c ON c.set_code = s.code WHERE s.block = 'Core' ORDER BY s.code",
        # It counts the rows of cards.
        "SELECT s.code FROM sets s JOIN cards c ON c.set_code = s.code GROUP BY s.code HAVING COUNT(*) > 1",
    ),
    (
        "unfounded_value",
        "Which sets are Alphan?",
        "",
        "SELECT code FROM sets WHERE name = 'Coldsnap'",
        # As French players are of France.
        "SELECT code FROM sets WHERE name = 'Alpha'",
    ),
    (
        "lost_order",
        "Which sets have at least two cards, and the highest price?",
        "",
        "SELECT set_code FROM cards GROUP BY set_code",
        "SELECT set_code, MAX(price) FROM cards GROUP BY set_code HAVING COUNT(*) >= 2",
    ),
    (
        "lost_condition",
        "What are the names of all cards?",
        "names refers to the name of a card; all cards refers to reprint",
        "SELECT released FROM cards WHERE border = 'black'",
        "SELECT reprint FROM cards WHERE reprint = 1",
    ),
    (
        "idle_table",
        "What is the code of Ice Age?",
        "",
        "SELECT s.code FROM sets s JOIN cards c ON c.set_code = s.code WHERE s.block = 'Ice Age'",
        "SELECT s.code FROM sets s WHERE s.block = 'Ice Age'",
    ),
    (
        "idle_table",
        "What do black ones cost?",
        "",
        "SELECT c.price FROM cards c JOIN prices p ON p.card_id = c.id WHERE c.border = 'black'",
        # The table of foils has no more than its key, and chooses the rows that are foils.
        "SELECT c.price FROM cards c JOIN foils f ON f.id = c.id WHERE c.border = 'black'",
    ),
    (
        "and_or",
        "How many black cards are cheap or reprinted?",
        "",
        "SELECT COUNT(*) FROM cards WHERE border = 'black' AND price < 3 OR reprint = 1",
        "SELECT COUNT(*) FROM cards WHERE border = 'black' AND (price < 3 OR reprint = 1)",
    ),
    (
        "and_or",
        "",
        "",
        "SELECT COUNT(*) FROM cards WHERE price < 3 OR border = 'black' AND reprint = 1 OR price > 90",
        "SELECT COUNT(*) FROM cards WHERE border = 'black' AND price < 3 OR border = 'white' AND price > 90",
    ),
    ("never_true", "", "", "SELECT id FROM cards WHERE name = '%Fox'", FOXES),
    (
        "never_true",
        "",
        "",
        "SELECT id FROM cards WHERE strftime('%m', released) = '7'",
        "SELECT id FROM cards WHERE strftime('%m', released) = '07'",
    ),
    (
        "never_true",
        "",
        "",
        "SELECT id FROM cards WHERE strftime('%Y', released) IN (2006, 1993)",
        "SELECT id FROM cards WHERE CAST(strftime('%Y', released) AS INTEGER) IN (2006, 1993)",
    ),
    (
        "ungrouped_column",
        "",
        "",
        "SELECT border, SUM(price) FROM cards",
        "SELECT border, SUM(price) FROM cards GROUP BY border",
    ),
    (
        "ungrouped_column",
        "",
        "",
        "SELECT s.name, c.border, COUNT(*) FROM cards c JOIN sets s ON s.code = c.set_code GROUP BY s.code",
        "SELECT s.name, COUNT(*) FROM cards c JOIN sets s ON s.code = c.set_code GROUP BY s.code",
    ),
    (
        "misspelt_value",
        'What does "Molimo, Maro-Sorcerer" cost?',
        "",
        "SELECT price FROM cards WHERE name = 'Molimo , Maro-Sorcerer'",
        "SELECT price FROM cards WHERE name = 'Molimo, Maro-Sorcerer'",
    ),
    (
        "unfounded_value",
        "How many cards have a black border?",
        "",
        "SELECT COUNT(*) FROM cards WHERE border = 'white'",
        "SELECT COUNT(*) FROM cards WHERE border = 'black'",
    ),
    (
        "lost_number",
        "Which cards cost more than 1,200 in 2006?",
        "",
        "SELECT name FROM cards WHERE released LIKE '2006%'",
        "SELECT name FROM cards WHERE released LIKE '2006%' AND price > 1200",
    ),
    (
        "lost_text",
        "What does 'Snow Fox' cost?",
        "",
        "SELECT SUM(price) FROM cards WHERE reprint = 1",
        "SELECT price FROM cards WHERE name LIKE 'snow%fox'",
    ),
    (
        "lost_condition",
        "How many old cards are there?",
        "An old card refers to reprint = 1; new cards refers to price > 5",
        "SELECT COUNT(*) FROM cards WHERE border = 'black'",
        "SELECT COUNT(*) FROM cards WHERE reprint = 1",
    ),
    (
        "lost_text",
        "What do cards of the set 'Coldsnap' cost?",
        "",
        "SELECT SUM(price) FROM cards WHERE set_code = 'LEA'",
        "SELECT SUM(price) FROM cards WHERE set_code = 'CSP'",
    ),
    (
        "lost_condition",
        "How many plain cards are there?",
        "plain means border = 'black' and released is not null",
        "SELECT name, released FROM cards WHERE border = 'black'",
        # What is compared is no NULL.
        "SELECT COUNT(*) FROM cards WHERE border = 'black' AND released > ''",
    ),
    (
        "lost_condition",
        "How many late cards are there?",
        "late refers to released > 2005 and price",
        "SELECT COUNT(*) FROM cards WHERE released > 1999 AND price > 0",
        # Of whole numbers, > 2005 is >= 2006.
        "SELECT COUNT(*) FROM cards WHERE released >= 2006 AND price > 0",
    ),
    (
        "lost_order",
        "Which card has the highest price?",
        "",
        "SELECT name FROM cards WHERE border = 'black'",
        "SELECT name FROM cards ORDER BY price DESC LIMIT 1",
    ),
    (
        "lost_order",
        "Which card has the highest price?",
        "",
        "SELECT name FROM cards ORDER BY price LIMIT 1",
        "SELECT name FROM cards WHERE price = (SELECT MAX(price) FROM cards)",
    ),
    (
        "lost_order",
        "Name the top three cards by price.",
        "",
        "SELECT name FROM cards ORDER BY price DESC",
        "SELECT name FROM cards ORDER BY price DESC LIMIT 3",
    ),
    (
        "lost_measure",
        "What is the average price of black cards?",
        "",
        "SELECT price FROM cards WHERE border = 'black'",
        "SELECT AVG(price) FROM cards WHERE border = 'black'",
    ),
    (
        "lost_measure",
        "What percentage of cards is black?",
        "",
        "SELECT COUNT(*) FROM cards WHERE border = 'black'",
        "SELECT 100.0 * SUM(border = 'black') / COUNT(*) FROM cards",
    ),
    (
        "lost_condition",
        "How many middling cards are there?",
        "middling refers to price BETWEEN 3 AND 8",
        "SELECT COUNT(*) FROM cards WHERE price > 3",
        "SELECT COUNT(*) FROM cards WHERE price BETWEEN 3 AND 8",
    ),
    (
        "lost_condition",
        "What is the number of shops?",
        "number of shops refers to COUNT(shop)",
        "SELECT SUM(amount) FROM prices",
        # All rows are counted, whichever column is named for it.
        "SELECT COUNT(*) FROM prices",
    ),
    (
        "lost_condition",
        "How many starred sets are there?",
        "starred refers to code = '*'",
        "SELECT COUNT(*) FROM sets WHERE code IS NULL",
        "SELECT COUNT(*) FROM sets WHERE code LIKE '*'",
    ),
    (
        "never_true",
        "",
        "",
        "SELECT name FROM cards WHERE reprint = 'yes'",
        "SELECT name FROM cards WHERE reprint = '1'",
    ),
    (
        "ungrouped_column",
        "",
        "",
        "SELECT border, price FROM cards GROUP BY border ORDER BY SUM(price)",
        "SELECT border FROM cards GROUP BY border ORDER BY SUM(price)",
    ),
    (
        "idle_table",
        "What do black ones cost?",
        "",
        "SELECT c.price FROM cards c JOIN prices p ON p.card_id = c.id WHERE c.border = 'black'",
        # The set of a card is there anyway.
        "SELECT c.price FROM cards c JOIN sets s ON c.set_code = s.code WHERE c.border = 'black'",
    ),
    (
        "fan_out",
        "How many shops are there for a card?",
        "join cards with prices for the number of shops",
        "SELECT SUM(s.id) FROM cards c JOIN sets s ON s.code = c.set_code",
        "SELECT COUNT(c.id) FROM cards c JOIN prices p ON p.card_id = c.id",
    ),
    (
        "fan_out",
        "How many prices has a card on average?",
        "",
        "SELECT SUM(c.price) / COUNT(DISTINCT c.id) FROM cards c JOIN prices p ON p.card_id = c.id",
        "SELECT COUNT(c.id) * 1.0 / COUNT(DISTINCT c.id) FROM cards c JOIN prices p ON p.card_id = c.id",
    ),
    (
        "fan_out",
        "How many cards are black?",
        "",
        "SELECT COUNT(c.id) FROM cards c JOIN prices p ON p.card_id = c.id WHERE c.border = 'black'",
        # A share of joined rows counts them above and below.
        "SELECT 100.0 * SUM(p.amount > 5) / COUNT(c.id) FROM cards c JOIN prices p ON p.card_id = c.id",
    ),
    (
        "integer_division",
        "",
        "",
        "SELECT SUM(reprint) / COUNT(*) FROM cards",
        "SELECT SUM(reprint) * 1.0 / COUNT(*) FROM cards",
    ),
    (
        "keyless_join",
        "Which cards have a price in the north?",
        "",
        "SELECT name FROM cards WHERE set_code NOT IN (SELECT card_id FROM prices WHERE shop = 'north')",
        "SELECT name FROM cards WHERE id NOT IN (SELECT card_id FROM prices WHERE shop = 'north')",
    ),
    (
        "never_true",
        "Which sets are of the blocks Core and Ice Age?",
        "",
        "SELECT name FROM sets WHERE block = 'Core' AND block = 'Ice Age'",
        "SELECT name FROM sets WHERE block = 'Core' OR block = 'Ice Age'",
    ),
    (
        "never_true",
        "What is the price of each card as a percentage of all?",
        "",
        "SELECT name, price * 100 / price FROM cards",
        "SELECT name, price * 100 / (SELECT SUM(price) FROM cards) FROM cards",
    ),
    (
        "lost_bound",
        "Which card ids have more than one price?",
        "",
        "SELECT card_id FROM prices GROUP BY card_id HAVING COUNT(*) > 2",
        "SELECT card_id FROM prices GROUP BY card_id HAVING COUNT(*) >= 2",
    ),
    (
        "lost_bound",
        "Which cards cost at least 5?",
        "",
        "SELECT name FROM cards WHERE price <= 5",
        "SELECT name FROM cards WHERE 5 <= price",
    ),
    (
        "twin_column",
        "What are the first names of the artists called Rivera?",
        "",
        "SELECT last_name FROM artists WHERE last_name = 'Rivera'",
        "SELECT first_name FROM artists WHERE last_name = 'Rivera'",
    ),
    (
        "lost_order",
        "List the black cards in descending order of price.",
        "",
        "SELECT name FROM cards WHERE border = 'black' ORDER BY price",
        "SELECT name FROM cards WHERE border = 'black' ORDER BY price DESC",
    ),
    (
        "lost_order",
        "What is the highest price in the north?",
        "",
        "SELECT MIN(amount) FROM prices WHERE shop = 'north'",
        "SELECT MAX(amount) FROM prices WHERE shop = 'north'",
    ),
    (
        "lost_measure",
        "How many different borders are there?",
        "",
        "SELECT COUNT(border) FROM cards",
        "SELECT COUNT(DISTINCT border) FROM cards",
    ),
    (
        "lost_measure",
        "What is the total price of the black cards?",
        "",
        "SELECT AVG(price) FROM cards WHERE border = 'black'",
        "SELECT SUM(price) FROM cards WHERE border = 'black'",
    ),
    (
        "ungrouped_column",
        "What is the highest price for each border?",
        "",
        "SELECT border, MAX(price) FROM cards",
        "SELECT border, MAX(price) FROM cards GROUP BY border",
    ),
    (
        "lost_text",
        "How many cards were drawn by Dalia?",
        "",
        "SELECT COUNT(*) FROM cards WHERE reprint = 1",
        "SELECT COUNT(*) FROM cards WHERE reprint = (SELECT id FROM artists WHERE first_name LIKE 'Dalia%')",
    ),
    (
        "lost_text",
        "How many sets but the one from Alpha City are of Core?",
        "Core refers to block = 'Core'",
        "SELECT COUNT(*) FROM sets WHERE block = 'Core'",
        # A code stands for the name.
        "SELECT COUNT(*) FROM sets WHERE block = 'Core' AND code <> 'LEA'",
    ),
    (
        "lost_number",
        "Which cards were released before 2007/1/1?",
        "",
        "SELECT name FROM cards WHERE released < '1990-01-01'",
        # Before a day is up to the day before.
        "SELECT name FROM cards WHERE released <= '2006-12-31'",
    ),
    (
        "lost_condition",
        "How many cards came in the nineties?",
        "in the nineties refers to released > = '1990-01-01' and released < '2000-01-01'",
        "SELECT COUNT(*) FROM cards WHERE released > '1992-03-01'",
        "SELECT COUNT(*) FROM cards WHERE strftime('%Y', released) BETWEEN '1990' AND '1999'",
    ),
    (
        "lost_condition",
        "Is Black Lotus black or white?",
        "black refers to border = 'black'; white refers to border = 'white'",
        "SELECT name FROM cards WHERE border = 'black'",
        # It shows which.
        "SELECT border FROM cards WHERE name = 'Black Lotus'",
    ),
    (
        "lost_condition",
        "How many dear black cards are there?",
        "dear refers to price > 9 and border = 'white' or price > 7 and border = 'black'; "
        "black refers to border = 'black'",
        "SELECT COUNT(*) FROM cards WHERE price > 7",
        "SELECT COUNT(*) FROM cards WHERE price > 7 AND border = 'black'",
    ),
    (
        "lost_condition",
        "How many inked black cards are there?",
        "inked refers to border ! = 'white'",
        "SELECT COUNT(*) FROM cards WHERE border IS NOT NULL",
        # What is black is not white.
        "SELECT COUNT(*) FROM cards WHERE border = 'black'",
    ),
    (
        "lost_order",
        "Who is the youngest artist?",
        "",
        "SELECT first_name FROM artists ORDER BY birthday LIMIT 1",
        "SELECT first_name FROM artists ORDER BY date('now') - birthday LIMIT 1",
    ),
    (
        "lost_measure",
        "What is the ratio of black to white cards?",
        "",
        "SELECT SUM(border = 'black') * 100.0 / SUM(border = 'white') FROM cards",
        "SELECT SUM(border = 'black') * 1.0 / SUM(border = 'white') FROM cards",
    ),
    (
        "lost_measure",
        "What is the difference between the highest and the lowest price?",
        "",
        "SELECT MAX(price), MIN(price) FROM cards",
        "SELECT MAX(price) - MIN(price) FROM cards",
    ),
    (
        "lost_measure",
        "How many borders are there?",
        "Only count distinct ones",
        "SELECT COUNT(border) FROM cards",
        "SELECT COUNT(DISTINCT border) FROM cards",
    ),
    (
        "lost_output",
        "Which card is the dearest?",
        "",
        "SELECT id FROM cards ORDER BY price DESC LIMIT 1",
        "SELECT name FROM cards ORDER BY price DESC LIMIT 1",
    ),
    (
        "lost_output",
        "Which sets are of the block Core?",
        "",
        "SELECT id FROM sets WHERE block = 'Core'",
        # A code of letters may be the name.
        "SELECT code FROM sets WHERE block = 'Core'",
    ),
    (
        "lost_output",
        "How many cards are black? List their names.",
        "",
        "SELECT COUNT(*) FROM cards WHERE border = 'black'",
        "SELECT name FROM cards WHERE border = 'black'",
    ),
    (
        "never_true",
        "How old were the artists in 2006?",
        "",
        "SELECT strftime('%Y', birthday) - strftime('%Y', released) FROM artists, cards WHERE released LIKE '2006%'",
        "SELECT ABS(strftime('%Y', a.birthday) - strftime('%Y', '2006-01-01')) FROM artists a",
    ),
    (
        "integer_division",
        "Which borders are reprinted in more than 30 percent?",
        "",
        "SELECT border, SUM(reprint) * 100 / COUNT(*) FROM cards GROUP BY border",
        "SELECT border FROM cards GROUP BY border HAVING SUM(reprint) * 100 / COUNT(*) > 30",
    ),
    (
        "fan_out",
        "",
        "",
        "SELECT c.border, AVG(c.price) FROM cards c JOIN prices p ON p.card_id = c.id GROUP BY c.border",
        # Each card of a set is repeated once for each card of the set.
        "SELECT c.set_code, AVG(c.price), MAX(d.price) FROM cards c JOIN cards d ON d.set_code = c.set_code "
        "GROUP BY c.set_code",
    ),
]


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[SqlTool]:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as db:
        db.executescript(SHOP)
    tool = await SqlTool.open(f"sqlite:///{tmp_path}/shop.db")
    yield tool
    await tool.close()


async def find_kinds(tool: SqlTool, query: str, asked: AskedQuestion) -> set[str]:
    assert tool.pitfalls is not None
    table = await tool.worker.run(query)
    return {pitfall.kind for pitfall in await tool.pitfalls.look(query, table, log=QuestionLog(asked))}


@pytest.mark.parametrize(("rule", "question", "rules", "wrong", "right"), CASES)
async def test_a_rule_speaks_of_the_wrong_query_and_not_of_the_right_one(
    shop: SqlTool, rule: str, question: str, rules: str, wrong: str, right: str
) -> None:
    asked = AskedQuestion(question, rules)
    assert rule in await find_kinds(shop, wrong, asked)
    assert await find_kinds(shop, right, asked) == set()


@pytest.mark.parametrize(
    ("rule", "question", "rules", "query"),
    [
        # The rules define the superlative, and the average, by something else.
        (
            "lost_order",
            "How many cards are in the best condition?",
            "best condition refers to border = 'black'",
            "SELECT COUNT(*) FROM cards WHERE border = 'black'",
        ),
        (
            "lost_measure",
            "How many cards cost an above average price?",
            "above average price refers to price > 4",
            "SELECT COUNT(*) FROM cards WHERE price > 4",
        ),
        # Days are counted from those that are named.
        (
            "unfounded_value",
            "Which shop is open on the two days before Saturday?",
            "",
            "SELECT shop FROM prices WHERE shop IN ('Thursday', 'Friday')",
        ),
        # Nouns have capitals in German, and so has a word that asks.
        ("lost_text", "Wie viele Karten haben einen Rahmen?", "", "SELECT COUNT(border) FROM cards WHERE reprint = 1"),
        ("lost_text", "For black cards, List what they cost.", "", "SELECT price FROM cards WHERE border = 'black'"),
        (
            "lost_text",
            "How many were released in December?",
            "",
            "SELECT COUNT(*) FROM cards WHERE released LIKE '%-12-%'",
        ),
        # A count alone is the answer, and so are ids.
        (
            "lost_output",
            "How many cards are black? Give a number.",
            "",
            "SELECT COUNT(*) FROM cards WHERE border = 'black'",
        ),
        ("lost_output", "Which card ids are black?", "", "SELECT id FROM cards WHERE border = 'black'"),
        ("lost_measure", "Does the border make a difference to the price?", "", "SELECT border, MAX(price) FROM cards"),
    ],
)
async def test_a_right_query_that_looks_like_a_wrong_one(
    shop: SqlTool, rule: str, question: str, rules: str, query: str
) -> None:
    assert rule not in await find_kinds(shop, query, AskedQuestion(question, rules))


async def test_a_row_of_all_that_there_are_is_not_left_to_chance(shop: SqlTool) -> None:
    query = "SELECT price FROM cards WHERE name = 'Snow Fox' LIMIT 1"
    assert await find_kinds(shop, query, AskedQuestion()) == set()
    assert await find_kinds(shop, query.replace("Snow Fox", "%o%").replace("=", "LIKE"), AskedQuestion()) == {
        "limit_order"
    }


async def test_a_question_of_whole_numbers_means_their_division(shop: SqlTool) -> None:
    asked = AskedQuestion("How often is a card reprinted, rounded?")
    assert await find_kinds(shop, "SELECT SUM(reprint) / COUNT(*) FROM cards", asked) == set()


PAPER = "How does the chemical composition of paper affect its durability?"


@pytest.mark.parametrize(
    ("asked", "is_told"),
    [
        (AskedQuestion(PAPER, is_alone=True), True),
        # Other data may tell.
        (AskedQuestion(PAPER), False),
        # Rules and definitions have the words.
        (AskedQuestion(PAPER, "", "Durability is the composition of paper by price.", is_alone=True), False),
        # A value that the query found, and words of no subject.
        (AskedQuestion("Which old ones are white, and how many came out last month?", is_alone=True), False),
        # Half of the words are met; of another language nothing is known.
        (AskedQuestion("What is the resale value of a card by border?", is_alone=True), False),
        (AskedQuestion("Welche Karte ist am haltbarsten verarbeitet?", is_alone=True), False),
    ],
)
async def test_a_question_whose_words_nothing_meets(shop: SqlTool, asked: AskedQuestion, is_told: bool) -> None:
    query = "SELECT AVG(price) FROM cards WHERE border = 'white'"
    assert ("unmet_question" in await find_kinds(shop, query, asked)) == is_told
    assert "unmet_question" not in await find_kinds(shop, query.replace("white", "blue") + " GROUP BY border", asked)


async def test_an_answer_to_a_question_that_the_data_do_not_tell_goes_back_once(shop: SqlTool, tmp_path: Path) -> None:
    llm = ScriptedLLM(
        [
            "Thought: look\nAction: sql\nAction input: SELECT name, price FROM cards ORDER BY price DESC",
            "Final answer: Black Lotus\nBecause: 900 [o1.r1]",
            "Final answer: unknown\nBecause: the data do not tell of paper",
        ]
    )
    async with decisor.open(db=f"sqlite:///{tmp_path}/shop.db") as data:
        result = await data.ask(PAPER, llm=llm, technique="iter_rag", settings={"calling": "text"})
    assert "speaks of: chemical, composition, paper, affect, durability." in str(llm.seen[2])
    assert result.answer == ""


async def test_nothing_is_asked_of_a_query_whose_question_is_not_known(shop: SqlTool) -> None:
    observation = await shop.call("SELECT c.id FROM cards c WHERE c.border = 'white' AND c.price > 7")
    assert observation.pitfalls == ()


async def test_what_is_asked_is_asked_once_and_what_an_earlier_query_held_is_not_lost(shop: SqlTool) -> None:
    tool = shop.compare_with(AskedQuestion("Which black cards cost more than 1,200 in 2006?"))
    looking_around = await tool.call("SELECT name, border FROM cards")
    assert looking_around.pitfalls == () and looking_around.note == ""
    first = await tool.call("SELECT name FROM cards WHERE price > 1200")
    assert [(pitfall.kind, pitfall.strength) for pitfall in first.pitfalls] == [("lost_number", "ask")]
    assert "The question says 2006, and no query does." in first.note
    again = await tool.call("SELECT name FROM cards WHERE border = 'black'")
    assert again.pitfalls == ()
    next_question = shop.compare_with(AskedQuestion("Which cards cost more than 7?"))
    assert (await next_question.call("SELECT name FROM cards WHERE price > 1200")).pitfalls != ()


async def test_what_a_query_beside_it_holds_is_not_lost(shop: SqlTool) -> None:
    tool = shop.compare_with(AskedQuestion("What is the highest price of a card?"))
    check, ranked = "SELECT COUNT(*) FROM cards", "SELECT name, price FROM cards ORDER BY price DESC"
    both = await asyncio.gather(tool.call(check), tool.call(ranked))
    alone = await shop.compare_with(AskedQuestion("What is the highest price of a card?")).call(check)
    assert [[one.kind for one in seen.pitfalls] for seen in (*both, alone)] == [[], [], ["lost_order"]]


async def test_a_reference_without_a_column_is_to_the_primary_key(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "league.db")) as db:
        db.executescript("""CREATE TABLE league (id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE match (id INTEGER PRIMARY KEY, league_id INTEGER REFERENCES league, goals INTEGER);
            INSERT INTO league VALUES (7, 'first'); INSERT INTO match VALUES (1, 7, 3), (2, 7, 4);""")
    tool = await SqlTool.open(f"sqlite:///{tmp_path}/league.db")
    right = "SELECT SUM(m.goals) FROM match m JOIN league l ON l.id = m.league_id WHERE l.name = 'first'"
    assert (await tool.call(right)).pitfalls == ()
    wrong = await tool.call(right.replace("l.id = m.league_id", "l.id = m.id"))
    await tool.close()
    assert wrong.pitfalls[0].kind == "keyless_join"


async def test_two_tables_may_share_a_key_of_texts_that_no_foreign_key_declares(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "lands.db")) as db:
        db.executescript("""CREATE TABLE lands (code TEXT PRIMARY KEY, name TEXT);
            CREATE TABLE wealth (iso TEXT PRIMARY KEY, gdp REAL);
            CREATE TABLE ports (id INTEGER PRIMARY KEY, land TEXT REFERENCES lands(code));
            CREATE TABLE ships (imo TEXT PRIMARY KEY, gdp REAL);
            CREATE TABLE crews (fleet INTEGER PRIMARY KEY, size INTEGER);
            CREATE TABLE fleets (id INTEGER PRIMARY KEY, size INTEGER);
            CREATE TABLE yards (id INTEGER PRIMARY KEY, size INTEGER);
            INSERT INTO lands VALUES ('FR', 'France'), ('PT', 'Portugal');
            INSERT INTO wealth VALUES ('PT', 0.3), ('XK', 0.01);
            INSERT INTO ports VALUES (1, 'PT'); INSERT INTO ships VALUES ('IMO 9074729', 0.1);""")
    tool = await SqlTool.open(f"sqlite:///{tmp_path}/lands.db")
    shared = [
        "SELECT l.name FROM lands l JOIN wealth w ON w.iso = l.code WHERE w.gdp > 0.1",
        "SELECT p.id FROM ports p JOIN wealth w ON w.iso = p.land WHERE w.gdp > 0.1",
        # A column that is named for the other table.
        "SELECT c.size FROM crews c JOIN fleets f ON c.fleet = f.id WHERE f.size IS NULL",
    ]
    assert [(await tool.call(query)).pitfalls for query in shared] == [(), (), ()]
    apart = [query.replace("wealth", "ships").replace("w.iso", "w.imo").replace("fleets", "yards") for query in shared]
    texts = [pitfall.text for query in apart for pitfall in (await tool.call(query)).pitfalls]
    await tool.close()
    assert texts == [
        "w.imo = l.code compares the keys of ships and lands, which stand for different things.",
        "w.imo = p.land follows no key: ports.land holds values of lands.code, ships.imo does not. Join through lands.",
        "c.fleet = f.id compares the keys of crews and yards, which stand for different things.",
    ]


async def test_the_place_is_the_part_of_the_statement(shop: SqlTool) -> None:
    observation = await shop.call(KEY.format("c.id = s.id"))
    [pitfall] = observation.pitfalls
    assert (pitfall.place, pitfall.strength) == ("c.id = s.id", "wrong")
    assert "these tables are joined by cards.set_code = sets.code" in pitfall.text


async def test_the_question_of_a_session_reaches_the_rules_and_a_question_marks_no_answer(
    shop: SqlTool, tmp_path: Path
) -> None:
    query = "SELECT name, price FROM cards WHERE border = 'white'"
    llm = ScriptedLLM(
        [f"Thought: look\nAction: sql\nAction input: {query}", "Final answer: Black Lotus\nBecause: 900 [o1.r1]"]
    )
    async with decisor.open(db=f"sqlite:///{tmp_path}/shop.db") as data:
        result = await data.ask(
            "Which black card has a price over 800?", llm=llm, technique="iter_rag", settings={"calling": "text"}
        )
    told = str(llm.seen[1])
    assert "border = 'white': neither the question nor its rules speak of this value." in told
    assert "The question says 800, and no query does." in told
    assert result.evidence.pitfalls == ()


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Which 3 of 1,250 cost $7.50?", (3, 1250, 7.5)),
        ("In the last 6 months, by 74s, K-12, version 2.3.1 and 'set 9'", ()),
        ("Between 2012 and 2013, over 5%?", (2012, 2013, 5)),
    ],
)
def test_numbers_of_a_question(text: str, numbers: tuple[float, ...]) -> None:
    assert AskedQuestion(text).numbers == numbers


def test_conditions_that_the_rules_state_for_words_of_the_question() -> None:
    asked = AskedQuestion(
        "How many active members with a large shirt are there?",
        "active refers to status <> 'left' and paid IS NOT NULL; large shirt means t_shirt = 'L'; "
        "shirt means price between 5 and '9'; guests means role = 'G'; "
        "share of members refers to DIVIDE(COUNT(role = 'M'), COUNT(id))",
    )
    stated = [(each.column, each.sign, each.value) for each in asked.conditions]
    assert stated == [
        ("status", "<>", "left"),
        ("paid", "is not", None),
        ("t_shirt", "=", "L"),
        ("price", "between", "5"),
        ("price", "between", "9"),
    ]
