"""Runs the SQL of a model with symbols: a list of (unknown, coefficient) in the place of each amount.

What SQL may do with such a list keeps it linear: it is added, multiplied by data, summed, shifted by a window. All else
is refused where it stands, so a query that passes is linear. Joins, filters and groups are DuckDB's own. Of a choice,
whose rows are there or not, only sums and counts of a whole block are linear.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.schema import MappingSchema

from decisor.decision_models.worker.lift import Unfit, block_sources, own_aggregates, parse, qualify_query
from decisor.errors import ToolError

if TYPE_CHECKING:
    import duckdb


SCALED = """CASE WHEN {a} IS NULL THEN NULL WHEN len({a}) = 0 THEN {a}
WHEN {k} IS NULL THEN error('a coefficient is NULL; mend the data, or say with coalesce what it is')
WHEN NOT isfinite(CAST({k} AS DOUBLE)) THEN error('a coefficient is infinite or not a number')
ELSE list_transform({a}, lambda t: {{'i': t.i, 'c': t.c * CAST({k} AS DOUBLE)}}) END"""
MACROS = (
    """CREATE OR REPLACE TEMP MACRO __lin_of(x) AS CASE WHEN x IS NULL THEN NULL WHEN x = 0
    THEN [] ELSE [{'i': -1::BIGINT, 'c': x::DOUBLE}] END""",
    f"CREATE OR REPLACE TEMP MACRO __lin_times(a, k) AS {SCALED.format(a='a', k='k')}",
    "CREATE OR REPLACE TEMP MACRO __lin_times_query(a, k) AS "
    f"list_transform([{{'a': a, 'k': k}}], lambda s: {SCALED.format(a='s.a', k='s.k')})[1]",
)
"""The constant of a sum is the coefficient of unknown -1."""
AS_LIST = "__lin_"
"""Begins the name of a table that holds lists."""
HINTS: Mapping[type[exp.Expr], str] = {
    exp.Max: "; for the largest of several write an unknown that is at least each of them",
    exp.Min: "; for the smallest write an unknown that is at most each of them",
    exp.Abs: "; write |x| as two unknowns, over and under",
    exp.Count: "; count rows, not amounts",
}
CONDITION = "a condition asks for an amount; a rule says it with must, and with when for a yes-or-no unknown"
OF_CHOICE = (
    "rows of a choice are there or not, so only sum and count of all of them are linear; for each row of a rule write "
    "(SELECT count(*) FROM ... WHERE ...)"
)


def call(name: str, *values: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(values))


def minus(amount: exp.Expr) -> exp.Expr:
    return call("__lin_times", amount.copy(), exp.Neg(this=exp.Literal.number(1)))


@dataclass
class Symbols:
    """The tables that hold lists, and the rewriting of queries on them."""

    db: duckdb.DuckDBPyConnection
    columns: dict[str, tuple[str, ...]]
    """By table, in lower case."""
    lists: dict[str, set[str]] = field(default_factory=dict)
    """Columns that are lists, by table."""
    choices: set[str] = field(default_factory=set)
    """Tables of which each row is there or not."""
    part: str = ""
    """Place in the file of the query that is rewritten."""

    @property
    def schema(self) -> MappingSchema:
        tables: dict[str, object] = {name: dict.fromkeys(columns, "DOUBLE") for name, columns in self.columns.items()}
        return MappingSchema(tables, dialect="duckdb")

    def refusal(self, node: exp.Expr, why: str) -> ToolError:
        """Return the error that a query is not linear, with the place and what is not."""
        said = str(node.meta.get("said") or node.sql("duckdb")).replace('"', "")
        return ToolError(f"{self.part}: not linear: {why}: {said[:160]}")

    def rewrite(self, part: str, tree: exp.Expr) -> tuple[Any, set[str]]:
        """Return a query with lists, and its columns that are lists. Raises ToolError if it is not linear."""
        self.part = part
        try:
            tree = qualify_query(tree, self.schema)
        except Unfit as error:
            raise ToolError(f"{part}: {error}") from error
        for node in tree.walk():
            node.meta["said"] = node.sql("duckdb")
        return Block(self, {}).query(tree)


@dataclass
class Block:
    """The rewriting of one query, with the sources that it sees."""

    symbols: Symbols
    known: Mapping[str, set[str]]
    """Columns that are lists, by part of a WITH."""
    seen: dict[str, set[str]] = field(default_factory=dict)
    """Columns that are lists, by source of this query and of those around it."""
    taken: str = ""
    """Alias of the choice that this query reads; '' for none."""
    own: set[str] = field(default_factory=set)
    """Sources of this query alone."""

    def query(self, tree: exp.Expr) -> tuple[Any, set[str]]:
        known = dict(self.known)
        for cte in tree.args["with_"].expressions if tree.args.get("with_") else []:
            inner, lists = Block(self.symbols, known).query(cte.this)
            cte.set("this", inner)
            known[cte.alias] = lists
        block = Block(self.symbols, known, dict(self.seen))
        if isinstance(tree, exp.SetOperation):
            return block.union(tree)
        if isinstance(tree, exp.Subquery):
            inner, lists = block.query(tree.this)
            tree.set("this", inner)
            return tree, lists
        return block.select(tree)

    def union(self, tree: exp.Expr) -> tuple[Any, set[str]]:
        left, of_left = self.query(tree.this)
        right, of_right = self.query(tree.expression)
        names = [one.alias_or_name for one in left.selects]
        places = {at for at, name in enumerate(names) if name in of_left}
        places |= {at for at, one in enumerate(right.selects) if one.alias_or_name in of_right}
        if places and (not isinstance(tree, exp.Union) or tree.args.get("distinct")):
            raise self.symbols.refusal(tree, "only UNION ALL keeps amounts")
        for side, lists in ((left, of_left), (right, of_right)):
            for at in places:
                cell = side.selects[at]
                if cell.alias_or_name not in lists:
                    value = call("__lin_of", cell.unalias().copy())
                    cell.replace(exp.alias_(value, cell.alias_or_name, quoted=True))
        tree.set("this", left)
        tree.set("expression", right)
        return tree, {names[at] for at in places}

    def source(self, node: exp.Expr) -> set[str]:
        """Rewrite one thing in FROM; return its columns that are lists."""
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
            inner, lists = Block(self.symbols, self.known).query(node.this)
            node.set("this", inner)
            return lists
        if isinstance(node, exp.Table):
            if node.name in self.known:
                return self.known[node.name]
            lists = self.symbols.lists.get(node.name, set())
            if lists:
                table = exp.to_table(f'"{AS_LIST}{node.name}"', dialect="duckdb")
                node.replace(exp.alias_(table, node.alias_or_name, table=True, quoted=True))
            return lists
        if isinstance(node, exp.Unnest | exp.Values):
            return set()
        raise self.symbols.refusal(node, "this in FROM is not understood")

    def select(self, tree: exp.Expr) -> tuple[Any, set[str]]:
        self.sources(tree)
        if tree.args.get("group"):
            self.group_by_amounts(tree)
        for key in ("where", "having", "group", "order", "qualify"):
            if tree.args.get(key):
                new, is_list = self.expression(tree.args[key])
                if is_list:
                    raise self.symbols.refusal(tree.args[key], f"{key.upper()} depends on an amount")
                tree.set(key, new)
        for join in tree.args.get("joins") or []:
            if join.args.get("on"):
                new, is_list = self.expression(join.args["on"])
                if is_list:
                    raise self.symbols.refusal(join.args["on"], "a join depends on an amount")
                join.set("on", new)
        lists, cells = set(), []
        for one in tree.expressions:
            name = one.alias_or_name
            new, is_list = self.expression(one)
            if new.alias_or_name != name and name:
                new = exp.alias_(new, name, quoted=True)
            cells.append(new)
            if is_list:
                lists.add(name)
        for key in ("order", "group", "having", "qualify"):  # ORDER BY the name of a column of the result
            inside = tree.args[key].find_all(exp.Column) if tree.args.get(key) else ()
            if any(not one.table and one.name in lists for one in inside):
                raise self.symbols.refusal(tree.args[key], f"{key.upper()} depends on an amount")
        if lists and (tree.args.get("distinct") or tree.args.get("limit")):
            raise self.symbols.refusal(tree, "DISTINCT and LIMIT would choose among amounts")
        tree.set("expressions", cells)
        return tree, lists

    def sources(self, tree: exp.Expr) -> None:
        """Rewrite the sources of a block, and refuse what may not be done with the rows of a choice."""
        choices = []
        for node in block_sources(tree):
            name = node.name if isinstance(node, exp.Table) else ""
            side = node.parent.side if isinstance(node.parent, exp.Join) else ""
            alias = node.alias_or_name
            self.seen[alias] = self.source(node)
            self.own.add(alias)
            if name in self.symbols.choices and name not in self.known:
                choices.append(alias)
                if side:
                    raise self.symbols.refusal(tree, f"a {side} JOIN to a choice; {OF_CHOICE}")
        if len(choices) > 1:
            raise self.symbols.refusal(tree, "a row of two choices is a product of two decisions")
        if choices:
            own = own_aggregates(tree)
            plain = all(isinstance(one, exp.Sum | exp.Count) and not one.find(exp.Distinct) for one in own)
            if not own or tree.args.get("group") or not plain:
                raise self.symbols.refusal(tree, OF_CHOICE)
            self.taken = choices[0]

    def group_by_amounts(self, tree: exp.Expr) -> None:
        """Group by the other keys, where an amount stands among them; two amounts in a group end the run."""
        keys = tree.args["group"].expressions
        lists = [one for one in keys if isinstance(one, exp.Column) and one.name in self.seen.get(one.table, ())]
        if not lists or len(lists) == len(keys):
            return
        tree.args["group"].set("expressions", [one for one in keys if one not in lists])
        for top in [*tree.expressions, *([tree.args["having"]] if tree.args.get("having") else [])]:
            for column in list(top.find_all(exp.Column)):
                if column in lists and not column.find_ancestor(exp.AggFunc) and column.parent_select is tree:
                    column.replace(exp.AnyValue(this=column.copy()))

    def times(self, amount: exp.Expr, factor: exp.Expr) -> exp.Expr:
        # DuckDB takes neither a query in a lambda, nor, inside an aggregate, a column of a query around it.
        is_outside = any(one.table not in self.own for one in factor.find_all(exp.Column))
        name = "__lin_times_query" if is_outside or factor.find(exp.Query) else "__lin_times"
        return call(name, amount.copy(), factor.copy())

    def expression(self, node: exp.Expr) -> tuple[exp.Expr, bool]:
        """Rewrite an expression; return whether its value is a list."""
        if isinstance(node, exp.Column):
            return node, node.name in self.seen.get(node.table, ())
        if isinstance(node, exp.Subquery | exp.Select):
            inner = node.this if isinstance(node, exp.Subquery) else node
            new, lists = Block(self.symbols, self.known, dict(self.seen)).query(inner)
            if isinstance(node, exp.Subquery):
                node.set("this", new)
                return node, bool(lists)
            return new, bool(lists) and isinstance(node.parent, exp.In)  # EXISTS does not use the values
        if isinstance(node, exp.Count) and self.taken:  # so many rows of the choice
            return call("flatten", call("list", exp.column("amount", table=self.taken, quoted=True))), True
        kinds = self.children(node)
        if isinstance(node, exp.Sum) and self.taken and not any(kinds.values()):
            node.set("this", self.times(exp.column("amount", table=self.taken, quoted=True), node.this))
            kinds = {id(node.this): True}
        if not any(kinds.values()):
            return node, False
        return self.of_list(node, kinds), True

    def children(self, node: exp.Expr) -> dict[int, bool]:
        """Rewrite the parts of an expression; return whether each is a list, by its id."""
        kinds: dict[int, bool] = {}
        for key, value in list(node.args.items()):
            for at, child in enumerate(value if isinstance(value, list) else [value]):
                if not isinstance(child, exp.Expr):
                    continue
                new, is_list = self.expression(child)
                if is_list and isinstance(node, exp.In) and key == "query":
                    raise self.symbols.refusal(node, "IN compares amounts")
                kinds[id(new)] = is_list
                if new is not child and isinstance(value, list):
                    value[at] = new
                    new.parent, new.arg_key = node, key
                elif new is not child:
                    node.set(key, new)
        return kinds

    def of_list(self, node: exp.Expr, kinds: Mapping[int, bool]) -> Any:
        """Return an expression of lists; refuse what is not linear."""

        def is_list(child: object) -> bool:
            return kinds.get(id(child), False)

        def as_list(child: exp.Expr) -> exp.Expr:
            return child.copy() if is_list(child) else call("__lin_of", child.copy())

        match node:
            case exp.Alias() | exp.Paren():
                return node
            case exp.Cast():
                return node.this.copy()
            case exp.Add():
                return exp.paren(exp.DPipe(this=as_list(node.this), expression=as_list(node.expression)))
            case exp.Sub():
                return exp.paren(exp.DPipe(this=as_list(node.this), expression=minus(as_list(node.expression))))
            case exp.Neg():
                return minus(node.this)
            case exp.Mul():
                left, right = (node.this, node.expression) if is_list(node.this) else (node.expression, node.this)
                if is_list(right):
                    raise self.symbols.refusal(node, "a product of two amounts")
                return self.times(left, right)
            case exp.Div():
                if is_list(node.expression):
                    raise self.symbols.refusal(node, "a division by an amount")
                one = exp.cast(exp.Literal.number(1), "DOUBLE")
                return self.times(node.this, exp.Div(this=one, expression=exp.paren(node.expression.copy())))
            case exp.Coalesce():
                return exp.Coalesce(this=as_list(node.this), expressions=[as_list(one) for one in node.expressions])
            case exp.If():
                if is_list(node.this):
                    raise self.symbols.refusal(node, CONDITION)
                otherwise = node.args.get("false")
                other = as_list(otherwise) if otherwise is not None else None
                return exp.If(this=node.this.copy(), true=as_list(node.args["true"]), false=other)
            case exp.Case():
                if is_list(node.this):
                    raise self.symbols.refusal(node, CONDITION)
                for one in node.args["ifs"]:
                    if not is_list(one):
                        one.set("true", call("__lin_of", one.args["true"].copy()))
                if node.args.get("default") is not None:
                    node.set("default", as_list(node.args["default"]))
                return node
            case _:
                return self.of_list_aggregate(node, kinds)

    def of_list_aggregate(self, node: exp.Expr, kinds: Mapping[int, bool]) -> Any:
        """Return an aggregate or window of lists; refuse any other function."""
        match node:
            case exp.Sum():
                if node.find(exp.Distinct):
                    raise self.symbols.refusal(node, "DISTINCT compares amounts")
                return call("flatten", call("list", node.this.copy()))
            case exp.AnyValue() | exp.First():
                value = node.this.sql("duckdb")
                several = f"count(DISTINCT {value}) > 1"
                return parse(f"CASE WHEN {several} THEN error('two amounts in one group') ELSE any_value({value}) END")
            case exp.Filter():
                inner = node.this.expressions[0] if node.this.name == "flatten" else None
                if inner is None or kinds.get(id(node.expression)):
                    raise self.symbols.refusal(node, "a filter on an amount")
                return call("flatten", exp.Filter(this=inner.copy(), expression=node.expression.copy()))
            case exp.Window():
                others = [value for key, value in node.args.items() if key != "this"]
                if any(kinds.get(id(one)) for one in others) or not kinds.get(id(node.this)):
                    raise self.symbols.refusal(node, "a window ordered or parted by an amount")
                if node.this.name == "flatten":
                    window = node.copy()
                    window.set("this", node.this.expressions[0].copy())
                    return call("flatten", window)
                return node
            case exp.Lag() | exp.Lead() | exp.FirstValue() | exp.LastValue():
                default = node.args.get("default")
                if default is not None and not kinds.get(id(default)):
                    node.set("default", call("__lin_of", default.copy()))
                return node
            case exp.Predicate() | exp.Connector() | exp.Not():
                raise self.symbols.refusal(node, CONDITION)
            case _:
                raise self.symbols.refusal(node, f"{node.key} of an amount{HINTS.get(type(node), '')}")
