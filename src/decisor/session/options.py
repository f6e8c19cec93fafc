"""The options of ``ask``, and whether they can be used."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Mapping
from os import PathLike
from typing import Any, TypedDict, get_args

from decisor.budget import Limits
from decisor.definitions.readings.open import Interpreter, Readings
from decisor.errors import SetupError
from decisor.history.recording import Keeping
from decisor.lms.spec import LMSpec
from decisor.run import Technique
from decisor.trace.events import Entry
from decisor.trace.writing import Writing
from decisor.types import LM, Action


class Options(TypedDict, total=False):
    """How a question is asked. Every one may be left out.

    ``rules``: what it is decided by, and ``goal``: what is to be reached, in words. ``lm``: ``"MODEL[@URL]"``,
    with settings (``"m@URL timeout=900 context=8192"``) or as ``LMSpec``, ``"none"``, or any object with ``name`` and
    ``complete``. ``technique``: a name (``"plan_rag"``), an import path
    (``"module:Class"``), or the object; ``settings``: its fields, ``calling`` (text,
    json, tools, auto), and the LMs of its parts (``{"critic_lm": ...}``).
    ``on_event`` gets each ``Entry`` of the trace as it happens; ``trace``: a file that it is written to. ``on_text``
    gets a ``Writing`` again and again while the LM writes a reply, which is streamed then. ``approve`` is awaited with
    each ``Action`` on the data before it is done: '' lets it be done, any other text is why not. ``history``: whether
    the run is kept, as ``decisor history`` lists it; a ``Keeping`` says in which history, and whose it is.
    ``max_scan``: rows (``"5M"``) or bytes (``"2GB"``) that one SQL query may read, where its engine tells ahead.
    ``readings``: whether an LM judges if the question can be read in two ways (where rules suspect it: auto; always;
    off); ``reader`` is awaited with an ``OpenReading`` and says which is meant. Without one, or where it says '', both
    are computed.
    """

    rules: str
    goal: str
    lm: LM | LMSpec | str | None
    technique: Technique | str
    settings: Mapping[str, Any]
    limits: Limits
    on_event: Callable[[Entry], None]
    on_text: Callable[[Writing], None]
    trace: str | PathLike[str] | None
    approve: Callable[[Action], Awaitable[str]]
    history: bool | Keeping
    max_scan: str | int
    readings: Readings
    reader: Interpreter | None


def check_options(options: Mapping[str, object]) -> None:
    """Raises SetupError where there is no such option, or a value is none that it takes."""
    for name, value in options.items():
        if name not in Options.__annotations__:
            near = difflib.get_close_matches(name, Options.__annotations__, 1)
            hint = f" Did you mean {near[0]}?" if near else f" There is {', '.join(Options.__annotations__)}."
            raise SetupError(f"There is no option {name}.{hint}")
        fits, form = FORMS[name]
        if not fits(value):
            raise SetupError(f"{name} takes {form}, not {value!r:.100}.")


def is_text(value: object) -> bool:
    return isinstance(value, str)


def is_place(value: object) -> bool:
    return value is None or isinstance(value, str | PathLike)


def is_lm(value: object) -> bool:
    return value is None or isinstance(value, str | LMSpec) or (hasattr(value, "name") and hasattr(value, "complete"))


FORMS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "rules": (is_text, "a text"),
    "goal": (is_text, "a text"),
    "lm": (is_lm, '"MODEL[@URL]", LMSpec(...), "none", or an object with name and complete'),
    "technique": (lambda value: isinstance(value, str) or callable(value), 'a name, "module:Class", or the object'),
    "settings": (lambda value: isinstance(value, Mapping), 'names with values, such as {"max_steps": 20}'),
    "limits": (lambda value: isinstance(value, Limits), "decisor.Limits(calls=..., tokens=..., seconds=...)"),
    "on_event": (callable, "a function"),
    "on_text": (callable, "a function"),
    "trace": (is_place, "a path"),
    "approve": (callable, "an async function"),
    "max_scan": (lambda value: isinstance(value, str | int), 'rows or bytes, such as "5M" or "2GB"'),
    "history": (lambda value: isinstance(value, bool | Keeping), "True or False"),
    "readings": (lambda value: value in get_args(Readings), "auto, always or off"),
    "reader": (lambda value: value is None or callable(value), "an async function"),
}
