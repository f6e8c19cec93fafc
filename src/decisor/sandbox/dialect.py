"""A SQL dialect as the guard, the catalog and the prompt need it, with the allow lists for every engine.

What is not on an allow list is refused. Each engine's file has its own ``Dialect``. ``Naming`` tells which relation a
name means if several schemas have one of that name; if that is not certain, it means all of them, so what must not be
read of one is then read of none. Size, nesting and odd characters of a statement are checked before any parser sees
it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from decisor.errors import ToolError

if TYPE_CHECKING:
    from sqlglot import Expr, exp


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


NODES = word_set(
    """Alias Aliases All Any AtTimeZone Between BitString Boolean Bracket ByteString CTE Column ColumnDef ColumnPrefix
    Comprehension CharacterSet Cube DataType DataTypeParam DerivedTable Distinct Except ExplodeOuter Fetch Filter
    FormatJson From FromTimeZone Group GroupingSets Having HavingMax HexString Identifier IgnoreNulls In Intersect
    Interval IntervalSpan JSON JSONKeyValue JSONPath JSONPathFilter JSONPathKey JSONPathRecursive JSONPathRoot
    JSONPathSelector JSONPathSlice JSONPathSubscript JSONPathUnion JSONPathWildcard JSONExtractQuote JSONValue
    OnCondition Join Lambda Lateral Limit LimitOptions Literal National Null Offset Order Ordered Paren Pivot PivotAlias
    PivotAny Placeholder PositionalColumn PreWhere PropertyEQ ProjectionDef Qualify RawString RespectNulls Rollup
    Select Slice Star Subquery TableAlias TableColumn TableSample Tuple UnicodeString Union UnpivotColumns Values Var
    Where Window WindowSpec With WithinGroup Schema Table Adjacent
    Introducer IndexTableHint JSONSchema JSONColumnDef RecursiveWithSearch"""
)
"""Node classes of sqlglot (with all its binary and unary operators) that a query may hold."""

FUNCTION_CLASSES_REFUSED = word_set(
    """AIAgg AIClassify AIEmbed AIForecast AIGenerate AISimilarity AISummarizeAgg Apply CheckXml Compress
    CurrentAccount CurrentAccountName CurrentAvailableRoles CurrentClient CurrentIpAddress CurrentOrganizationName
    CurrentOrganizationUser CurrentRegion CurrentRole CurrentRoleType CurrentSecondaryRoles CurrentSession
    CurrentStatement CurrentTransaction CurrentUser CurrentUserId CurrentVersion CurrentWarehouse DecompressBinary
    DecompressString Decrypt DecryptRaw DynamicIdentifier Encrypt EncryptRaw FeaturesAtTime GenerateEmbedding
    GenerateTable GenerateText Generator Host MLForecast MLTranslate NetFunc NextValueFor ObjectId OpenJSON Predict
    Randstr ReadCSV ReadParquet Search SearchIp Secret Seq1 Seq2 Seq4 Seq8 SessionUser ToFile VectorSearch
    XMLTable"""
)

COMMON = word_set(
    """bit_length char_length character_length concat cot cume_dist dense_rank every first_value hex ifnull initcap
    instr json_array json_array_length json_object json_quote json_type json_valid last_value length log10 log2 ltrim
    mod ntile nullif nth_value octet_length percent_rank pi power rank regexp_count regexp_like row_number rtrim sign
    square substr substring total trunc truncate quote to_char to_date to_timestamp to_number unhex degrees radians
    char ord now"""
)

FORMATTING = frozenset({"printf", "format"})


T = TypeVar("T")
InViews = Literal["home", "path", "either"]
"""What a name without a schema is in the text of a view: first one of the view's own schema, as in any query, or not
known which of the two."""
SCHEMA = r"""(?:(?P<schema>"[^"]+"|`[^`]+`|\[[^\]]+\]|(?<!\w)\w+)\s*\.\s*)?["`\[]?"""
BEFORE = " \t\r\n(,="
"""What may stand right before a whole name."""
DOT = re.compile(r"""["`\]]?\s*\.""")
COMMENT = re.compile(r"--|/\*|#")


class FullName(NamedTuple):
    """A name in lower case with its schema."""

    schema: str
    """'' if it is not known."""
    name: str


@dataclass(frozen=True)
class Naming:
    """The relations and schemas of a database by name, all in lower case."""

    schemas: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By name, the schemas with a relation or macro of this name."""
    alone: Mapping[str, str] = field(default_factory=dict)
    """By name, the schema that is meant without one, as far as that is certain."""
    in_views: InViews = "either"

    def of(self, name: str, schema: str = "", home: str = "") -> frozenset[FullName]:
        """Return all relations that a name may mean.

        A schema without this name says nothing: it may be another word for a schema that has it. home: the schema of
        the view whose text has the name.

        >>> naming = Naming({"a": frozenset({"s", "t"})}, {"a": "s"})
        >>> naming.of("A", "t"), naming.of("a")
        (frozenset({FullName(schema='t', name='a')}), frozenset({FullName(schema='s', name='a')}))
        >>> sorted(naming.of("a", home="t")), naming.of("b", "t")
        ([FullName(schema='s', name='a'), FullName(schema='t', name='a')], frozenset({FullName(schema='', name='b')}))
        """
        name = name.lower()
        # A name that the catalog does not have keeps its spelling: the database will say that there is none.
        there = self.schemas.get(name, frozenset({""}))
        one = schema.lower() or self._without_schema(name, home)
        return frozenset(FullName(schema, name) for schema in ({one} if one in there else there))

    def _without_schema(self, name: str, home: str) -> str | None:
        here = self.alone.get(name)
        if self.in_views == "path" or home in ("", here) or home not in self.schemas.get(name, ()):
            return here
        return home if self.in_views == "home" else None

    def every(self, names: Iterable[str]) -> set[FullName]:
        """Return these names in every schema, and without a schema for those known by their name alone."""
        return {FullName(one, name) for name in names for one in ("", *self.schemas.get(name, ()))}

    def spellings(self, relations: Collection[FullName]) -> set[str]:
        """Return the relations as the catalog's queries name them.

        Each has its schema, and stands alone too if its name alone may mean it.
        """
        alone = {one.name for one in relations if not self.of(one.name).isdisjoint(relations)}
        return alone | {f"{one.schema}.{one.name}" for one in relations if one.schema}

    def entry(self, one: FullName, entries: Mapping[FullName, T]) -> T | None:
        """Return the entry of a relation in a catalog mapping, where the default schema is ''."""
        return entries.get(one, entries.get(FullName("", one.name)) if self.of(one.name) == {one} else None)

    def reaching(self, relations: Iterable[FullName], texts: Mapping[FullName, str]) -> set[FullName]:
        """Return ``relations`` and all relations that may read one of them: a name in a text is enough.

        >>> texts = {FullName("", "a"): "SELECT * FROM secrets", FullName("", "b"): "SELECT * FROM A"}
        >>> sorted(one.name for one in Naming().reaching([FullName("", "secrets")], texts))
        ['a', 'b', 'secrets']
        """
        reached = fresh = set(relations)
        # A view of a view reads the table too: rounds until nothing new is reached.
        while fresh:
            names = "|".join(re.escape(name) for name in {one.name for one in fresh})
            pattern = re.compile(rf"{SCHEMA}(?<!\w)(?P<name>{names})(?!\w)", re.I)
            fresh = {
                one
                for one, text in texts.items()
                if one not in reached
                and any(self._may_mean(match, one.schema, fresh) for match in pattern.finditer(text))
            }
            reached = reached | fresh
        return reached

    def _may_mean(self, match: re.Match[str], home: str, relations: set[FullName]) -> bool:
        """Return whether a name in a text may mean one of these relations, which have that name.

        If several schemas have the name: in odd quotes, as the last of three parts or after a comment it may mean any
        of them; before a dot it is a schema's name, or that of a relation named elsewhere in the text.
        """
        before, name = match.string[: match.start()], match["name"].lower()
        odd = before[-1:] not in BEFORE or before.rstrip().endswith(".") or COMMENT.search(before)
        # Over-strict on purpose: a view that may read a hidden table is hidden with it.
        if odd or len(self.schemas.get(name, ())) < 2:
            return True
        schema = (match["schema"] or "").strip('"`[]')
        if not schema and DOT.match(match.string, match.end()):
            return False
        return not relations.isdisjoint(self.of(name, schema, home))


