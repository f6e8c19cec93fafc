"""Which technique decides, with which LM, from what a person named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass, replace
from typing import Any

from decisor.asking import USUAL, Asking
from decisor.calling import Calling, split_calling
from decisor.errors import SetupError
from decisor.lms.spec import LMSpec
from decisor.run import Technique
from decisor.secrets import redact
from decisor.session.decide import NAME_ONE
from decisor.session.lms import LMs
from decisor.settings import build, settings_of
from decisor.techniques import TECHNIQUES, asks_lm, kind_of
from decisor.techniques.shared.part_lms import lm_settings, with_lms
from decisor.techniques.shared.prompts import asking_of
from decisor.types import LM

AUTO, EXACT = "auto", "exact"
DEFAULT = "plan_rag"
TEXTS = (str, int, float, bool, type(None))


@dataclass(frozen=True)
class Choice:
    """``name``: of the technique. ``settings``: as a trace holds them. ``by_name``: a person named it.
    ``calling``: in which way replies are asked for; ``asking``: at which temperature, and in which words."""

    name: str
    technique: Technique
    lm: LM | None
    settings: Mapping[str, str]
    by_name: bool = True
    calling: Calling = "auto"
    asking: Asking = USUAL


async def choose(
    technique: Technique | str, settings: Mapping[str, object], lm: LM | LMSpec | str | None, lms: LMs
) -> Choice:
    """``technique`` '' is plan_rag, or exact where there is no LM.

    Raises:
        SetupError: there is no such technique, setting or LM, or the technique asks an LM and there is none.
    """
    calling, own = split_calling(settings, "auto")
    name = typed = technique if isinstance(technique, str) else name_of(technique)
    asks = not name or asks_lm(kind_of(technique) if isinstance(technique, str) else technique)
    model = await lms.get(lm) if asks else None
    if model is None and name in ("", AUTO):
        name = technique = EXACT
    elif model is None and asks:
        raise SetupError(f"{name} asks an LM, and there is none: {NAME_ONE}.")
    name = name or DEFAULT
    kind = kind_of(name) if isinstance(technique, str) else type(technique)
    asking, own = asking_of(kind, name, own)
    loop = await technique_of(name if isinstance(technique, str) else technique, own, lms)
    texts = {key: redact(str(getattr(value, "name", value))) for key, value in settings.items()}
    return Choice(name, loop, model, texts, by_name=name == typed, calling=calling, asking=asking)


async def technique_of(technique: Technique | str, settings: Mapping[str, Any], lms: LMs) -> Technique:
    """A technique by its name or as an object, with its settings. One that ends in ``_lm`` is the LM of a part, as
    MODEL[@URL] or as an object: ``critic_lm``, ``judge_lm``.

    Raises:
        SetupError: there is no such technique, setting or LM, or a value does not fit.
    """
    kind = kind_of(technique) if isinstance(technique, str) else type(technique)
    parts = lm_settings(kind) if is_dataclass(kind) else {}
    own = {key: value for key, value in settings.items() if key not in parts}
    if isinstance(technique, str):
        texts = {key: str(value) for key, value in own.items() if isinstance(value, TEXTS)}
        objects = {key: value for key, value in own.items() if key not in texts}
        loop: Any = with_objects(technique, build(kind, technique, texts), objects)
    elif own:
        raise SetupError(f"Settings are for a technique that is named: set {', '.join(own)} of yours itself.")
    else:
        loop = technique
    experts = {parts[key]: await lms.part(key, value) for key, value in settings.items() if key in parts}
    return with_lms(loop, experts) if experts else loop


def with_objects(name: str, loop: Any, objects: Mapping[str, Any]) -> Any:
    """The technique with settings that only Python can give."""
    there = settings_of(type(loop))
    if unknown := objects.keys() - there:
        raise SetupError(f"{name} has no {', '.join(sorted(unknown))}; it has {', '.join(sorted(there))}.")
    return replace(loop, **objects) if objects else loop


def name_of(technique: Technique) -> str:
    """What a trace calls a technique that was given as an object: its name here, or its import path."""
    kind = technique if hasattr(technique, "__qualname__") else type(technique)
    module = kind.__module__
    last = module.rpartition(".")[2]
    ours = module.startswith("decisor.techniques.") and last in TECHNIQUES
    return last if ours else f"{module}:{kind.__qualname__}"
