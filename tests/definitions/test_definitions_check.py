"""Definitions checked on real databases, drafted from them, and imported."""

import json
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from decisor.cli import run_command_line
from decisor.databases.sql import SqlTool
from decisor.errors import SetupError
from decisor.llms.scripted import ScriptedLLM
from decisor.semantics.check import check_definitions
from decisor.semantics.dbt import import_dbt_manifest
from decisor.semantics.definitions import Entity, Join, format_definitions, parse_definitions
from decisor.semantics.draft import draft_from_schema
from decisor.session.definitions import draft_definitions
from decisor.types import Message
from definition_shops import DEFINITIONS, definitions_file, shop

WRONG = """
[metric.misspelt]
sql = "SUM(prise)"
from = "line"
[metric.rowwise]
sql = "price"
from = "line"
[metric.words]
sql = "MAX(product)"
from = "line"
[metric.multiplied]
sql = "COUNT(*)"
from = "purchase p JOIN line l ON l.purchase_id = p.id"
grain = "p.id"
[metric.writes]
query = "DELETE FROM line"
[metric.nothing]
sql = "SUM(price)"
from = "line"
where = "price < 0"
[entity.line]
table = "line"
key = "purchase_id"
[join.turned]
left = "purchase.id"
right = "line.purchase_id"
cardinality = "many to one"
[value."customer.country"]
Atlantis = "A"
[example.broken]
question = "x"
sql = "SELECT nothing FROM line"
[dimension.gone]
sql = "customer.planet"
"""
FAULTS = [
    "line 2: metric.misspelt: no such column",
    "line 6: metric.rowwise gives 5 rows, and a metric is one number: is there an aggregate in it?",
    "line 9: metric.words gives 'tea', which is no number",
    "line 14: metric.multiplied says that a row is one p.id, and rows share 1 of its values: a join multiplies them",
    "line 15: metric.writes: ",
    "line 18: doubt: metric.nothing is empty: no row is left, or its columns are",
    "line 23: entity.line has the key purchase_id, and rows share 1 of its values",
    "line 27: join.turned is one to many as measured, not many to one",
    "line 29: value.customer.country has 'Atlantis', which no row has",
    "line 30: example.broken: no such column",
    "line 33: dimension.gone: ",
]


@pytest.fixture
async def rows(tmp_path: Path) -> AsyncIterator[SqlTool]:
    tool = await SqlTool.open(shop(tmp_path))
    yield tool
    await tool.close()


async def test_definitions_that_hold_have_no_fault(rows: SqlTool) -> None:
    assert [str(one) for one in await check_definitions(parse_definitions(DEFINITIONS), rows)] == []


async def test_every_fault_is_found_on_the_rows_and_named_with_its_line(rows: SqlTool) -> None:
    findings = [str(one) for one in await check_definitions(parse_definitions(WRONG), rows)]
    assert len(findings) == len(FAULTS)
    for finding, fault in zip(findings, FAULTS, strict=True):
        assert finding.startswith(fault)


async def test_a_draft_passes_its_own_check_and_each_line_has_a_reason(rows: SqlTool) -> None:
    first = await draft_from_schema(rows, rows.tables)
    text = format_definitions(first)
    assert [str(one) for one in await check_definitions(parse_definitions(text), rows)] == []
    assert all(one.why for one in first)
    assert "SUM(price * quantity * (1 - discount))" in text and 'cardinality = "one to one"' not in text
    assert {one.name for one in first.of(Entity)} == {"customer", "purchase", "line"}


async def test_a_key_that_nobody_declared_is_measured(tmp_path: Path) -> None:
    import sqlite3
    from contextlib import closing

    path = tmp_path / "loose.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript("CREATE TABLE a (group_id INT, a_id INT); INSERT INTO a VALUES (1, 1), (1, 2), (2, 3);")
    tool = await SqlTool.open(f"sqlite:///{path}")
    try:
        (entity,) = (await draft_from_schema(tool, tool.tables)).of(Entity)
    finally:
        await tool.close()
    assert (list(entity.key), entity.why) == (
        ["a_id"],
        "no key is declared; as measured, no two of 3 rows share it",
    )


async def test_an_llm_improves_a_draft_and_what_fails_its_check_is_left_out(tmp_path: Path) -> None:
    reply = """```toml
[metric.net_revenue]
synonyms = ["turnover"]
sql = "SUM(price * quantity * (1 - discount))"
from = "line"
grain = ["purchase_id", "product"]
[metric.profit]
sql = "SUM(price - cost)"
from = "line"
why = "guessed"
```"""
    prompts: list[str] = []

    def answer(messages: Sequence[Message]) -> str:
        prompts.append(messages[-1].content)
        return reply

    whole = await draft_definitions(shop(tmp_path), ScriptedLLM(answer))
    assert [one.name for one in whole.definitions.metrics] == ["net_revenue"]
    assert whole.definitions.metrics[0].why == "by the LLM, without a reason"
    assert "no such column" in whole.notes[0] and whole.text().startswith("# Left out: metric.profit")
    assert "table purchase" in prompts[0] and "[entity.purchase]" in prompts[0]


