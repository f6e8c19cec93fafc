"""The program of a decision model: its statements and tables, as the parent sends them, parsed and checked once.

Statements are made of allowed nodes only, on the tree of the parse. Queries meet the guard of an LLM's queries. What
changes the copy is UPDATE, DELETE or INSERT, of the same nodes. Tables have the types of the source; decimals and
varied numbers are DOUBLE.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import sqlglot
from numpy.typing import NDArray
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from decisor.decision_models.copies import CopyColumn
from decisor.decision_models.schema import (
    MEASURED,
    Correction,
    DecisionModel,
    Measure,
    RowChoice,
    Rule,
    name_part,
    write_literal,
)
from decisor.errors import SetupError, ToolError
from decisor.sandbox.dialect import check_statement_size, sql_refusal, word_set
from decisor.sandbox.engines.duckdb import DIALECT
from decisor.sandbox.sql_guard import SqlGuard, remove_comments
from decisor.system.text import quote_identifier
from decisor.types import Value

if TYPE_CHECKING:
    import duckdb


# Chance of its own would make trials irreproducible: inputs vary by the seeds of the machine.
CHANCE = word_set("rand random uuid gen_random_uuid uuidv4 uuidv7 setseed generateuuidv4")
GUARD = SqlGuard(
    replace(
        DIALECT,
        functions=DIALECT.functions | word_set("gamma lgamma fmod least greatest"),
        refused_functions=DIALECT.refused_functions | CHANCE,
    )
)

NEAR = """CREATE MACRO __near(a, b) AS (typeof(a) IN ('DOUBLE', 'FLOAT') OR typeof(b) IN ('DOUBLE', 'FLOAT'))
AND isfinite(TRY_CAST(a AS DOUBLE)) AND isfinite(TRY_CAST(b AS DOUBLE))
AND abs(TRY_CAST(a AS DOUBLE) - TRY_CAST(b AS DOUBLE))
    <= 1e-9 * greatest(abs(TRY_CAST(a AS DOUBLE)), abs(TRY_CAST(b AS DOUBLE)))"""
"""Whether two numbers are one but for rounding, where one is a DOUBLE: 0.1 + 0.2 and 0.3. Whole numbers, decimals,
dates and texts are compared as they are."""
NAN = "CREATE MACRO __nan(a) AS typeof(a) IN ('DOUBLE', 'FLOAT') AND isnan(TRY_CAST(a AS DOUBLE))"
"""Whether a value is a number that is none; the text 'nan' is a text."""
FACTOR = "__factor"
"""A parameter that the machine has a value for in each trial."""


@dataclass(frozen=True)
class Statement:
    """A parsed statement of a model."""

    part: str
    """Its place in the file (rule.NAME.broken)."""
    tree: exp.Expr
    """Never changed, for rewriting works on copies."""
    target: str
    """The table that it changes, in lower case; '' for a query."""
    reads: frozenset[str]
    """Tables that it names, and parts of its WITH."""
    names: frozenset[str]
    """Parameters without a value."""

    @cached_property
    def text(self) -> str:
        return str(self.tree.sql("duckdb"))

    @cached_property
    def words(self) -> frozenset[str] | None:
        """Identifiers in lower case, with each column that it reads; None if it reads columns without naming them."""
        tree, tables = self.tree, [*self.tree.find_all(exp.Table)]
        names = {one.alias_or_name.lower() for one in tables}
        # count(*) reads no column; a column with the name of a table is its whole row.
        stars = any(not isinstance(one.parent, exp.Count) for one in tree.find_all(exp.Star))
        rows = any(not one.table and one.name.lower() in names for one in tree.find_all(exp.Column))
        renamed = any(one.alias_column_names for one in tables) or any(one.method for one in tree.find_all(exp.Join))
        if stars or rows or renamed or tree.find(exp.Pivot, exp.Columns):
            return None
        return frozenset(one.name.lower() for one in self.tree.find_all(exp.Identifier))


def parse_query(part: str, text: str, parameters: Mapping[str, Value]) -> Statement:
    """Parse one query. Raises ToolError (refused) with the part and the reason."""
    only = parse_statements(part, text, parameters)
    if len(only) != 1 or only[0].target:
        raise sql_refusal(f"{part} is to be one query (SELECT).")
    return only[0]


def parse_change_statements(part: str, text: str, parameters: Mapping[str, Value]) -> list[Statement]:
    """Parse UPDATE, DELETE and INSERT statements, separated by semicolons."""
    every = parse_statements(part, text, parameters)
    if any(not one.target for one in every):
        raise sql_refusal(f"{part} is to be UPDATE, DELETE or INSERT.")
    return every


def parse_statements(part: str, text: str, parameters: Mapping[str, Value]) -> list[Statement]:
    if not text.strip():
        return []
    try:
        check_statement_size(text)
        plain = remove_comments(text, "duckdb")
        trees = sqlglot.parse(plain, dialect="duckdb", error_level=ErrorLevel.RAISE)
        return [statement(part, tree, parameters) for tree in trees if tree and not isinstance(tree, exp.Semicolon)]
    except SqlglotError as error:
        complaint = " ".join(str(error).replace("\x1b[4m", "").replace("\x1b[0m", "").split())[:300]
        raise sql_refusal(f"{part} does not parse as DuckDB's SQL: {complaint}") from error
    except ToolError as error:
        reason = str(error).removeprefix("Refused: ").removeprefix(f"{part}: ")
        raise sql_refusal(f"{part}: {reason}") from error


def statement(part: str, tree: exp.Expr, parameters: Mapping[str, Value]) -> Statement:
    fill_parameters(tree, parameters)
    if not isinstance(tree, exp.Query | exp.Update | exp.Delete | exp.Insert):
        raise sql_refusal(
            f"{type(tree).__name__.upper()} is not allowed; a model has SELECT, UPDATE, DELETE and INSERT."
        )
    # Parameters are filled in before the check, so that it sees all that will run.
    GUARD.nodes(tree, changing=not isinstance(tree, exp.Query))
    if odd := next((one.name for one in tree.find_all(exp.Identifier) if one.name.startswith("__")), ""):
        raise sql_refusal(f"{odd}: names that begin with __ are the machine's own.")
    if DIALECT.rewrite:
        tree = DIALECT.rewrite(tree)
    target = "" if isinstance(tree, exp.Query) else target_of(tree)
    tables = {table.name.lower() for table in tree.find_all(exp.Table) if table.name}
    names = {one.name for one in tree.find_all(exp.Placeholder)}
    return Statement(part, tree, target, frozenset(tables), frozenset(names))


def compare_within_rounding(statement: Statement, with_condition: bool = False) -> Statement:
    """Compare numbers within rounding, so that a load of 0.1 + 0.2 is not above a limit of 0.3.

    with_condition: the outermost WHERE compares two columns as numbers, not as keys; with NaN it is NULL.

    >>> compare_within_rounding(parse_query("rule", "SELECT 1 FROM t WHERE a > 0.3", {})).tree.sql("duckdb")
    'SELECT 1 FROM t WHERE (a > 0.3 AND NOT __NEAR(a, 0.3))'
    """
    tree = statement.tree.copy()
    # BETWEEN becomes two comparisons, for each of its ends has a tolerance of its own.
    for between in list(tree.find_all(exp.Between)):
        value, low, high = between.this, between.args["low"], between.args["high"]
        between.replace(exp.paren(exp.and_(value >= low, value <= high)))
    for one in list(tree.find_all(exp.GT, exp.LT, exp.NEQ, exp.GTE, exp.LTE, exp.EQ)):
        if isinstance(one.find_ancestor(exp.Join, exp.Select), exp.Join) or isinstance(
            one.expression, exp.All | exp.Any
        ):
            continue  # a join on such a comparison would no longer be one by hashes
        # Equality of plain columns, such as keys, stays exact.
        outermost = with_condition and one.find_ancestor(exp.Select) is tree
        numbers = outermost or one.find(exp.AggFunc, exp.Add, exp.Sub, exp.Mul, exp.Div)
        if isinstance(one, exp.EQ | exp.NEQ) and not numbers:
            continue
        near = exp.Anonymous(this="__near", expressions=[one.this.copy(), one.expression.copy()])
        strict = isinstance(one, exp.GT | exp.LT | exp.NEQ)
        test = exp.paren(exp.and_(one.copy(), exp.not_(near)) if strict else exp.or_(one.copy(), near))
        # To DuckDB NaN is above every number: it would meet each lower limit.
        nan = [
            exp.Anonymous(this="__nan", expressions=[side.copy()])
            for side in ((one.this, one.expression) if outermost else ())
            if side.find(exp.Column) and not side.find(exp.Query)
        ]
        one.replace(exp.case().when(exp.or_(*nan), exp.null()).else_(test) if nan else test)
    return replace(statement, tree=tree)


def target_of(tree: exp.Expr) -> str:
    named = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    if not isinstance(named, exp.Table) or not isinstance(named.this, exp.Identifier) or named.db:
        raise sql_refusal("what is changed is to be a table of the copy.")
    return named.name.lower()


def fill_parameters(tree: exp.Expr, values: Mapping[str, Value]) -> None:
    """Replace parameters of these names by literals, in place."""
    for place in list(tree.find_all(exp.Placeholder)):
        if place.name in values:
            place.replace(literal_expression(values[place.name]))


def literal_expression(value: Value) -> exp.Expr:
    if isinstance(value, float):
        return exp.cast(exp.Literal.number(repr(value)) if value >= 0 else exp.Literal.string(repr(value)), "DOUBLE")
    return exp.convert(value if isinstance(value, int | str | None) else str(value))


def fill_factor(statement: Statement, factor: float) -> Statement:
    """Replace ``$__factor`` in a statement by this factor."""
    if FACTOR not in statement.names:
        return statement
    tree = statement.tree.copy()
    fill_parameters(tree, {FACTOR: factor})
    return replace(statement, tree=tree, names=statement.names - {FACTOR})


def assigned_columns(statement: Statement) -> tuple[str, ...]:
    """Return the columns that an UPDATE sets.

    >>> assigned_columns(parse_change_statements("change", "UPDATE t SET a = 1, b = 2", {})[0])
    ('a', 'b')
    """
    if not isinstance(statement.tree, exp.Update):
        return ()
    return tuple(one.this.name for one in statement.tree.expressions if isinstance(one, exp.EQ))


def query_of_rows(rows: str) -> str:
    """Return a query, or one of all rows of the table that is named.

    >>> query_of_rows("site"), query_of_rows("SELECT 1")
    ('SELECT * FROM "site"', 'SELECT 1')
    """
    name = rows.strip()
    return f"SELECT * FROM {quote_identifier(name.strip(chr(34)))}" if re.fullmatch(r'\w+|"[^"]+"', name) else rows


def write_broken_rows(rule: Rule) -> str:
    """Write the query of the rows that break a rule; of ``exists``, of the rows without which it is broken."""
    if not rule.rows:
        return query_of_rows(rule.exists or rule.absent)
    when = f"({rule.when}) AND " if rule.when else ""
    # What is NULL is not met by must, and not meant by never.
    test = f"NOT coalesce(({rule.must}), FALSE)" if rule.must else f"coalesce(({rule.never}), FALSE)"
    return f"SELECT * FROM ({query_of_rows(rule.rows)}) AS r WHERE {when}{test}"


def write_unjudged_rows(rule: Rule) -> str:
    """Write the query of the rows for which the condition of ``must`` or ``never`` is NULL."""
    when = f"({rule.when}) AND " if rule.when else ""
    return f"SELECT * FROM ({query_of_rows(rule.rows)}) AS r WHERE {when}({rule.must or rule.never}) IS NULL"


def write_soft_price(rule: Rule, sign: str) -> str:
    """Write the query of what it costs to break a rule: for each unit beyond must, else for each row."""
    price = rule.price.price if rule.price else 0
    if rule.form == "exists":
        return f"SELECT {sign}CASE WHEN EXISTS ({query_of_rows(rule.exists)}) THEN 0 ELSE ({price}) END"
    if rule.form != "must":
        return f"SELECT {sign}coalesce(sum({price}), 0) FROM ({write_broken_rows(rule)}) AS r"
    beyond = " + ".join(f"greatest(0, ({less}) - ({more}))" for less, more in list_sides(rule))
    when = f" WHERE {rule.when}" if rule.when else ""
    return f"SELECT {sign}coalesce(sum(({price}) * ({beyond})), 0) FROM ({query_of_rows(rule.rows)}) AS r{when}"


def list_sides(rule: Rule) -> list[tuple[str, str]]:
    """List the comparisons of ``must``, each as what is to be at most what. Raises ToolError for another condition."""
    sides = []
    for left, right, sign in list_comparisons(select_expression(rule.must)):
        if not sign:
            raise ToolError(
                f"rule.{rule.name}.must: {left.sql('duckdb')} has no amount by which it is not met; soft needs <=, >=, "
                "= or BETWEEN."
            )
        sides += [(left, right)] if sign[0] in "<=" else []
        sides += [(right, left)] if sign[0] in ">=" else []
    return [(less.sql("duckdb"), more.sql("duckdb")) for less, more in sides]


SIGNS: Mapping[type[exp.Expr], str] = {exp.LTE: "<=", exp.GTE: ">=", exp.EQ: "=", exp.LT: "<", exp.GT: ">"}


def list_comparisons(condition: exp.Expr) -> list[tuple[exp.Expr, exp.Expr, str]]:
    """List the comparisons that a condition joins with AND: left, right and sign, '' for another condition.

    >>> [sign for _, _, sign in list_comparisons(select_expression("load <= 3 AND (x BETWEEN 1 AND 2)"))]
    ['<=', '>=', '<=']
    """
    found: list[tuple[exp.Expr, exp.Expr, str]] = []
    for one in condition.flatten() if isinstance(condition, exp.And) else [condition]:
        piece: exp.Expr = one.unnest()
        if isinstance(piece, exp.Between):
            found += [(piece.this, piece.args["low"], ">="), (piece.this, piece.args["high"], "<=")]
        elif type(piece) in SIGNS:
            found.append((piece.this, piece.expression, SIGNS[type(piece)]))
        else:
            found.append((piece, piece, ""))
    return found


def select_expression(condition: str) -> exp.Expr:
    """Parse a condition behind SELECT: alone, "load <= 3" is a command.

    >>> select_expression("load <= 3").sql()
    'load <= 3'
    """
    parsed = sqlglot.parse_one(f"SELECT {condition}", read="duckdb", into=exp.Select)
    unnested: exp.Expr = parsed.selects[0].unnest()
    return unnested


@dataclass(frozen=True)
class ModelStatements:
    """The parsed statements of a decision model."""

    choice: Statement | None
    """Rows of the only choice."""
    change: list[Statement]
    recompute: list[Statement]
    until: Statement | None
    measures: Mapping[str, Mapping[str, Statement]]
    """The parts of each measure."""
    rules: Mapping[str, Statement]
    """The rows that break each rule; for ``exists``, those that keep it."""
    exists: frozenset[str]
    """Rules that are broken where there is no row."""
    scenarios: Mapping[str, list[Statement]]
    tables: Mapping[str, Statement] = field(default_factory=dict)
    """Named tables, in lower case, in the order in which they read each other."""
    table: str = ""
    """Name of the table of the chosen rows, in lower case."""
    single: bool = False
    """Whether a candidate is one row."""
    conditions: Mapping[str, str] = field(default_factory=dict)
    """SQL of the rows of an input that vary, by input."""

    @classmethod
    def of(cls, model: DecisionModel) -> ModelStatements:
        """Parse the statements of a model. Raises ToolError with the part of the file that is refused."""

        def query(part: str, text: str) -> Statement:
            return parse_query(part, query_of_rows(text), model.parameters)

        def changes(part: str, text: str) -> list[Statement]:
            return parse_change_statements(part, text, model.parameters)

        recompute, choice = model.recompute, model.choice
        computed = choice is not None
        measures = {one.name: write_parts(model, one, computed) for one in model.measures}
        tables = {one.name.lower(): query(f"table.{one.name}.sql", one.sql) for one in model.tables}
        if any(MEASURED in re.findall(r"\w+", one.rows) for one in model.tested):
            cells = [
                f"({') + ('.join(parts.values())}) AS {quote_identifier(name)}" for name, parts in measures.items()
            ]
            tables[MEASURED] = query(f"table.{MEASURED}", f"SELECT {', '.join(cells)}")
        return cls(
            query(f"choice.{choice.name}.rows", choice.rows) if choice else None,
            changes("change", model.change),
            changes("recompute.sql", recompute.sql) if recompute else [],
            query("recompute.until", recompute.until) if recompute and recompute.until else None,
            {
                one.name: {part: query(name_part(one, part), sql) for part, sql in measures[one.name].items()}
                for one in model.measures
            },
            {
                one.name: compare_within_rounding(
                    query(f"rule.{one.name}.{one.form}", write_broken_rows(one)), with_condition=bool(one.rows)
                )
                for one in model.tested
            },
            frozenset(one.name for one in model.tested if one.form == "exists"),
            {one.name: changes(f"scenario.{one.name}.change", one.change) for one in model.scenarios},
            tables,
            choice.name.lower() if choice else "",
            choice is not None and choice.single,
            {
                one.name: query(f"input.{one.name}", f"SELECT 1 FROM {quote_identifier(one.table)} WHERE {one.where}")
                .tree.args["where"]
                .this.sql("duckdb")
                for one in model.inputs
                if one.where
            },
        )

    @property
    def parts(self) -> Iterable[Statement]:
        """The parts of all measures."""
        return [statement for parts in self.measures.values() for statement in parts.values()]

    def judging_nothing(self, model: DecisionModel) -> ModelStatements:
        """Return the statements with, for each rule of rows, those that its condition does not judge."""
        rules = {
            one.name: compare_within_rounding(
                parse_query(f"rule.{one.name}.{one.form}", write_unjudged_rows(one), model.parameters), True
            )
            for one in model.tested
            if one.rows
        }
        return replace(self, rules=rules, exists=frozenset(), measures={name: {} for name in self.measures})

    def every(self) -> Iterable[Statement]:
        if self.choice:
            yield self.choice
        yield from self.tables.values()
        yield from (*self.change, *self.recompute, *([self.until] if self.until else []))
        yield from (*self.parts, *self.rules.values())
        for statements in self.scenarios.values():
            yield from statements

    def reads(self, statement: Statement) -> set[str]:
        """Return the tables that a statement reads, also through named tables."""
        found: set[str] = set()
        left = set(statement.reads)
        while left:
            name = left.pop()
            found.add(name)
            if name in self.tables:
                left |= self.tables[name].reads - found
        return found

    def without(self, skip: int | None) -> ModelStatements:
        """Return the statements without one of change and recompute, counted through both."""
        if skip is None:
            return self
        change = [one for at, one in enumerate(self.change) if at != skip]
        recompute = [one for at, one in enumerate(self.recompute, len(self.change)) if at != skip]
        return replace(self, change=change, recompute=recompute)

    def keeps(self, at: int) -> bool:
        """Return whether several statements read the result of change number ``at``. If so, it is computed once."""
        name, readers = self.change[at].target, 0
        for later in self.change[at + 1 :]:
            readers += name in self.reads(later)
            if later.target == name:
                break
        else:
            readers += sum(name in self.reads(one) for one in (*self.parts, *self.rules.values()))
        return readers > 1


def write_parts(model: DecisionModel, measure: Measure, with_soft: bool) -> dict[str, str]:
    """Return the queries that add up to a measure; with the prices of the soft rules, each a part ``rule NAME``."""
    parts = {part: query_of_rows(sql) for part, sql in measure.parts.items()}
    for rule in model.rules if with_soft else ():
        if rule.price and (rule.price.into or model.first.name) == measure.name:
            parts[f"rule {rule.name}"] = write_soft_price(rule, "" if measure.goal == "min" else "-1 * ")
    return parts


def parse_label(choice: RowChoice, parameters: Mapping[str, Value]) -> exp.Expr | None:
    """Return the expression of the name of a row; None if the choice has none. Raises ToolError."""
    if not choice.label:
        return None
    text = f"SELECT {choice.label} AS label_ FROM ({query_of_rows(choice.rows)}) AS r"
    tree: exp.Expr = parse_query(f"choice.{choice.name}.label", text, parameters).tree.expressions[0].unalias()
    return tree


def apply_corrections(db: duckdb.DuckDBPyConnection, corrections: Iterable[Correction]) -> None:
    """Write adopted corrections into the copy. Raises SetupError if a cell does not hold what was corrected."""
    import duckdb

    for one in corrections:
        table, cell = quote_identifier(one.table), quote_identifier(one.column)
        found = " AND ".join(f"{quote_identifier(name)} = {write_literal(value)}" for name, value in one.key.items())
        place = f"correction of {one.table}.{one.column}"
        try:
            rows = db.execute(f"SELECT {cell} FROM {table} WHERE {found}").fetchall()
            if len(rows) != 1:
                raise SetupError(f"{place}: {len(rows)} rows have {found}, not one.")
            if is_same_cell(rows[0][0], one.becomes):
                continue  # whoever keeps the data corrected it since
            if not is_same_cell(rows[0][0], one.was):
                raise SetupError(f"{place}: the data say {rows[0][0]}, the correction was made on {one.was}.")
            db.execute(f"UPDATE {table} SET {cell} = {write_literal(one.becomes)} WHERE {found}")
        except duckdb.Error as error:
            raise SetupError(f"{place}: {' '.join(str(error).split())[:300]}") from error


def is_same_cell(cell: object, written: Value) -> bool:
    if isinstance(cell, int | float) and isinstance(written, int | float):
        return float(cell) == float(written)
    return str(cell) == str(written)


TEXT = re.compile(r"char|text|string|clob|enum|uuid|json", re.I)
NUMBER = re.compile(r"int|dec|num|real|doub|float|money|serial|hugeint", re.I)
MOMENT = re.compile(r"datetime|timestamp|date", re.I)
MOMENT_TEXT = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?")
WHOLE = re.compile(r"int(eger)?\d*\b|serial", re.I)
LARGE_WHOLE = re.compile(r"u?hugeint|(dec|num)\w*\s*\(\s*(1[6-9]|[2-9]\d)\s*(,\s*0\s*)?\)", re.I)
"""Types of whole numbers that a DOUBLE does not hold."""
DIGITS = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?…?")
NAME = "__rows_in"
NUMPY: dict[str, type[np.generic]] = {"DOUBLE": np.float64, "BIGINT": np.int64, "BOOLEAN": np.bool_}
"""Kinds of columns that travel as numbers; the others travel as texts."""
MAX_EXACT = 2**53
"""Whole numbers beyond it are not all DOUBLEs."""


def load_model_tables(
    db: duckdb.DuckDBPyConnection, tables: Mapping[str, Sequence[CopyColumn]], doubles: Sequence[str]
) -> None:
    """Create the copied tables. Raises SetupError if a table does not fit."""
    import duckdb

    wide = {name.lower() for name in doubles}
    for name, columns in tables.items():
        if name.startswith("__") or not columns:
            raise SetupError(f"{name} cannot be copied: its name begins with __, or it has no columns.")
        arrays: dict[str, NDArray[np.generic]] = {}
        casts = []
        for at, column in enumerate(columns):
            kind, values = duckdb_type_of_column(column, f"{name}.{column.name}".lower() in wide)
            missing = np.array([value is None for value in values], dtype=bool)
            arrays[f"v{at}"], arrays[f"m{at}"] = array(kind, values), missing
            # DuckDB 1.3 to 1.5 ignores the mask of a masked array, so each NULL would be 0, and reads nan as NULL.
            cell = f"CAST(v{at} AS {kind})"
            if kind == "DOUBLE" and np.isnan(arrays[f"v{at}"]).any():
                cell = f"coalesce({cell}, CAST('nan' AS DOUBLE))"
            casts.append(f"CASE WHEN m{at} THEN NULL ELSE {cell} END AS {quote_identifier(column.name)}")
        try:
            db.register(NAME, arrays)
            db.execute(f"CREATE TABLE {quote_identifier(name)} AS SELECT {', '.join(casts)} FROM {NAME}")
            db.unregister(NAME)
        except duckdb.Error as error:
            raise SetupError(f"{name} cannot be copied: {' '.join(str(error).split())}") from error


def array(kind: str, values: Sequence[Value]) -> NDArray[np.generic]:
    if kind in NUMPY:
        return np.array([0 if value is None else value for value in values], dtype=NUMPY[kind])
    texts = np.empty(len(values), dtype=object)
    texts[:] = [None if value is None else text_or_json(value) for value in values]
    return texts


def duckdb_type_of_column(column: CopyColumn, wide: bool) -> tuple[str, Sequence[Value]]:
    """Return the type in DuckDB, and the values. wide: numbers become DOUBLE whatever they are.

    >>> (duckdb_type_of_column(CopyColumn("id", (2**53 + 1, None)), False),
    ...     duckdb_type_of_column(CopyColumn("x", ("0.1", 2), "NUMERIC"), False))
    (('BIGINT', [9007199254740993, None]), ('DOUBLE', [0.1, 2]))
    """
    values = [parse_digits(value) for value in column.values] if is_numeric_column(column) else column.values
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return "BOOLEAN", values
    if (kinds or wide) and kinds <= {int, float}:
        whole = as_whole_numbers(values, column.type) if not wide else None
        return (exact_kind(whole, column.type), whole) if whole else ("DOUBLE", values)
    if kinds == {str} and MOMENT.match(column.type):
        return type_of_moments(values), values
    return "VARCHAR" if kinds else type_of_empty_column(column.type), values


def as_whole_numbers(values: Sequence[Value], kind: str) -> Sequence[int | None] | None:
    """Return the values as integers if all are whole and a DOUBLE would not do, else None.

    A DOUBLE does not do for integers alone, beyond 2^53, or if the type is for larger ones.
    """
    there = [value for value in values if isinstance(value, int | float)]
    floats = [value for value in there if isinstance(value, float)]
    if not all(value.is_integer() for value in floats):
        return None
    if floats and max(map(abs, there)) <= MAX_EXACT and not LARGE_WHOLE.fullmatch(kind):
        return None
    return [int(value) if isinstance(value, int | float) else None for value in values]


def exact_kind(values: Sequence[int | None], kind: str) -> str:
    most = max(abs(value) for value in values if value is not None)
    if most < 2**63 and not LARGE_WHOLE.fullmatch(kind):
        return "BIGINT"
    return "HUGEINT" if most < 2**127 else "VARCHAR"


def type_of_moments(values: Sequence[Value]) -> str:
    """Return DATE if every text is a date, TIMESTAMP if one has a time of day, else VARCHAR."""
    texts = [value for value in values if isinstance(value, str)]
    matches = [MOMENT_TEXT.fullmatch(text) for text in texts]
    if not all(matches):
        return "VARCHAR"
    return "TIMESTAMP" if any(match and match[1] for match in matches) else "DATE"


def type_of_empty_column(kind: str) -> str:
    """Return the type of a column without a value, by its type at the source.

    >>> (type_of_empty_column("BIGINT UNSIGNED"), type_of_empty_column("DECIMAL(38, 0)"),
    ...     type_of_empty_column("INTERVAL"))
    ('BIGINT', 'HUGEINT', 'DOUBLE')
    """
    if TEXT.search(kind):
        return "VARCHAR"
    if match := MOMENT.match(kind):
        return "DATE" if match[0].lower() == "date" else "TIMESTAMP"
    if LARGE_WHOLE.fullmatch(kind):
        return "HUGEINT"
    if WHOLE.search(kind):
        return "BIGINT"
    if NUMBER.search(kind):
        return "DOUBLE"
    return "BOOLEAN" if re.search("bool", kind, re.I) else "INTEGER"


def is_numeric_column(column: CopyColumn) -> bool:
    """Return whether a column has numbers in texts.

    It has by its type, or if some cells are numbers and the others their digits (decimals that no float holds exactly).
    """
    if TEXT.search(column.type):
        return False
    texts = [value for value in column.values if isinstance(value, str)]
    if column.type and not NUMBER.search(column.type):
        return False
    digits = all(DIGITS.fullmatch(text) or text in ("NaN", "inf", "-inf") for text in texts)
    return bool(texts) and digits and (bool(column.type) or any(type(value) is float for value in column.values))


def parse_digits(value: Value) -> Value:
    """Convert a text of digits to a number; any other value stays as it is.

    >>> parse_digits("0.333…"), parse_digits(3), parse_digits("NaN"), parse_digits("123456789012345678901234567890")
    (0.333, 3, nan, 123456789012345678901234567890)
    """
    if not isinstance(value, str):
        return value
    return int(value) if re.fullmatch(r"[+-]?\d+", value) else float(value.rstrip("…"))


def text_or_json(value: Value) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
