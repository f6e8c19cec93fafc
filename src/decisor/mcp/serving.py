"""What the tools are served with, and what of it a client may see."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from decisor.budget import Limits
from decisor.errors import SetupError
from decisor.history.past_run import PastRun
from decisor.history.recording import Keeping
from decisor.history.store import History
from decisor.server.places import Places
from decisor.server.users import ANYBODY, User
from decisor.session.data import Data
from decisor.session.keeping import inputs_of
from decisor.session.options import Options
from decisor.session.pool import Pool
from decisor.session.readers import Reader
from decisor.session.recorded import past_result
from decisor.session.result import Result
from decisor.session.sources import Source, Sources

NO_LIMITS = Limits()


@dataclass(frozen=True)
class Serving:
    """``pool``: the data. ``user``: who asks. ``lm``: MODEL[@URL], None for that of the environment. ``limits``: of a
    run. ``history``: where runs are kept. ``places``: how many run at once. ``numbers``: of those that were begun
    here."""

    pool: Pool
    lm: str | None = None
    technique: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = NO_LIMITS
    history: History = field(default_factory=History)
    places: Places = field(default_factory=Places)
    numbers: set[int] = field(default_factory=set)
    user: User = ANYBODY

    @property
    def reader(self) -> Reader:
        """Masked columns stay tokens, also for a user who may see their values: it is an LM that reads what we say."""
        return replace(self.user.reader, reveal=False)

    @property
    def members(self) -> Mapping[str, Sources]:
        """The connections that are the user's."""
        return {name: one for name, one in self.pool.members.items() if self.user.may_use(name)}

    async def data(self, names: Sequence[str]) -> Data:
        """As the user may see them; all of theirs where none is named. Raises SetupError where one is not there, or
        nothing is."""
        members = self.members
        if not members:
            raise SetupError("No data are served: start decisor mcp with --db, --graph or --docs.")
        if unknown := [name for name in names if name not in members]:
            raise SetupError(f"There is no connection {unknown[0]!r:.200}; there is {', '.join(members)}.")
        return await self.pool.data(list(names) or list(members), self.reader)

    async def member(self, name: str) -> Data:
        """One of theirs."""
        return await self.pool.member(name, self.reader)

    def options(self, before: int = 0) -> Options:
        """Of a run. ``before``: the number of the run that it follows."""
        keeping = Keeping(self.history, self.user.name, before=before)
        return Options(
            lm=self.lm, technique=self.technique, settings=self.settings, limits=self.limits, history=keeping
        )

    async def past(self, number: int) -> Result:
        """A run of the history; 0 is the last one that may be read here.

        Raises:
            SetupError: there is none of the number, or it is of data that are not served here.
        """
        most, before = (1, number + 1) if number else (50, 0)
        runs = await asyncio.to_thread(self.history.list, self.user.name, "", most, before)
        for run in runs:
            if (not number or run.number == number) and self.may_read(run):
                return await asyncio.to_thread(past_result, self.history, run)
        if not number:
            raise SetupError("There is no run of these data yet: call decide.")
        last = await self.past(0)
        raise SetupError(f"There is no run {number} of these data; the last one is {last.number}.")

    def may_read(self, run: PastRun) -> bool:
        """Whether everything that a run may have seen is served here too."""
        if run.number in self.numbers:
            return True
        sources = self.pool.sources_of(list(self.members))
        if self.reader.rows or self.reader.mask:
            return False
        if sources.tables or sources.deny_tables or any(map(keeps_back, sources.places)):
            return False
        if run.inputs.left_out or run.inputs.folder != str(Path.cwd()):
            return False
        own = inputs_of(sources, Options())
        return all(
            set(getattr(run.inputs, name)) <= set(getattr(own, name)) for name in ("db", "graph", "docs", "tools")
        )


def keeps_back(source: Source) -> bool:
    """Whether rows or columns of it are not for the client; an earlier run may have seen them."""
    return bool(source.policy or (source.connection and (source.connection.rows or source.connection.mask)))
