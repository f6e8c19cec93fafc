"""Definitions that came from another tool's file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from decisor.definitions.dbt import from_manifest
from decisor.definitions.interchange import from_interchange, read_yaml
from decisor.definitions.parse import text_of
from decisor.definitions.write import Import
from decisor.errors import SetupError
from decisor.tools.functions.openapi_file import DEEP, Copy, Unusable
from decisor.types import Value


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
        return from_manifest(Copy().copy(content))
    return from_interchange(Copy().copy(cast("Value", read_yaml(text, str(path))) if content is None else content))
