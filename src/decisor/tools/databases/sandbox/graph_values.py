"""Nodes, relationships and paths as plain values: one form for all graph engines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def node(labels: Iterable[str], properties: Mapping[str, object]) -> dict[str, object]:
    """
    >>> node(["City"], {"name": "Oslo"})
    {'_labels': ['City'], 'name': 'Oslo'}
    """
    return {"_labels": list(labels), **properties}


def relationship(kind: str, properties: Mapping[str, object]) -> dict[str, object]:
    return {"_type": kind, **properties}


def path(nodes: Iterable[object], relationships: Iterable[object]) -> list[object]:
    """Node, relationship, node, ...

    >>> path("abc", [1, 2])
    ['a', 1, 'b', 2, 'c']
    """
    links = iter(relationships)
    steps: list[object] = []
    for number, stop in enumerate(nodes):
        if number:
            steps.append(next(links, None))
        steps.append(stop)
    return steps
