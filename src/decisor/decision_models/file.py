"""The parser of a decision model's file: every fault is named with its line."""

from __future__ import annotations

from pathlib import Path

from decisor.decision_models.schema import (
    MODEL_FILE,
    SECTIONS,
    DecisionModel,
    Scalar,
    build_model_of_file,
    raise_contradictions,
)
from decisor.errors import SetupError
from decisor.system.structured_files import MAX_CHARS, FileFault, TomlFile, read_text_file

OLD = {"choice", "variable", "require", "take"}
"""Keys by which a file of the second form, which was never released, is known."""
OLD_FORM = (
    "this file is of an older form, without `format = 3`. Write its choice as choice.NAME.rows and choice.NAME.take, "
    "[variable] as [unknown] and [require] as [rule] (docs/decision-models.md)"
)


def read_model_file(path: Path, **parameters: Scalar) -> DecisionModel:
    """Read a model file; raise SetupError, with lines, if it is missing or is no decision model."""
    try:
        return parse_model(read_text_file(path, "a decision model"), **parameters)
    except FileFault as error:
        raise SetupError(f"{path}: {error}") from error


def parse_model(text: str, **parameters: Scalar) -> DecisionModel:
    """Parse the text of a model file. ``parameters`` take the place of the file's own.

    >>> parse_model('format = 3\\ndecide = "a site"\\nchoice.pick.rows = "site"\\n[measure.cost]\\ngoal = "low"')
    Traceback (most recent call last):
    decisor.system.structured_files.FileFault: line 5: measure.cost.goal is to be "min" or "max", not "low".

    Raises:
        FileFault: all faults, with their lines.
    """
    if len(text) > MAX_CHARS:
        raise FileFault([(0, f"a decision model has at most {MAX_CHARS:,} characters")])
    return build_model(TomlFile(text), text, **parameters)


def build_model(toml: TomlFile, text: str, **parameters: Scalar) -> DecisionModel:
    """Build the model of a TOML file; raise FileFault with all faults."""
    if "format" not in toml.content and OLD & toml.content.keys() and not isinstance(toml.content.get("choice"), dict):
        raise FileFault([(1, OLD_FORM)])
    toml.name_sections(*SECTIONS)
    file = toml.decode(MODEL_FILE, "a decision model")
    model = build_model_of_file(file, text, toml.lines, parameters)
    raise_contradictions(model)
    return model
