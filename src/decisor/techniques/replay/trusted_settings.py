"""What a trace may say of the run that goes on from it. A trace may be someone else's."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, get_origin, get_type_hints

from decisor.errors import SetupError
from decisor.settings import settings_of, without_none
from decisor.techniques import TECHNIQUES, kind_of
from decisor.techniques.shared.part_lms import parts_of

NONE: Mapping[str, str] = MappingProxyType({})


def trusted(
    recorded: str, recorded_settings: Mapping[str, str], technique: str = "", settings: Mapping[str, str] = NONE
) -> tuple[str, dict[str, str]]:
    """The technique to go on with, and its settings: a person's ``technique`` and ``settings``, and else those of the
    trace. A trace never names an LM, a host, a path or a module, only what is built in, numbers and choices.

    Raises:
        SetupError: the trace names something else, and the person did not.
    """
    name = technique or built_in(recorded)
    kind = kind_of(name)
    own = not technique or technique == recorded
    from_trace = {key: str(text) for key, text in recorded_settings.items()} if own else {}
    fields, hints = settings_of(kind), get_type_hints(kind)
    for key, text in from_trace.items():
        if key in settings or (key in fields and text == fields[key].default):
            continue
        if (part := key.removesuffix("_lm")) in parts_of(kind) and part != key:
            raise SetupError(f"The trace names an LM for the {part}, {printable(text)}. LMs come from the command line "
                             f"only: give -o {key}=MODEL@URL to use one.")  # fmt: skip
        if key in fields and not harmless(hints[key]):
            raise SetupError(f"The trace sets {key} to {printable(text)}. That comes from the command line only: give "
                             f"-o {key}={printable(text) or '...'} to use it.")  # fmt: skip
    return name, {**from_trace, **settings}


def built_in(name: str) -> str:
    """A technique's name as a file gives it. Raises SetupError where it is none of this package's."""
    if name not in TECHNIQUES:
        raise SetupError(f"The trace names the technique {printable(name)}, which is none of decisor's. Techniques of "
                         "your own come from the command line only: give -t NAME to use one.")  # fmt: skip
    return name


def harmless(kind: object) -> bool:
    """Whether a value of this type names nothing outside: a number, yes or no, or one of some words."""
    kind = without_none(kind)
    return kind in (int, float, bool) or get_origin(kind) is Literal


def printable(text: str) -> str:
    r"""Text of a file, for a line that a person reads: nothing in it steers a terminal.

    >>> printable("m@http://a\x1b[2Jb\u202e")
    'm@http://a[2Jb'
    """
    return "".join(letter for letter in text if letter.isprintable())[:200]
