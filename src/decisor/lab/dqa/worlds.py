"""The questions and worlds of a Decision QA folder, each database read once however many names it has.

Two layouts are read: the release's own (one dump per question under its own name), and one that keeps identical dumps
once with a ``MANIFEST.tsv`` of ``released name <tab> file``. The SQL and Cypher dumps are read without a database: one
statement per line, in file order. Peculiar spellings of the release are corrected: string literals in double quotes,
``has_has_merchant``, booleans as strings with blanks before them. Names of buildings keep their stray ending, because
questions go by id. A world can be given as tables, or as a graph with the labels, relationship types and properties of
the release; there ``has_merchant`` stays the text "True" or "False".
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from decisor.errors import SetupError
from decisor.graphs.load import GraphEdge, GraphNode
from decisor.lab.benchmark import Case, read_question_rows
from decisor.lab.dqa.building import BuildingData
from decisor.lab.dqa.locating import LocatingData
from decisor.lab.dqa.rows import MISNAMED, WORLD_TABLES, build_typed_row
from decisor.types import Question, Value, WhatIf

WorldData = LocatingData | BuildingData
Scenario = Literal["locating", "building"]
Form = Literal["sql", "graph"]
SCENARIOS: tuple[Scenario, ...] = ("locating", "building")
FORMS = ("sql", "graph")
NO_FOLDER = (
    "{folder} holds no questions of Decision QA ({folder}/{scenario}/questions/*.json). "
    "Make some: decisor bench dqa generate --scenario {scenario} --size small --seed 1 --out {folder}. "
    "If it has one scenario only, name it, such as scenario=building."
)


@dataclass(frozen=True)
class DqaWorld:
    """A database of the release: its dump and the data read from it."""

    key: str
    """The same for equal content."""
    dump: Path
    data: WorldData


@dataclass(frozen=True)
class WorldCase:
    """A case with its world and its subject."""

    case: Case
    world: DqaWorld
    subject: str
    """A country, or goods."""
    candidates: tuple[str, ...]
    ties: tuple[str, ...]
    """Candidates as good as the gold answer; it alone if it is best under neither semantics."""
    printed: tuple[str, ...]
    """Candidates that are best by the printed rules."""
    able: frozenset[str]
    """Candidates that can change the outcome."""
    choices: int = 0
    """Number of nodes right above the home node, or of suppliers of the goods: with one there is nothing to decide."""

    def model(self, semantics: str) -> WhatIf:
        """Return the decision model for this question."""
        return model_of_subject(self.world.data, self.subject, semantics)


def model_of_subject(data: WorldData, subject: str, semantics: str) -> WhatIf:
    if semantics not in ("released", "paper"):
        raise SetupError(f"semantics is released or paper, not {semantics!r}.")
    return data.model(subject, "paper" if semantics == "paper" else "released")


def read_dqa_cases(folder: Path, scenario: Scenario, form: Form, limit: int | None = None) -> list[WorldCase]:
    """Read the first ``limit`` questions with their worlds, in file order.

    Raises:
        SetupError: the folder, a question or its database cannot be read.
    """
    from decisor.decision_models.ranking import rank_what_if

    if not (folder / scenario / "questions").is_dir():
        raise SetupError(NO_FOLDER.format(folder=folder, scenario=scenario))
    questions = read_dqa_questions(folder, scenario, form)
    worlds: dict[str, DqaWorld] = {}
    cases = []
    for question in questions[:limit]:
        world, subject = find_world(question.database, worlds), question.subject
        models = [model_of_subject(world.data, subject, semantics) for semantics in ("released", "paper")]
        released, printed = (rank_what_if(model, trials=0).ties for model in models)
        cases.append(
            WorldCase(
                Case(question.id, question.question, (question.gold,), question.scenario),
                world,
                subject,
                models[0].candidates(),
                # Generated questions have their gold answer from the printed rules.
                next((ties for ties in (released, printed) if question.gold in ties), (question.gold,)),
                printed,
                find_able_candidates(world.data, subject),
                count_choices(world.data, subject),
            )
        )
    return cases


def find_world(path: Path, worlds: dict[str, DqaWorld]) -> DqaWorld:
    """Return the world of a dump, from ``worlds`` if its file or its content was read before."""
    if str(path) in worlds:
        return worlds[str(path)]
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SetupError(f"Cannot read the database {path}: {error}") from error
    # By content, as the release has one dump under many names.
    key = hashlib.blake2b(content, digest_size=12).hexdigest()
    if key not in worlds:
        worlds[key] = DqaWorld(key, path, parse_dump(content.decode("utf-8")))
    worlds[str(path)] = worlds[key]
    return worlds[key]


def find_able_candidates(data: WorldData, subject: str) -> frozenset[str]:
    """Return the candidates that can change the outcome.

    These are nodes in which the country has power, or suppliers of the goods.
    """
    if isinstance(data, LocatingData):
        return frozenset(row.trade_node for row in data.powers if row.country_name == subject and not row.is_home)
    code = next(row.code for row in data.goods if row.goods_name == subject)
    return frozenset(str(row.building_id) for row in data.supply if row.goods_id == code)


def count_choices(data: WorldData, subject: str) -> int:
    """Return the number of nodes that flow into a country's home node, or of buildings that supply the goods."""
    if isinstance(data, LocatingData):
        home = next(row.home_node for row in data.countries if row.country_name == subject)
        return len({row.source for row in data.flows if row.dest == home})
    return len(find_able_candidates(data, subject))


QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "locating": ("simulated_question.json", "simulated_questions.json"),
    "building": ("simulated_questions.json", "simulated_question.json"),
}
PLACES = {"sql": ("SQL_format", "sql"), "graph": ("LPG_format", "cql")}


@dataclass(frozen=True)
class DqaCase:
    """A question of Decision QA with the path of its database."""

    id: str
    question: Question
    database: Path
    scenario: Scenario
    form: Form
    subject: str
    """The country that asks, or the goods."""
    gold: str
    """The released answer, for scoring only."""


def read_dqa_questions(folder: Path, scenario: Scenario, form: Form) -> list[DqaCase]:
    """Read the questions of a scenario in the order of the file.

    Raise SetupError if a file is missing or is not a question file.
    """
    manifest = folder / "MANIFEST.tsv"
    lines = manifest.read_text(encoding="utf-8").splitlines() if manifest.is_file() else []
    moved = {line.split("\t")[0]: line.split("\t")[1] for line in lines if "\t" in line}
    for name in QUESTIONS[scenario]:
        path = folder / scenario / "questions" / name
        if path.is_file():
            return [parse_released_question(row, folder, scenario, form, moved) for row in read_question_rows(path)]
    raise SetupError(f"{folder} holds no questions: there is no {scenario}/questions/{QUESTIONS[scenario][0]}.")


def parse_released_question(
    item: Mapping[str, object], folder: Path, scenario: Scenario, form: Form, moved: Mapping[str, str]
) -> DqaCase:
    """Parse a question of the release. moved: places of databases that are kept elsewhere, by their released places."""
    trade = scenario == "locating"
    place, ending = PLACES[form]
    try:
        name = f"q{item['question_num']}" if trade else str(item["country"])
        released = f"{scenario}/queries/{place}/{name}.{ending}"
        database = folder / moved.get(released, released)
        if not database.is_file():
            raise SetupError(f"There is no {database}.")
        return DqaCase(
            f"{scenario}-{item['question_num']}",
            Question(
                str(item["question"]).strip(), str(item["business_rules"]).strip(), str(item.get("goal", "")).strip()
            ),
            # Many names lead to one dump: the resolved path lets it be read once.
            database.resolve(),
            scenario,
            form,
            str(item["country"] if trade else item["goods"]),
            str(item["answer"]),
        )
    except KeyError as missing:
        raise SetupError(f"A question of {scenario} has no {missing}.") from None


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
TABLE_OF_LABEL = {table.label: name for name, table in WORLD_TABLES.items()}
DumpRows = Iterator[tuple[str, dict[str, Value]]]


def parse_dump(text: str) -> WorldData:
    """Parse a world from the text of a SQL or Cypher dump. Raise SetupError with the line that cannot be read."""
    graph = "INSERT INTO" not in text and "CREATE TABLE" not in text
    return build_dump_world(iterate_cypher_dump(text) if graph else iterate_sql_dump(text))


def read_dump(path: Path) -> WorldData:
    """Read a world from a .sql or .cql file."""
    if not path.is_file():
        raise SetupError(f"There is no dump {path}.")
    return parse_dump(path.read_text(encoding="utf-8"))


def build_dump_world(rows: DumpRows) -> WorldData:
    """Build a world from dump rows: sort them by table, in file order, and convert their types."""
    tables: dict[str, list[tuple[object, ...]]] = {name: [] for name in WORLD_TABLES}
    for table, fields in rows:
        if table not in tables:
            raise SetupError(f"A dump of Decision QA has no table {table}; it has {', '.join(tables)}.")
        tables[table].append(build_typed_row(WORLD_TABLES[table], fields))
    if tables["trade_node"]:
        return LocatingData.of(tables)
    if tables["goods"]:
        return BuildingData.of(tables)
    raise SetupError("The dump holds neither trade nodes nor goods.")


