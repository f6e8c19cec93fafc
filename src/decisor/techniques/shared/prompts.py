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

from decisor.asking import Asking
from decisor.errors import SetupError
from decisor.settings import settings_of

T = TypeVar("T")
ROOM = "decisor.techniques."
NEEDED = {"question", "tools", "form", "steps", "task", "documents", "evidence"}
"""Places that a prompt which has them cannot do without."""
OWN = ("temperature", "top_p", "prompts")
"""Settings that every technique has that asks an LM; where it has one of the name, that is meant."""


def prompts_of(kind: type) -> dict[str, str]:
    """Return the prompts by name, in the order of the modules. One text is named by the last module.

    >>> from decisor.techniques import kind_of
    >>> [name for name in prompts_of(kind_of("iter_rag")) if name.startswith("iter_rag")]
    ['iter_rag.SYSTEM', 'iter_rag.FORM', 'iter_rag.SO_FAR', 'iter_rag.NEXT']
    """
    name_of_text: dict[str, str] = {}
    for module in modules_of(sys.modules[kind.__module__]):
        for constant, value in vars(module).items():
            for key, text in texts_of(constant, value) if constant.isupper() else ():
                name_of_text[text] = f"{module.__name__.removeprefix(ROOM)}.{key}"
    return {name: text for text, name in name_of_text.items()}


def modules_of(first: ModuleType) -> list[ModuleType]:
    """A technique's module and those of ours that it uses, and they use."""
    modules = {first.__name__: first}
    waiting = [first]
    while waiting:
        for value in vars(waiting.pop(0)).values():
            name = str(getattr(value, "__module__", ""))
            if name.startswith(ROOM) and name not in modules and name in sys.modules:
                modules[name] = sys.modules[name]
                waiting.append(modules[name])
    return list(modules.values())


def texts_of(name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, string.Template):
        yield name, value.template
    elif isinstance(value, str) and "\n" in value and len(value.split()) > 3:
        yield name, value
    elif isinstance(value, Mapping):
        for key, text in value.items():
            if isinstance(key, str) and isinstance(text, str) and "\n" in text:
                yield f"{name}.{key}", text


def as_toml(prompts: Mapping[str, str]) -> str:
    """A file that ``read_prompts`` reads.

    >>> print(as_toml({"plan_rag.NEXT": "Go on.\\n"}))
    "plan_rag.NEXT" = '''
    Go on.
    '''
    """
    return "\n\n".join(f'"{name}" = {quoted(text)}' for name, text in prompts.items())


def quoted(text: str) -> str:
    if "'''" in text:
        escaped = text.replace("\\", "\\\\").replace('"""', '""\\"')
        return f'"""\n{escaped}"""'
    return f"'''\n{text}'''"


def read_prompts(path: Path, kind: type, name: str) -> dict[str, str]:
    """What stands in the place of each prompt that the file changes, by the technique's own text.

    Raises:
        SetupError: it cannot be read, names no prompt of the technique, or lacks a place that is filled in.
    """
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SetupError(f"Cannot read the prompts {path}: {error}") from error
    ours = prompts_of(kind)
    if unknown := [key for key, text in values.items() if key not in ours or not isinstance(text, str)]:
        raise SetupError(f"{path}: {name} has no prompt {unknown[0]}. It has: decisor prompts {name}")
    for key, text in values.items():
        wants, has = places(ours[key]), places(text)
        if missing := sorted((wants & NEEDED) - has):
            raise SetupError(f"{path}: {key} lacks ${missing[0]}.")
        if more := sorted(has - wants):
            raise SetupError(f"{path}: {key} has ${more[0]}, which nothing fills in.")
    return {ours[key]: text for key, text in values.items() if text != ours[key]}


def places(text: str) -> set[str]:
    """
    >>> sorted(places("$question and ${left}, for $$5"))
    ['left', 'question']
    """
    return set(string.Template(text).get_identifiers())


def asking_of(kind: type, name: str, settings: Mapping[str, T]) -> tuple[Asking, dict[str, T]]:
    """The settings ``temperature``, ``top_p`` and ``prompts``, and the others.

    Raises:
        SetupError: a value does not fit.
    """
    own = settings_of(kind) if isinstance(kind, type) else {}
    own_settings = {key: settings[key] for key in OWN if key in settings and key not in own}
    words = read_prompts(Path(str(own_settings["prompts"])), kind, name) if "prompts" in own_settings else {}
    asking = Asking(number("temperature", own_settings, 2.0), number("top_p", own_settings, 1.0), words)
    return asking, {key: value for key, value in settings.items() if key not in own_settings}


def number(key: str, settings: Mapping[str, Any], most: float) -> float | None:
    """Raises SetupError where it is none from 0 to ``most``."""
    if key not in settings:
        return None
    try:
        value = float(settings[key])
    except (TypeError, ValueError):
        value = -1.0
    if not 0.0 <= value <= most:
        raise SetupError(f"{key} is a number from 0 to {most:g}, not {settings[key]!r}.")
    return value
