"""Definitions that came from another tool's file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar, cast

from decisor.definitions.format import Definitions, Dimension, Entity, Join, Metric
from decisor.definitions.parse import text_of
from decisor.definitions.write import written
from decisor.errors import SetupError
from decisor.outside import one_line
from decisor.tools.functions.openapi_file import DEEP, Copy, Unusable
from decisor.types import Value

Named = TypeVar("Named", Metric, Dimension, Entity, Join)


@dataclass(frozen=True)
class Import:
    """``notes``: what was left out, and why."""

    definitions: Definitions
    notes: Sequence[str] = ()

    def text(self) -> str:
        """As a file, what was left out as comments at its head."""
        return "".join(f"# Left out: {one_line(note, 200)}\n" for note in self.notes) + written(self.definitions)


def imported(path: Path) -> Import:
    """A ``semantic_manifest.json`` of dbt (JSON), or a model of the open semantic interchange (YAML, or JSON).

    Raises:
        SetupError: it is neither, or PyYAML is not there to read it.
    """
    try:
        return read(text_of(path), path)
    except (Unusable, RecursionError) as error:
        raise SetupError(f"{path} cannot be used: {str(error) if isinstance(error, Unusable) else DEEP}.") from error
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise SetupError(f"{path} is not in the form that it begins with: a part of it is of another kind.") from error


def read(text: str, path: Path) -> Import:
    content: Value = None
    if text.lstrip().startswith("{"):
        try:
            content = json.loads(text)
        except ValueError as error:
            raise SetupError(f"{path} is no JSON: {error}.") from error
    if isinstance(content, dict) and "semantic_models" in content:
        from decisor.definitions.dbt import from_manifest

        return from_manifest(Copy().copy(content))
    from decisor.definitions.interchange import from_interchange, read_yaml

    return from_interchange(Copy().copy(cast("Value", read_yaml(text, str(path))) if content is None else content))


def name_of(text: str) -> str:
    """A name that can stand in a section.

    >>> name_of("net revenue (EUR)"), name_of("7 days")
    ('net_revenue_EUR', '_7_days')
    """
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "one"
    return f"_{name}" if name[0].isdigit() else name


def named_once(several: Iterable[Named]) -> list[Named]:
    """Names that come again get a number."""
    names: set[str] = set()
    whole: list[Named] = []
    for one in several:
        name, number = one.name, 2
        while name in names:
            name, number = f"{one.name}_{number}", number + 1
        names.add(name)
        whole.append(one if name == one.name else replace(one, name=name))
    return whole
