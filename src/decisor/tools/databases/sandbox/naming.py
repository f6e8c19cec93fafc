"""Which relation of a database a name is, where several of its schemas have one of that name.

What is not certain is all that it may be: what must not be read of one of them is then read of none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

if TYPE_CHECKING:
    from sqlglot import Expr

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
    """In lower case. ``schema``: '' where it is not known."""

    schema: str
    name: str


@dataclass(frozen=True)
class Naming:
    """All in lower case. ``schemas``: by name, those that have a relation or macro of it. ``alone``: by name, the
    schema that is meant where none is written, as far as that is certain."""

    schemas: Mapping[str, frozenset[str]] = field(default_factory=dict)
    alone: Mapping[str, str] = field(default_factory=dict)
    in_views: InViews = "either"

    def of(self, name: str, schema: str = "", home: str = "") -> frozenset[FullName]:
        """What it may be. A schema that has none of this name says nothing: it may be another word for one that has.
        ``home``: the schema of the view in whose text it stands.

        >>> naming = Naming({"a": frozenset({"s", "t"})}, {"a": "s"})
        >>> naming.of("A", "t"), naming.of("a"), sorted(naming.of("a", home="t")), naming.of("b", "t")
        (frozenset({FullName(schema='t', name='a')}), frozenset({FullName(schema='s', name='a')}), \
[FullName(schema='s', name='a'), FullName(schema='t', name='a')], frozenset({FullName(schema='', name='b')}))
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
        """All of these names in every schema, and in none: these that are meant by their name alone."""
        return {FullName(one, name) for name in names for one in ("", *self.schemas.get(name, ()))}

    def spellings(self, relations: Collection[FullName]) -> set[str]:
        """As the catalog's queries name them: with a schema, and alone where that may be one of them."""
        alone = {one.name for one in relations if not self.of(one.name).isdisjoint(relations)}
        return alone | {f"{one.schema}.{one.name}" for one in relations if one.schema}

    def entry(self, one: FullName, entries: Mapping[FullName, T]) -> T | None:
        """Of what the catalog's queries tell by schema, '' for the default one."""
        return entries.get(one, entries.get(FullName("", one.name)) if self.of(one.name) == {one} else None)

    def reaching(self, relations: Iterable[FullName], texts: Mapping[FullName, str]) -> set[FullName]:
        """``relations``, and what may read one of them: a name in a text is enough.

        >>> texts = {FullName("", "a"): "SELECT * FROM secrets", FullName("", "b"): "SELECT * FROM A"}
        >>> sorted(one.name for one in Naming().reaching([FullName("", "secrets")], texts))
        ['a', 'b', 'secrets']
        """
        reached = fresh = set(relations)
        while fresh:
            names = "|".join(re.escape(name) for name in {one.name for one in fresh})
            pattern = re.compile(rf"{SCHEMA}(?<!\w)(?P<name>{names})(?!\w)", re.I)
            fresh = {one for one, text in texts.items() if one not in reached
                     and any(self._may_mean(match, one.schema, fresh) for match in pattern.finditer(text))}  # fmt: skip
            reached = reached | fresh
        return reached

    def _may_mean(self, match: re.Match[str], home: str, relations: set[FullName]) -> bool:
        """Whether a name in a text may be one of these, which have that name. Where several schemas have it: in odd
        quotes, as the last of three parts or after a comment it may be any of them; before a dot it is a schema's, or
        that of a relation named elsewhere in the text."""
        before, name = match.string[: match.start()], match["name"].lower()
        odd = before[-1:] not in BEFORE or before.rstrip().endswith(".") or COMMENT.search(before)
        if odd or len(self.schemas.get(name, ())) < 2:
            return True
        schema = (match["schema"] or "").strip('"`[]')
        if not schema and DOT.match(match.string, match.end()):
            return False
        return not relations.isdisjoint(self.of(name, schema, home))


def naming_of(rows: Iterable[Sequence[object]], in_views: InViews) -> Naming:
    """From the rows of ``definitions``."""
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


def with_schemas(tree: Expr, naming: Naming, home: str) -> Expr | None:
    """The query of a view, each name with its schema where it would be another's, or nobody's, outside the view; None
    where it is not certain which of several is meant."""
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
