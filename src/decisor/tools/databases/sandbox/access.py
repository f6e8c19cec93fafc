"""What of a database may be read and seen, told at opening from its catalog.

Denied means neither read nor seen, by any way: a denied table takes with it the views, macros, partitions and indexes
that may read it, by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from decisor.errors import SetupError, ToolError
from decisor.tools.databases.sandbox.dialect import NAME, Dialect
from decisor.tools.databases.sandbox.engine import Caps
from decisor.tools.databases.sandbox.policy import Restricted, TableRule
from decisor.types import Table, Value

CREATE_VIEW = re.compile(
    rf"\s*CREATE\s+(TEMP(ORARY)?\s+)?VIEW\s+(IF\s+NOT\s+EXISTS\s+)?({NAME}\s*\.\s*)?{NAME.replace('name', 'own')}"
    r"\s*(\((?:[^()\"]|\"[^\"]*\")*\)\s*)?\bAS\b(?P<query>.*)",
    re.I | re.S,
)
Rows = Callable[[str], Iterable[Sequence[object]]]
"""The rows of a query of our own."""


@dataclass(frozen=True)
class Access:
    """All names in lower case. ``hidden``: relations that may be neither read nor seen. ``only``: where there are some,
    all that may be read. ``closed``: views that do what a query may not. ``functions``: more that may run.
    ``foreign``: functions made by users, which may not run; ``columnlike``: those of them that a column's name calls;
    ``operators``, ``casts``: operators, and types to cast to, that call one. ``restricted``: what not everybody sees.
    """

    hidden: frozenset[str] = frozenset()
    only: frozenset[str] = frozenset()
    closed: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()
    foreign: frozenset[str] = frozenset()
    columnlike: frozenset[str] = frozenset()
    operators: frozenset[str] = frozenset()
    casts: frozenset[str] = frozenset()
    restricted: Restricted = field(default_factory=Restricted)

    @property
    def narrow(self) -> bool:
        return bool(self.hidden or self.only or self.restricted)

    def mentions(self, text: str) -> bool:
        """Whether a hidden name is in it."""
        return bool(self.hidden) and any(word in self.hidden for word in re.findall(r"\w+", text.lower()))

    def listing(self, table: Table) -> Table:
        """A list of tables without the hidden ones, and texts without the lines that name them."""
        rows = (row for row in table.rows if not any(self._unseen(cell) for cell in row))
        return replace(table, rows=tuple(tuple(map(self._without_lines, row)) for row in rows))

    def _without_lines(self, cell: Value) -> Value:
        if not isinstance(cell, str) or self.without_hidden(cell) == cell:
            return cell
        return "\n".join(line for line in cell.split("\n") if self.without_hidden(line) == line)

    def _unseen(self, cell: Value) -> bool:
        lower = cell.lower() if isinstance(cell, str) else ""
        return lower in self.hidden

    def without_hidden(self, text: str, statement: str = "") -> str:
        """A complaint without hidden names, but for those that the statement itself names.

        >>> Access(frozenset({"secrets"})).without_hidden('Did you mean "Secrets"?')
        'Did you mean "…"?'
        """
        text = self.restricted.without_key(text)
        unsaid = [name for name in self.hidden if name not in statement.lower()]
        if not unsaid:
            return text
        names = "|".join(map(re.escape, sorted(unsaid, key=len, reverse=True)))
        return re.sub(rf"(?<!\w)({names})(?!\w)", "…", text, flags=re.I)


def read_access(dialect: Dialect, caps: Caps, rows: Rows, passes: Callable[[str], bool]) -> Access:
    """``passes``: whether a query may run, as far as functions go; asked of what views and macros are made of."""
    texts: dict[str, str | None] = {}
    kinds: dict[str, str] = {}
    queries: dict[str, list[str]] = {}  # of views of one name in several schemas
    for name, text, kind in rows(dialect.queries.definitions):
        key = str(name).lower()
        before = texts.get(key, "")
        texts[key] = None if before is None or text is None else f"{before} {text}".strip()
        kinds[key] = str(kind)
        queries.setdefault(key, []).append(query_of(str(text or "")))
    denied = {name.rpartition(".")[2].strip('"`[]').lower() for name in caps.deny}
    only = {name.rpartition(".")[2].strip('"`[]').lower() for name in caps.only}
    if only:
        denied |= {name for name, kind in kinds.items() if kind != "macro"} - only
    plain = {name: text for name, text in texts.items() if text}
    columns = columns_of(rows(dialect.queries.columns)) if caps.policy else {}
    rules = rules_of(caps, kinds, columns)
    reached = reaching(rules, plain) - rules.keys()
    views = {name: plain[name] for name in reached if kinds[name] == "view"}
    hidden = reaching(denied, plain) | (reached - views.keys())
    if denied or rules:
        hidden |= {name for name, text in texts.items() if text is None}
    failing = [name for name in plain if kinds[name] in ("view", "macro") and not all(map(passes, queries[name]))]
    closed = reaching(failing, plain)
    macros = {name for name, kind in kinds.items() if kind == "macro"}
    users = (
        [(str(name).lower(), bool(row)) for name, row in rows(dialect.queries.functions)]
        if dialect.queries.functions
        else []
    )
    calling = list(rows(dialect.queries.operators)) if dialect.queries.operators else []
    return Access(
        hidden=frozenset(hidden),
        only=frozenset(only),
        closed=frozenset(closed - macros),
        functions=frozenset(macros - hidden - (closed if denied else set())),
        foreign=frozenset(name for name, _ in users),
        columnlike=frozenset(name for name, row in users if row),
        operators=frozenset(str(name) for name, _ in calling if name),
        casts=frozenset(str(kind).lower() for _, kind in calling if kind),
        restricted=Restricted(caps.policy.key, caps.policy.reveal, rules, views, columns, frozenset(hidden)),
    )


def rules_of(caps: Caps, kinds: Mapping[str, str], columns: Mapping[str, Sequence[str]]) -> dict[str, TableRule]:
    """What the policy says of tables, with their columns. Raises SetupError where there is no such table or column."""
    rules = caps.policy.tables()
    for name, rule in rules.items():
        there = columns.get(name, [])
        if kinds.get(name) == "view":
            raise SetupError(f"{name} is a view: name the tables that it reads, for rows and masks.")
        if name not in kinds or (rule.masked and not there):
            raise SetupError(f"There is no table {name} whose rows or columns could be kept back.")
        if missing := sorted(rule.masked - {column.lower() for column in there}):
            raise SetupError(f"{name} has no column {missing[0]} to mask; it has {', '.join(there)}.")
        rules[name] = replace(rule, columns=tuple(there))
    return rules


def columns_of(rows: Iterable[Sequence[object]]) -> dict[str, list[str]]:
    """By table in lower case; of several with one name those of the default schema."""
    columns: dict[str, dict[str, list[str]]] = {}
    for table, _, column, _, _, *more in rows:
        schema = str(more[0]) if more else ""
        name = str(table)[len(schema) + bool(schema) :].lower()
        columns.setdefault(name, {}).setdefault(schema, []).append(str(column))
    return {name: schemas.get("") or next(iter(schemas.values())) for name, schemas in columns.items()}


def reaching(names: Iterable[str], definitions: Mapping[str, str]) -> set[str]:
    """``names``, and what may read one of them: a name in a definition is enough.

    >>> sorted(reaching(["secrets"], {"a": "SELECT * FROM secrets", "b": "SELECT * FROM A", "c": "SELECT 1"}))
    ['a', 'b', 'secrets']
    """
    reached = fresh = set(names)
    while fresh:
        pattern = re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in fresh), re.I)
        fresh = {name for name, text in definitions.items() if name not in reached and pattern.search(text)}
        reached = reached | fresh
    return reached


def query_of(definition: str) -> str:
    """
    >>> query_of("CREATE VIEW cities AS SELECT city FROM plant").strip()
    'SELECT city FROM plant'
    """
    match = CREATE_VIEW.fullmatch(definition)
    return match["query"] if match else definition


def allowed(check: Callable[[str], str]) -> Callable[[str], bool]:
    """Whether ``check`` raises no ToolError."""

    def passes(text: str) -> bool:
        try:
            check(text)
        except ToolError:
            return False
        return True

    return passes
