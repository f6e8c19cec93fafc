"""A graph with too many labels to show whole, within a budget of tokens: the labels that fit the question best with
their properties and the relationships among them, the rest by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from decisor.calls.estimates import tokens_in
from decisor.outside import one_line
from decisor.tools.databases.cypher_schema import GraphSchema, name_of, render
from decisor.tools.databases.schema_index import SchemaIndex
from decisor.tools.databases.sql_brief import BUDGET

NAME_CHARS = 40
SHARE = 0.9
"""Of the budget, for what is shown with properties; the rest is for names."""
HOW = (
    "It has {count} labels; those that fit the question best are shown. Other inputs: `describe LABEL` shows all of a "
    "label or type, `find WORDS` says which labels, properties and stored values have them."
)


def brief(schema: GraphSchema, index: SchemaIndex, question: str, budget: int = BUDGET) -> str:
    """The whole schema where the budget suffices. ``index``: of its labels, and more."""
    text = render(schema)
    if tokens_in(text) <= budget:
        return text
    labels = [name for name in ranked(index, question) if name in schema.labels]
    how = HOW.format(count=len(labels))
    budget -= tokens_in(how)
    low, high = 0, len(labels)
    while low < high:  # the most labels that fit
        middle = (low + high + 1) // 2
        if tokens_in(render(part(schema, labels[:middle]))) <= budget * SHARE:
            low = middle
        else:
            high = middle - 1
    view = part(schema, labels[:low])
    left = budget - tokens_in(render(view)) - 30
    lines = [how, render(view), *rest(f"{len(labels) - low} more labels", labels[low:], left / 2)]
    types = [kind for kind in schema.types if kind not in view.types]
    return "\n".join([*lines, *rest(f"{len(types)} more relationship types", types, left / 2)])


def ranked(index: SchemaIndex, question: str) -> Iterator[str]:
    """Names, the best fit first: labels that a relationship ties lend to each other; its type is a word of both."""
    for fit in index.rank(question):
        for number in fit.family.tables:
            yield index.tables[number].name


def part(schema: GraphSchema, labels: Sequence[str]) -> GraphSchema:
    """The graph of these labels alone."""
    there = set(labels)
    links = {link: count for link, count in schema.links.items() if link[0] in there and link[2] in there}
    kinds = {f"[{kind}]" for _, kind, _ in links}
    return replace(
        schema, labels={label: schema.labels[label] for label in labels}, links=links,
        edges={link: edge for link, edge in schema.edges.items() if link in links},
        properties={name: infos for name, infos in schema.properties.items() if name in there | kinds},
    )  # fmt: skip


def rest(what: str, names: Sequence[str], tokens: float) -> list[str]:
    """Names alone, as many as there is room for."""
    texts: list[str] = []
    for name in names:
        text = one_line(name_of(name), NAME_CHARS)
        tokens -= tokens_in(text + ", ") + 1
        if tokens < 0:
            break
        texts.append(text)
    more = ", ..." if len(texts) < len(names) else ""
    return [f"{what}: {', '.join(texts)}{more}" if texts else f"{what}."] if names else []
