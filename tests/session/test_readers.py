"""What an LLM is sent where some rows and columns are not for who asks: captured at the endpoint."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import decisor
from databases.reader_attacks import attacks
from databases.reader_world import ENGINES, FORBIDDEN, MASK, OWN_ORDERS, ROWS, reader_world, secrets
from decisor.errors import SetupError
from servers.capturing_llm import endpoint

FEWEST = 200
AT_ONCE = 25


@pytest.fixture(scope="module", params=ENGINES)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The engine, and the URL of a database there."""
    with reader_world(request.param, tmp_path_factory.mktemp("readers")) as url:
        yield request.param, url


def leaks(text: str, counts: bool = True) -> list[str]:
    """The values in it that are not for an LLM. A trace has counts of its own, of tokens and so on."""
    numbers = set(re.findall(r"(?<![\w.])\d+(?![\w.]*\d)", text))  # not the digits of a token or of a time
    rows = [str(number) for number in FORBIDDEN if counts and str(number) in numbers]
    return [one for one in secrets() if (one in numbers if one.isdigit() else one in text)] + rows


@pytest.mark.slow
async def test_nothing_that_is_not_the_readers_reaches_an_llm(place: tuple[str, str], tmp_path: Path) -> None:
    engine, url = place
    texts = list(attacks(engine))
    assert len(texts) >= FEWEST
    actions = 0
    async with decisor.open(db=url, rows=ROWS, mask=MASK) as data:
        for number, some in enumerate(texts[at : at + AT_ONCE] for at in range(0, len(texts), AT_ONCE)):
            replies = [f"Thought: look\nAction: sql\nAction input: {text}" for text in some]
            trace = tmp_path / f"{engine}{number}.jsonl"
            async with endpoint(replies) as (llm, bodies):
                result = await data.ask(
                    "What is there?",
                    llm=llm,
                    technique="iter_rag",
                    trace=trace,
                    settings={"calling": "text", "max_steps": AT_ONCE + 5},
                )
            assert [leak for body in bodies for leak in leaks(body)] == []
            result.html(tmp_path / "run.html")
            for written in (trace.read_text(), (tmp_path / "run.html").read_text(), str(result.to_dict())):
                assert leaks(written, counts=False) == []
            actions += result.usage.actions
    assert actions == len(texts)


@pytest.mark.slow
async def test_a_masked_value_cannot_be_guessed(place: tuple[str, str]) -> None:
    _, url = place
    async with decisor.open(db=url, rows=ROWS, mask=MASK) as data:
        for condition in ("email LIKE 'ann%'", "email = 'ann.secret71@private.example'", "email > 'b' AND email < 'c'"):
            observation = await data.tools[0].call(f"SELECT COUNT(*) AS n FROM customers WHERE {condition}")
            assert observation.records[0].fields == {"n": 0}, condition


QUESTIONS = """SELECT email, COUNT(*) FROM customers GROUP BY email
SELECT email, phone FROM customers
SELECT COUNT(DISTINCT email) FROM customers
SELECT COUNT(DISTINCT phone), COUNT(*) FROM customers
SELECT c.email, COUNT(*) FROM customers c JOIN orders o ON o.customer_id = c.id WHERE {own} GROUP BY c.email
SELECT c.email, SUM(o.total) FROM customers c JOIN orders o ON o.customer_id = c.id WHERE {own} GROUP BY c.email
SELECT c.phone, MAX(o.total) FROM customers c JOIN orders o ON o.customer_id = c.id WHERE {own} GROUP BY c.phone
SELECT c.city, SUM(o.total) FROM customers c JOIN orders o ON o.customer_id = c.id WHERE {own} GROUP BY c.city
SELECT COUNT(*) FROM orders o WHERE {own}
SELECT SUM(o.total), MIN(o.total), MAX(o.total) FROM orders o WHERE {own}
SELECT o.region, COUNT(*) FROM orders o WHERE {own} GROUP BY o.region
SELECT COUNT(*) FROM newsletter n JOIN customers c ON c.email = n.address
SELECT c.name, c.email FROM newsletter n JOIN customers c ON c.email = n.address
SELECT c.name FROM customers c WHERE c.email NOT IN (SELECT address FROM newsletter)
SELECT c.name FROM customers c WHERE EXISTS (SELECT 1 FROM newsletter n WHERE n.address = c.email)
SELECT n.address, COUNT(o.id) FROM newsletter n JOIN customers c ON c.email = n.address JOIN orders o ON o.customer_id = c.id WHERE {own} GROUP BY n.address
SELECT address FROM newsletter UNION SELECT email FROM customers
SELECT email FROM customers EXCEPT SELECT address FROM newsletter
SELECT email FROM customers INTERSECT SELECT address FROM newsletter
SELECT c.email FROM customers c JOIN orders o ON o.customer_id = c.id WHERE {own} GROUP BY c.email HAVING SUM(o.total) > 150
WITH s AS (SELECT o.customer_id, SUM(o.total) AS spent FROM orders o WHERE {own} GROUP BY o.customer_id) SELECT c.email, s.spent FROM s JOIN customers c ON c.id = s.customer_id
SELECT c.email, (SELECT COUNT(*) FROM orders o WHERE o.customer_id = c.id AND {own}) FROM customers c
SELECT o.note FROM orders o WHERE {own} AND o.total > 60
SELECT COUNT(*) FROM customers a JOIN customers b ON a.email = b.email
SELECT CASE WHEN o.total > 50 THEN 'big' ELSE 'small' END, COUNT(*) FROM orders o WHERE {own} GROUP BY 1
SELECT c.email, RANK() OVER (ORDER BY SUM(o.total) DESC) FROM customers c JOIN orders o ON o.customer_id = c.id WHERE {own} GROUP BY c.email
SELECT COUNT(email) FROM customers WHERE phone IS NOT NULL
SELECT o.customer_id, SUM(o.total) FROM all_orders o WHERE {own} GROUP BY o.customer_id
SELECT m, COUNT(*) FROM mails GROUP BY m
SELECT c.city, COUNT(DISTINCT c.email), SUM(o.total) FROM customers c LEFT JOIN orders o ON o.customer_id = c.id AND {own} GROUP BY c.city"""  # noqa: E501


