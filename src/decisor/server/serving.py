"""What a server was started with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from decisor.budget import Limits
from decisor.errors import SetupError
from decisor.history.store import History
from decisor.lms.spec import read_spec
from decisor.secrets import redact
from decisor.server.places import AT_ONCE
from decisor.server.users import User, Users
from decisor.session.sources import Sources

NO_LM = "none"
NOTHING, NO_LIMITS = Sources(), Limits()
Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Serving:
    """``lms``: what an LM is called -> MODEL[@URL]; the first is taken where none is named, that of the environment
    where there are none. ``limits``: the most that a run may take. ``evaluations``: name -> the place of a run store.
    ``at_once``: runs; more wait in line."""

    sources: Sources = NOTHING
    lms: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = NO_LIMITS
    users: Users = field(default_factory=Users)
    evaluations: Mapping[str, str] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int = 8765
    allow_hosts: tuple[str, ...] = ()
    at_once: int = AT_ONCE
    history: History = field(default_factory=History)

    def lm_of(self, name: str) -> str | None:
        """What to open for the name that a client gives; None for that of the environment.

        Raises:
            SetupError: there is no LM of the name.
        """
        if name == NO_LM:
            return NO_LM
        if not name:
            return next(iter(self.lms.values()), None)
        if name not in self.lms:
            raise SetupError(f"There is no LM {name!r:.200}; there is {', '.join([*self.lms, NO_LM])}.")
        return self.lms[name]

    def name_of(self, spec: str) -> str:
        """The name of the LM that this opens; any other text as it is."""
        return next((name for name, own in self.lms.items() if own == spec), spec)

    def limits_of(self, wanted: Limits) -> Limits:
        """The smaller of both.

        >>> Serving(limits=Limits(calls=10, seconds=60.0)).limits_of(Limits(calls=20, tokens=900))
        Limits(calls=10, tokens=900, dollars=None, seconds=60.0, actions=None)
        """
        most = self.limits
        return Limits(least(most.calls, wanted.calls), least(most.tokens, wanted.tokens),
                      least(most.dollars, wanted.dollars), least(most.seconds, wanted.seconds),
                      least(most.actions, wanted.actions))  # fmt: skip


def least(one: Number | None, other: Number | None) -> Number | None:
    return one if other is None else other if one is None else min(one, other)


def names_of_lms(specs: list[str]) -> dict[str, str]:
    """By the name of the model, without its address; a number sets apart two of one name.

    >>> names_of_lms(["qwen@http://localhost:8000/v1 timeout=60", "qwen@http://localhost:9000/v1"])
    {'qwen': 'qwen@http://localhost:8000/v1 timeout=60', 'qwen (2)': 'qwen@http://localhost:9000/v1'}

    Raises:
        SetupError: something that is set for one cannot be.
    """
    names: dict[str, str] = {}
    for spec in specs:
        name = redact(read_spec(spec)[0].partition("@")[0]) or "LM"
        number = 1 + sum(other == name or other.startswith(f"{name} (") for other in names)
        names[name if number == 1 else f"{name} ({number})"] = spec
    return names


def connections_of(user: User, serving: Serving, members: Mapping[str, Sources]) -> tuple[str, ...]:
    """Those that a user may ask of."""
    return tuple(name for name in members if user.may_use(name))
