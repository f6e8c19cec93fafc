"""What a route reaches: the runs, the pool, whose request it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from decisor.server.runs import Runs
from decisor.server.serving import Serving
from decisor.server.stream import Streams
from decisor.server.users import User

if TYPE_CHECKING:
    from decisor.session.pool import Pool


@dataclass(eq=False)
class Here:
    """``cookie``: the name of ours."""

    serving: Serving
    cookie: str
    streams: Streams = field(default_factory=Streams)
    open_runs: Runs | None = None

    @property
    def runs(self) -> Runs:
        assert self.open_runs is not None, "the server has not started"
        return self.open_runs

    @property
    def pool(self) -> Pool:
        return self.runs.pool


async def here(request: Request) -> Here:
    """It waits for nothing: a plain function would be called in a thread, at each request."""
    place: Here = request.app.state.here
    return place


async def user(request: Request) -> User:
    """The guard has let nobody else through."""
    who: User = request.scope["decisor_user"]
    return who


HereNow = Annotated[Here, Depends(here)]
Who = Annotated[User, Depends(user)]