@pytest.mark.slow
async def test_grouping_joining_and_counting_by_masked_columns_are_right(place: tuple[str, str]) -> None:
    _, url = place
    queries = QUESTIONS.splitlines()
    assert len(queries) == 30
    async with (
        decisor.open(db=url) as whole,
        decisor.open(db=url, rows=ROWS, mask=MASK, reveal=True) as restricted,
    ):
        tool = restricted.tools[0]
        for query in queries:
            right = await whole.tools[0].call(query.format(own="o.region = 'EU'"))
            observation = await tool.call(query.format(own="1 = 1"))
            values = await tool.worker.reveal(str(observation.records))  # type: ignore[attr-defined]
            text = str(sorted(str(list(one.fields.values())) for one in observation.records))
            for token, value in values.rows:
                text = text.replace(f"'{token}'", repr(value))
            assert sorted(re.findall(r"[\w.@-]+", text)) == sorted(
                re.findall(r"[\w.@-]+", str([list(one.fields.values()) for one in right.records]))
            ), query


@pytest.mark.slow
async def test_a_reader_who_may_sees_values_and_the_llm_and_the_trace_do_not(
    place: tuple[str, str], tmp_path: Path
) -> None:
    _, url = place
    query = (
        "SELECT c.email, SUM(o.total) AS spent FROM customers c JOIN orders o ON o.customer_id = c.id "
        "GROUP BY c.email ORDER BY spent DESC, c.email"
    )
    replies = [f"Thought: add up\nAction: sql\nAction input: {query}", ""]

    async with (
        endpoint(replies) as (llm, bodies),
        decisor.open(db=url, rows=ROWS, mask=MASK, reveal=True, audit=tmp_path / "audit.jsonl", who="ann") as data,
    ):
        token = (await data.tools[0].call(query)).records[0].fields["email"]
        replies[1] = f"Final answer: {token}\nBecause: it has the most [o1.r1]"
        result = await data.ask("Who spends most?", llm=llm, technique="iter_rag", settings={"calling": "text"})
    assert result.answer.endswith("@private.example") and result.records[0].fields["email"] == result.answer
    result.save(tmp_path / "run.jsonl")
    assert [leak for text in bodies for leak in leaks(text)] == []
    assert leaks((tmp_path / "run.jsonl").read_text(), counts=False) == []
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    model = [line for line in lines if line["by"] == "model" and line["statement"] == query]
    assert model and model[0]["reader"] == "ann" and model[0]["rows"] == 6 and model[0]["error"] is None
    assert {line["by"] for line in lines} == {"model", "decisor", "person"}


@pytest.mark.slow
async def test_without_leave_no_token_is_revealed(place: tuple[str, str]) -> None:
    _, url = place
    async with decisor.open(db=url, mask=MASK) as data:
        tool = data.tools[0]
        observation = await tool.call("SELECT email FROM customers")
        with pytest.raises(decisor.errors.ToolError, match="may not see"):
            await tool.worker.reveal(str(observation.records))  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "mask", "complaint"),
    [
        ({"order": "region = 'EU'"}, (), "There is no table order"),
        ({"orders": "nothing = 1"}, (), "cannot be read with their condition"),
        ({"orders": "region = 'EU'; DROP TABLE orders"}, (), "condition"),
        ({}, "customers.mail", "no column mail to mask; it has id, name, email"),
        ({}, "email", "Write TABLE.COLUMN"),
        ({"all_orders": "region = 'EU'"}, (), "is a view"),
    ],
)
async def test_a_policy_that_would_keep_nothing_back_is_refused(
    tmp_path: Path, rows: dict[str, str], mask: tuple[str, ...], complaint: str
) -> None:
    with reader_world("sqlite", tmp_path) as url, pytest.raises(SetupError, match=complaint):
        async with decisor.open(db=url, rows=rows, mask=mask):
            pass


@pytest.mark.slow
async def test_the_schema_counts_and_shows_only_the_readers_rows(place: tuple[str, str]) -> None:
    _, url = place
    async with decisor.open(db=url, rows=ROWS, mask=MASK) as data:
        text = data.tools[0].describe()
    assert f"orders ({OWN_ORDERS} rows)" in text and "masked_" in text and "are masked" in text and leaks(text) == []
