"""The job ``solve``: the program of a model made of its SQL, solved, and measured by the same SQL.

What is decided are tables with a list of symbols in the place of each amount (``linear``): a row of an unknown is an
amount, a row of a choice yes or no. A rule has a row of the program for each row of its query. Rules that only a query
can tell (``exists``, ``absent``) are checked on the plan.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from decisor.decision_models.schema import DecisionModel, Measure, RowChoice, Rule, Unknown, list_deciding, name_part
from decisor.decision_models.worker.execution import (
    changed_inputs,
    duckdb_complaint,
    execute_statement,
    first_broken_rows,
    query_number,
)
from decisor.decision_models.worker.inputs import Floats, none_if_nan
from decisor.decision_models.worker.linear import AS_LIST, MACROS, Symbols
from decisor.decision_models.worker.program import (
    ModelStatements,
    Statement,
    list_comparisons,
    parse_query,
    query_of_rows,
    select_expression,
    write_parts,
)
from decisor.decision_models.worker.solver import Matrix, Solution, find_conflict, solve_program, solve_steps
from decisor.errors import ToolError
from decisor.sandbox.wire import cell_as_plain_value
from decisor.system.text import quote_identifier
from decisor.types import Table, Value

if TYPE_CHECKING:
    import duckdb


MOST_UNKNOWNS = 1_000_000
MOST_ROWS = 1_000
CELL_CHARS = 200
CONFLICT_SECONDS = 20.0
STEP_SECONDS = 10.0
STEPS = 5
"""So many rows of a program with whole numbers are solved again with one more."""
NAMED_PRICES = 3
TIGHT = 1e-7
ROUNDING = 1e-6
"""Relative: so much may the solver's amounts miss a bound."""
BY_QUERY = ("exists", "absent")
TURNED = {"<=": ">", ">=": "<", "<": ">=", ">": "<="}
RULE_ROWS = "rows_of_rule"


@dataclass(frozen=True)
class ProgramRow:
    """A row of the program: the rule that it belongs to, and the data of the row of its query."""

    rule: str
    about: Mapping[str, Value]


