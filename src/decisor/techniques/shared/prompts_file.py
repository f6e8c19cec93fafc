"""The prompts of a technique as a file that a person may change: ``decisor prompts plan_rag > mine.toml``.

A prompt is a template or a text of several lines under a name in capitals, in the technique's module or in one of ours
that it uses. ``module.NAME`` names it, ``module.NAME.key`` one of several.
"""

from __future__ import annotations

import string
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from decisor.errors import SetupError
from decisor.parsing.prompting import Asking
from decisor.parsing.toml_reply import format_toml_key, format_toml_value
from decisor.system.settings import setting_fields
from decisor.techniques.shared.presets import get_paper_preset

T = TypeVar("T")
ROOM = "decisor.techniques."
NEEDED = {"question", "tools", "form", "steps", "task", "documents", "evidence"}
"""Places that a prompt which has them cannot do without."""
OWN = ("temperature", "top_p", "prompts", "preset")
"""Settings that every technique has that asks an LLM; where it has one of the name, that is meant."""


def list_prompts(kind: type) -> dict[str, str]:
    """Return the prompts by name, in the order of the modules. A text in several modules has the name of the last.

    >>> from decisor.techniques import find_technique_class
    >>> [name for name in list_prompts(find_technique_class("iter_rag")) if name.startswith("iter_rag")]
    ['iter_rag.SYSTEM', 'iter_rag.FORM', 'iter_rag.SO_FAR', 'iter_rag.NEXT']
    """
    name_of_text: dict[str, str] = {}
    for module in list_technique_modules(sys.modules[kind.__module__]):
        for constant, value in vars(module).items():
            for key, text in iterate_constant_prompts(constant, value) if constant.isupper() else ():
                name_of_text[text] = f"{module.__name__.removeprefix(ROOM)}.{key}"
    return {name: text for text, name in name_of_text.items()}


def list_technique_modules(first: ModuleType) -> list[ModuleType]:
    """List the modules of a technique and, also indirectly, of this package's techniques that it uses."""
    modules = {first.__name__: first}
    waiting = [first]
    # A prompt may be in a module that the technique uses only through another one.
    while waiting:
        for value in vars(waiting.pop(0)).values():
            name = str(getattr(value, "__module__", ""))
            if name.startswith(ROOM) and name not in modules and name in sys.modules:
                modules[name] = sys.modules[name]
                waiting.append(modules[name])
    return list(modules.values())


def iterate_constant_prompts(name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, string.Template):
        yield name, value.template
    elif isinstance(value, str) and "\n" in value and len(value.split()) > 3:
        yield name, value
    elif isinstance(value, Mapping):
        for key, text in value.items():
            if isinstance(key, str) and isinstance(text, str) and "\n" in text:
                yield f"{name}.{key}", text


def format_prompts_file(prompts: Mapping[str, str]) -> str:
    """Format prompts as a file that ``read_prompts`` reads.

    >>> print(format_prompts_file({"plan_rag.NEXT": "Go on.\\n"}))
    "plan_rag.NEXT" = '''
    Go on.
    '''
    """
    return "\n\n".join(f"{format_toml_key(name)} = {format_toml_value(text)}" for name, text in prompts.items())


def read_prompts(path: Path, kind: type, name: str) -> dict[str, str]:
    """Read a file of prompts and map the technique's own texts to the changed ones.

    Raises:
        SetupError: it cannot be read, names no prompt of the technique, or lacks a place that is filled in.
    """
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SetupError(f"Cannot read the prompts {path}: {error}") from error
    ours = list_prompts(kind)
    if unknown := [key for key, text in values.items() if key not in ours or not isinstance(text, str)]:
        raise SetupError(f"{path}: {name} has no prompt {unknown[0]}. It has: decisor prompts {name}")
    for key, text in values.items():
        wants, has = find_placeholders(ours[key]), find_placeholders(text)
        if missing := sorted((wants & NEEDED) - has):
            raise SetupError(f"{path}: {key} lacks ${missing[0]}.")
        if more := sorted(has - wants):
            raise SetupError(f"{path}: {key} has ${more[0]}, which nothing fills in.")
    return {ours[key]: text for key, text in values.items() if text != ours[key]}


def find_placeholders(text: str) -> set[str]:
    """Return the names of the placeholders of a template.

    >>> sorted(find_placeholders("$question and ${left}, for $$5"))
    ['left', 'question']
    """
    return set(string.Template(text).get_identifiers())


def split_asking_settings(kind: type, name: str, settings: Mapping[str, T]) -> tuple[Asking, dict[str, T | str]]:
    """Split settings into ``temperature``, ``top_p`` and ``prompts``, as Asking, and the others.

    ``preset=paper`` stands for the settings of the technique's paper; what is given beside it counts before them.

    Raises:
        SetupError: a value does not fit.
    """
    own = setting_fields(kind) if isinstance(kind, type) else {}
    values: dict[str, T | str] = {**settings}
    words: dict[str, str] = {}
    if "preset" in settings and "preset" not in own:
        preset = get_paper_preset(name, str(values.pop("preset")))
        values = {**preset.settings, **values}
        prompts = list_prompts(kind)
        words = {prompts[prompt]: "" for prompt in preset.left_out}
    own_settings = {key: values[key] for key in OWN if key in values and key not in own}
    if "prompts" in own_settings:
        words |= read_prompts(Path(str(own_settings["prompts"])), kind, name)
    asking = Asking(
        read_sampling_setting("temperature", own_settings, 2.0),
        read_sampling_setting("top_p", own_settings, 1.0),
        words,
    )
    return asking, {key: value for key, value in values.items() if key not in own_settings}


def read_sampling_setting(key: str, settings: Mapping[str, Any], most: float) -> float | None:
    """Read a setting as number, None if not given. Raise SetupError if it is not a number from 0 to ``most``."""
    if key not in settings:
        return None
    try:
        value = float(settings[key])
    except (TypeError, ValueError):
        # Outside of the range, so that it gets the message below.
        value = -1.0
    if not 0.0 <= value <= most:
        raise SetupError(f"{key} is a number from 0 to {most:g}, not {settings[key]!r}.")
    return value
