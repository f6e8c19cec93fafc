"""A checked Cypher statement, rewritten so that it sees only its reader's nodes, and tokens in place of masked values.

Each node of a pattern, named or not, gets the reader's condition, whatever labels it is asked by, and so do the nodes
that a path of any length passes. What is written after WHERE is computed of these alone: it stands in a CASE behind the
condition. Each ``variable.property`` of a masked property becomes its token. What cannot be rewritten so is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from decisor.tools.databases.sandbox.cypher_patterns import Pattern, begins_pattern, read_pattern
from decisor.tools.databases.sandbox.cypher_tokens import Token, clean, quoted, refuse, tokens
from decisor.tools.databases.sandbox.cypher_walk import NOTHING, Statement, name_of
from decisor.tools.databases.sandbox.cypher_words import SUBQUERIES
from decisor.tools.databases.sandbox.graph_policy import GraphRules

NODES = "[decisor_e IN {0} | startNode(decisor_e)] + [decisor_e IN {0} | endNode(decisor_e)]"
SHORTEST = ("SHORTESTPATH", "ALLSHORTESTPATHS")


@dataclass(frozen=True)
class Rewritten:
    """``names``: what stands in the text for what was written, for names of columns. ``tokens``: whether it reads the
    parameter that holds them."""

    text: str
    names: tuple[tuple[str, str], ...] = ()
    tokens: bool = False

    def plain(self, text: str) -> str:
        """A name of a column in the words of the statement as it was."""
        for new, old in self.names:
            text = text.replace(new, old)
        return text


def rewritten(statement: str, rules: GraphRules, parameter: str) -> Rewritten:
    """``parameter``: the name of one that holds the token of each masked value.

    Raises:
        ToolError: (refused) it holds what cannot be rewritten.

    >>> rules = GraphRules({"Person": ("region = 'EU'",)}, {"Person": frozenset({"email"})})
    >>> rewritten("MATCH (p) RETURN p.name", rules, "m").text
    "MATCH (p) WHERE (NOT p:`Person` OR ((p.region = 'EU'))) RETURN p.name"
    >>> rewritten("RETURN p.email", rules, "m").text
    'RETURN CASE WHEN p:`Person` THEN $m[toStringOrNull(p.`email`)] ELSE p.`email` END'
    """
    weaver = Weaver(Statement(tokens(statement)), rules, parameter)
    weaver.whole()
    text, more = weaver.text(), [(f" {one}", "") for some in weaver.more.values() for one in some]
    names = sorted([*more, *weaver.names], key=lambda pair: -len(pair[0]))
    return Rewritten(text, tuple(names), weaver.reads_tokens)


@dataclass
class Weaver:
    """``more``: what is put in before a place. ``instead``: what stands in the place of a token, '' for nothing."""

    words: Statement
    rules: GraphRules
    parameter: str
    more: dict[int, list[str]] = field(default_factory=dict)
    instead: dict[int, str] = field(default_factory=dict)
    names: list[tuple[str, str]] = field(default_factory=list)
    reads_tokens: bool = False
    unnamed: int = 0

    def whole(self) -> None:
        self.words.check()
        for at in range(len(self.words.all)):
            self.value(at)
        self.query(0, len(self.words.all))

    def text(self, start: int = 0, end: int | None = None) -> str:
        """Of what stands from a place to another."""
        parts: list[Token] = []
        end = len(self.words.all) + 1 if end is None else end
        for at in range(start, end):
            token = self.words.near(at)
            parts += [Token("symbol", text, text, True) for text in self.more.get(at, ())]
            new = self.instead.get(at, token.text)
            parts.append(Token("symbol", new, new, token.spaced) if new else NOTHING)
        return clean(tuple(parts))

    def put(self, at: int, text: str) -> None:
        self.more.setdefault(at, []).append(text)

    def value(self, at: int) -> None:
        """Masked properties, and what reads properties without naming them."""
        near, token = self.words.near, self.words.near(at)
        if token.kind == "word" and token.key == "APOC" and near(at + 1).text == "." and near(at - 1).text != ".":
            raise refuse("not all of the graph is for this reader, so no function of apoc")
        if not self.rules.masked:
            return
        if token.text == "." and near(at + 1).text == "*":
            raise refuse("some properties are masked, so properties are named one by one: no .*")
        if token.text == "." and self.rules.homes(name_of(near(at + 1))):
            self.masked(at)
        if token.kind == "word" and near(at + 1).text == "(" and near(at - 1).text != ".":
            whole = token.key in ("POINT", "DURATION") and near(at + 2).text != "{" and near(at + 2).kind != "string"
            if token.key == "PROPERTIES" or whole:
                raise refuse(f"some properties are masked, so no {token.text}() of a node: name its properties")
        if token.text == "[" and token.kind == "symbol" and self.words.follows_value(at):
            inside = self.words.all[at + 1 : self.words.closes[at]]
            if not all(one.kind == "number" or one.text in ("-", "..") for one in inside):
                raise refuse("some properties are masked, so x[...] takes a number, and a property is written x.name")

    def masked(self, dot: int) -> None:
        owner, name = self.words.near(dot - 1), self.words.near(dot + 1)
        plain = owner.kind in ("word", "name") and not self.words.is_keyword(dot - 1)
        if not plain or self.words.near(dot - 2).text == "." or self.words.near(dot + 2).text == "(":
            raise refuse(f"{name_of(name)} is masked: write variable.{name_of(name)}, of a plain variable")
        new = self.instead[dot - 1] = self.token(owner.text, name_of(name))
        self.instead[dot] = self.instead[dot + 1] = ""
        self.names.append((new, f"{owner.text}.{name.text}"))

    def token(self, variable: str, name: str) -> str:
        self.reads_tokens = True
        value = f"{variable}.{quoted(name)}"
        test = " OR ".join(f"{variable}:{quoted(home)}" for home in self.rules.homes(name))
        return f"CASE WHEN {test} THEN ${self.parameter}[toStringOrNull({value})] ELSE {value} END"

    def query(self, start: int, end: int) -> None:
        """A statement, or what is in the braces of a subquery, which may begin with a pattern."""
        at = start
        if start < end and not self.words.is_clause(start):
            self.put(start, "MATCH")
            at = self.match(start, end)
        while at < end:
            after = self.words.next_clause(at + 1, end)
            if self.words.near(at).key == "MATCH":
                after = self.match(at + 1, end)
            else:
                self.expression(at + 1, after)
            at = after

    def match(self, start: int, end: int) -> int:
        """Patterns, with their WHERE; the place after it."""
        stop = self.words.next_clause(start, end)
        tests = self.patterns(start, stop)
        if stop < end and self.words.near(stop).key == "WHERE":
            after = self.words.next_clause(stop + 1, end)
            self.where(stop + 1, after, tests)
            return after
        if tests:
            self.put(stop, "WHERE " + " AND ".join(tests))
        return stop

    def where(self, start: int, end: int, tests: list[str]) -> None:
        if tests:
            test = " AND ".join(tests)
            self.put(start, f"{test} AND CASE WHEN {test} THEN (")
        self.expression(start, end)
        if tests:
            self.put(end, ") ELSE false END")

    def patterns(self, start: int, end: int) -> list[str]:
        """What holds of the nodes between two places, where patterns stand, with commas between them."""
        tests: list[str] = []
        at = start
        while at < end:
            if self.words.near(at + 1).text == "=" and self.words.near(at).kind in ("word", "name"):
                at += 2
            inside = self.words.near(at).key in SHORTEST and self.words.near(at + 1).text == "("
            stop = self.words.closes[at + 1] if inside else end
            pattern = self.pattern(at + 2 if inside else at, stop)
            if inside and pattern.end != stop:
                raise refuse("shortestPath takes one pattern")
            tests += self.tests(pattern)
            at = pattern.end + inside
            if at < end and self.words.near(at).text != ",":
                raise refuse(
                    f"{self.words.near(at).text} cannot stand in a pattern, as some nodes are not for this reader"
                )
            at += 1
        return list(dict.fromkeys(tests))

    def pattern(self, start: int, end: int) -> Pattern:
        """Read, with names for what has none."""
        pattern = read_pattern(self.words, start, end)
        for part in pattern.parts:
            if not part.name and (part.node or part.long):
                self.unnamed += 1
                part.name = f"decisor_{self.unnamed}"
                self.more.setdefault(part.start + 1, []).insert(0, part.name)
        return pattern

    def tests(self, pattern: Pattern) -> list[str]:
        tests = []
        for part in pattern.parts:
            if self.rules.rows and part.node:
                tests.append(self.rules.holds(part.name))
            elif self.rules.rows and part.long:
                tests.append(f"all(decisor_x IN {NODES.format(part.name)} WHERE {self.rules.holds('decisor_x')})")
            for name, (start, end) in part.properties.items():
                if self.rules.homes(name):
                    tests.append(self.compared(part.name, name, start, end))
                else:
                    self.expression(start, end)
        return tests

    def compared(self, variable: str, name: str, start: int, end: int) -> str:
        """``{name: value}`` of a masked property as a comparison of its token, taken out of the braces."""
        if not variable or any(token.kind == "symbol" and token.text in "([{" for token in self.words.all[start:end]):
            raise refuse(f"{name} is masked: compare it in WHERE, as variable.{name} = ...")
        value = self.text(start, end)
        for at in range(start - 2, end):
            self.instead[at] = ""
        comma = end if self.words.near(end).text == "," else start - 3
        if self.words.near(comma).text == ",":
            self.instead[comma] = ""
        return f"{self.token(variable, name)} = ({value})"

    def expression(self, start: int, end: int) -> None:
        """What may hold patterns and subqueries."""
        at = start
        while at < end:
            token = self.words.near(at)
            bracket = token.text if token.kind == "symbol" and at in self.words.closes else ""
            if bracket == "(" and begins_pattern(self.words, at):
                at = self.there(at, end)
                continue
            if bracket == "[" and (pattern := self.pattern_inside(at)):
                self.comprehension(at, pattern)
            elif bracket == "{" and self.is_subquery(at):
                self.query(at + 1, self.words.closes[at])
            elif bracket:
                if bracket == "{":
                    self.check_keys(at)
                self.expression(at + 1, self.words.closes[at])
            at = self.words.closes[at] + 1 if bracket else at + 1

    def there(self, at: int, end: int) -> int:
        """A pattern where a truth value stands: EXISTS, with a place for the condition. The place after it."""
        called = self.words.near(at - 2).key if self.words.near(at - 1).text == "(" else ""
        if called in SHORTEST:
            raise refuse("shortestPath stands in MATCH: some of the graph is not for this reader")
        if called == "EXISTS":
            self.instead[at - 2] = ""
        self.put(at, "EXISTS { MATCH")
        pattern = self.pattern(at, end)
        tests = self.tests(pattern)
        self.put(pattern.end, f"WHERE {' AND '.join(tests)} }}" if tests else "}")
        return pattern.end

    def pattern_inside(self, at: int) -> int:
        """The place of the pattern of [(a)-->(b) | ...] or [p = (a)-->(b) | ...], else 0."""
        place = at + 3 if self.words.near(at + 2).text == "=" else at + 1
        there = self.words.near(place).text == "(" and place in self.words.closes
        return place if there and begins_pattern(self.words, place) else 0

    def comprehension(self, at: int, place: int) -> None:
        end = self.words.closes[at]
        pattern = self.pattern(place, end)
        tests = self.tests(pattern)
        bars, stop = list[int](), pattern.end
        while stop < end:
            bars += [stop] if self.words.near(stop).text == "|" else []
            stop = self.words.closes.get(stop, stop) + 1
        if len(bars) != 1:
            raise refuse("[pattern WHERE ... | value] has one |")
        if self.words.near(pattern.end).key == "WHERE":
            self.where(pattern.end + 1, bars[0], tests)
        elif pattern.end != bars[0]:
            raise refuse("after a pattern in [...] stands WHERE or |")
        elif tests:
            self.put(bars[0], "WHERE " + " AND ".join(tests))
        self.expression(bars[0] + 1, end)

    def is_subquery(self, at: int) -> bool:
        before = self.words.near(at - 1)
        if before.text == ")":
            before = self.words.near(self.opens(at - 1) - 1)
            return before.kind == "word" and before.key == "CALL"
        return before.kind == "word" and before.key in SUBQUERIES and self.words.near(at - 2).text != "."

    def opens(self, end: int) -> int:
        return next(start for start, close in self.words.closes.items() if close == end)

    def check_keys(self, at: int) -> None:
        """Raises ToolError (refused) where a map has the name of a masked property: it would be read as one."""
        for place in range(at + 1, self.words.closes[at]):
            name = self.words.near(place)
            is_key = self.words.near(place + 1).text == ":" and self.words.near(place - 1).text in ("{", ",")
            if is_key and name.kind in ("word", "name") and self.rules.homes(name_of(name)):
                raise refuse(f"{name_of(name)} is masked: call it otherwise in {{...}}")
