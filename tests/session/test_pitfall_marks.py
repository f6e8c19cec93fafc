"""A model is told of a query that may not mean what it seems to, and an answer that rests on it is marked."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import decisor
from decisor.llms.scripted import ScriptedLLM

INFLATING = (
    "SELECT c.name, SUM(o.total) AS spent FROM customers c JOIN orders o ON o.customer_id = c.id "
    "JOIN items i ON i.order_id = o.id GROUP BY c.name ORDER BY spent DESC"
)
RIGHT = (
    "SELECT c.name, SUM(o.total) AS spent FROM customers c JOIN orders o ON o.customer_id = c.id "
    "GROUP BY c.name ORDER BY spent DESC"
)


@pytest.fixture
def shop(tmp_path: Path) -> str:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            """CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers(id), total REAL);
            CREATE TABLE items (order_id INTEGER REFERENCES orders(id), sku TEXT);
            INSERT INTO customers VALUES (1, 'Ann'), (2, 'Bo');
            INSERT INTO orders VALUES (1, 1, 10), (2, 2, 15);
            INSERT INTO items VALUES (1, 'a'), (1, 'b'), (1, 'c'), (2, 'a');"""
        )
    return f"sqlite:///{path}"


def script(query: str, answer: str) -> ScriptedLLM:
    return ScriptedLLM(
        [f"Thought: add up\nAction: sql\nAction input: {query}", f"Final answer: {answer}\nBecause: most [o1.r1]"]
    )


async def ask(shop: str, llm: ScriptedLLM, **options: str) -> decisor.Result:
    async with decisor.open(db=shop) as data:
        return await data.ask("Who spent most?", llm=llm, technique="iter_rag", settings={"calling": "text"}, **options)  # type: ignore[arg-type]


async def test_the_model_is_told_which_table_multiplied_which(shop: str) -> None:
    llm = script(INFLATING, "Ann")
    await ask(shop, llm)
    assert "takes rows of orders more than once: items may have several rows with the same order_id" in str(llm.seen[1])


async def test_an_answer_that_rests_on_multiplied_rows_is_marked_wherever_it_is_read(shop: str, tmp_path: Path) -> None:
    result = await ask(shop, script(INFLATING, "Ann"), trace=str(tmp_path / "run.jsonl"))
    [pitfall] = result.evidence.pitfalls
    assert (pitfall.kind, pitfall.records) == ("fan_out", ("o1.r1",))
    assert "Doubtful [o1.r1]: SUM(o.total) takes rows of orders" in str(result)
    told_as_json = json.loads(json.dumps(result.to_dict()))
    assert told_as_json["evidence"]["pitfalls"][0]["kind"] == "fan_out"
    result.html(tmp_path / "run.html")
    assert "takes rows of orders more than once" in (tmp_path / "run.html").read_text()
    assert "fan_out" in (tmp_path / "run.jsonl").read_text()


async def test_an_answer_of_a_sound_query_is_not_marked(shop: str) -> None:
    result = await ask(shop, script(RIGHT, "Bo"))
    assert result.evidence.ids == ("o1.r1",) and result.evidence.pitfalls == ()