@dataclass
class Program:
    """The program of a model, as it is built from the queries."""

    db: duckdb.DuckDBPyConnection
    model: DecisionModel
    parts: ModelStatements
    symbols: Symbols
    matrix: Matrix
    starts: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Number of the first unknown, and how many, by table of what is decided."""
    rows: list[ProgramRow] = field(default_factory=list)
    faults: list[ProgramRow] = field(default_factory=list)
    """Rows without an unknown that the data alone break."""
    label_of: dict[str, str] = field(default_factory=dict)
    """SQL of the name of a row, by table of what is decided."""
    slacks: list[tuple[Rule, int, float]] = field(default_factory=list)
    """Rule, unknown and price of each amount by which a soft rule is not met."""

    def build(self) -> None:
        for macro in MACROS:
            self.db.execute(macro)
        decided = {choice.name.lower() for choice in self.model.choices}
        decided |= {unknown.name.lower() for unknown in self.model.unknowns}
        # What is decided for each row of a named table needs that table first.
        early = [name for name, statement in self.parts.tables.items() if not decided & self.parts.reads(statement)]
        for name in early:
            self.named_table(name, self.parts.tables[name])
        for choice in self.model.choices:
            self.choice(choice)
        for unknown in self.model.unknowns:
            self.unknown(unknown)
        count = len(self.matrix.low)
        if not 0 < count <= MOST_UNKNOWNS:
            raise ToolError(f"unknown: {count:,} unknowns; there are to be 1 to {MOST_UNKNOWNS:,}.")
        for name, statement in self.parts.tables.items():
            if name not in early:
                self.named_table(name, statement)
        cost = self.coefficients(self.model.first)
        for rule in self.model.rules:
            if rule.form in ("must", "never"):
                self.rule(rule)
        self.matrix.cost = cost | self.prices(self.model.first)

    def coefficients(self, measure: Measure) -> dict[int, float]:
        """Return what each unknown counts in a measure; that of unknown -1 is the constant."""
        cost: dict[int, float] = {}
        for part, sql in write_parts(self.model, measure, False).items():
            for number, value in self.terms(name_part(measure, part), sql).items():
                cost[number] = cost.get(number, 0.0) + value
        return cost

    def prices(self, measure: Measure) -> dict[int, float]:
        """Return what each amount by which a soft rule is not met counts in a measure."""
        sign, first = 1.0 if measure.goal == "min" else -1.0, self.model.first.name
        return {
            slack: sign * price
            for rule, slack, price in self.slacks
            if rule.price and (rule.price.into or first) == measure.name
        }

    def parse(self, part: str, sql: str) -> exp.Expr:
        return parse_query(part, query_of_rows(sql), self.model.parameters).tree

    def expression(self, part: str, text: str, table: str) -> str:
        """Return checked SQL of an expression over the rows of a table."""
        tree = self.parse(part, f"SELECT {text} AS value_ FROM {table}").expressions[0].unalias()
        return str(tree.sql("duckdb"))

    def run(self, part: str, sql: str) -> duckdb.DuckDBPyConnection:
        import duckdb

        try:
            return self.db.execute(sql)
        except duckdb.Error as error:
            raise ToolError(f"{part}: {duckdb_complaint(error)}") from error

    def decided(self, part: str, name: str, sql: str) -> int:
        """Create the table of what is decided, with a symbol in each row; return how many."""
        tree, lists = self.symbols.rewrite(part, self.parse(part, sql))
        if lists:
            raise ToolError(f"{part}: what is decided may not depend on amounts.")
        first = len(self.matrix.low)
        symbol = f"[{{'i': ({first} - 1 + row_number() OVER ())::BIGINT, 'c': 1.0::DOUBLE}}]"
        table = quote_identifier(AS_LIST + name.lower())
        self.run(part, f"CREATE TEMP TABLE {table} AS SELECT *, {symbol} AS amount FROM ({tree.sql('duckdb')})")
        columns = [row[0].lower() for row in self.db.execute(f"DESCRIBE {table}").fetchall()]
        if "amount" in columns[:-1] or "amount_1" in columns:
            raise ToolError(f"{part}: a column may not be called amount, as that of the plan is. Give it another name.")
        self.symbols.columns[name.lower()] = tuple(columns)
        self.symbols.lists[name.lower()] = {"amount"}
        count = self.db.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0]
        self.starts[name] = (first, count)
        return int(count)

    def bounds(self, part: str, name: str, bound: float | str | None, none: float) -> list[float]:
        """Return the bound of each unknown; one without is ``none``."""
        count = self.starts[name][1]
        if bound is None or not isinstance(bound, str):
            return [none if bound is None else float(bound)] * count
        table = quote_identifier(AS_LIST + name.lower())
        value = self.expression(part, bound, name)
        query = f"SELECT CAST({value} AS DOUBLE) FROM {table} AS {quote_identifier(name)}"
        values = self.run(part, f"{query} ORDER BY amount[1].i").fetchall()
        if any(value != value for (value,) in values):
            raise ToolError(f"{part}: a bound is not a number.")
        return [none if value is None else value for (value,) in values]

    def unknown(self, one: Unknown) -> None:
        part = f"unknown.{one.name}"
        count = self.decided(f"{part}.per", one.name, one.per)
        binary = one.kind == "binary"
        self.matrix.low += self.bounds(f"{part}.lower", one.name, one.lower, 0.0 if binary else -np.inf)
        high = self.bounds(f"{part}.upper", one.name, one.upper, 1.0 if binary else np.inf)
        self.matrix.high += [min(1.0, value) for value in high] if binary else high
        self.matrix.whole += [one.kind != "continuous"] * count

    def choice(self, one: RowChoice) -> None:
        count = self.decided(f"choice.{one.name}.rows", one.name, one.rows)
        self.matrix.low += [0.0] * count
        self.matrix.high += [1.0] * count
        self.matrix.whole += [True] * count
        self.symbols.choices.add(one.name.lower())
        table = quote_identifier(AS_LIST + one.name.lower())
        for take in one.takes:
            group = quote_identifier(take.per) if take.per else "0"
            query = f"SELECT {group} AS g, list(amount[1].i) FROM {table} GROUP BY g ORDER BY min(amount[1].i)"
            for value, members in self.run(f"choice.{one.name}.take", query).fetchall():
                about = {take.per: cell_as_plain_value(value, CELL_CHARS)} if take.per else {}
                self.rows.append(ProgramRow(f"take of {one.name}", about))
                zeros = np.zeros(len(members), np.int64)
                self.matrix.add(zeros, members, np.ones(len(members)), [float(take.low)], [float(take.high)])

    def label(self, one: RowChoice | Unknown) -> str:
        """Return SQL of the name of a row: as many of its first columns as tell the rows apart."""
        if one.name not in self.label_of:
            self.label_of[one.name] = self.find_label(one)
        return self.label_of[one.name]

    def find_label(self, one: RowChoice | Unknown) -> str:
        if one.label:
            kind = "choice" if isinstance(one, RowChoice) else "unknown"
            return self.expression(f"{kind}.{one.name}.label", one.label, one.name)
        columns = [quote_identifier(name) for name in self.symbols.columns[one.name.lower()] if name != "amount"]
        table, count = quote_identifier(AS_LIST + one.name.lower()), self.starts[one.name][1]
        for at in range(1, len(columns) + 1):
            label = f"concat_ws(' ', {', '.join(columns[:at])})"
            if self.db.execute(f"SELECT count(DISTINCT {label}) FROM {table}").fetchall()[0][0] == count:
                return label
        return columns[0]

    def labels(self, one: RowChoice | Unknown) -> list[str]:
        """Return the name of each row."""
        table = f"{quote_identifier(AS_LIST + one.name.lower())} AS {quote_identifier(one.name)}"
        query = f"SELECT CAST({self.label(one)} AS VARCHAR) FROM {table} ORDER BY amount[1].i"
        return [str(label) for (label,) in self.run(f"{one.name}.label", query).fetchall()]

    def unknown_named(self, name: str) -> int:
        """Return the number of the unknown whose row has this name. Raises ToolError."""
        near: list[str] = []
        decided: list[RowChoice | Unknown] = [*self.model.choices, *self.model.unknowns]
        for one in decided:
            labels = self.labels(one)
            places = [at for at, label in enumerate(labels) if label.lower() == name.lower()]
            if len(places) == 1:
                return self.starts[one.name][0] + places[0]
            near += difflib.get_close_matches(name, labels, 3) or labels[:2]
        raise ToolError(f"{name} is no single row of what is decided; there is {', '.join(near[:6])}, ...")

    def named_table(self, name: str, statement: Statement) -> None:
        tree, lists = self.symbols.rewrite(statement.part, statement.tree)
        table = quote_identifier(f"{AS_LIST}{name}" if lists else name)
        self.run(statement.part, f"CREATE TEMP TABLE {table} AS {tree.sql('duckdb')}")
        columns = tuple(row[0].lower() for row in self.db.execute(f"DESCRIBE {table}").fetchall())
        self.symbols.columns[name] = columns
        if lists:
            self.symbols.lists[name] = lists

    def terms(self, part: str, sql: str) -> dict[int, float]:
        """Return the coefficients of a query of one number; that of unknown -1 is the constant."""
        tree, lists = self.symbols.rewrite(part, self.parse(part, sql))
        name = quote_identifier(tree.selects[0].alias_or_name)
        value = name if lists else f"__lin_of({name})"
        query = f"SELECT unnest({value}) AS t FROM ({tree.sql('duckdb')})"
        return dict(self.run(part, f"SELECT t.i, sum(t.c) FROM ({query}) GROUP BY 1").fetchall())

    def rule(self, one: Rule) -> None:
        part = f"rule.{one.name}"
        tree, lists = self.symbols.rewrite(f"{part}.rows", self.parse(f"{part}.rows", one.rows))
        table = quote_identifier(f"{AS_LIST}{RULE_ROWS}" if lists else RULE_ROWS)
        numbered = f"SELECT row_number() OVER () - 1 AS __n, * FROM ({tree.sql('duckdb')})"
        self.run(f"{part}.rows", f"CREATE OR REPLACE TEMP TABLE {table} AS {numbered}")
        columns = tuple(row[0].lower() for row in self.db.execute(f"DESCRIBE {table}").fetchall())
        self.symbols.columns[RULE_ROWS], self.symbols.lists[RULE_ROWS] = columns, lists
        sides = self.sides(one)
        gate = self.gate(one, lists)
        cells = ["r.__n AS __n", *(f"({left}) - ({right}) AS d{at}" for at, (left, right, _) in enumerate(sides))]
        cells += [f"{gate[0] if gate else 'NULL'} AS gate", f"{one.price.price if one.price else 'NULL'} AS price"]
        where = f" WHERE {one.when}" if one.when and not gate else ""
        checked = self.parse(part, f"SELECT {', '.join(cells[1:])} FROM {RULE_ROWS} AS r{where}")
        checked.set("expressions", [exp.alias_(exp.column("__n", table="r"), "__n"), *checked.expressions])
        tests, of_tests = self.symbols.rewrite(part, checked)
        self.run(part, f"CREATE OR REPLACE TEMP TABLE __tests AS {tests.sql('duckdb')}")
        plain = [name for name in columns if name not in lists and name != "__n"]
        shown = ", ".join(f"r.{quote_identifier(name)}" for name in plain)
        query = f"SELECT {f'{shown}, ' if shown else ''}t.gate, t.price FROM __tests AS t JOIN {table} AS r USING (__n)"
        named = self.db.execute(f"{query} ORDER BY __n").fetchall()
        names = [*plain, "__gate", "__price"]
        cells_of_rows = [dict(zip(names, row, strict=True)) for row in named]
        for at, (_, _, sign) in enumerate(sides):
            value = f"d{at}" if f"d{at}" in of_tests else f"__lin_of(d{at})"
            self.side(one, value, sign, cells_of_rows, gate)

    def sides(self, rule: Rule) -> list[tuple[str, str, str]]:
        """Return the comparisons of a condition: left, right and sign. Raises ToolError for another condition."""
        self.symbols.part = f"rule.{rule.name}"
        tree = select_expression(rule.must or rule.never)
        found = list_comparisons(tree)
        if other := [left for left, _, sign in found if not sign]:
            words = "a rule for the solver compares two sums with <=, >=, = or BETWEEN"
            raise self.symbols.refusal(other[0], words)
        if rule.never and (len(found) > 1 or found[0][2] == "="):
            raise self.symbols.refusal(tree, "never with AND or = is a choice between two rules; write must")
        found = [(left, right, TURNED[sign] if rule.never else sign) for left, right, sign in found]
        if any(sign in "<>" for _, _, sign in found):
            word = "never " if rule.never else ""
            words = (
                f"{word}a strict comparison of an amount has no nearest plan; leave a margin, such as <= capacity - 1"
            )
            raise self.symbols.refusal(tree, words)
        return [(left.sql("duckdb"), right.sql("duckdb"), sign) for left, right, sign in found]

    def gate(self, rule: Rule, lists: set[str]) -> tuple[str, float] | None:
        """Return the yes-or-no unknown that ``when`` asks for, and its value; None if ``when`` asks for data."""
        test = select_expression(rule.when) if rule.when else None
        names = {one.name.lower() for one in test.find_all(exp.Column)} if test is not None else set()
        if test is None or not names & lists:
            return None
        value = test.expression.name if isinstance(test, exp.EQ) else ""
        if value not in ("0", "1") or not isinstance(test, exp.EQ):
            raise self.symbols.refusal(test, "when is a yes-or-no unknown = 1 or = 0, or a condition without amounts")
        return test.this.sql("duckdb"), float(value)

    def side(
        self, rule: Rule, value: str, sign: str, named: list[dict[str, Any]], gate: tuple[str, float] | None
    ) -> None:
        """Add the rows of one comparison to the program."""
        part = f"rule.{rule.name}"
        nulls = self.db.execute(f"SELECT count(*) FROM __tests WHERE {value} IS NULL").fetchall()[0][0]
        if nulls:
            places = self.db.execute(f"SELECT {value} IS NULL FROM __tests ORDER BY __n").fetchall()
            first = named[[is_null for (is_null,) in places].index(True)]
            shown = describe_row(ProgramRow(rule.name, plain_cells({k: v for k, v in first.items() if k[:2] != "__"})))
            raise ToolError(
                f"{part}: in {nulls:,} of {len(named):,} rows one side is NULL, such as {shown}: no unknown meets the "
                "row, or the data lack a value: coalesce(..., 0), or `when` with IS NOT NULL where a limit is missing."
            )
        lists = f"SELECT row_number() OVER (ORDER BY __n) - 1 AS n, {value} AS d FROM __tests"
        terms = f"SELECT n, unnest(d) AS t FROM ({lists})"
        cells = self.run(
            part, f"SELECT n, t.i AS i, sum(t.c) AS c FROM ({terms}) GROUP BY ALL ORDER BY n, i"
        ).fetchnumpy()
        rows, unknowns = np.asarray(cells["n"], np.int64), np.asarray(cells["i"], np.int64)
        values = np.asarray(cells["c"], float)
        constant = np.zeros(len(named))
        np.add.at(constant, rows[unknowns < 0], values[unknowns < 0])
        kept = (unknowns >= 0) & (values != 0)
        rows, unknowns, values = rows[kept], unknowns[kept], values[kept]
        least = np.where(sign in (">=", "="), -constant, -np.inf)
        greatest = np.where(sign in ("<=", "="), -constant, np.inf)
        begins = np.searchsorted(rows, np.arange(len(named) + 1))
        for at, cells_of_row in enumerate(named):
            span = slice(begins[at], begins[at + 1])
            about = {
                name: cell_as_plain_value(cell, CELL_CHARS) for name, cell in cells_of_row.items() if name[:2] != "__"
            }
            row = ProgramRow(rule.name, about)
            if begins[at] == begins[at + 1] and not rule.price:
                if least[at] > 1e-9 or greatest[at] < -1e-9:
                    self.faults.append(row)
                continue
            self.row(
                rule, row, (unknowns[span], values[span]), (float(least[at]), float(greatest[at])), cells_of_row, gate
            )

    def row(
        self,
        rule: Rule,
        row: ProgramRow,
        terms: tuple[Any, Floats],
        ends: tuple[float, float],
        cells: Mapping[str, Any],
        gate: tuple[str, float] | None,
    ) -> None:
        """Add one row: only if its gate is open, and with amounts by which it may not be met if it is soft."""
        unknowns, values = terms
        least, greatest = ends
        if gate is not None:
            unknowns, values, least, greatest = self.gated(
                rule, row, (unknowns, values), ends, cells["__gate"], gate[1]
            )
        if rule.price:
            price = cells["__price"]
            if price is None or price < 0:
                raise ToolError(f"rule.{rule.name}.soft: the price is {price} in a row; it is to be 0 or more.")
            for sign, needed in ((1.0, least > -np.inf), (-1.0, greatest < np.inf)):
                if needed:
                    slack = self.matrix.add_unknown(0.0, np.inf)
                    self.slacks.append((rule, slack, float(price)))
                    unknowns, values = np.append(unknowns, slack), np.append(values, sign)
        self.rows.append(row)
        self.matrix.add(np.zeros(len(unknowns), np.int64), unknowns, values, [least], [greatest])

    def gated(
        self,
        rule: Rule,
        row: ProgramRow,
        terms: tuple[Any, Floats],
        ends: tuple[float, float],
        gate: list[dict[str, Any]],
        state: float,
    ) -> tuple[Any, Floats, float, float]:
        """Return a row that counts only if a yes-or-no unknown is ``state``: by the smallest big M that is right."""
        unknowns, values = terms
        least, greatest = ends
        part = f"rule.{rule.name}"
        switch = gate[0]["i"] if len(gate) == 1 and gate[0]["c"] == 1.0 else -1
        if switch < 0 or not (
            self.matrix.whole[switch] and self.matrix.low[switch] >= 0 and self.matrix.high[switch] <= 1
        ):
            raise ToolError(f"{part}: when = ... needs one yes-or-no unknown in each row.")
        if least > -np.inf and greatest < np.inf:
            raise ToolError(f"{part}: = with when needs two rules, <= and >=.")
        low, high = np.array(self.matrix.low)[unknowns], np.array(self.matrix.high)[unknowns]
        with np.errstate(invalid="ignore"):
            ends_of = np.sort(np.stack([values * low, values * high]), axis=0)
        most, fewest = float(ends_of[1].sum()), float(ends_of[0].sum())
        beyond = most - greatest if greatest < np.inf else least - fewest
        if not np.isfinite(beyond):
            raise ToolError(f"{part}: when needs bounds; give upper to the unknowns of {describe_row(row)}.")
        size, sign = max(beyond, 0.0), 1.0 if greatest < np.inf else -1.0
        unknowns = np.append(unknowns, switch)
        if state == 1:  # terms + M x <= greatest + M
            return unknowns, np.append(values, sign * size), least - (sign < 0) * size, greatest + (sign > 0) * size
        return unknowns, np.append(values, -sign * size), least, greatest


def describe_row(row: ProgramRow) -> str:
    return ", ".join(f"{name} {value}" for name, value in row.about.items()) or "the only row"


def propose_plan(
    db: duckdb.DuckDBPyConnection,
    model: DecisionModel,
    parts: ModelStatements,
    before: Sequence[Statement],
    request: Mapping[str, Any],
) -> Table:
    """Return the best plan as rows of kind, name, value and more, measured by the model's SQL.

    The request has ``seconds``; ``forced``, triples of table, row and amount; ``required``, a name and whether its row
    is to be in the plan or out of it; ``excluded``, rows of the first table that may not be all and only those chosen;
    ``seed`` for a trial; ``held``, the plan that is judged beside the best one; ``stepped``, whether rows are solved
    again with one more; and the ``columns`` by table.
    """
    with changed_inputs(db, model, parts, before, request.get("seed")):
        symbols = Symbols(db, {name: tuple(map(str.lower, names)) for name, names in request["columns"].items()})
        program = Program(db, model, parts, symbols, Matrix(model.first.goal == "min"))
        program.build()
        matrix = program.matrix
        for name, row, value in request["forced"]:
            unknown = program.starts[name][0] + row
            matrix.low[unknown] = matrix.high[unknown] = value
        for name, is_in in request.get("required", ()):
            unknown = program.unknown_named(name)
            if is_in:
                matrix.low[unknown] = max(matrix.low[unknown], min(1.0, matrix.high[unknown]))
            else:
                matrix.high[unknown] = min(matrix.high[unknown], 0.0)
        for rows in request["excluded"]:
            exclude_choice(program, rows)
        if not matrix.triples:  # without any row, the arrays of the matrix could not be joined
            program.rows.append(ProgramRow("", {}))
            matrix.add([0], [0], [0.0], [-np.inf], [np.inf])
        solution = Solution("infeasible") if program.faults else solve_program(matrix, request["seconds"])
        stepped = bool(request.get("stepped"))
        if len(list_deciding(model.measures)) > 1 and solution.status == "optimal":
            solution, stepped = decide_near_plans(program, solution, request["seconds"] - solution.seconds), False
        figures = {"objective": solution.objective, "bound": solution.bound, "seconds": solution.seconds}
        figures |= {"unknowns": len(matrix.low), "requirements": len(matrix.least), "checked": solution.checked}
        out: list[tuple[Value, ...]] = [("status", solution.status, None, None)]
        out += [("figure", name, value, None) for name, value in figures.items()]
        if len(solution.amounts):
            out += measure_plan(program, solution)
            out += rule_rows(program, solution, STEP_SECONDS if stepped else 0.0)
            out += reduced_rows(program, solution)
        elif solution.status == "infeasible" and request.get("seed") is None:
            out += conflict_rows(program)
        if "held" in request:
            out.append(judge_held_plan(program, request["held"]))
        return Table(("kind", "name", "value", "rows"), tuple(out))


def decide_near_plans(program: Program, best: Solution, seconds: float) -> Solution:
    """Return the plan that is best by the next measures, of those that are near to the best by the ones before.

    It has no prices: they would be those of the last measure.
    """
    matrix, found, until = program.matrix, best, time.monotonic() + seconds
    for measure, following in pairwise(list_deciding(program.model.measures)):
        cost = program.coefficients(following) | program.prices(following)
        near = matrix.near_best(found.objective, measure.tolerance(found.objective))
        matrix = replace(near, cost=cost, smallest=following.goal == "min")
        solution = solve_program(matrix, max(1.0, until - time.monotonic()), with_prices=False)
        found = solution if len(solution.amounts) else replace(found, status=solution.status)
        if found.status != "optimal":
            break
    amounts, rows = found.amounts, len(program.matrix.least)
    objective, seconds = program.matrix.objective(amounts), best.seconds + seconds - (until - time.monotonic())
    return Solution(found.status, amounts, objective, best.objective, seconds, found.activity[:rows])


def exclude_choice(program: Program, rows: Sequence[int]) -> None:
    """Add the constraint that excludes exactly these rows of the first table as a choice."""
    first, count = next(iter(program.starts.values()))
    chosen = np.isin(np.arange(count), list(rows))
    program.rows.append(ProgramRow("", {}))
    # For this choice alone, the sum over its rows less the others is the number of its rows.
    coefficients = np.where(chosen, 1.0, -1.0)
    program.matrix.add(np.zeros(count), np.arange(first, first + count), coefficients, [-np.inf], [chosen.sum() - 1.0])


def measure_plan(program: Program, solution: Solution) -> list[tuple[Value, ...]]:
    """Write the plan as tables, and measure it by the model's SQL."""
    db, model = program.db, program.model
    amounts = np.where(np.array(program.matrix.whole), np.round(solution.amounts), solution.amounts)
    amounts[np.abs(amounts) < 1e-9] = 0.0
    miss_soft_rules(program, amounts)
    out = write_plan(program, amounts)
    for measure in model.measures:
        for part, sql in write_parts(model, measure, False).items():
            value = query_number(db, parse_query(name_part(measure, part), sql, model.parameters))
            out.append(("part", measure.name, none_if_nan(value), part))
    sign = 1.0 if program.matrix.smallest else -1.0
    for rule in model.rules:
        own = [(unknown, price) for one, unknown, price in program.slacks if one is rule]
        if rule.price and own:
            price = sign * sum(price * float(amounts[unknown]) for unknown, price in own)
            out.append(("part", rule.price.into or model.first.name, price, f"rule {rule.name}"))
    return out + broken_by_query(program)


