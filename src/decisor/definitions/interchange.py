"""A model of the open semantic interchange (OSI, Apache Ossie; YAML) as definitions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from decisor.definitions.format import Definitions, Dimension, Entity, Join, Metric, Origin
from decisor.definitions.naming import name_of, named_once
from decisor.definitions.write import Import
from decisor.errors import SetupError
from decisor.tools.functions.openapi_file import YamlReader

NO_SQL = ("MDX", "TABLEAU", "MAQL", "THOUGHTSPOT")
ORIGIN = Origin(why="imported from a semantic interchange model")
LONGEST = 20_000
"""Characters of a metric with the fields that it names."""
MOST_DATASETS = 100
"""That one metric joins."""
NO_YAML = 'Reading YAML needs PyYAML: pip install "decisor[openapi]".'


def read_yaml(text: str, path: str) -> object:
    """Its first document. Raises SetupError where it is no YAML, or PyYAML is not installed."""
    try:
        import yaml
    except ModuleNotFoundError as error:
        raise SetupError(NO_YAML) from error
    try:
        return YamlReader(yaml.parse(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))).read()
    except (yaml.YAMLError, StopIteration) as error:
        raise SetupError(f"{path} is no YAML: {' '.join(str(error).split())[:200]}.") from error


def from_interchange(content: object) -> Import:
    """Raises SetupError where it is no such model."""
    models = content.get("semantic_model") if isinstance(content, dict) else None
    models = [models] if isinstance(models, dict) else models
    if not isinstance(models, list) or not all(isinstance(one, dict) for one in models):
        raise SetupError("This is neither a semantic manifest of dbt nor a model of the open semantic interchange: it "
                         "has no semantic_model.")  # fmt: skip
    notes: list[str] = []
    read = [SemanticModel(one) for one in models]
    return Import(Definitions(
        metrics=named_once(metric for model in read for metric in model.metrics(notes)),
        dimensions=named_once(one for model in read for one in model.dimensions()),
        entities=named_once(one for model in read for one in model.entities()),
        joins=named_once(one for model in read for one in model.joins()),
    ), notes)  # fmt: skip


@dataclass(frozen=True)
class SemanticModel:
    """One model of the file."""

    content: Mapping[str, Any]

    def parts(self, key: str) -> Sequence[Mapping[str, Any]]:
        return [one for one in self.content.get(key) or () if isinstance(one, dict) and one.get("name")]

    @cached_property
    def sources(self) -> Mapping[str, str]:
        """By dataset; of two with one name the first."""
        return {str(one["name"]): str(one.get("source") or one["name"]) for one in reversed(self.parts("datasets"))}

    def source(self, name: str) -> str:
        """What stands after FROM for a dataset: its table, by its name where that differs."""
        source = self.sources.get(name, name)
        if re.search(r"\s", source.strip()):
            return f"({source.strip().rstrip(';')}) AS {name}"
        table = source.rpartition(".")[2]
        return table if table == name else f"{table} AS {name}"

    def table(self, name: str) -> str:
        return self.source(name).partition(" AS ")[0]

    def entities(self) -> list[Entity]:
        return [Entity(name_of(one["name"]), self.table(one["name"]), tuple(map(str, one["primary_key"])),
                       synonyms(one), about(one), ORIGIN)
                for one in self.parts("datasets") if one.get("primary_key")
                and not self.source(one["name"]).startswith("(")]  # fmt: skip

    def joins(self) -> list[Join]:
        return [Join(name_of(one["name"]), [f"{self.table(one['from'])}.{column}" for column in one["from_columns"]],
                     [f"{self.table(one['to'])}.{column}" for column in one["to_columns"]], origin=ORIGIN)
                for one in self.parts("relationships") if whole(one)]  # fmt: skip

    def dimensions(self) -> list[Dimension]:
        return [Dimension(name_of(field["name"]), sql, self.source(one["name"]), synonyms(field), about(field), ORIGIN)
                for one in self.parts("datasets") for field in one.get("fields") or ()
                if isinstance(field, dict) and "dimension" in field and (sql := sql_of(field))]  # fmt: skip

    def metrics(self, notes: list[str]) -> list[Metric]:
        """Those of the model, and those that a dataset has for itself."""
        wishes = [(one, self.names_in(sql_of(one)) or [data["name"] for data in self.parts("datasets")][:1])
                  for one in self.parts("metrics")]  # fmt: skip
        wishes += [(one, [data["name"]]) for data in self.parts("datasets")
                   for one in SemanticModel(data).parts("metrics")]  # fmt: skip
        metrics, fields = [], self.fields()
        for one, names in wishes:
            sql = sql_of(one)
            base, source = self.joined(names) if sql and len(names) <= MOST_DATASETS else ("", "")
            if not source:
                notes.append(f"metric {one['name']}: {'no path joins its datasets' if sql else 'it has no SQL'}")
                continue
            whole_sql = with_fields(sql, fields)
            if not whole_sql:
                notes.append(f"metric {one['name']}: it is too long with the fields that it names")
                continue
            others = aggregates_beside(sql, base) if len(names) > 1 else {}
            if repeated := [text for text, counts_once in others.items() if not counts_once]:
                notes.append(f"metric {one['name']}: {repeated[0]} would take a row once for each row of {base} that "
                              "it belongs to: write it as a query")  # fmt: skip
                continue
            notes += [f"metric {one['name']}, which is taken over: {text} is of rows that a row of {base} names; "
                       "others are left out" for text in others]  # fmt: skip
            metrics.append(Metric(name_of(one["name"]), whole_sql, source,
                                  synonyms=synonyms(one), about=about(one), origin=ORIGIN))  # fmt: skip
        return metrics

    def names_in(self, sql: str) -> list[str]:
        """The datasets that an expression names."""
        names = [str(one["name"]) for one in self.parts("datasets")]
        words = set(re.findall(r"\w+(?=\.)", sql))
        return [name for name in names if name in words or (not name.isidentifier() and f"{name}." in sql)]

    def fields(self) -> dict[tuple[str, str], str]:
        """Of a dataset and a field what it computes, where that is more than the column of its name."""
        return {(str(data["name"]), str(one["name"])): sql for data in self.parts("datasets")
                for one in SemanticModel(data).parts("fields")
                if (sql := sql_of(one)) and sql != one["name"]}  # fmt: skip

    def joined(self, names: Sequence[str]) -> tuple[str, str]:
        """The dataset whose rows the others belong to, and a FROM clause from it by relationships from many to one,
        which keeps each of its rows once; '' where none reaches them all."""
        links = [one for one in self.parts("relationships") if whole(one)]
        for base in names or ():
            text, seen, grew = self.source(base), {base}, True
            while grew and not seen >= set(names):
                grew = False
                for link in links:
                    if link["from"] in seen and link["to"] not in seen:
                        equal = " AND ".join(f"{link['from']}.{a} = {link['to']}.{b}" for a, b in
                                             zip(link["from_columns"], link["to_columns"], strict=True))  # fmt: skip
                        text, grew = f"{text} LEFT JOIN {self.source(link['to'])} ON {equal}", True
                        seen.add(link["to"])
                        if seen >= set(names):
                            break
            if seen >= set(names):
                return base, text
        return "", ""


def aggregates_beside(sql: str, base: str) -> dict[str, bool]:
    """The aggregates in which no column of this dataset is, and whether a row that is there several times counts once.
    What cannot be parsed is one of them.

    >>> aggregates_beside("SUM(o.qty * p.price) / COUNT(DISTINCT c.id)", "o"), aggregates_beside("SUM(c.paid)", "o")
    ({'COUNT(DISTINCT c.id)': True}, {'SUM(c.paid)': False})
    """
    import sqlglot
    from sqlglot import exp

    try:
        tree = sqlglot.parse_one(sql)
    except sqlglot.errors.SqlglotError:
        return {sql: False}
    tables = {one: {column.table for column in one.find_all(exp.Column)} for one in tree.find_all(exp.AggFunc)}
    return {one.sql(): isinstance(one, exp.Min | exp.Max) or isinstance(one.this, exp.Distinct)
            for one, its in tables.items() if its and base not in its and its != {""}}  # fmt: skip


def with_fields(sql: str, fields: Mapping[tuple[str, str], str]) -> str:
    """With what computed fields stand for, where they are named by their dataset; '' where that is too long.
    What cannot be parsed stays.

    >>> with_fields("SUM(o.net) / COUNT(o.id)", {("o", "net"): "amount - discount"})
    'SUM((o.amount - o.discount)) / COUNT(o.id)'
    """
    import sqlglot
    from sqlglot import exp

    if len(sql) > LONGEST:
        return ""
    try:
        tree = sqlglot.parse_one(sql)
        named = [one for one in tree.find_all(exp.Column) if (one.table, one.name) in fields]
        if len(sql) + sum(len(fields[one.table, one.name]) for one in named) > LONGEST:
            return ""
        for column in named:
            inside = sqlglot.parse_one(fields[column.table, column.name])
            for own in inside.find_all(exp.Column):
                own.set("table", own.args.get("table") or exp.to_identifier(column.table))
            column.replace(exp.paren(inside))
    except sqlglot.errors.SqlglotError:
        return sql
    return tree.sql() if named else sql


def whole(link: Mapping[str, Any]) -> bool:
    """Whether a relationship names both sides, with as many columns."""
    columns = [link.get("from_columns"), link.get("to_columns")]
    return bool(link.get("from") and link.get("to") and all(isinstance(one, list) and one for one in columns)
                and len(columns[0] or ()) == len(columns[1] or ()))  # fmt: skip


def sql_of(one: Mapping[str, Any]) -> str:
    """Of an expression as text, or by dialect; '' where it has none in SQL."""
    expression = one.get("expression")
    if isinstance(expression, Mapping):
        expression = expression.get("dialects")
    if isinstance(expression, str):
        return expression.strip()
    dialects = [item for item in expression or () if isinstance(item, Mapping) and item.get("dialect") not in NO_SQL]
    dialects.sort(key=lambda item: item.get("dialect", "ANSI_SQL") != "ANSI_SQL")
    for item in dialects:
        if item.get("expression"):
            return str(item["expression"]).strip()
        if item.get("aggregation_type") and item.get("input_expr"):
            return f"{str(item['aggregation_type']).upper()}({item['input_expr']})"
    return ""


def synonyms(one: Mapping[str, object]) -> tuple[str, ...]:
    context = one.get("ai_context")
    words = context.get("synonyms") if isinstance(context, Mapping) else None
    return tuple(map(str, words)) if isinstance(words, list) else ()


def about(one: Mapping[str, object]) -> str:
    context = one.get("ai_context")
    return str(one.get("description") or (context if isinstance(context, str) else "") or "").strip()
