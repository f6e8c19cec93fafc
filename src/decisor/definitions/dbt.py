"""The ``semantic_manifest.json`` of a dbt project as definitions.

Metrics that need a history (cumulative, conversion, offsets) or a function of one engine are left out, with why.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from decisor.definitions.format import Definitions, Dimension, Entity, Join, Metric, Origin
from decisor.definitions.naming import name_of, named_once
from decisor.definitions.write import Import
from decisor.errors import SetupError

AGGREGATES = {
    "sum": "SUM({})", "average": "AVG({})", "count": "COUNT({})", "count_distinct": "COUNT(DISTINCT {})",
    "min": "MIN({})", "max": "MAX({})", "median": "MEDIAN({})", "sum_boolean": "SUM(CASE WHEN {} THEN 1 ELSE 0 END)",
}  # fmt: skip
REFERENCE = re.compile(r"\{\{\s*(?:Time)?(?:Dimension|Entity)\(\s*['\"]([\w.]+)['\"][^{}]*\)\s*\}\}(?:\.\w+\([^)]*\))*")
GRAIN = re.compile(r"TimeDimension\([^,()]*,\s*(?:time_granularity_name\s*=\s*)?['\"](\w+)|\.grain\(\s*['\"](\w+)")
OF_ONE_ENGINE = re.compile(r"\b(?:DATE_?(?:DIFF|ADD|SUB)|TIMESTAMP_?(?:DIFF|ADD|SUB))\s*\(", re.I)
"""Functions whose arguments, and what they count, differ between engines: the manifest does not say which it is for."""
OWN = ("primary", "unique", "natural")
"""Types of an entity whose name leads to the dimensions of its own model."""
ORIGIN = Origin(why="imported from dbt")
LONGEST = 20_000
"""Characters of a metric that is made of others."""


class LeftOut(Exception):
    """A metric that cannot be said as one query."""


def from_manifest(content: object) -> Import:
    """Raises SetupError where it is no semantic manifest."""
    if not isinstance(content, dict) or not isinstance(content.get("semantic_models"), list):
        raise SetupError("This is no semantic manifest of dbt: it has no semantic_models.")
    manifest = Manifest([SemanticModel(one) for one in content["semantic_models"] if isinstance(one, dict)],
                        {one["name"]: one for one in content.get("metrics") or ()})  # fmt: skip
    metrics, notes = [], []
    for name in manifest.metrics:
        try:
            metrics.append(manifest.metric(name))
        except LeftOut as error:
            notes.append(f"metric {name}: {error}")
    dimensions = [one for model in manifest.models for one in model.dimensions()]
    entities = [one for model in manifest.models for one in model.entities()]
    return Import(Definitions(metrics=named_once(metrics), dimensions=named_once(dimensions),
                              entities=named_once(entities), joins=named_once(manifest.joins())), notes)  # fmt: skip


@dataclass(frozen=True)
class SemanticModel:
    """A semantic model of the manifest."""

    content: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.content["name"])

    @property
    def table(self) -> str:
        return str((self.content.get("node_relation") or {}).get("alias") or self.name)

    def parts(self, key: str) -> Sequence[Mapping[str, Any]]:
        return self.content.get(key) or ()

    def key(self) -> str:
        """The column of its primary entity; '' where it has none."""
        return next(
            (expression(one) for one in self.parts("entities") if one.get("type") in ("primary", "natural")), ""
        )

    def date(self, name: str | None) -> str:
        """The column of a time dimension, or of the default one."""
        name = name or (self.content.get("defaults") or {}).get("agg_time_dimension")
        return next((expression(one) for one in self.parts("dimensions") if one["name"] == name), "")

    def column(self, reference: str) -> str | None:
        """What ``entity__dimension`` stands for, None where that is another model's."""
        link, _, name = reference.rpartition("__")
        links = {"", self.content.get("primary_entity"), *(one["name"] for one in self.entities_of(*OWN))}
        return next((expression(one) for key in ("dimensions", "entities") for one in self.parts(key)
                     if one["name"] == name and link in links), None)  # fmt: skip

    def entities_of(self, *types: str) -> list[Mapping[str, Any]]:
        return [one for one in self.parts("entities") if one.get("type") in types]

    def lookup(self, reference: str, models: Sequence[SemanticModel]) -> str | None:
        """A query for ``entity__dimension`` of the one other model with that key, for a row of this; else None."""
        link = reference.rpartition("__")[0]
        keys = [f"{self.table}.{expression(one)}" for one in self.parts("entities") if one["name"] == link]
        places = [(model.table, expression(one), column) for model in models if model.table != self.table
                  for one in model.entities_of("primary", "unique")
                  if one["name"] == link and (column := model.column(reference))]  # fmt: skip
        if len(keys) != 1 or len(places) != 1 or not all(map(is_name, (keys[0].rpartition(".")[2], places[0][1]))):
            return None
        table, key, column = places[0]
        value = f"{table}.{column}" if is_name(column) else column
        return f"(SELECT {value} FROM {table} WHERE {table}.{key} = {keys[0]})"

    def dimensions(self) -> list[Dimension]:
        return [Dimension(name_of(one["name"]), expression(one), self.table, about=one.get("description") or "",
                          synonyms=label(one), origin=ORIGIN)
                for one in self.parts("dimensions") if one.get("type") == "categorical"]  # fmt: skip

    def entities(self) -> list[Entity]:
        key = self.key()
        about = self.content.get("description") or ""
        return [Entity(name_of(self.name), self.table, [key], about=about, origin=ORIGIN)] if key else []