def write_plan(program: Program, amounts: Floats) -> list[tuple[Value, ...]]:
    """Write amounts as the tables of what is decided, with the named tables that read them; return the former."""
    decided: list[RowChoice | Unknown] = [*program.model.choices, *program.model.unknowns]
    out = [write_plan_table(program, one, amounts) for one in decided]
    for name, statement in program.parts.tables.items():
        if name in program.symbols.lists:
            view = f"CREATE OR REPLACE TEMP VIEW {quote_identifier(name)} AS {statement.text}"
            execute_statement(program.db, statement, view)
    return out


def broken_by_query(program: Program) -> list[tuple[Value, ...]]:
    """Return the rules that only a query can tell, and the plan that was written breaks."""
    out: list[tuple[Value, ...]] = []
    for name, statement in program.parts.rules.items():
        if program.model.rule(name).form in BY_QUERY:
            found = first_broken_rows(program.db, statement, 1)
            if name in program.parts.exists:
                found = [] if found else [(1, {})]
            out += [("broken", name, count, [plain_cells(row or {})]) for count, row in found]
    return out


def judge_held_plan(program: Program, held: Mapping[str, Mapping[str, Any]]) -> tuple[Value, ...]:
    """Return the objective of a plan on these data, and the rules that it breaks here.

    held: by table, how many ``rows`` it had, the ``places`` of those that are not 0, and their ``amounts``.
    """
    matrix = program.matrix
    amounts, broken = np.zeros(len(matrix.low)), {row.rule for row in program.faults}
    for name, table in held.items():
        first, count = program.starts[name]
        if count != table["rows"]:
            return ("held", "", None, [*broken, f"rows of {name}"])
        amounts[first + np.array(table["places"], np.int64)] = table["amounts"]
    beyond_bounds = find_beyond(amounts, np.array(matrix.low), np.array(matrix.high))
    broken |= {
        f"bounds of {name}" for name, (first, count) in program.starts.items() if beyond_bounds[first:][:count].any()
    }
    miss_soft_rules(program, amounts)
    beyond = find_beyond(matrix.activity(amounts), np.array(matrix.least), np.array(matrix.greatest))
    broken |= {program.rows[at].rule for at in np.flatnonzero(beyond)}
    if any(rule.form in BY_QUERY for rule in program.model.rules):
        write_plan(program, amounts)
        broken |= {str(name) for _, name, *_ in broken_by_query(program)}
    return ("held", "", matrix.objective(amounts), sorted(broken))


