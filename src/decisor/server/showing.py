"""Runs that their owner shows to other users of the server, who read them, and approve or refuse what was decided."""

from __future__ import annotations

import asyncio

from decisor.decision_record.approving import change_of
from decisor.decision_record.format import DecisionRecord
from decisor.decision_record.of_run import change_approvals
from decisor.errors import SetupError
from decisor.server.asking import chosen
from decisor.server.live import LiveRun
from decisor.server.requests import ReaderBody, RecordApprovalBody
from decisor.server.responses import ReaderList
from decisor.server.runs import NotThere, Runs, number_of
from decisor.server.sight import may_see
from decisor.server.users import User
from decisor.session.verify import Verification, verify


async def read(runs: Runs, user: User, id: str) -> LiveRun:
    """A run of theirs, or one that they are shown and may see all of. Raises NotThere."""
    try:
        return await runs.find(user, id)
    except NotThere:
        if not user.name or not (number := number_of(id)):
            raise
    try:
        owner = await asyncio.to_thread(runs.keeper.history.owner_of, number, user.name)
    except SetupError as error:
        raise NotThere(f"There is no run {id[:80]!r}.") from error
    live = await runs.of_history(number, owner)
    if not may_see(user, live.past.sight, runs.pool):
        raise NotThere(f"{owner} shows you run {number}, and you may not see all that it rests on.")
    return live


async def readers(runs: Runs, user: User, id: str) -> ReaderList:
    """Whom a run of theirs is shown to, and whom it could be."""
    live = await runs.find(user, id)
    names = await asyncio.to_thread(runs.keeper.history.readers, live.past.number, user.name) if live.is_kept else ()
    others = [name for name, other in runs.serving.users.by_name.items()
              if name not in (user.name, *names) and may_see(other, live.past.sight, runs.pool)]  # fmt: skip
    return ReaderList(readers=tuple(names), others=tuple(others))


async def show(runs: Runs, user: User, id: str, body: ReaderBody) -> ReaderList:
    """Another user may read a run of theirs, or no longer. Raises SetupError where that one may not see what it saw."""
    live = await runs.find_kept(user, id)
    other = runs.serving.users.by_name.get(body.name)
    if not body.end and (other is None or body.name == user.name):
        raise SetupError(f"There is no other user {body.name!r}.")
    if not body.end and other is not None and not may_see(other, live.past.sight, runs.pool):
        raise SetupError(f"{body.name} may not see all that this run rests on.")
    await asyncio.to_thread(runs.keeper.history.show, live.past.number, body.name, user.name, body.end)
    if not body.end:
        runs.watchers.tell(body.name, live)
    return await readers(runs, user, id)


async def approve(runs: Runs, user: User, id: str, body: RecordApprovalBody) -> DecisionRecord:
    """A person stands behind a decision, refuses it, or takes that back. Raises SetupError where they may not, or it
    cannot be approved."""
    if user.name and body.by not in ("", user.name):
        raise SetupError(f"You approve as {user.name}, and for nobody else.")
    live = await read(runs, user, id)
    live.check_kept()
    change = change_of(user.name or body.by, body.note, body.withdraw, body.refuse, body.digest)
    return await asyncio.to_thread(change_approvals, runs.keeper.history, live.past.number, live.past.owner, change)


async def verified(runs: Runs, user: User, id: str) -> Verification:
    """A decision computed again on the data of today, as this user may see them."""
    live = await read(runs, user, id)
    names = chosen(live.connections, runs.connections(user))
    runs.places.check()
    async with runs.places:
        return await verify(live.entries, await runs.pool.data(names, user.reader))
