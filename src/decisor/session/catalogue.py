"""The techniques and their settings, as a list for people."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import MISSING, Field, dataclass
from typing import Literal, get_args, get_origin, get_type_hints

from decisor.settings import sayable, settings_of, without_none
from decisor.techniques import TECHNIQUES, kind_of
from decisor.techniques.replay.trusted_settings import harmless
from decisor.techniques.shared.part_lms import parts_of


@dataclass(frozen=True, slots=True)
class Setting:
    """``harmless``: a value names nothing outside; it is a number, yes or no, or one of ``choices``. ``part``: it is
    the LM of a part."""

    name: str
    default: object
    type: str
    harmless: bool = False
    choices: tuple[str, ...] = ()
    part: bool = False


@dataclass(frozen=True, slots=True)
class TechniqueRow:
    """``about`` is the first sentence of its module."""

    name: str
    about: str
    settings: tuple[Setting, ...]


def techniques() -> Sequence[TechniqueRow]:
    return [row_of(name, kind_of(name)) for name in TECHNIQUES]


def row_of(name: str, kind: type) -> TechniqueRow:
    """What only Python can set is left out."""
    about = (inspect.getdoc(inspect.getmodule(kind)) or "").split("\n\n")[0].replace("\n", " ")
    hints = get_type_hints(kind)
    own = [setting_of(one, hints[one.name]) for one in settings_of(kind).values() if sayable(hints[one.name])]
    parts = [Setting(f"{part}_lm", None, "MODEL[@URL]", part=True) for part in parts_of(kind)]
    return TechniqueRow(name, about, (*own, *parts))


def setting_of(field: Field[object], hint: object) -> Setting:
    default = "..." if field.default is MISSING else field.default
    kind = without_none(hint)
    choices = tuple(map(str, get_args(kind))) if get_origin(kind) is Literal else ()
    return Setting(field.name, default, type_name(field.type), harmless(hint), choices)


def type_name(kind: object) -> str:
    """
    >>> type_name("int | None"), type_name(bool)
    ('int | None', 'bool')
    """
    return kind.__name__ if isinstance(kind, type) else str(kind).removeprefix("typing.")