def manifest() -> dict[str, Any]:
    orders = {
        "name": "orders",
        "node_relation": {"alias": "purchase"},
        "defaults": {"agg_time_dimension": "day"},
        "entities": [
            {"name": "order", "type": "primary", "expr": "id"},
            {"name": "customer", "type": "foreign", "expr": "customer_id"},
        ],
        "measures": [{"name": "order_count", "agg": "sum", "expr": "1"}],
        "dimensions": [
            {"name": "day", "type": "time", "expr": "ordered_on"},
            {"name": "status", "type": "categorical", "expr": None},
        ],
    }
    customers = {
        "name": "customers",
        "node_relation": {"alias": "customer"},
        "entities": [{"name": "customer", "type": "primary", "expr": "id"}],
        "dimensions": [{"name": "country", "type": "categorical"}],
    }
    closed = {"where_filters": [{"where_sql_template": "{{ Dimension('order__status') }} = 'closed'"}]}
    abroad = {"where_filters": [{"where_sql_template": "{{ Dimension('customer__country') }} = 'USA'"}]}
    metrics = [
        simple("orders", "order_count"),
        simple("closed_orders", "order_count", closed),
        simple("abroad", "order_count", abroad),
        {
            "name": "customers",
            "label": "Buyers",
            "type": "simple",
            "type_params": {
                "metric_aggregation_params": {"semantic_model": "customers", "agg": "count_distinct", "expr": "id"}
            },
        },
        {
            "name": "share",
            "type": "ratio",
            "type_params": {"numerator": {"name": "closed_orders"}, "denominator": {"name": "orders"}},
        },
        {
            "name": "twice",
            "type": "derived",
            "type_params": {"expr": "2 * n", "metrics": [{"name": "orders", "alias": "n"}]},
        },
        {"name": "so_far", "type": "cumulative", "type_params": {}},
        {"name": "loop", "type": "derived", "type_params": {"expr": "loop", "metrics": [{"name": "loop"}]}},
    ]
    return {"semantic_models": [orders, customers], "metrics": metrics}


def simple(name: str, measure: str, filter: object = None) -> dict[str, Any]:
    return {"name": name, "type": "simple", "type_params": {"measure": {"name": measure}}, "filter": filter}


async def test_a_manifest_of_dbt_is_imported_and_holds_on_the_rows(rows: SqlTool, tmp_path: Path) -> None:
    path = tmp_path / "semantic_manifest.json"
    path.write_text(json.dumps(manifest()))
    whole = import_dbt_manifest(path)
    definitions = parse_definitions(whole.text())
    assert [str(one) for one in await check_definitions(definitions, rows)] == []
    assert [one.name for one in definitions.metrics] == [
        "orders",
        "closed_orders",
        "abroad",
        "customers",
        "share",
        "twice",
    ]
    values = {
        one.name: next(iter((await rows.call(one.full_query())).records[0].fields.values()))
        for one in definitions.metrics
    }
    assert values == {"orders": 4, "closed_orders": 3, "abroad": 3, "customers": 3, "share": 0.75, "twice": 8}
    assert [note.partition(":")[0] for note in whole.notes] == ["metric so_far", "metric loop"]
    assert definitions.of(Join)[0].left == ("purchase.customer_id",) and definitions.metrics[3].synonyms == ("Buyers",)


@pytest.mark.parametrize(
    "text", ["{}", "[1]", "a: !!python/object/apply:os.getcwd []", "a: [", '{"semantic_models": 3}']
)
def test_a_file_that_is_neither_is_one_line_for_the_person(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(SetupError) as error:
        import_dbt_manifest(path)
    assert "\n" not in str(error.value)


def test_the_command_checks_drafts_and_imports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.chdir(tmp_path)
    url = shop(tmp_path)
    definitions_file(tmp_path)
    assert run_command_line(["definitions", "check", "definitions.toml", "--db", url]) == 0
    definitions_file(tmp_path, WRONG)
    assert run_command_line(["definitions", "check", "definitions.toml", "--db", url, "--json"]) == 1
    findings = json.loads(capsys.readouterr().out.splitlines()[-1])["findings"]
    assert findings[0]["line"] == 2 and findings[5]["kind"] == "doubt"
    assert run_command_line(["definitions", "draft", "--db", url, "--llm", "none", "--out", "draft.toml"]) == 0
    assert run_command_line(["definitions", "check", "draft.toml", "--db", url]) == 0
    assert run_command_line(["definitions", "draft", "--db", url, "--llm", "none", "--out", "draft.toml"]) == 2
    Path("m.json").write_text(json.dumps(manifest()))
    assert run_command_line(["definitions", "import", "m.json", "--out", "dbt.toml"]) == 0
    assert "Left out: metric so_far" in capsys.readouterr().err
    assert run_command_line(["definitions", "schema"]) == 0


def test_a_fault_of_form_hides_no_other_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = shop(tmp_path)
    file = tmp_path / "words.toml"
    file.write_text("""[metric.one]
sql = 3
[metric.two]
sql = "SUM(total)"
[metric.three]
query = "SELECT nothing FROM nowhere"
[calendar.fiscal]
starts = "July"
[reading.best]
words = ["best"]
means = "x"
metric = "four"
[reading.good]
words = ["good"]
means = "x"
metric = "one"
[metrik.five]
sql = "1"
""")
    assert run_command_line(["definitions", "check", str(file), "--db", url]) == 1
    out = capsys.readouterr().out
    for line, words in (
        (2, "metric.one.sql is to be"),
        (3, "metric.two needs from"),
        (5, "nowhere"),
        (8, 'starts "July"'),
        (12, "names the metric four; there is two"),
        (17, "metrik"),
    ):
        assert any(text.startswith(f"line {line}: ") and words in text for text in out.splitlines()), (line, out)
    assert "6 findings" in out
