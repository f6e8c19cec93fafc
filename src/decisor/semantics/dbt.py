"""Import the ``semantic_manifest.json`` of a dbt project as definitions.

Metrics that need a history (cumulative, conversion, offsets) or a function of one engine are left out, each with the
reason. No query is run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from decisor.errors import SetupError
from decisor.semantics.definitions import (
    Definition,
    Definitions,
    Dimension,
    Entity,
    ImportedDefinitions,
    Join,
    Metric,
    make_names_unique,
    make_section_name,
    read_definitions_text,
)
from decisor.system.text import clean_value
from decisor.types import Value

AGGREGATES = {
    "sum": "SUM({})",
    "average": "AVG({})",
    "count": "COUNT({})",
    "count_distinct": "COUNT(DISTINCT {})",
    "min": "MIN({})",
    "max": "MAX({})",
    "median": "MEDIAN({})",
    "sum_boolean": "SUM(CASE WHEN {} THEN 1 ELSE 0 END)",
}
REFERENCE = re.compile(r"\{\{\s*(?:Time)?(?:Dimension|Entity)\(\s*['\"]([\w.]+)['\"][^{}]*\)\s*\}\}(?:\.\w+\([^)]*\))*")
GRAIN = re.compile(r"TimeDimension\([^,()]*,\s*(?:time_granularity_name\s*=\s*)?['\"](\w+)|\.grain\(\s*['\"](\w+)")
OF_ONE_ENGINE = re.compile(r"\b(?:DATE_?(?:DIFF|ADD|SUB)|TIMESTAMP_?(?:DIFF|ADD|SUB))\s*\(", re.I)
"""Functions whose arguments, and what they count, differ between engines: the manifest does not say which it is for."""
OWN = ("primary", "unique", "natural")
"""Types of an entity whose name leads to the dimensions of its own model."""
IMPORTED = "imported from dbt"
LONGEST = 20_000
"""Characters of a metric that is made of others."""


class UnsupportedMetric(Exception):
    """A metric that one query cannot express."""


def convert_dbt_manifest(content: object) -> ImportedDefinitions:
    """Convert the manifest of a dbt project to definitions; raise SetupError if it is none.

    Metrics that one query cannot express are left out; the notes say why.
    """
    if not isinstance(content, dict) or not isinstance(content.get("semantic_models"), list):
        raise SetupError("This is no semantic manifest of dbt: it has no semantic_models.")
    if nameless := find_nameless_part(content):
        raise SetupError(f"{nameless} has no name: let dbt write the manifest again (dbt parse).")
    manifest = Manifest(
        [SemanticModel(one) for one in content["semantic_models"] if isinstance(one, dict)],
        {one["name"]: one for one in content.get("metrics") or ()},
    )
    metrics, notes = [], []
    for name in manifest.metrics:
        try:
            metrics.append(manifest.metric(name))
        except UnsupportedMetric as error:
            notes.append(f"metric {name}: {error}")
    elements: list[Definition] = [dimension for model in manifest.models for dimension in model.dimensions()]
    elements += [entity for model in manifest.models for entity in model.entities()]
    return ImportedDefinitions(Definitions(make_names_unique([*metrics, *elements, *manifest.joins()])), notes)


def find_nameless_part(content: Mapping[str, Any]) -> str:
    """Return the first semantic model, metric, dimension or entity without a name; '' if all have one."""
    parts = {f"semantic_models[{at}]": model for at, model in enumerate(content["semantic_models"])}
    parts |= {f"metrics[{at}]": metric for at, metric in enumerate(content.get("metrics") or ())}
    for place, model in [*parts.items()]:
        for key in ("entities", "dimensions") if isinstance(model, dict) else ():
            parts |= {f"{place}.{key}[{at}]": part for at, part in enumerate(model.get(key) or ())}
    return next((place for place, part in parts.items() if isinstance(part, dict) and not part.get("name")), "")


@dataclass(frozen=True)
class SemanticModel:
    """A semantic model of the manifest."""

    content: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.content["name"])

    @property
    def table(self) -> str:
        # The alias is the name of the table in the database.
        return str((self.content.get("node_relation") or {}).get("alias") or self.name)

    def parts(self, key: str) -> Sequence[Mapping[str, Any]]:
        return self.content.get(key) or ()

    def key(self) -> str:
        """Return the column of the primary or natural entity, '' if there is none."""
        return next(map(sql_of_element, self.entities_of("primary", "natural")), "")

    def date(self, name: str | None) -> str:
        """Return the column of a time dimension. ``name`` None means the default time dimension."""
        name = name or (self.content.get("defaults") or {}).get("agg_time_dimension")
        return next((sql_of_element(one) for one in self.parts("dimensions") if one["name"] == name), "")

    def column(self, reference: str) -> str | None:
        """Return the column of a reference ``entity__dimension``, None if it is of another model."""
        link, _, name = reference.rpartition("__")
        links = {"", self.content.get("primary_entity"), *(one["name"] for one in self.entities_of(*OWN))}
        elements = (*self.parts("dimensions"), *self.parts("entities")) if link in links else ()
        return next((sql_of_element(element) for element in elements if element["name"] == name), None)

    def entities_of(self, *types: str) -> list[Mapping[str, Any]]:
        return [one for one in self.parts("entities") if one.get("type") in types]

    def lookup(self, reference: str, models: Sequence[SemanticModel]) -> str | None:
        """Return a subquery for ``entity__dimension`` of the one other model with that key.

        It gives the value for a row of this model. None if there is no such model, or several.
        """
        link = reference.rpartition("__")[0]
        keys = [f"{self.table}.{sql_of_element(one)}" for one in self.parts("entities") if one["name"] == link]
        places = [
            (model.table, sql_of_element(one), column)
            for model in models
            if model.table != self.table
            for one in model.entities_of("primary", "unique")
            if one["name"] == link and (column := model.column(reference))
        ]
        # A lookup leads to one row only by a key, and both of its sides are plain columns.
        if len(keys) != 1 or len(places) != 1 or not all(map(is_name, (keys[0].rpartition(".")[2], places[0][1]))):
            return None
        table, key, column = places[0]
        value = f"{table}.{column}" if is_name(column) else column
        return f"(SELECT {value} FROM {table} WHERE {table}.{key} = {keys[0]})"

    def dimensions(self) -> list[Dimension]:
        return [
            Dimension(
                make_section_name(one["name"]),
                sql_of_element(one),
                self.table,
                about=one.get("description") or "",
                synonyms=synonyms_from_label(one),
                why=IMPORTED,
            )
            for one in self.parts("dimensions")
            if one.get("type") == "categorical"
        ]

    def entities(self) -> list[Entity]:
        key = self.key()
        about = self.content.get("description") or ""
        return [Entity(make_section_name(self.name), self.table, [key], about=about, why=IMPORTED)] if key else []


def sql_of_element(one: Mapping[str, Any]) -> str:
    return str(one.get("expr") or one["name"])


def is_name(sql: str) -> bool:
    return re.fullmatch(r"[A-Za-z_]\w*", sql) is not None


def synonyms_from_label(one: Mapping[str, object]) -> tuple[str, ...]:
    text = str(one.get("label") or "")
    return (text,) if text and make_section_name(text).lower() != str(one["name"]).lower() else ()


@dataclass(frozen=True)
class Manifest:
    """The semantic models and metrics of a dbt project."""

    models: Sequence[SemanticModel]
    metrics: Mapping[str, Mapping[str, Any]]
    """By name, as the manifest has them."""
    read: dict[str, Metric | UnsupportedMetric] = field(default_factory=dict)
    """Converted metrics, or why one is left out."""

    def joins(self) -> list[Join]:
        """Return a join from each foreign entity to the model that owns the entity."""
        owners = {
            entity["name"]: (model, sql_of_element(entity))
            for model in self.models
            for entity in model.entities_of(*OWN)
        }
        joins = []
        for model in self.models:
            for entity in model.entities_of("foreign"):
                if entity["name"] in owners:
                    owner, key = owners[entity["name"]]
                    name = make_section_name(f"{model.name}_{owner.name}")
                    left, right = f"{model.table}.{sql_of_element(entity)}", f"{owner.table}.{key}"
                    joins.append(Join(name, [left], [right], why=IMPORTED))
        return joins

    def metric(self, name: str) -> Metric:
        """Return a metric, converted once; raise UnsupportedMetric if one query cannot express it."""
        if name not in self.read:
            # Set before the conversion, so that a metric made of itself ends here.
            self.read[name] = UnsupportedMetric("it is defined by itself")
            try:
                self.read[name] = self.new_metric(name)
            except UnsupportedMetric as error:
                self.read[name] = error
            # Of an incomplete manifest, one metric is left out and not all.
            except (KeyError, TypeError, AttributeError, StopIteration):
                self.read[name] = UnsupportedMetric("it lacks a part")
        metric = self.read[name]
        if isinstance(metric, UnsupportedMetric):
            raise metric
        return metric

    def new_metric(self, name: str) -> Metric:
        """Convert a metric; raise UnsupportedMetric if one query cannot express it."""
        one = self.metrics[name]
        kind, parameters = one.get("type"), one.get("type_params") or {}
        if kind == "simple":
            metric = self.simple(one, parameters)
        elif kind == "ratio":
            parts: dict[str, Mapping[str, Any]] = {name: parameters[name] for name in ("numerator", "denominator")}
            # 1.0 keeps the fraction of whole numbers, and NULLIF makes a division by 0 no value.
            metric = self.combined("1.0 * numerator / NULLIF(denominator, 0)", parts, one)
        elif kind == "derived":
            parts = {part.get("alias") or part["name"]: part for part in parameters.get("metrics") or ()}
            metric = self.combined(parameters["expr"], parts, one)
        else:
            raise UnsupportedMetric(f"{kind} metrics are no single query")
        if OF_ONE_ENGINE.search(text := metric.full_query()):
            raise UnsupportedMetric(f"dates are reckoned otherwise by each engine, write it for yours: {text}")
        return replace(
            metric,
            name=make_section_name(name),
            synonyms=synonyms_from_label(one),
            about=one.get("description") or "",
            why=IMPORTED,
        )

    def simple(self, one: Mapping[str, Any], parameters: Mapping[str, Any]) -> Metric:
        wish = parameters.get("measure") or {}
        filters = [one.get("filter"), wish.get("filter")]
        if own := parameters.get("metric_aggregation_params"):
            model = next(model for model in self.models if model.name == own["semantic_model"])
            measure: Mapping[str, Any] = {**own, "name": own.get("expr") or parameters.get("expr") or one["name"]}
        else:
            measures = ((model, measure) for model in self.models for measure in model.parts("measures"))
            place = next((place for place in measures if place[1]["name"] == wish["name"]), None)
            if place is None:
                raise UnsupportedMetric(f"there is no measure {wish['name']}")
            model, measure = place
        if measure["agg"] not in AGGREGATES:
            raise UnsupportedMetric(f"the aggregation {measure['agg']} has no plain SQL")
        if measure.get("non_additive_dimension"):
            raise UnsupportedMetric("it may not be added up over one of its dimensions")
        where = [self.condition(text, model) for part in filters for text in list_filter_templates(part)]
        key = model.key()
        return Metric(
            one["name"],
            AGGREGATES[measure["agg"]].format(sql_of_element(measure)),
            model.table,
            where,
            grain=[key] if key else [],
            date=model.date(measure.get("agg_time_dimension")),
        )

    def condition(self, template: str, model: SemanticModel) -> str:
        def column(match: re.Match[str]) -> str:
            if grain := GRAIN.search(match[0]):
                raise UnsupportedMetric(
                    f"its filter takes {match[1]} by the {grain[1] or grain[2]}: write it as a range of dates"
                )
            name = model.column(match[1]) or model.lookup(match[1], self.models)
            if name is None:
                raise UnsupportedMetric(f"its filter is about {match[1]}, which no key leads to")
            return name

        text = REFERENCE.sub(column, template).strip()
        if "{{" in text or "{%" in text:
            raise UnsupportedMetric(f"its filter is a template: {text}")
        return text

    def combined(self, sql: str, parts: Mapping[str, Mapping[str, Any]], one: Mapping[str, Any]) -> Metric:
        """Combine metrics by an expression.

        Metrics over the same rows become one expression, others one query over queries.
        """
        if any(part.get("offset_window") or part.get("offset_to_grain") for part in parts.values()):
            raise UnsupportedMetric("it compares with another time")
        if any(list_filter_templates(part.get("filter")) for part in (*parts.values(), one)):
            raise UnsupportedMetric("it filters other metrics")
        metrics = {alias: self.metric(part["name"]) for alias, part in parts.items()}
        first = next(iter(metrics.values()))
        # Only over the same rows can the parts stand in one SELECT.
        same = all((m.source, tuple(m.where)) == (first.source, tuple(first.where)) and m.sql for m in metrics.values())
        texts = {alias: f"({metric.sql if same else metric.full_query()})" for alias, metric in metrics.items()}
        # Checked before the text is built, for metrics made of metrics grow with each level.
        if len(sql) + sum(len(texts.get(word, "")) for word in re.findall(r"\w+", sql)) > LONGEST:
            raise UnsupportedMetric("it is too long with what it is made of")
        sql = re.sub(r"\w+", lambda match: texts.get(match[0], match[0]), sql)
        if same:
            return replace(first, name=one["name"], sql=sql)
        return Metric(one["name"], query=f"SELECT {sql} AS {make_section_name(one['name'])}")


def list_filter_templates(condition: Mapping[str, Any] | None) -> list[str]:
    """Return the conditions of a filter as the manifest has them."""
    return [str(one["where_sql_template"]) for one in (condition or {}).get("where_filters") or ()]


def import_dbt_manifest(path: Path) -> ImportedDefinitions:
    """Read a ``semantic_manifest.json`` of dbt as definitions.

    Raises:
        SetupError: it is none.
    """
    try:
        content: Value = json.loads(read_definitions_text(path))
        if not (isinstance(content, dict) and "semantic_models" in content):
            raise SetupError(f"{path} is no semantic manifest of dbt (target/semantic_manifest.json).")
        try:
            return convert_dbt_manifest(clean_value(content))
        except SetupError as error:
            raise SetupError(f"{path}: {error}") from error
    except json.JSONDecodeError as error:
        raise SetupError(f"{path} is no JSON: {error}.") from error
    except RecursionError as error:
        raise SetupError(f"{path} is nested too deeply.") from error
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise SetupError(f"{path} is not in the form that it begins with: a part of it is of another kind.") from error
