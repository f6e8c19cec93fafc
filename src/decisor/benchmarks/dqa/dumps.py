"""The SQL and Cypher dumps of the release, read without a database: one statement per line, in file order.

What the release spells in its own way is put right here: string literals in double quotes, ``has_has_merchant``,
booleans as strings with blanks before them. Names of buildings keep their stray ending: questions go by id.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from decisor.decision_models.building import BuildingData
from decisor.decision_models.locating import LocatingData
from decisor.decision_models.rows import BUILDING, LOCATING, MISNAMED, typed
from decisor.errors import SetupError
from decisor.types import Value

INSERT = re.compile(r'INSERT INTO ["`]?(\w+)["`]?\s*(?:\(([^)]*)\))?\s*VALUES\s*\((.*)\)\s*;\s*$', re.IGNORECASE)
CREATE = re.compile(r'CREATE TABLE (?:IF NOT EXISTS )?["`]?(\w+)["`]?\s*\((.*)\)\s*;\s*$', re.IGNORECASE)
STRING = r"\"(?:[^\"\\]|\\.|\"\")*\"|'(?:[^'\\]|\\.|'')*'"
LITERAL = re.compile(rf"({STRING})|([^\s,]+)")
PROPERTIES = rf"\{{((?:{STRING}|[^\"'}}])*)\}}"
PROPERTY = re.compile(rf"`?(\w+)`?\s*:\s*(?:({STRING})|([^\s,]+))")
NODE = rf"\(\s*`?([^\s:`()]*)`?\s*:\s*(\w+)\s*{PROPERTIES}\s*\)"
CREATE_NODE = re.compile(rf"CREATE\s*{NODE}\s*;?\s*$")
CREATE_EDGE = re.compile(
    rf"MATCH\s*{NODE}\s*,\s*{NODE}\s*CREATE\s*\(\s*`?([^\s:`()]*)`?\s*\)\s*-\s*\[\s*\w*\s*:\s*(\w+)\s*"
    rf"(?:{PROPERTIES})?\s*\]\s*->\s*\(\s*`?([^\s:`()]*)`?\s*\)\s*;?\s*$"
)
NODES = {
    "Trade_node": ("trade_node", {"name": "trade_node"}),
    "Country": ("country", {"name": "country_name"}),
    "Goods": ("goods", {"name": "goods_name"}),
    "Building": ("building", {}),
}
EDGES = {  # table, the keys of its two ends, in the direction of the edge
    "source": ("flow", ("source", "name"), ("dest", "name")),
    "NodeCountry": ("node_country", ("country_name", "name"), ("trade_node", "name")),
    "Demand": ("demand", ("goods_id", "code"), ("building_id", "id")),
    "Supply": ("supply", ("building_id", "id"), ("goods_id", "code")),
}
Rows = Iterator[tuple[str, dict[str, Value]]]


def parse(text: str) -> LocatingData | BuildingData:
    """A world from the text of a SQL or Cypher dump. Raises SetupError with the line that cannot be read."""
    graph = "INSERT INTO" not in text and "CREATE TABLE" not in text
    return world(cypher_rows(text) if graph else sql_rows(text))


def read(path: Path) -> LocatingData | BuildingData:
    """A world from a .sql or .cql file."""
    if not path.is_file():
        raise SetupError(f"There is no dump {path}.")
    return parse(path.read_text(encoding="utf-8"))


def world(rows: Rows) -> LocatingData | BuildingData:
    """Sorts rows by table, in file order, and types them."""
    kinds = {**LOCATING, **BUILDING}
    tables: dict[str, list[tuple[object, ...]]] = {name: [] for name in kinds}
    for table, fields in rows:
        if table not in kinds:
            raise SetupError(f"A dump of Decision QA has no table {table}; it has {', '.join(kinds)}.")
        tables[table].append(typed(kinds[table], fields))
    if tables["trade_node"]:
        return LocatingData(*(tuple(tables[name]) for name in LOCATING))  # type: ignore[arg-type]
    if tables["goods"]:
        return BuildingData(*(tuple(tables[name]) for name in BUILDING))  # type: ignore[arg-type]
    raise SetupError("The dump holds neither trade nodes nor goods.")


def sql_rows(text: str) -> Rows:
    """
    >>> list(sql_rows('INSERT INTO country(country_name,home_node,development) VALUES ("SWE", "baltic_sea", 107.373);'))
    [('country', {'country_name': 'SWE', 'home_node': 'baltic_sea', 'development': 107.373})]
    """
    columns: dict[str, list[str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("--"):
            continue
        if match := INSERT.match(line):
            table, names, values = match.groups()
            column_names = [right(name) for name in names.split(",")] if names else columns.get(table.lower(), [])
            row = [literal(*one.groups()) for one in LITERAL.finditer(values)]
            if len(column_names) != len(row):
                raise SetupError(f"Line {number} has {len(row)} values for {len(column_names)} columns: {line[:80]}")
            yield table.lower(), dict(zip(column_names, row, strict=True))
        elif match := CREATE.match(line):
            parts = re.sub(r"\([^()]*\)", "", match[2]).split(",")
            columns[match[1].lower()] = [right(part.split()[0]) for part in parts if "KEY" not in part.upper()]
        else:
            raise SetupError(f"Line {number} is no CREATE TABLE or INSERT of one row: {line[:80]}")


def cypher_rows(text: str) -> Rows:
    """
    >>> list(cypher_rows('CREATE (n: Building {id: 1849, name:"mine", level:1});'))
    [('building', {'id': 1849, 'name': 'mine', 'level': 1})]
    """
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("//"):
            continue
        if (match := CREATE_NODE.match(line)) and match[2] in NODES:
            table, renamed = NODES[match[2]]
            yield table, {renamed.get(name, name): value for name, value in properties(match[3]).items()}
        elif (match := CREATE_EDGE.match(line)) and match[8] in EDGES:
            ends = {match[1]: properties(match[3]), match[4]: properties(match[6])}
            table, (start, start_key), (end, end_key) = EDGES[match[8]]
            at = {start: ends[match[7]][start_key], end: ends[match[10]][end_key]}
            yield table, {**at, **properties(match[9] or "")}
        else:
            raise SetupError(f"Line {number} creates no node or relationship of Decision QA: {line[:80]}")


def right(name: str) -> str:
    """A column's name, unquoted and as it should be spelt."""
    bare = name.strip().strip('"`').lower()
    return MISNAMED.get(bare, bare)


def properties(text: str) -> dict[str, Value]:
    """
    >>> properties('name: "a, b", has_has_merchant:  "  False", level:1')
    {'name': 'a, b', 'has_merchant': '  False', 'level': 1}
    """
    return {MISNAMED.get(m[1], m[1]): literal(m[2], m[3]) for m in PROPERTY.finditer(text)}


def literal(quoted: str | None, bare: str | None) -> Value:
    """A string, number or boolean as the dumps write it; digits with a point or exponent make a float."""
    if quoted is not None:
        quote = quoted[0]
        return re.sub(r"\\(.)", r"\1", quoted[1:-1].replace(quote * 2, quote))
    word = (bare or "").lower()
    if word in ("true", "false"):
        return word == "true"
    if word == "null":
        return None
    try:
        return int(word)
    except ValueError:
        try:
            return float(word)
        except ValueError:
            raise SetupError(f"{bare} is no string, number or boolean.") from None
