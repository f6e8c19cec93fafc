"""A model of the open semantic interchange (OSI, Apache Ossie; YAML) as definitions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from decisor.definitions.format import Definitions, Dimension, Entity, Join, Metric, Origin
from decisor.definitions.naming import name_of, named_once
from decisor.definitions.write import Import
from decisor.errors import SetupError
from decisor.tools.functions.openapi_file import YamlReader

NO_SQL = ("MDX", "TABLEAU", "MAQL", "THOUGHTSPOT")
ORIGIN = Origin(why="imported from a semantic interchange model")
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

    def source(self, name: str) -> str:
        """What stands after FROM for a dataset: its table, by its name where that differs."""
        source = str(next((one.get("source") or name for one in self.parts("datasets") if one["name"] == name), name))
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
        metrics = []
        for one in self.parts("metrics"):
            sql = sql_of(one)
            names = [
                data["name"] for data in self.parts("datasets") if re.search(rf"\b{re.escape(data['name'])}\.", sql)
            ]
            source = self.joined(names or [data["name"] for data in self.parts("datasets")][:1]) if sql else ""
            if not source:
                notes.append(f"metric {one['name']}: {'no path joins its datasets' if sql else 'it has no SQL'}")
                continue
            metrics.append(Metric(name_of(one["name"]), sql, source, synonyms=synonyms(one), about=about(one),
                                  origin=ORIGIN))  # fmt: skip
        return metrics

    def joined(self, names: Sequence[str]) -> str:
        """A FROM clause from the dataset whose rows the others belong to, by relationships from many to one; '' where
        none reaches them all."""
        links = [one for one in self.parts("relationships") if whole(one)]
        for base in names or ():
            text, seen, grew = self.source(base), {base}, True
            while grew and not seen >= set(names):
                grew = False
                for link in links:
                    if link["from"] in seen and link["to"] not in seen:
                        equal = " AND ".join(f"{link['from']}.{a} = {link['to']}.{b}" for a, b in
                                             zip(link["from_columns"], link["to_columns"], strict=True))  # fmt: skip
                        text, grew = f"{text} JOIN {self.source(link['to'])} ON {equal}", True
                        seen.add(link["to"])
                        if seen >= set(names):
                            break
            if seen >= set(names):
                return text
        return ""


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
