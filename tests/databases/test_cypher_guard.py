"""The guard on Cypher: one reading statement of known words, or a refusal with its reason."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data import read_security_rows
from decisor.errors import ToolError
from decisor.sandbox.cypher_guard import check_cypher


def statements(name: str, expected: str) -> list[str]:
    rows = read_security_rows(f"{name}_cypher")
    return [row["statement"] for row in rows if row["expected"] == expected]


def is_refused(statement: str, *denied: str) -> bool:
    try:
        check_cypher(statement, frozenset(denied))
    except ToolError as error:
        return error.refused
    return False


def test_every_hostile_statement_is_refused() -> None:
    hostile = statements("hostile", "refuse")
    assert len(hostile) > 80
    assert [statement for statement in hostile if not is_refused(statement)] == []


def test_every_benign_statement_is_allowed() -> None:
    benign = statements("benign", "allow")
    assert len(benign) > 30
    assert all(check_cypher(statement) for statement in benign)


@pytest.mark.parametrize(
    "statement",
    [
        "WITH * DELETE [n][0] RETURN 1",
        "MATCH (n) WITH * SET n.x=1",
        "RETURN * CREATE(:X)",
        "CALL db.labels() YIELD label CREATE (:X)",
        "RETURN 'a\\u0027; CREATE (:X) //'",
        "RETURN '\\uuu0027'",
        "RETURN `a\\u0060b`",
        "MATCH (n) REMOVE\u00a0n.x",
        "\uff2d\uff21\uff34\uff23\uff28 (n) RETURN n",
        "RETURN {a: apoc.load.json('x')}",
        "RETURN {a: unknown(1)}",
        "RETURN `unknown`(1)",
        "RETURN apoc.load.`json`(1)",
        "RETURN (1).abs(1)",
        "CALL db.labels.`other`()",
        "CALL { MATCH (n) RETURN n } IN TRANSACTIONS RETURN 1",
        "MATCH (n) USE other RETURN n",
        "WITH * START [1]",
        "RETURN 1 /* not closed",
        "RETURN 'not closed",
        "RETURN (1",
        "RETURN 1)",
        "MATCH (n) RETURN n UNION",
        "EXPLAIN CREATE (:X)",
        "MATCH (n) WHERE n.x = 1.DELETE [n][0] RETURN n",
        "LOAD CSV FROM 'file:///etc/passwd' AS l RETURN l",
        "",
        ";",
    ],
)
def test_ways_around_the_list_are_refused(statement: str) -> None:
    with pytest.raises(ToolError) as refusal:
        check_cypher(statement)
    assert refusal.value.refused


@pytest.mark.parametrize(
    "statement",
    [
        "MATCH (n) WHERE n.create = 1 RETURN n.delete AS start",
        "MATCH (a)-[:SET]->(b:Delete) RETURN b",
        "RETURN {a: CASE 1 WHEN 1 THEN 2 END, b: NOT true, c: count(*), set: 1}",
        "MATCH (a)-[*1..3]->(b) RETURN b, [1, 2, 3][0..1]",
        "MATCH p = ANY SHORTEST (a)-[:R]->+(b) RETURN p",
        "WITH 1 AS x CALL (x) { RETURN x AS y } RETURN y",
        "MATCH (n) WHERE n.name STARTS WITH 'DELETE' RETURN DISTINCT n{.*} ORDER BY n.x DESC SKIP 1 LIMIT 2",
        "MATCH (n) RETURN n.a AS x UNION ALL MATCH (m) RETURN m.b AS x",
        "RETURN count { (a)-->(b) } AS c, EXISTS { MATCH (a) } AS e",
    ],
)
def test_reading_goes_through_as_it_is_written(statement: str) -> None:
    assert check_cypher(statement) == statement


@pytest.mark.parametrize(
    "statement",
    [
        "MATCH (t:Token) RETURN t.value",
        "MATCH (t:`token`) RETURN t.value",
        "MATCH (c:City|Token) RETURN c",
        "MATCH (c:City) WHERE c:Token RETURN c",
        "MATCH (n) RETURN n",
        "MATCH (n {name: 'Oslo'}) RETURN n",
        "MATCH (n WHERE n.value > '') RETURN n",
        "MATCH (WHERE true) RETURN 1",
        "MATCH ($p) RETURN 1",
        "MATCH (n:!City) RETURN n",
        "MATCH (n:%) RETURN n",
        "MATCH (n IS City) RETURN n",
        "MATCH (c:City)-->(o:City) RETURN o",
        "MATCH (c:City)-[r]->(o:City) RETURN r",
        "MATCH p = (c:City)-[:LINK*1..3]->(o:City) RETURN p",
        "MATCH p = (c:City)-[:LINK]->+(o:City) RETURN p",
        "MATCH p = (c:City)-[:LINK]->{1,3}(o:City) RETURN p",
        "MATCH (c:City)-[:OWNS]->() RETURN count(*)",
        "MATCH (c:City) WITH 1 AS x MATCH (c) RETURN c",
        "MATCH (c:City) RETURN [(c)-[:LINK]->(o:City) | o.name]",
        "MATCH (c:City) RETURN COUNT { (c) }",
        "MATCH (c:City) WHERE EXISTS((c)-[:LINK]->(o:City)) RETURN c",
        "MATCH ANY (c)-[:LINK]->(o:City) RETURN c",
        "CALL db.labels() YIELD label RETURN label",
        "CALL db.index.fulltext.queryNodes('i', 'x') YIELD node RETURN node",
        "SHOW INDEXES",
        "EXPLAIN MATCH (t:Token) RETURN t",
    ],
)
def test_where_names_are_denied_what_could_read_them_is_refused(statement: str) -> None:
    with pytest.raises(ToolError) as refusal:
        check_cypher(statement, frozenset({"token"}))
    assert refusal.value.refused


@pytest.mark.parametrize(
    "statement",
    [
        "MATCH (c:City {name: 'Oslo'})-[r:LINK]->(:City) WHERE c.token IS NOT NULL AND (c.pop > 1) RETURN c, count(r)",
        "MATCH (c:City) CALL (c) { MATCH (c:City)<-[:LINK]-(o:City) RETURN o } RETURN o.name, size([1, 2]) % 2",
        "MATCH (c:City) WITH c, collect(c.name) AS names WHERE any(x IN names WHERE x = 'Oslo') RETURN names[0]",
    ],
)
def test_where_names_are_denied_what_names_others_goes_through(statement: str) -> None:
    assert check_cypher(statement, frozenset({"token"})) == statement


def test_what_a_policy_must_forbid_is_refused_where_its_label_is_denied() -> None:
    forbidden = statements("hostile", "policy")
    assert forbidden
    assert [statement for statement in forbidden if not is_refused(statement, "token")] == []


def test_what_is_run_holds_no_comment_no_version_and_no_escape() -> None:
    assert check_cypher("CYPHER 5 MATCH /* x */ (n) // y\n RETURN 'caf\\u00e9';") == "MATCH (n) RETURN 'café'"


@given(st.text(max_size=60))
def test_any_text_is_refused_or_runs_as_one_clean_statement(text: str) -> None:
    ran = ""
    with contextlib.suppress(ToolError):
        ran = check_cypher("MATCH (n) RETURN " + text)
    assert not ran or check_cypher(ran) == ran


@pytest.mark.parametrize("call", ["c.all", "c.any", "c.exists", "apoc.all", "`c`.exists", "1.exists"])
@pytest.mark.parametrize(
    "statement",
    [
        "MATCH (a:City) RETURN {} (b)",
        "MATCH (a:City), {} (b) RETURN b",
        "MATCH (a:City) WHERE {} (b)-[:X]->(a:City) RETURN a",
    ],
)
def test_a_word_before_a_pattern_is_none_after_a_dot(call: str, statement: str) -> None:
    """So it is the same there whether ``(b)`` is taken for a node or for an argument."""
    for denied in ((), ("secret",)):
        assert is_refused(statement.format(call), *denied)
