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
    """A name in lower case with its schema. schema: '' if it is not known."""

    schema: str
    name: str


@dataclass(frozen=True)
class Naming:
    """The relations and schemas of a database by name, all in lower case. schemas: by name, the schemas with a relation
    or macro of this name. alone: by name, the schema that is meant without one, as far as that is certain.
    """

    schemas: Mapping[str, frozenset[str]] = field(default_factory=dict)
    alone: Mapping[str, str] = field(default_factory=dict)
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
    """The queries that read a catalog, each for all tables at once. A table outside the default schema is SCHEMA.TABLE.

    ``columns``: table, is a view, column, type, nullable; then, where the engine has them, its schema ('' for the
    default one) and the column's comment. ``keys``: table, column of the primary key, '', '', or table, column, table
    and column that it references. ``tables``: table, its comment, about how many rows it has (NULL or below 0 where
    that is not known). ``definitions``, of all schemas: relation or macro, what it reads as text ('' for a table, None
    where it is not known), its kind ('table', 'view' or 'macro'), its schema, and whether it is what its name means
    without a schema. ``unbound``, where the columns of some relations
    are told only by binding them one by one: their names; ``bound``: one's ``columns``, by the parameter ``name``.
    ``functions``: those made by users, and whether one argument of theirs is a row. ``operators``: those that call such
    a function, and the types that one casts to, or from by itself ('' for the other of the two). ``fingerprint``: rows
    that are others when a table, a column, a key, a comment or what may be seen is; '' where there is no such query.
    """

    columns: str
    keys: str
    definitions: str
    tables: str = ""
    unbound: str = ""
    bound: str = ""
    functions: str = ""
    operators: str = ""
    fingerprint: str = ""


@dataclass(frozen=True)
class StatementForms:
    """The statements beside queries that a dialect allows, as patterns that are matched whole. explain: the pattern
    before a query. about: patterns about one table; whole: patterns about the database; each maps to the statement
    that is run, with ``{name}`` quoted and ``{verb}``. linked: the beginning of the statement that looks at a table
    and also names the tables that it references.
    """

    explain: str = ""
    about: Mapping[str, str] = field(default_factory=dict)
    whole: Mapping[str, str] = field(default_factory=dict)
    linked: str = ""


@dataclass(frozen=True)
class Dialect:
    """A SQL dialect with its allow lists.

    Functions, tables and statements that are on no list are refused. name: as sqlglot has it.

    ``functions``: those that sqlglot has no class for. ``refused_functions``: those it has a class for and that fail or
    do harm here. ``catalogs``: schemas of catalogs with the tables that may be read; ``closed``: schemas that may not.
    ``reserved``: beginnings of names of catalog tables, of which only those in ``readable`` may be read.
    ``catalog_functions`` tell of tables: refused where some are denied. ``odd_name``: a table's name that the engine
    may take for a file. ``odd_text``: a pattern of statements to refuse, with the reason.
    ``checks_views``: nothing but the guard bounds what a view does, so only a view that it lets through may be read.
    ``folds``: in which letters names without quotes are, where the engine tells letters apart. ``bare``: a name that
    needs no quotes. ``names_by_text``: a column without an alias is named by the text of its expression. ``schemas``:
    the catalog tells of tables outside the default schema too. ``prepare``: shows what is a table in a tree as a table,
    under the name that the engine reads, before it is checked. ``rewrite``: changes a tree that sqlglot would write in
    words that this engine does not have, or that mean something else here. ``other_catalogs``: a query may name tables
    of other catalogs, of which nothing is known. ``misspelt``: what stands before a name in a complaint about it, by
    the kind of name. ``token``: an expression of ``{value}`` and ``{key}`` that stands for a masked value. ``fence``: a
    limit that cuts nothing, across which no condition is moved. ``plain_forms``: beginnings of what ``forms`` runs that
    tells of no row. ``plan``: what stands before a query to have its plan, '' where the engine does not tell
    ahead what a query reads. ``in_views``: what a name without a schema is there.
    """

    name: str
    queries: Queries
    functions: frozenset[str]
    refused_functions: frozenset[str] = frozenset()
    forms: StatementForms = StatementForms()
    catalogs: Mapping[str, frozenset[str]] = field(default_factory=lambda: INFORMATION_SCHEMA)
    closed: frozenset[str] = frozenset()
    reserved: tuple[str, ...] = ()
    readable: frozenset[str] = frozenset()
    catalog_functions: frozenset[str] = frozenset()
    function_schemas: frozenset[str] = frozenset()
    odd_name: re.Pattern[str] | None = None
    odd_text: tuple[str, str] | None = None
    checks_views: bool = False
    quote: str = '"'
    folds: Literal["", "lower", "upper"] = ""
    bare: str = r"[A-Za-z_][A-Za-z0-9_]*"
    names_by_text: bool = False
    schemas: bool = False
    prepare: Callable[[exp.Expr], exp.Expr] | None = None
    rewrite: Callable[[exp.Expr], exp.Expr] | None = None
    misspelt: tuple[tuple[str, str], ...] = ()
    token: str = ""
    fence: str = ""
    other_catalogs: bool = False
    plain_forms: tuple[str, ...] = ()
    in_views: InViews = "either"
    plan: str = ""

    def quoted(self, name: str) -> str:
        return self.quote + name.replace(self.quote, self.quote * 2) + self.quote

    def folded(self, name: str) -> str:
        """Return a name without quotes as the engine reads it, its English letters in the case of ``folds``."""
        if self.folds == "lower":
            return re.sub("[A-Z]+", lambda match: match[0].lower(), name)
        return re.sub("[a-z]+", lambda match: match[0].upper(), name) if self.folds else name


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
    if odd := CONTROL.search(statement):
        raise sql_refusal(f"the statement holds the character U+{ord(odd[0]):04X}.")
    depth = deepest = 0
    for char in BRACKET.findall(statement):
        depth += 1 if char in "([{" else -1
        deepest = max(deepest, depth)
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