def miss_soft_rules(program: Program, amounts: Floats) -> None:
    """Set the amounts by which soft rules are not met to the least that the other amounts make necessary."""
    matrix, slacks = program.matrix, [unknown for _, unknown, _ in program.slacks]
    rows, unknowns, values = matrix.cells()
    is_slack = np.isin(unknowns, slacks)
    amounts[slacks] = 0.0
    activity = matrix.activity(amounts)
    short = np.where(
        values[is_slack] > 0,
        (np.array(matrix.least) - activity)[rows[is_slack]],
        (activity - np.array(matrix.greatest))[rows[is_slack]],
    )
    amounts[unknowns[is_slack]] = np.maximum(short, 0.0)


def find_beyond(values: Floats, least: Floats, greatest: Floats) -> NDArray[np.bool_]:
    """Return whether each value is below the least or above the greatest, by more than the solver's rounding."""
    beyond = np.zeros(len(values), np.bool_)
    for end, sign in ((least, -1.0), (greatest, 1.0)):
        known = np.isfinite(end)
        beyond[known] |= sign * (values - end)[known] > ROUNDING * np.maximum(1.0, np.abs(end[known]))
    return beyond


def write_plan_table(program: Program, one: RowChoice | Unknown, amounts: Floats) -> tuple[Value, ...]:
    """Write what is decided as a table under its name, and return its rows that are not 0."""
    db, name = program.db, quote_identifier(one.name)
    first, count = program.starts[one.name]
    own = np.ascontiguousarray(amounts[first : first + count])
    db.register("__amounts", {"i": np.arange(first, first + count), "v": own})
    source = f"{quote_identifier(AS_LIST + one.name.lower())} AS u JOIN __amounts AS a ON u.amount[1].i = a.i"
    where = " WHERE a.v > 0.5" if isinstance(one, RowChoice) else ""
    db.execute(
        f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT u.* REPLACE (a.v AS amount) FROM {source}{where} ORDER BY a.i"
    )
    part = f"{'choice' if isinstance(one, RowChoice) else 'unknown'}.{one.name}"
    label, now = program.label(one), "NULL"
    if isinstance(one, Unknown) and one.now:
        now = program.expression(f"{part}.now", one.now, one.name)
    rows = f"(SELECT u.* REPLACE (a.v AS amount), a.i - {first} AS __row FROM {source} WHERE a.v <> 0) AS {name}"
    cells = f"__row, CAST({label} AS VARCHAR), amount, CAST({now} AS DOUBLE)"
    found = program.run(f"{part}.label", f"SELECT {cells} FROM {rows} ORDER BY __row").fetchall()
    db.unregister("__amounts")
    shown: list[dict[str, Value]] = [
        {"label": str(text), "amount": amount, "now": today} for _, text, amount, today in found[:MOST_ROWS]
    ]
    table: dict[str, Value] = {"unit": one.unit if isinstance(one, Unknown) else "", "rows": count}
    # Of these all, so that the plan can be held to.
    table |= {"places": [row for row, *_ in found], "amounts": [amount for _, _, amount, _ in found]}
    return ("plan", one.name, table, shown)


