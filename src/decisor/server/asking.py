"""From what a client sends to the options of a question. It chooses among what is there, and sets numbers; it names
no file, no module and no address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from decisor.budget import Limits
from decisor.calling import CALLINGS
from decisor.errors import SetupError
from decisor.server.requests import ChangeBody, HowToRun, LimitsBody, Setting
from decisor.server.serving import Serving
from decisor.session.catalogue import TechniqueRow, techniques
from decisor.session.options import Options
from decisor.techniques import TECHNIQUES
from decisor.techniques.replay.edits import Edit


@cache
def rows() -> Mapping[str, TechniqueRow]:
    return {row.name: row for row in techniques()}


def options_of(body: HowToRun, serving: Serving) -> Options:
    """Raises SetupError where there is no such LM."""
    return Options(lm=serving.lm_of(body.lm), limits=serving.limits_of(limits_of(body.limits)))


def limits_of(body: LimitsBody) -> Limits:
    return Limits(body.calls, body.tokens, body.dollars, body.seconds, body.actions)


def check_technique(name: str) -> str:
    """'' for the usual one. Raises SetupError where it is none of ours."""
    if name and name not in TECHNIQUES:
        raise SetupError(f"There is no technique {name!r:.200}; there is {', '.join(TECHNIQUES)}.")
    return name


def settings_of(technique: str, settings: Mapping[str, Setting], serving: Serving) -> dict[str, str]:
    """As text, as the command line has them.

    Raises:
        SetupError: there is no such setting, it may not be set from here, or an LM is none of the server's.
    """
    if not settings:
        return {}
    if not technique:
        raise SetupError("Settings are of a technique: name one.")
    known = {one.name: one for one in rows()[technique].settings}
    values: dict[str, str] = {}
    for name, value in settings.items():
        one = known.get(name)
        if (name == "calling" and value in CALLINGS) or (
            name in ("temperature", "top_p") and one is None and is_number(value)
        ):
            values[name] = str(value)
        elif one is not None and one.part:
            values[name] = part_lm(name, value, serving)
        elif one is not None and one.harmless:
            values[name] = in_words(value)
        else:
            there = [key for key, other in known.items() if other.harmless or other.part]
            raise SetupError(
                f"{technique} has no {name!r:.200} to be set from here; it has {', '.join(there) or 'none'}."
            )
    return values


def part_lm(name: str, value: Setting, serving: Serving) -> str:
    lm = serving.lm_of(value) if isinstance(value, str) and value else None
    if lm is None:
        raise SetupError(f"{name} takes the name of an LM: {', '.join(serving.lms) or 'none is named here'}.")
    return lm


def is_number(value: Setting) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def in_words(value: Setting) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def edit_of(body: ChangeBody) -> Edit:
    return Edit(body.at, body.answer, body.ask, body.context or "", body.thought or "", body.action, body.observation,
                body.plan)  # fmt: skip


def chosen(names: Sequence[str], there: Sequence[str]) -> tuple[str, ...]:
    """All where none is named. Raises SetupError where one is not there, or none is."""
    if unknown := [name for name in names if name not in there]:
        raise SetupError(f"There is no connection {unknown[0]!r:.200}; there is {', '.join(there) or 'none'}.")
    if not there:
        raise SetupError("There is nothing to ask of: start the server with --db, --graph or --docs.")
    return tuple(dict.fromkeys(names)) or tuple(there)