def build_naming(rows: Iterable[Sequence[object]], in_views: InViews) -> Naming:
    """Build a naming from the rows of the query ``definitions``."""
    schemas: dict[str, set[str]] = {}
    alone: dict[str, set[str]] = {}
    for name, _, _, schema, is_alone in rows:
        # Two schemas that both claim the bare name make it uncertain: it is then kept in no ``alone``.
        for places in (schemas, alone) if is_alone else (schemas,):
            places.setdefault(str(name).lower(), set()).add(str(schema or "").lower())
    return Naming(
        {name: frozenset(places) for name, places in schemas.items()},
        {name: min(places) for name, places in alone.items() if len(places) == 1},
        in_views,
    )


def add_schemas_to_query(tree: Expr, naming: Naming, home: str) -> Expr | None:
    """Add schemas to the names in a view's query that would not mean the same outside the view.

    None if it is not certain which of several relations is meant.
    """
    from sqlglot import exp

    own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for node in tree.find_all(exp.Table):
        name = node.name.lower()
        if isinstance(node.this, exp.Identifier) and not node.db and name not in own:
            schemas = [one.schema for one in naming.of(name, home=home)]
            if len(schemas) > 1:
                return None
            # Outside the view's schema the bare name would find another relation, or none.
            if schemas[0] and naming.alone.get(name) != schemas[0]:
                node.set("db", exp.to_identifier(schemas[0], quoted=True))
    return tree