def rule_rows(program: Program, solution: Solution, step_seconds: float) -> list[tuple[Value, ...]]:
    """Return for each rule how many rows bind, the prices of the dearest, and the least slack of the others.

    With whole numbers, the rows that bind most are solved again with one more, which is their ``step``.
    """
    least, greatest = np.array(program.matrix.least), np.array(program.matrix.greatest)
    activity = solution.activity if len(solution.activity) else np.zeros(len(least))
    slack = np.minimum(activity - least, greatest - activity)
    prices = solution.prices if len(solution.prices) else np.zeros(len(least))
    scale = np.maximum(1.0, np.abs(np.where(np.isfinite(least), least, np.where(np.isfinite(greatest), greatest, 0))))
    steps: dict[int, float] = {}
    if any(program.matrix.whole) and solution.status == "optimal" and step_seconds:
        near = [at for at, row in enumerate(program.rows) if row.rule and slack[at] < 1]
        near.sort(key=lambda at: (-abs(prices[at]), slack[at]))
        steps = solve_steps(program.matrix, solution, near[:STEPS], step_seconds)
    groups: dict[str, list[int]] = {}
    for at, row in enumerate(program.rows):
        if row.rule:
            groups.setdefault(row.rule, []).append(at)
    out: list[tuple[Value, ...]] = []
    for name, places in groups.items():
        tight = [at for at in places if slack[at] <= TIGHT * scale[at]]
        loose = [float(slack[at]) for at in places if slack[at] > TIGHT * scale[at]]
        # What was solved again comes first: with whole numbers held, a price says little.
        told_of = {*tight, *steps}
        changes = {at: steps.get(at, float(prices[at])) for at in places if at in told_of}
        dearest = sorted(
            (at for at in changes if abs(changes[at]) > 1e-9), key=lambda at: (at not in steps, -abs(changes[at]))
        )
        told = [
            {
                "step" if at in steps else "price": changes[at],
                **{f"of {key}": value for key, value in program.rows[at].about.items()},
            }
            for at in dearest[:NAMED_PRICES]
        ]
        counts = {"rows": len(places), "binding": len(tight), "slack": min(loose, default=None)}
        out.append(("rule", name, counts, told))
    return out


