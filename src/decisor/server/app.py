"""The application: the routes, what their errors look like, and what is opened and closed with them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from decisor.errors import Error, LMError, OutageError, SetupError, ToolError
from decisor.log import logger
from decisor.secrets import redact
from decisor.server import pages
from decisor.server.guard import Guard, Refusal
from decisor.server.here import Here
from decisor.server.hosts import hosts_of
from decisor.server.keeper import Keeper
from decisor.server.places import Full
from decisor.server.responses import Fault
from decisor.server.routes import asking, deciding, describing, drawing, entering, evaluations, reading, recording
from decisor.server.runs import NotThere, Runs
from decisor.server.serving import Serving
from decisor.server.stream import Busy
from decisor.session.pool import pool_of
from decisor.version import __version__

if TYPE_CHECKING:
    from starlette.types import ASGIApp

ABOUT = "Decision questions, answered from data with their evidence. The same functions as `decisor` and the library."
ENTER = "open the address that decisor serve printed, or send it"
FAULTS: dict[int | str, dict[str, Any]] = {status: {"model": Fault} for status in (400, 401, 403, 404, 422, 429)}
STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (NotThere, 404), (Full, 429), (Busy, 429), (ToolError, 400), (SetupError, 400), (OutageError, 424), (LMError, 424),
    (Error, 400),
)  # fmt: skip


def make_app(serving: Serving, here: Here) -> FastAPI:
    """Without the guard, which ``guarded`` puts around it."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with pool_of(serving.sources) as pool:
            keeper = Keeper(serving.history)
            here.open_runs = Runs(serving, pool, keeper)
            writing = asyncio.create_task(keeper.work())
            try:
                yield
            finally:
                await here.open_runs.close()
                writing.cancel()
                await asyncio.wait([writing])
                await keeper.close()

    app = FastAPI(
        title="Decisor", version=__version__, description=ABOUT, lifespan=lifespan, docs_url=None, redoc_url=None,
        responses=FAULTS, generate_unique_id_function=name_of,
    )  # fmt: skip
    app.state.here, app.state.page = here, pages.read_page()
    for kind in (asking, reading, recording, drawing, deciding, evaluations, entering, describing, pages):
        app.include_router(kind.router)
    app.add_exception_handler(RequestValidationError, say_wrong)
    app.add_exception_handler(HTTPException, say_http)
    app.add_exception_handler(Refusal, say_refusal)
    app.add_exception_handler(Exception, say_bug)
    for error, _ in STATUSES:
        app.add_exception_handler(error, say_error)
    return app


def guarded(serving: Serving) -> tuple[ASGIApp, Here]:
    """What a server serves, and what it is made of."""
    here = Here(serving, f"decisor-{serving.port}")
    app = make_app(serving, here)
    hosts = hosts_of(serving.host, serving.port, serving.allow_hosts)
    return Guard(app, hosts, serving.users, ENTER, "/api/", "/api/session", here.cookie), here


def name_of(route: APIRoute) -> str:
    """What a client that is generated calls it."""
    return "_".join([*map(str, route.tags), route.name]).replace(" ", "_")


def fault(status: int, text: str) -> JSONResponse:
    return JSONResponse({"error": text}, status)


async def say_wrong(request: Request, error: Exception) -> JSONResponse:
    """Which field does not fit, and why; what was sent is not sent back."""
    assert isinstance(error, RequestValidationError)
    lines = [f"{'.'.join(map(str, one['loc'][1:])) or 'the body'}: {one['msg']}" for one in error.errors()]
    return fault(422, "; ".join(lines[:5])[:1_000])


async def say_http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)


async def say_refusal(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refusal)
    return fault(error.status, str(error))


async def say_bug(request: Request, error: Exception) -> JSONResponse:
    """The log has where; the client has nothing of it."""
    logger.error("%s %s crashed", request.method, request.url.path, exc_info=error)
    return fault(500, f"It crashed: {type(error).__name__}. The log of the server has more.")


async def say_error(request: Request, error: Exception) -> JSONResponse:
    status = next(status for kind, status in STATUSES if isinstance(error, kind))
    return fault(status, redact(str(error)))