NAME = r"""(?P<name>[^\W\d][\w$]*|"[^"]+"|`[^`]+`|'[^']+'|\[[^\]]+\])"""
INFORMATION_SCHEMA = {
    "information_schema": word_set(
        """tables columns views schemata key_column_usage table_constraints referential_constraints
        constraint_column_usage check_constraints statistics"""
    )
}
"""Its tables that hold no secrets."""


@dataclass(frozen=True)
class Queries:
    """The queries that read a catalog, each for all tables. Outside the default schema a table is SCHEMA.TABLE."""

    columns: str
    """Table, is a view, column, type, nullable; then, where the engine has them, its schema ('' for the default one)
    and the column's comment."""
    keys: str
    """Table, column of the primary key, '', ''; or table, column, and the table and column that it references."""
    definitions: str
    """Of all schemas: relation or macro, what it reads as text ('' for a table, None if unknown), its kind ('table',
    'view' or 'macro'), its schema, and whether its name means it without a schema."""
    tables: str = ""
    """Table, its comment, about how many rows it has (NULL or below 0 if unknown)."""
    unbound: str = ""
    """Names of relations whose columns are told only by binding them one by one."""
    bound: str = ""
    """``columns`` of one relation, by the parameter ``name``."""
    functions: str = ""
    """Functions made by users, and whether one argument of theirs is a row."""
    operators: str = ""
    """Operators that call such a function, and the types that one casts to, or from by itself ('' for the other of the
    two)."""
    fingerprint: str = ""
    """Rows that change when a table, a column, a key, a comment or what may be seen does; '' if there is no such query.
    """


@dataclass(frozen=True)
class StatementForms:
    """The statements beside queries that a dialect allows, as patterns that are matched whole."""

    explain: str = ""
    """Pattern before a query."""
    about: Mapping[str, str] = field(default_factory=dict)
    """Patterns about one table, each with the statement that is run: ``{name}`` quoted, and ``{verb}``."""
    whole: Mapping[str, str] = field(default_factory=dict)
    """Patterns about the database, each with the statement that is run."""
    linked: str = ""
    """Beginning of the statement about a table that also names the tables that it references."""