def reduced_rows(program: Program, solution: Solution) -> list[tuple[Value, ...]]:
    """Return the amounts that are 0, with the reduced cost of the nearest: by so much each would have to be better."""
    out: list[tuple[Value, ...]] = []
    for one in program.model.unknowns if len(solution.reduced) else ():
        first, count = program.starts[one.name]
        reduced = np.abs(solution.reduced[first : first + count])
        places = np.flatnonzero((np.abs(solution.amounts[first : first + count]) < 1e-9) & (reduced > 1e-9))
        if one.kind != "continuous" or not len(places):
            continue
        nearest = places[np.argsort(reduced[places], kind="stable")][:NAMED_PRICES]
        labels = program.labels(one)
        told = [{"label": labels[at], "price": float(reduced[at])} for at in nearest.tolist()]
        out.append(("reduced", one.name, len(places), told))
    return out


def conflict_rows(program: Program) -> list[tuple[Value, ...]]:
    """Return the rows that cannot hold together, by rule, or those that the data alone break."""
    kind, found = "fault", program.faults
    if not found:
        groups = [row.rule for row in program.rows]
        kind, found = "conflict", [program.rows[at] for at in find_conflict(program.matrix, groups, CONFLICT_SECONDS)]
    by_rule: dict[str, list[dict[str, Value]]] = {}
    for row in found:
        by_rule.setdefault(row.rule, []).append(dict(row.about))
    return [(kind, name, len(rows), rows[:NAMED_PRICES]) for name, rows in by_rule.items()]


def plain_cells(row: Mapping[str, object]) -> dict[str, Value]:
    return {name: cell_as_plain_value(cell, CELL_CHARS) for name, cell in row.items()}
