"""Import definitions from another tool's file."""

from __future__ import annotations

import json
from pathlib import Path

from decisor.definitions.dbt import from_manifest
from decisor.definitions.parse import text_of
from decisor.definitions.write import Import
from decisor.errors import SetupError
from decisor.outside import clean_value
from decisor.types import Value


def imported(path: Path) -> Import:
    """Read a ``semantic_manifest.json`` of dbt as definitions.

    Raises:
        SetupError: it is none.
    """
    try:
        content: Value = json.loads(text_of(path))
        if not (isinstance(content, dict) and "semantic_models" in content):
            raise SetupError(f"{path} is no semantic manifest of dbt (target/semantic_manifest.json).")
        return from_manifest(clean_value(content))
    except json.JSONDecodeError as error:
        raise SetupError(f"{path} is no JSON: {error}.") from error
    except RecursionError as error:
        raise SetupError(f"{path} is nested too deeply.") from error
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise SetupError(f"{path} is not in the form that it begins with: a part of it is of another kind.") from error