@dataclass(frozen=True)
class Dialect:
    """A SQL dialect with its allow lists. Functions, tables and statements that are on no list are refused."""

    name: str
    """As sqlglot has it."""
    queries: Queries
    functions: frozenset[str]
    """Functions that sqlglot has no class for."""
    refused_functions: frozenset[str] = frozenset()
    """Functions that sqlglot has a class for and that fail or do harm here."""
    forms: StatementForms = StatementForms()
    catalogs: Mapping[str, frozenset[str]] = field(default_factory=lambda: INFORMATION_SCHEMA)
    """Schemas of catalogs with the tables that may be read."""
    closed: frozenset[str] = frozenset()
    """Schemas that may not be read."""
    reserved: tuple[str, ...] = ()
    """Beginnings of names of catalog tables, of which only those in ``readable`` may be read."""
    readable: frozenset[str] = frozenset()
    catalog_functions: frozenset[str] = frozenset()
    """Functions that tell of tables: refused where some are denied."""
    function_schemas: frozenset[str] = frozenset()
    odd_name: re.Pattern[str] | None = None
    """Table's name that the engine may take for a file."""
    odd_text: tuple[str, str] | None = None
    """Pattern of statements to refuse, with the reason."""
    checks_views: bool = False
    """Whether nothing but the guard bounds what a view does, so that only a view that it lets through may be read."""
    quote: str = '"'
    folds: Literal["", "lower", "upper"] = ""
    """Case that names without quotes are read in, where the engine tells letters apart."""
    bare: str = r"[A-Za-z_][A-Za-z0-9_]*"
    """Name that needs no quotes."""
    names_by_text: bool = False
    """Whether a column without an alias is named by the text of its expression."""
    schemas: bool = False
    """Whether the catalog tells of tables outside the default schema too."""
    prepare: Callable[[exp.Expr], exp.Expr] | None = None
    """Shows what is a table in a tree as a table, under the name that the engine reads, before the check."""
    rewrite: Callable[[exp.Expr], exp.Expr] | None = None
    """Changes a tree that sqlglot would write in words that this engine does not have or takes otherwise."""
    misspelt: tuple[tuple[str, str], ...] = ()
    """Text before a name in a complaint about it, by the kind of name."""
    token: str = ""
    """Expression of ``{value}`` and ``{key}`` that stands for a masked value."""
    fence: str = ""
    """Limit that cuts nothing, across which no condition is moved."""
    other_catalogs: bool = False
    """Whether a query may name tables of other catalogs, of which nothing is known."""
    plain_forms: tuple[str, ...] = ()
    """Beginnings of what ``forms`` runs that tells of no row."""
    in_views: InViews = "either"
    """What a name without a schema is in the text of a view."""
    plan: str = ""
    """Text before a query to have its plan; '' if the engine does not tell ahead what a query reads."""

    def quoted(self, name: str) -> str:
        return self.quote + name.replace(self.quote, self.quote * 2) + self.quote

    def folded(self, name: str) -> str:
        """Return a name without quotes as the engine reads it, its English letters in the case of ``folds``."""
        if self.folds == "lower":
            return re.sub("[A-Z]+", lambda match: match[0].lower(), name)
        return re.sub("[a-z]+", lambda match: match[0].upper(), name) if self.folds else name


def parse_sql(statement: str, dialect: str) -> Expr | None:
    """Parse one statement; return None if it does not parse. dialect: as sqlglot has it."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        return sqlglot.parse_one(statement, dialect=dialect)
    except (SqlglotError, RecursionError):
        return None


MAX_CHARS = 20_000
MAX_BRACKETS = 60
MAX_OPERATORS = 2_000
BRACKET = re.compile(r"[(){}\[\]]")
CONTROL = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f\\x85\\u2028\\u2029]")
UNSEEN = ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs")
"""Categories of characters that one engine takes for white space and another for a letter."""


def sql_refusal(reason: str) -> ToolError:
    return ToolError(f"Refused: {reason}", refused=True)


def check_statement_size(statement: str) -> None:
    """Check the size and nesting of a statement; raise ToolError (refused) if they are too large.

    A parser that recurses too deep takes its process down.
    """
    if not statement.strip():
        raise sql_refusal("there is no statement.")
    if len(statement) > MAX_CHARS:
        raise sql_refusal(f"the statement is longer than {MAX_CHARS} characters.")
    # Control characters and line ends of Unicode: some engines end a comment or a line there, the parser does not.
    if odd := CONTROL.search(statement):
        raise sql_refusal(f"the statement holds the character U+{ord(odd[0]):04X}.")
    depth = deepest = 0
    for char in BRACKET.findall(statement):
        depth += 1 if char in "([{" else -1
        deepest = max(deepest, depth)
    # A chain of operators nests without a bracket: each is one level of the tree.
    operators = sum(map(statement.count, "+-*/%|&")) + len(
        re.findall(r"(?i)\b(and|or|not|union|case|except)\b", statement)
    )
    if deepest > MAX_BRACKETS or operators > MAX_OPERATORS:
        raise sql_refusal("the statement is nested too deeply or has too many operators.")


def check_word_characters(word: str) -> None:
    """Raise ToolError (refused) if a word has a character that is no letter to every engine.

    For words outside texts and quotes.

    >>> check_word_characters("größe")
    >>> check_word_characters("a\\u200bb")
    Traceback (most recent call last):
    decisor.errors.ToolError: Refused: the character U+200B stands outside a text.
    """
    if word.isascii():
        return
    if odd := next((char for char in word if unicodedata.category(char) in UNSEEN), ""):
        raise sql_refusal(f"the character U+{ord(odd):04X} stands outside a text.")