def expression(one: Mapping[str, Any]) -> str:
    return str(one.get("expr") or one["name"])


def is_name(sql: str) -> bool:
    return re.fullmatch(r"[A-Za-z_]\w*", sql) is not None


def label(one: Mapping[str, object]) -> tuple[str, ...]:
    text = str(one.get("label") or "")
    return (text,) if text and name_of(text).lower() != str(one["name"]).lower() else ()


@dataclass(frozen=True)
class Manifest:
    """``metrics``: by name, as they are written. ``read``: those that were read, or why they are left out."""

    models: Sequence[SemanticModel]
    metrics: Mapping[str, Mapping[str, Any]]
    read: dict[str, Metric | LeftOut] = field(default_factory=dict)

    def joins(self) -> list[Join]:
        """From a foreign entity to the model whose own it is."""
        own = {one["name"]: (model, expression(one)) for model in self.models for one in model.parts("entities")
               if one.get("type") in OWN}  # fmt: skip
        joins = []
        for model in self.models:
            for one in model.parts("entities"):
                if one.get("type") == "foreign" and one["name"] in own:
                    other, column = own[one["name"]]
                    joins.append(Join(name_of(f"{model.name}_{other.name}"), [f"{model.table}.{expression(one)}"],
                                      [f"{other.table}.{column}"], origin=ORIGIN))  # fmt: skip
        return joins

    def metric(self, name: str) -> Metric:
        """Each is read once. Raises LeftOut."""
        if name not in self.read:
            self.read[name] = LeftOut("it is defined by itself")
            try:
                self.read[name] = self.new_metric(name)
            except LeftOut as error:
                self.read[name] = error
            except (KeyError, TypeError, AttributeError, StopIteration):
                self.read[name] = LeftOut("it lacks a part")
        metric = self.read[name]
        if isinstance(metric, LeftOut):
            raise metric
        return metric

    def new_metric(self, name: str) -> Metric:
        """Raises LeftOut."""
        one = self.metrics[name]
        kind, parameters = one.get("type"), one.get("type_params") or {}
        if kind == "simple":
            metric = self.simple(one, parameters)
        elif kind == "ratio":
            parts: dict[str, Mapping[str, Any]] = {
                "numerator": parameters["numerator"],
                "denominator": parameters["denominator"],
            }
            metric = self.combined("1.0 * numerator / NULLIF(denominator, 0)", parts, one)
        elif kind == "derived":
            parts = {part.get("alias") or part["name"]: part for part in parameters.get("metrics") or ()}
            metric = self.combined(parameters["expr"], parts, one)
        else:
            raise LeftOut(f"{kind} metrics are no single query")
        if OF_ONE_ENGINE.search(text := metric.whole()):
            raise LeftOut(f"dates are reckoned otherwise by each engine, write it for yours: {text}")
        return replace(metric, name=name_of(name), synonyms=label(one), about=one.get("description") or "",
                       origin=ORIGIN)  # fmt: skip

    def simple(self, one: Mapping[str, Any], parameters: Mapping[str, Any]) -> Metric:
        wish = parameters.get("measure") or {}
        filters = [one.get("filter"), wish.get("filter")]
        if own := parameters.get("metric_aggregation_params"):
            model = next(model for model in self.models if model.name == own["semantic_model"])
            measure: Mapping[str, Any] = {**own, "name": own.get("expr") or parameters.get("expr") or one["name"]}
        else:
            places = [(model, part) for model in self.models for part in model.parts("measures")
                      if part["name"] == wish["name"]]  # fmt: skip
            if not places:
                raise LeftOut(f"there is no measure {wish['name']}")
            model, measure = places[0]
        if measure["agg"] not in AGGREGATES:
            raise LeftOut(f"the aggregation {measure['agg']} has no plain SQL")
        if measure.get("non_additive_dimension"):
            raise LeftOut("it may not be added up over one of its dimensions")
        where = [self.condition(text, model) for part in filters for text in templates(part)]
        key = model.key()
        return Metric(one["name"], AGGREGATES[measure["agg"]].format(expression(measure)), model.table, where,
                      grain=[key] if key else [], date=model.date(measure.get("agg_time_dimension")))  # fmt: skip

    def condition(self, template: str, model: SemanticModel) -> str:
        def column(match: re.Match[str]) -> str:
            if grain := GRAIN.search(match[0]):
                raise LeftOut(
                    f"its filter takes {match[1]} by the {grain[1] or grain[2]}: write it as a range of dates"
                )
            name = model.column(match[1]) or model.lookup(match[1], self.models)
            if name is None:
                raise LeftOut(f"its filter is about {match[1]}, which no key leads to")
            return name

        text = REFERENCE.sub(column, template).strip()
        if "{{" in text or "{%" in text:
            raise LeftOut(f"its filter is a template: {text}")
        return text

    def combined(self, sql: str, parts: Mapping[str, Mapping[str, Any]], one: Mapping[str, Any]) -> Metric:
        """Over the same rows one expression, else one query over queries."""
        if any(part.get("offset_window") or part.get("offset_to_grain") for part in parts.values()):
            raise LeftOut("it compares with another time")
        if any(templates(part.get("filter")) for part in parts.values()) or templates(one.get("filter")):
            raise LeftOut("it filters other metrics")
        metrics = {alias: self.metric(part["name"]) for alias, part in parts.items()}
        first = next(iter(metrics.values()))
        same = all((m.source, tuple(m.where)) == (first.source, tuple(first.where)) and m.sql for m in metrics.values())
        texts = {alias: f"({metric.sql if same else metric.whole()})" for alias, metric in metrics.items()}
        if len(sql) + sum(len(texts.get(word, "")) for word in re.findall(r"\w+", sql)) > LONGEST:
            raise LeftOut("it is too long with what it is made of")
        sql = re.sub(r"\w+", lambda match: texts.get(match[0], match[0]), sql)
        if same:
            return replace(first, name=one["name"], sql=sql)
        return Metric(one["name"], query=f"SELECT {sql} AS {name_of(one['name'])}")


def templates(condition: Mapping[str, Any] | None) -> list[str]:
    """The conditions of a filter, as they are written."""
    return [str(one["where_sql_template"]) for one in (condition or {}).get("where_filters") or ()]
