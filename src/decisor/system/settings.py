"""Settings from text: the fields of a frozen dataclass, as the command line and a suite of an evaluation say them."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType, NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from decisor.errors import SetupError

IMPORT_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
"""``module:Class``."""

TRUTH = {"yes": True, "true": True, "1": True, "on": True, "no": False, "false": False, "0": False, "off": False}


OLD_NAME = re.compile(r"(^|_)lm(?=s?$|_)")


def current_name(name: str) -> str:
    """Return the name that a setting, option or key called ``lm`` has now. To be dropped in the version after next.

    >>> current_name("lm"), current_name("critic_lm"), current_name("film"), current_name("llm")
    ('llm', 'critic_llm', 'film', 'llm')
    """
    return OLD_NAME.sub(r"\1llm", name)


def with_current_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping with its keys as they are called now; raise SetupError if a key is no text."""
    if wrong := [name for name in values if not isinstance(name, str)]:
        raise SetupError(f"Settings and options are named by texts, such as max_steps, not by {wrong[0]!r:.100}.")
    return {current_name(name): value for name, value in values.items()}


def read_variable(environ: Mapping[str, str], name: str) -> str | None:
    """Return an environment variable, also under the name that it had: ``DECISOR_LM`` for ``DECISOR_LLM``."""
    # To be dropped with ``current_name``.
    return environ.get(name) or environ.get(name.replace("LLM", "LM"))


def setting_fields(kind: type) -> dict[str, Field[object]]:
    """Return the fields of a dataclass that are settings; none of a plain class.

    ``name``, and fields that the repr leaves out, are no settings.

    >>> setting_fields(int)
    {}
    """
    if not is_dataclass(kind):
        return {}
    return {field.name: field for field in fields(kind) if field.repr and field.name != "name"}


@cache
def field_types(kind: type) -> Mapping[str, object]:
    """Return the types of a dataclass's fields."""
    return get_type_hints(kind)


def build_from_settings(kind: type, name: str, settings: Mapping[str, str]) -> Any:
    """Build a frozen dataclass from its settings as text.

    Raises:
        SetupError: there is no such setting, one is missing, or a value does not fit it.
    """
    known = setting_fields(kind)
    hints = field_types(kind) if settings else {}
    if unknown := settings.keys() - known.keys():
        there = ", ".join(key for key in known if is_settable_by_text(hints[key])) or "no settings"
        raise SetupError(f"{name} has no {', '.join(sorted(unknown))}; it has {there}.")
    values = {key: read_setting(known[key], hints[key], text) for key, text in settings.items()}
    needed = [key for key, one in known.items() if one.default is MISSING and one.default_factory is MISSING]
    if missing := [key for key in needed if key not in values]:
        raise SetupError(f"{name} needs {', '.join(missing)}: write {name} {missing[0]}=...")
    return kind(**values)


def parse_settings(words: Sequence[str]) -> dict[str, str]:
    """Parse settings given as name=value; raise SetupError for any other text.

    >>> parse_settings(["max_steps=20", "order = paor"])
    {'max_steps': '20', 'order': 'paor'}
    """
    settings = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not (name.strip() and equals):
            raise SetupError(f"A setting is name=value, such as max_steps=20, not {word!r}.")
        settings[name.strip()] = value.strip()
    return settings


def label_with_settings(name: str, instance: object, settings: Mapping[str, str]) -> str:
    """Format a name with the settings that differ from their defaults.

    ``data``, and fields whose metadata say ``unlabelled``, are left out: they change which cases there are, or where
    they are, and nothing of a case.

    >>> from dataclasses import make_dataclass
    >>> kind = make_dataclass("PlanRAG", [("max_steps", int, 15), ("replan", bool, True)])
    >>> label_with_settings("plan_rag", kind(replan=False), {"max_steps": "15", "replan": "no"})
    'plan_rag replan=no'
    """
    known = fields(instance) if is_dataclass(instance) else ()
    defaults = {one.name: one.default for one in known if not one.metadata.get("unlabelled")}
    changes = [
        f"{key}={settings[key]}"
        for key in defaults
        if key in settings and key != "data" and getattr(instance, key) != defaults[key]
    ]
    return " ".join([name, *changes])


def read_setting(field: Field[object], kind: object, text: str) -> Any:
    """Read a setting from its text, by the type of its field. An optional field is read by its other type.

    Raises:
        SetupError: the text does not fit, or the setting is an object that only Python can give.
    """
    if not is_settable_by_text(kind):
        raise SetupError(f"{field.name} can only be set from Python.")
    # The command line has texts only: this is how a person says None.
    if get_origin(kind) in (Union, UnionType) and text.casefold() in ("", "none"):
        return None
    kind = drop_none_type(kind)
    if kind is Path:
        return Path(text).expanduser()
    if get_origin(kind) is Literal:
        if text not in (choices := get_args(kind)):
            raise SetupError(f"{field.name} is one of {', '.join(map(str, choices))}, not {text!r}.")
        return text
    if kind is bool:
        if (word := text.casefold()) not in TRUTH:
            raise SetupError(f"{field.name} is yes or no, not {text!r}.")
        return TRUTH[word]
    if kind not in (int, float):
        return text
    try:
        number = kind(text)
    except ValueError as error:
        raise SetupError(f"{field.name} is a number, not {text!r}.") from error
    # Settings are counts, seconds and shares: a minus is a slip unless the field says otherwise.
    if number < 0 and not field.metadata.get("below_zero"):
        raise SetupError(f"{field.name} cannot be below 0.")
    return number


def is_settable_by_text(kind: object) -> bool:
    """Return whether a text can set a setting of this type; any other is set in Python."""
    kind = drop_none_type(kind)
    return kind in (str, int, float, bool, Path) or get_origin(kind) is Literal


def drop_none_type(kind: object) -> Any:
    """Return the other type of an optional type.

    >>> drop_none_type(int | None), drop_none_type(str)
    (<class 'int'>, <class 'str'>)
    """
    others = [one for one in get_args(kind) if one is not NoneType]
    return others[0] if get_origin(kind) in (Union, UnionType) and len(others) == 1 else kind


def import_named_module(path: str, folder: str = "") -> ModuleType:
    """Import the module of ``module:name``.

    Modules of ``folder``, else the working directory, come first. Only for a path that a person typed.

    Raises:
        SetupError: there is no such module, or it cannot be imported.
    """
    name = path.partition(":")[0]
    if (first := folder or str(Path.cwd())) not in sys.path:
        # A person's module goes before an installed one of the same name.
        sys.path.insert(0, first)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise SetupError(f"{path}: there is no module {error.name} here or among what is installed.") from error
    except Exception as error:
        raise SetupError(f"{path}: {name} cannot be imported: {type(error).__name__}: {error}") from error


def import_class(path: str, folder: str = "") -> type:
    """Import the class that ``module:Class`` names.

    >>> import_class("fractions:Fraction")
    <class 'fractions.Fraction'>

    Raises:
        SetupError: there is no such module or class, or the module cannot be imported.
    """
    if not IMPORT_PATH.fullmatch(path):
        raise SetupError(f"{path!r} is no import path: write module:Class.")
    module_name, _, class_name = path.partition(":")
    module = import_named_module(path, folder)
    kind = getattr(module, class_name, None)
    if not isinstance(kind, type):
        public = {name: value for name, value in vars(module).items() if isinstance(value, type) and name[0] != "_"}
        names = [name for name, value in public.items() if value.__module__ == module_name]
        raise SetupError(f"{path}: there is no class {class_name}; {module_name} has {', '.join(names) or 'none'}.")
    return kind
