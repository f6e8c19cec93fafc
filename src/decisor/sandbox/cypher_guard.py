r"""The Cypher guard: lets a statement through only if it is one reading statement of known words.

The rule is an allow list. Every word is one of: a name (after a dot or a colon, before a colon in a map, quoted), a
variable, a known keyword in its place, a known function before its bracket, a known procedure after CALL. After a
complete expression only a known keyword may follow, so an unknown clause cannot begin there. The writing words of
Cypher are refused by name as well, as bare words anywhere.

The statement that is run is the text of the tokens, with every comment and every run of white space between them as one
space, no final semicolon, and ``\uXXXX`` escapes in strings replaced by the character they stand for. So what was
checked is what is run. Engines differ in when they decode ``\u``: some before they find the end of a string. An escape
that could end one is refused.

If labels or relationship types are denied, each node of a pattern must name a label and each relationship a type, for a
pattern without a label reads every node. What passes through nodes without naming them (``*1..3``, ``-->+``,
procedures) is refused. A node that has an allowed label besides a denied one can be read by the allowed one.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Literal

from decisor.errors import ToolError
from decisor.sandbox.dialect import word_set

Kind = Literal["word", "name", "string", "number", "parameter", "symbol"]

TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\n]+ | //[^\r\n]*(?=[\r\n]|$) | /\*.*?\*/)
  | (?P<string>'(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*")
  | (?P<name>`(?:[^`]|``)+`)
  | (?P<parameter>\$(?:\w+|`(?:[^`]|``)+`))
  | (?P<number>0[xX][0-9a-fA-F]+ | 0[oO][0-7]+
      | (?:\d[\d_]*)?\.\d[\d_]*(?:[eE][+-]?\d+)? | \d[\d_]*(?:[eE][+-]?\d+)?(?:\.(?!\.)(?=\W|$))?)
  | (?P<word>[^\W\d]\w*)
  | (?P<symbol>\.\.|<>|<=|>=|=~|\+=|\|\||::|/(?!\*)|[-+*%^=<>(){}\[\],.:;|&!$])
    """,
    re.VERBOSE | re.DOTALL,
)
ESCAPE = re.compile(r"\\(u+[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CypherToken:
    """A token of a Cypher statement."""

    kind: Kind
    text: str
    """Text that is run."""
    key: str
    """Text to compare: upper case for a word, the bare name for a quoted name."""
    spaced: bool = False
    """Whether white space or a comment stands before it."""


def cypher_refusal(reason: str) -> ToolError:
    return ToolError(f"Refused: {reason}", refused=True)


def tokenize_cypher(statement: str) -> tuple[CypherToken, ...]:
    """Split a statement into tokens. Raises ToolError (refused) if it holds text that engines could read in two ways.

    >>> [token.key for token in tokenize_cypher("match (n:`Set`) // DELETE it")]
    ['MATCH', '(', 'N', ':', 'Set', ')']
    """
    words: list[CypherToken] = []
    place, spaced = 0, False
    while place < len(statement):
        match = TOKEN.match(statement, place)
        if match is None:
            raise cypher_refusal(_describe_bad_character(statement, place))
        place = match.end()
        if match.lastgroup == "space":
            spaced = True
            continue
        words.append(_token(match.lastgroup or "symbol", match.group(), spaced))
        spaced = False
    while words and words[-1].text == ";":
        words.pop()
    return tuple(words)


def join_cypher_tokens(words: tuple[CypherToken, ...]) -> str:
    """Return the statement to run, from its tokens.

    >>> join_cypher_tokens(tokenize_cypher("MATCH/* c */(n)  RETURN n ;"))
    'MATCH (n) RETURN n'
    """
    return "".join(" " * token.spaced + token.text for token in words).strip()


def quote_cypher_name(name: str) -> str:
    """Quote a name in backticks for Cypher.

    >>> quote_cypher_name("trade node")
    '`trade node`'
    """
    return "`" + name.replace("`", "``") + "`"


def _token(kind: str, text: str, spaced: bool) -> CypherToken:
    if kind == "string":
        return CypherToken("string", _string(text), text, spaced)
    if kind in ("name", "parameter") and "`" in text:
        # An engine that decodes \u before it tokenizes could find the closing backtick in such a name.
        if "\\" in text or any(ord(c) < 32 for c in text):
            raise cypher_refusal("a quoted name holds a backslash or a control character")
        return CypherToken("name" if kind == "name" else "parameter", text, text.strip("$`").replace("``", "`"), spaced)
    if kind == "word":
        # A fullwidth DELETE is another word to this list, and may be the keyword to an engine that folds such letters.
        if unicodedata.normalize("NFKC", text) != text:
            raise cypher_refusal(f"the word {text!r} is written with look-alike characters")
        return CypherToken("word", text, text.upper(), spaced)
    return CypherToken(kind, text, text, spaced)  # type: ignore[arg-type]


def _string(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        escape = match.group(1)
        if escape[0] not in "uU" or len(escape) < 5:
            return match.group()
        number = int(escape.lstrip("uU"), 16)
        # Below 128 are the quotes and the backslash: decoded before the end of the string is found, they would end it.
        if number < 128 or 0xD800 <= number <= 0xDFFF or number > 0x10FFFF:
            raise cypher_refusal(f"the escape {match.group()} in a string; write the character itself")
        return chr(number)

    whole = ESCAPE.sub(plain, text)
    if any(ord(c) < 32 and c not in "\t\r\n" for c in whole) or any(0xD800 <= ord(c) <= 0xDFFF for c in whole):
        raise cypher_refusal("a string holds a control character")
    return whole


def _describe_bad_character(statement: str, place: int) -> str:
    character = statement[place]
    if character in "'\"`":
        return "a quote is opened and not closed"
    if statement.startswith("/*", place):
        return "a comment is opened and not closed"
    return f"the character {character!r} at {place + 1} is not part of Cypher outside strings"


STARTS = word_set("MATCH OPTIONAL WITH UNWIND RETURN CALL")
"""Clauses that may begin a statement or a part of it."""

CLAUSES = STARTS | word_set("WHERE ORDER SKIP OFFSET LIMIT UNION YIELD")

INFIX = word_set("AND OR XOR IN STARTS ENDS CONTAINS IS AS WHEN THEN ELSE BY")
"""They may follow a complete expression, and want another one after them."""

AFTER = word_set("ASC ASCENDING DESC DESCENDING END")
"""They may follow a complete expression and are complete themselves."""

PREFIX = word_set("NOT DISTINCT CASE ALL ANY SHORTEST NULLS FIRST LAST")
SUBQUERIES = word_set("EXISTS COUNT COLLECT CALL")
LITERALS = word_set("NULL TRUE FALSE")

NEVER = word_set(
    """CREATE MERGE SET DELETE DETACH NODETACH REMOVE FOREACH LOAD INSERT DROP ALTER GRANT DENY REVOKE COPY ATTACH
    INSTALL TRANSACTIONS"""
)
"""Refused even where they could be read as the name of a variable: `backticks` make a name of them."""

FUNCTIONS = word_set(
    """abs acos all any asin atan atan2 avg ceil ceiling char_length character_length coalesce collect cos cosh cot
    count date datetime degrees e elementid endnode exists exp floor haversin head id isempty isnan keys labels last
    left length list_filter list_transform localdatetime localtime log log10 lower ltrim max min nodes none normalize
    nullif percentilecont percentiledisc pi point properties radians rand randomuuid range reduce relationships replace
    reverse rels right round rtrim btrim shortestpath allshortestpaths sign sin single sinh size split sqrt startnode
    stdev stdevp substring sum tail tan tanh time timestamp toboolean tobooleanlist tobooleanornull tofloat
    tofloatlist tofloatornull tointeger tointegerlist tointegerornull tolower tostring tostringlist tostringornull
    toupper trim type upper valuetype duration variance median repeat levenshtein list_sum list_sort list_distinct
    duration.between duration.indays duration.inmonths duration.inseconds date.truncate datetime.truncate
    localdatetime.truncate time.truncate localtime.truncate date.realtime point.distance point.withinbbox
    datetime.realtime localdatetime.realtime time.realtime localtime.realtime date.statement datetime.statement
    date.transaction datetime.transaction localdatetime.statement localdatetime.transaction localtime.statement
    localtime.transaction time.statement time.transaction vector.similarity.cosine vector.similarity.euclidean
    datetime.fromepoch datetime.fromepochmillis percentile_cont percentile_disc
    stdev_samp stdev_pop path_length cardinality collect_list ln"""
)

FUNCTION_FAMILIES = ("apoc.text.", "apoc.coll.", "apoc.math.", "apoc.number.")

PROCEDURES = word_set(
    """db.labels db.relationshiptypes db.propertykeys db.schema.visualization db.schema.nodetypeproperties
    db.schema.reltypeproperties db.index.fulltext.querynodes db.index.fulltext.queryrelationships
    db.index.vector.querynodes apoc.meta.schema apoc.meta.data apoc.meta.stats apoc.meta.nodetypeproperties
    apoc.meta.reltypeproperties table_info show_tables"""
)

SHOWN = word_set("INDEX INDEXES CONSTRAINT CONSTRAINTS FUNCTIONS PROCEDURES")


NOTHING = CypherToken("symbol", "", "")
PATTERN_WORDS = frozenset({"ALL", "ANY", "EXISTS"})
"""Functions that are also words before a pattern."""
CLOSING = {"(": ")", "[": "]", "{": "}"}


def token_at(words: tuple[CypherToken, ...], at: int) -> CypherToken:
    """Return the token at a position, ``NOTHING`` outside the statement."""
    return words[at] if 0 <= at < len(words) else NOTHING


def is_call_bracket(words: tuple[CypherToken, ...], at: int) -> bool:
    """Return whether the bracket holds arguments of a function, or the variables of CALL (a) { ... }."""
    before = token_at(words, at - 1)
    if before.kind != "word":
        return False
    is_dotted = token_at(words, at - 2).text == "."
    return is_dotted or before.key == "CALL" or (before.key.lower() in FUNCTIONS and before.key not in PATTERN_WORDS)


def check_denied_labels(words: tuple[CypherToken, ...], deny: frozenset[str]) -> None:
    """Raise ToolError (refused) if a statement may read denied labels or types. deny: names in lower case.

    >>> from decisor.sandbox.cypher_guard import tokenize_cypher
    >>> check_denied_labels(tokenize_cypher("MATCH (c:City) RETURN c.secret"), frozenset({"secret"}))
    >>> check_denied_labels(tokenize_cypher("MATCH (c) RETURN c"), frozenset({"secret"}))
    Traceback (most recent call last):
    decisor.errors.ToolError: Refused: some names may not be read, so each (node:Label) must name a label
    """
    for at, token in enumerate(words):
        before, after = token_at(words, at - 1), token_at(words, at + 1)
        if token.kind in ("word", "name") and token.key.lower() in deny and before.text != "." and after.text != "(":
            name = token.key if token.kind == "name" else token.text
            raise cypher_refusal(f"the label or relationship type {name} is denied")
        if token.text == "(" and not is_call_bracket(words, at) and _is_unlabelled_node(words, at):
            raise cypher_refusal("some names may not be read, so each (node:Label) must name a label")
        if before.text == "-" and token.text == "[":
            if token_at(words, at + 1 + (after.kind in ("word", "name"))).text != ":":
                raise cypher_refusal("some names may not be read, so each -[:TYPE]- must name a type")
            inside = takewhile(lambda word: word.text != "]", words[at:])
            if any(word.text == "*" for word in inside):
                raise cypher_refusal("some names may not be read, so no -[*]-: it passes through nodes of any label")
        elif before.text in ("-", ">") and token.text in ("-", "+", "*", "{"):
            raise cypher_refusal("some names may not be read, so each -[:TYPE]- must name a type, without a quantifier")
        # Labels that match unnamed labels, and words that read the whole graph or its schema.
        wildcard = token.text == "%" and before.kind == "symbol" and before.text not in (")", "]", "}")
        is_keyword = token.kind == "word" and before.text != "."
        named_by_is = is_keyword and token.key == "IS" and after.key not in ("NULL", "NOT", "TYPED", "::")
        if token.text == "!" or wildcard or named_by_is:
            raise cypher_refusal("some names may not be read, so labels are named one by one: no !, no %, no IS")
        if is_keyword and token.key in ("CALL", "SHOW") and after.text not in ("(", "{"):
            raise cypher_refusal("some names may not be read, so no procedure and no SHOW")


def _is_unlabelled_node(words: tuple[CypherToken, ...], at: int) -> bool:
    """Return whether the bracket reads as a node without label, as an expression of one variable does too."""
    inner, after = token_at(words, at + 1), token_at(words, at + 2)
    if inner.kind in ("word", "name") and inner.key != "WHERE":
        return after.text in (")", "{") or after.kind == "parameter" or (after.kind == "word" and after.key == "WHERE")
    is_parameter = inner.kind == "parameter" and after.text == ")"
    return is_parameter or inner.text in (")", "{") or inner.key == "WHERE"


LONGEST = 20_000
DEEPEST = 100


def check_cypher(statement: str, deny: frozenset[str] = frozenset()) -> str:
    """Return the statement to run; raise ToolError (refused) with the reason if it may not run. deny: labels and types,
    in lower case.

    >>> check_cypher("MATCH (n:City) RETURN n.name; // all")
    'MATCH (n:City) RETURN n.name'
    >>> check_cypher("MATCH (n) DETACH DELETE n")
    Traceback (most recent call last):
    decisor.errors.ToolError: Refused: DETACH is not allowed: only reading. A name like it goes in `backticks`.
    """
    if len(statement) > LONGEST:
        raise cypher_refusal(f"the statement is longer than {LONGEST:,} characters")
    words = tokenize_cypher(statement)
    # A final semicolon is gone already: any other one would begin a second statement.
    if any(token.text == ";" for token in words):
        raise cypher_refusal("more than one statement")
    words, explains = _split_prefix(words)
    if not words:
        raise cypher_refusal("the statement is empty")
    # EXPLAIN is checked as what it explains: its plan names labels too.
    if deny:
        check_denied_labels(words, deny)
    if words[0].key == "SHOW" and len(words) == 2 and words[1].key in SHOWN:
        return join_cypher_tokens(words)
    _GuardWalk(words).whole()
    return explains + join_cypher_tokens(words)


def _split_prefix(words: tuple[CypherToken, ...]) -> tuple[tuple[CypherToken, ...], str]:
    """Return the words without ``CYPHER 5`` and EXPLAIN or PROFILE, and the latter as a text, or ''."""
    if words and words[0].key == "CYPHER":
        words = words[1:]
        if words and words[0].kind == "number":
            words = words[1:]
        # The options of CYPHER are dropped: they change how a query runs, not what it returns.
        while len(words) > 2 and words[0].key in ("RUNTIME", "PLANNER") and words[1].text == "=":
            words = words[3:]
    if words and words[0].key in ("EXPLAIN", "PROFILE") and words[0].kind == "word":
        return words[1:], f"{words[0].key} "
    return words, ""


@dataclass
class _GuardWalk:
    """A walk through the words of a statement that checks each."""

    words: tuple[CypherToken, ...]
    at: int = 0
    complete: bool = False
    """Whether the tokens before ``at`` end an expression."""
    begins: bool = True
    """Whether a clause must begin here."""
    brackets: list[str] = field(default_factory=list)
    """Open brackets, with 'q' for a subquery."""

    def near(self, step: int) -> CypherToken:
        return token_at(self.words, self.at + step)

    def whole(self) -> None:
        while self.at < len(self.words):
            token = self.near(0)
            if token.kind == "symbol":
                self.symbol(token.text)
            elif token.kind == "word":
                self.word(token)
            else:
                self.operand(token.text)
            self.at += 1
        if self.brackets:
            raise cypher_refusal("a bracket is opened and not closed")
        if self.begins:
            raise cypher_refusal("the statement ends where a clause should begin")

    def operand(self, text: str) -> None:
        if self.begins:
            raise cypher_refusal(f"a clause cannot begin with {text[:40]}")
        # A quoted name may follow an expression only as its property or label.
        name = self.near(0).kind == "name" and self.near(-1).text in (".", ":", "::", "|", "&", "!")
        if self.complete and not name:
            raise cypher_refusal(f"{text[:40]} cannot stand here")
        # In backticks a function could be spelt in a way that no list has.
        if self.near(0).kind == "name" and self.near(1).text == "(":
            raise cypher_refusal("a quoted function name")
        self.complete = True

    def symbol(self, text: str) -> None:
        if self.begins and not (text == "(" and self.brackets[-1:] == ["q"]):
            raise cypher_refusal(f"a clause cannot begin with {text}")
        self.begins = False
        if text in CLOSING:
            self.open(text)
        elif text in CLOSING.values():
            if not self.brackets or CLOSING.get(self.brackets[-1][0].replace("q", "{")) != text:
                raise cypher_refusal("the brackets do not match")
            self.brackets.pop()
            self.complete = True
        elif text == "$" or (text == "." and self.near(-1).kind == "number"):
            raise cypher_refusal("a dynamic name, or a dot after a number")
        else:
            # A star after RETURN or in count(*) is an operand; elsewhere it multiplies, or is the length of a path.
            star = text == "*" and not self.complete
            self.complete = star and self.near(-1).key in ("WITH", "RETURN", "DISTINCT", ".", "COUNT", "(", "YIELD")

    def open(self, text: str) -> None:
        subquery = text == "{" and self.near(-1).kind == "word" and self.near(-1).key in SUBQUERIES
        subquery = subquery or (text == "{" and self._scoped_call())
        self.brackets.append("q" if subquery else text)
        if len(self.brackets) > DEEPEST:
            raise cypher_refusal("brackets are nested too deep")
        self.begins, self.complete = subquery, False

    def _scoped_call(self) -> bool:
        """Return whether the bracket opens the subquery of CALL (a, b) { ... }."""
        back = -1
        if self.near(back).text != ")":
            return False
        while self.near(back).text not in ("(", ""):
            back -= 1
        return self.near(back - 1).key == "CALL" and self.near(back - 1).kind == "word"

    def word(self, token: CypherToken) -> None:
        before, after, key = self.near(-1), self.near(1), token.key
        if before.text in (".", "::") or (before.text == ":" and not self._in_map()):
            self.name(before)
        elif after.text == ":" and before.text in ("{", ",") and self.brackets[-1:] == ["{"]:
            self.complete = True
        elif key in NEVER:
            raise cypher_refusal(f"{key} is not allowed: only reading. A name like it goes in `backticks`.")
        elif self.begins:
            self.start(key)
        elif key in ("ALL", "ANY", "EXISTS", "COUNT", "COLLECT") and after.text in ("(", "{"):
            self.complete = True  # as functions are, until their bracket
        elif key == "CALL":
            self.call()
        elif key in CLAUSES or key in INFIX or key in PREFIX:
            self.keyword(key)
        elif key in AFTER and self.complete:
            pass
        elif self.complete:
            raise cypher_refusal(f"{token.text} cannot stand here; a clause of that name is not known")
        elif key in LITERALS:
            self.complete = True
        else:
            self.function()

    def _in_map(self) -> bool:
        """Return whether the colon before this token follows a key in a map, so that an expression follows."""
        return self.brackets[-1:] == ["{"] and self.near(-3).text in ("{", ",")

    def name(self, before: CypherToken) -> None:
        """Accept any word after a dot or a label's colon. A dotted function must be known as a whole."""
        if self.near(1).text == "(" and not (before.text == "." and self._dotted_from()):
            raise cypher_refusal(f"{self.near(0).text} cannot be called")
        self.complete = True

    def _dotted_from(self) -> bool:
        back = 0
        while self.near(back - 1).text == "." and self.near(back - 2).kind == "word":
            back -= 2
        # What stands before the first dot is no word: a call on an expression, which no list can name.
        if self.near(back - 1).text == ".":
            return False
        whole = "".join(self.near(step).text for step in range(back, 1)).lower()
        return whole in FUNCTIONS or whole in PROCEDURES or whole.startswith(FUNCTION_FAMILIES)

    def start(self, key: str) -> None:
        if key in ("ALL", "DISTINCT") and self.near(-1).key == "UNION":
            return
        if key not in STARTS:
            raise cypher_refusal(f"a statement cannot begin with {key}; it may begin with {', '.join(sorted(STARTS))}")
        self.begins = False
        if key == "CALL":
            self.call()
        else:
            self.keyword(key)

    def keyword(self, key: str) -> None:
        if key == "OPTIONAL" and self.near(1).key not in ("MATCH", "CALL"):
            raise cypher_refusal("OPTIONAL without MATCH")
        self.begins = key == "UNION"
        self.complete = False

    def call(self) -> None:
        """Accept CALL { ... }, CALL (a) { ... }, or CALL of a known procedure."""
        self.complete = False
        if self.near(1).text in ("{", "("):
            return
        parts, step = [], 1
        while self.near(step).kind == "word":
            parts.append(self.near(step).key.lower())
            if self.near(step + 1).text != ".":
                break
            step += 2
        name = ".".join(parts)
        if name not in PROCEDURES or self.near(step).kind != "word":
            raise cypher_refusal(f"the procedure {name or self.near(1).text} is not on the list of reading procedures")
        self.at += step
        self.complete = True

    def function(self) -> None:
        """Accept a variable, or a known function before its bracket."""
        step = 0
        parts = [self.near(0).key.lower()]
        while self.near(step + 1).text == "." and self.near(step + 2).kind in ("word", "name"):
            step += 2
            parts.append(self.near(step).key.lower())
        if self.near(step + 1).text == "(":
            name = ".".join(parts)
            if name not in FUNCTIONS and not name.startswith(FUNCTION_FAMILIES):
                raise cypher_refusal(f"the function {name} is not on the list of known functions")
            if any(self.near(inner).kind == "name" for inner in range(step + 1)):
                raise cypher_refusal("a quoted function name")
        self.complete = True