def iterate_sql_dump(text: str) -> DumpRows:
    """Yield the table and the fields of each row in a SQL dump.

    >>> dump = 'INSERT INTO country(country_name,home_node,development) VALUES ("SWE", "baltic_sea", 107.373);'
    >>> list(iterate_sql_dump(dump))
    [('country', {'country_name': 'SWE', 'home_node': 'baltic_sea', 'development': 107.373})]
    """
    columns: dict[str, list[str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("--"):
            continue
        if match := INSERT.match(line):
            table, names, values = match.groups()
            column_names = (
                [normalize_column_name(name) for name in names.split(",")] if names else columns.get(table.lower(), [])
            )
            row = [parse_dump_literal(*one.groups()) for one in LITERAL.finditer(values)]
            if len(column_names) != len(row):
                raise SetupError(f"Line {number} has {len(row)} values for {len(column_names)} columns: {line[:80]}")
            yield table.lower(), dict(zip(column_names, row, strict=True))
        elif match := CREATE.match(line):
            # Brackets of types and keys hold commas of their own.
            parts = re.sub(r"\([^()]*\)", "", match[2]).split(",")
            columns[match[1].lower()] = [
                normalize_column_name(part.split()[0]) for part in parts if "KEY" not in part.upper()
            ]
        else:
            raise SetupError(f"Line {number} is no CREATE TABLE or INSERT of one row: {line[:80]}")


def iterate_cypher_dump(text: str) -> DumpRows:
    """Yield the table and the fields of each node and relationship in a Cypher dump.

    >>> list(iterate_cypher_dump('CREATE (n: Building {id: 1849, name:"mine", level:1});'))
    [('building', {'id': 1849, 'name': 'mine', 'level': 1})]
    """
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("//"):
            continue
        if (match := CREATE_NODE.match(line)) and match[2] in TABLE_OF_LABEL:
            name = TABLE_OF_LABEL[match[2]]
            columns = {of: column for column, of in WORLD_TABLES[name].properties.items()}
            yield name, {columns.get(of, of): value for of, value in parse_properties(match[3]).items()}
        elif (match := CREATE_EDGE.match(line)) and match[8] in TABLE_OF_LABEL:
            nodes = {match[1]: parse_properties(match[3]), match[4]: parse_properties(match[6])}
            name = TABLE_OF_LABEL[match[8]]
            ends = zip((match[7], match[10]), WORLD_TABLES[name].ends, strict=True)
            keys = {column: nodes[node][WORLD_TABLES[of].key_property] for node, (column, of) in ends}
            yield name, {**keys, **parse_properties(match[9] or "")}
        else:
            raise SetupError(f"Line {number} creates no node or relationship of Decision QA: {line[:80]}")


def normalize_column_name(name: str) -> str:
    """Return the name of a column without quotes and in its right spelling."""
    bare = name.strip().strip('"`').lower()
    return MISNAMED.get(bare, bare)


def parse_properties(text: str) -> dict[str, Value]:
    """Parse the properties of a node or relationship in a Cypher dump.

    >>> parse_properties('name: "a, b", has_has_merchant:  "  False", level:1')
    {'name': 'a, b', 'has_merchant': '  False', 'level': 1}
    """
    return {MISNAMED.get(m[1], m[1]): parse_dump_literal(m[2], m[3]) for m in PROPERTY.finditer(text)}


def parse_dump_literal(quoted: str | None, bare: str | None) -> Value:
    """Parse a string, number or boolean of a dump. Digits with a point or exponent make a float."""
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


TYPES = {"str": "VARCHAR(255)", "float": "DOUBLE PRECISION", "int": "INT", "bool": "BOOLEAN"}


def build_world_schema(
    world: WorldData, types: Mapping[str, str] = TYPES, more: str = "", ending: str = ""
) -> Iterator[str]:
    """Yield one CREATE TABLE for each table. more: text before the key. ending: text after the bracket."""
    for name in world.tables:
        table = WORLD_TABLES[name]
        columns = ", ".join(f"{column} {types[kind]}" for column, kind in table.types.items())
        yield f"CREATE TABLE {name} ({columns}, {more}PRIMARY KEY ({table.key})){ending}"


def build_world_graph(world: WorldData) -> tuple[list[GraphNode], list[GraphEdge]]:
    """Return the nodes and relationships of a world, in file order."""
    nodes: list[GraphNode] = []
    edges: list[GraphEdge] = []
    places: dict[tuple[str, object], int] = {}  # of the nodes, by table and key
    # The tables of nodes come first in both worlds.
    for name, rows in world.tables.items():
        table = WORLD_TABLES[name]
        for row in rows:
            fields: dict[str, Any] = dict(zip(table.types, row, strict=True))
            properties = {to: fields[column] for column, to in table.properties.items()}
            # As released: the graph form holds booleans of this property as text.
            if "has_merchant" in properties:
                properties["has_merchant"] = str(properties["has_merchant"])
            if table.ends:
                start, end = (places[of, fields[column]] for column, of in table.ends)
                edges.append(GraphEdge(table.label, start, end, properties))
            else:
                places[name, fields[table.key]] = len(nodes)
                nodes.append(GraphNode(table.label, properties))
    return nodes, edges
