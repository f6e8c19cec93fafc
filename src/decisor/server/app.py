"""The web application and its server: routes, error replies, the page's files, and the life of the process.

The application opens and closes the pool, the runs and the history with itself; ``guarded_app`` puts the guard around
it. The files of the page are read once at the start; a client names none of them by a path. ``/docs`` describes the
routes of ``/openapi.json`` on one page without scripts. A session exchanges a token, or a sign-in at an identity
provider, for a cookie.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hashlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from importlib.util import find_spec
from pathlib import PurePath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import uvicorn
from fastapi import APIRouter, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from fastapi.responses import Response as ResponsesResponse
from starlette.exceptions import HTTPException

from decisor.errors import Error, LLMError, OutageError, SetupError, ToolError
from decisor.history.place import FolderPlace
from decisor.history.postgres import Unreachable
from decisor.server.connections import BACKLOG, GRACE_SECONDS, MOST_HEAD, ProcessConnection, make_connection_class
from decisor.server.identity import CALLBACK, LOGIN, LOGIN_SECONDS, Refusal
from decisor.server.live import HistoryWriter
from decisor.server.metrics import FOLDER, CountedRequests, Metrics
from decisor.server.requests import TokenBody
from decisor.server.responses import Fault, SessionReply, SignOutReply
from decisor.server.routes import (
    AppState,
    CurrentState,
    ask_router,
    health_router,
    models_router,
    record_router,
    runs_router,
)
from decisor.server.runs import NotThere, Runs
from decisor.server.security import RequestGuard, cookie_of, hosts_of
from decisor.server.settings import Full, ServerSettings, show_log
from decisor.server.stream import Busy
from decisor.server.users import ANYBODY, TOKEN_SECONDS, Session
from decisor.session.pool import open_pool
from decisor.system.extras import import_lab, logger
from decisor.system.secrets import redact
from decisor.system.tasks import RARE_CYCLES, collect_cycles_rarely
from decisor.version import __version__
from decisor.views.markup import Html, csp_hash, join, read_static, tag

if TYPE_CHECKING:
    from starlette.types import ASGIApp


FOREVER = "public, max-age=31536000, immutable"
TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".html": "text/html; charset=utf-8",
}


@dataclass(frozen=True)
class PageFiles:
    """The files of the page."""

    contents: Mapping[str, bytes]
    """Bytes of each file, by name."""
    version: str
    """Hash of all files; it stands in their addresses, so that a browser may keep them for ever."""

    @property
    def html(self) -> str:
        """HTML of the page, with the addresses of this version."""
        return self.contents["index.html"].decode().replace("/static/", f"/static/{self.version}/")


def read_page() -> PageFiles:
    folders = (files(package).joinpath("static") for package in ("decisor.views", "decisor.server"))
    contents = dict(sorted((file.name, file.read_bytes()) for folder in folders for file in folder.iterdir()))
    # Names count too: a file that was only renamed has a new address.
    digest = hashlib.sha256(b"".join(name.encode() + content for name, content in contents.items()))
    return PageFiles(contents, digest.hexdigest()[:16])


page_router = APIRouter(include_in_schema=False)


@page_router.get("/", response_class=HTMLResponse)
@page_router.get("/runs/{id}", response_class=HTMLResponse)
@page_router.get("/runs/{id}/record", response_class=HTMLResponse)
@page_router.get("/compare", response_class=HTMLResponse)
@page_router.get("/models/{name}", response_class=HTMLResponse)
async def show_page(request: Request) -> HTMLResponse:
    """Return the one page; its script reads the address."""
    # The page is fetched anew each time, so that it names the files of this version.
    return HTMLResponse(request.app.state.page.html, headers={"cache-control": "no-cache"})


@page_router.get("/static/{version}/{name:path}")
async def send_page_file(version: str, name: str, request: Request) -> ResponsesResponse:
    own: PageFiles = request.app.state.page
    if name not in own.contents:
        raise NotThere(f"There is no file {name[:80]!r}.")
    # An address of another version gets the file of today, which must not be kept for it.
    keeping = FOREVER if version == own.version else "no-cache"
    return ResponsesResponse(
        own.contents[name], headers={"content-type": TYPES[PurePath(name).suffix], "cache-control": keeping}
    )


@page_router.get("/favicon.ico")
async def send_icon(request: Request) -> ResponsesResponse:
    own: PageFiles = request.app.state.page
    return ResponsesResponse(own.contents["favicon.svg"], media_type=TYPES[".svg"])


docs_router = APIRouter(include_in_schema=False)
STYLE = """
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
code, dt { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
section { border-top: 1px solid var(--line); padding: .5rem 0; }
dl { display: grid; grid-template-columns: minmax(8rem, max-content) 1fr; gap: .1rem 1rem; margin: .3rem 0; }
dd { margin: 0; } h2 { margin-top: 2.5rem; } h3 { font-size: 1rem; margin: .5rem 0; }
"""
Json = Mapping[str, Any]


@docs_router.get("/docs", response_class=HTMLResponse)
async def show_api_docs(request: Request) -> HTMLResponse:
    """Show the description of every route."""
    description: Json = request.app.openapi()
    return plain_page(
        "The API of Decisor",
        tag("h1", f"{description['info']['title']} {description['info']['version']}"),
        tag("p", description["info"]["description"]),
        tag(
            "p",
            "For programs: ",
            tag("a", "openapi.json", href="/openapi.json"),
            ". Bodies are JSON; an error is ",
            tag("code", '{"error": "..."}'),
            ".",
        ),
        tag("h2", "Routes"),
        *routes_html(description),
        tag("h2", "Shapes"),
        *shapes_html(description),
    )


def plain_page(title: str, *parts: Html, status: int = 200) -> HTMLResponse:
    """Return a page without scripts."""
    style = read_static("colours.css") + STYLE
    head = join(
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", Html(style)),
    )
    page = f"<!doctype html>\n{tag('html', tag('head', head), tag('body', tag('main', *parts)), lang='en')}\n"
    # The style is inline: the policy allows it by its hash, and nothing else.
    policy = (
        f"default-src 'none'; style-src '{csp_hash(style)}'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    return HTMLResponse(page, status, headers={"content-security-policy": policy})


def routes_html(description: Json) -> Iterator[Html]:
    for path, methods in description["paths"].items():
        for method, route in methods.items():
            fields = [field_html(one["name"], one["schema"], one["in"]) for one in route.get("parameters", ())]
            body = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            replies = [one for status, one in route["responses"].items() if status.startswith("2")]
            kinds: list[Json] = [kind for one in replies for kind in one.get("content", {}).values()]
            shape: Json = kinds[0].get("schema", {}) if kinds else {}
            yield tag(
                "section",
                tag("h3", tag("code", f"{method.upper()} {path}")),
                tag("p", route.get("description", "")),
                tag("dl", *fields) if fields else None,
                tag("p", "Takes ", type_html(body)) if body else None,
                tag("p", "Gives ", type_html(shape)) if shape else None,
            )


def shapes_html(description: Json) -> Iterator[Html]:
    for name, shape in description["components"]["schemas"].items():
        needed = shape.get("required", ())
        fields = [
            field_html(key, one, "needed" if key in needed else "") for key, one in shape.get("properties", {}).items()
        ]
        words = tag("p", shape["description"]) if "description" in shape else None
        yield tag("section", tag("h3", tag("code", name)), words, tag("dl", *fields), id=name)


def field_html(name: str, shape: Json, note: str) -> Html:
    return join(tag("dt", name), tag("dd", type_html(shape), f" ({note})" if note else ""))


def type_html(shape: Json) -> Html:
    """Return a type in words, with a link if it is one of the shapes."""
    if "$ref" in shape:
        name = shape["$ref"].rpartition("/")[2]
        return tag("a", name, href=f"#{name}")
    if "anyOf" in shape:
        first, *rest = (type_html(one) for one in shape["anyOf"])
        return join(first, *(join(" or ", one) for one in rest))
    if "enum" in shape:
        return join(" or ".join(f'"{one}"' for one in shape["enum"]))
    if shape.get("type") == "array":
        return join("list of ", type_html(shape.get("items", {})))
    return join(str(shape.get("type", "anything")))


session_router = APIRouter(prefix="/api", tags=["session"])


@session_router.post("/session")
async def begin_session(body: TokenBody, state: CurrentState, response: Response) -> SessionReply:
    """Set a cookie of the page that stands for the token; scripts cannot read it."""
    users = state.serving.users
    user = ANYBODY if users.is_open else users.of_token(body.token)
    if user is None:
        raise Refusal(401, "There is no such token.")
    if not users.is_open:
        await set_session_cookie(response, state, Session(user.name, ends=time.time() + TOKEN_SECONDS))
    return SessionReply(user=user.name)


async def set_session_cookie(response: Response, state: AppState, session: Session) -> None:
    # No script can read the cookie (httponly), and no other site can send it (samesite).
    own: dict[str, Any] = {"httponly": True, "samesite": "strict", "secure": state.is_https, "path": "/"}
    seconds = int(session.ends - time.time())
    response.set_cookie(state.cookie, await state.serving.users.sessions.begin(session), max_age=seconds, **own)


@session_router.delete("/session")
async def end_session(request: Request, state: CurrentState, response: Response) -> SignOutReply:
    """End the session; its cookie is worth nothing after that."""
    users = state.serving.users
    session = await users.sessions.end(cookie_of(request.headers.get("cookie", ""), state.cookie))
    response.delete_cookie(state.cookie, path="/")
    address = ""
    if users.login and session:
        with contextlib.suppress(Refusal):  # the session ended, whether or not the provider answers
            address = await users.login.end_address(session.id_token)
    return SignOutReply(address=address)


login_router = APIRouter(include_in_schema=False)


@login_router.get(LOGIN)
async def begin_login(
    state: CurrentState, after: Annotated[str, Query(alias="next", max_length=500)] = "/"
) -> Response:
    """Send a person to the identity provider."""
    if (login := state.serving.users.login) is None:
        raise NotThere("Nobody signs in here: this server knows tokens alone.")
    try:
        address, cookie = await login.begin(after)
    except Refusal as refusal:
        return refusal_page(refusal)
    response = RedirectResponse(address, 303)
    # Lax, for the browser comes back from another site; what it holds is of this sign-in alone.
    own: dict[str, Any] = {"httponly": True, "samesite": "lax", "secure": state.is_https, "path": LOGIN}
    response.set_cookie(f"{state.cookie}-login", cookie, max_age=LOGIN_SECONDS, **own)
    return response


@login_router.get(CALLBACK)
async def finish_login(request: Request, state: CurrentState) -> Response:
    """Begin the session of a person whom the identity provider sends back."""
    if (login := (users := state.serving.users).login) is None:
        raise NotThere("Nobody signs in here: this server knows tokens alone.")
    cookie = cookie_of(request.headers.get("cookie", ""), f"{state.cookie}-login")
    try:
        person, id_token, after = await login.finish(request.query_params, cookie)
        users.person(person)
        response: Response = RedirectResponse(after, 303)
        ends = time.time() + 3600 * login.hours
        await set_session_cookie(response, state, Session(person.name, person.groups, ends, id_token))
    except Refusal as refusal:
        response = refusal_page(refusal)
    # One sign-in, one answer: the same address again finds no cookie.
    response.delete_cookie(f"{state.cookie}-login", path=LOGIN)
    return response


def refusal_page(refusal: Refusal) -> HTMLResponse:
    """Return a page that says why a person is not signed in."""
    again = tag("p", tag("a", "Sign in again", href=LOGIN))
    return plain_page(
        "Decisor", tag("h1", "You are not signed in"), tag("p", str(refusal)), again, status=refusal.status
    )


ABOUT = "Decision questions, answered from data with their evidence. The same functions as `decisor` and the library."
ENTER = "open the address that decisor serve printed, or send it"
FAULTS: dict[int | str, dict[str, Any]] = {status: {"model": Fault} for status in (400, 401, 403, 404, 422, 429)}
# The first class that fits counts, so Error stands last.
STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (NotThere, 404),
    (Unreachable, 503),
    (Full, 429),
    (Busy, 429),
    (ToolError, 400),
    (SetupError, 400),
    (OutageError, 424),
    (LLMError, 424),
    (Error, 400),
)


@asynccontextmanager
async def open_server(state: AppState) -> AsyncIterator[None]:
    """Open the data, the history and the line of runs of a server for the block."""
    serving = state.serving
    async with open_pool(serving.sources) as pool:
        keeper = HistoryWriter(serving.history)
        runs = state.open_runs = Runs(serving, pool, keeper, state.metrics)
        writing = [asyncio.create_task(work) for work in (keeper.work(), runs.budgets.work(), runs.close_idle())]
        try:
            async with open_line(runs):
                yield
        finally:
            # The order matters: runs still write to the history, and both use the pool.
            await runs.close()
            for task in writing:
                task.cancel()
            await asyncio.wait(writing)
            with contextlib.suppress(SetupError):
                await runs.budgets.store(set())
            await keeper.close()


def make_app(state: AppState, routers: Sequence[APIRouter] = ()) -> FastAPI:
    """Build the application without the guard, which ``guarded_app`` puts around it. routers: of rooms above."""

    app = FastAPI(
        title="Decisor",
        version=__version__,
        description=ABOUT,
        lifespan=lambda app: open_server(state),
        # FastAPI's own pages load scripts from another host; /docs is ours.
        docs_url=None,
        redoc_url=None,
        responses=FAULTS,
        # Names for generated clients.
        generate_unique_id_function=lambda route: "_".join([*map(str, route.tags), route.name]).replace(" ", "_"),
    )
    app.state.decisor, app.state.page = state, read_page()
    for router in (
        *(ask_router, runs_router, record_router, models_router, *routers),
        *(session_router, login_router, health_router, docs_router, page_router),
    ):
        app.include_router(router)
    app.add_exception_handler(RequestValidationError, reply_invalid_request)
    app.add_exception_handler(HTTPException, reply_http_error)
    app.add_exception_handler(Refusal, reply_error)
    app.add_exception_handler(Exception, reply_crash)
    for error, _ in STATUSES:
        app.add_exception_handler(error, reply_error)
    return app


@asynccontextmanager
async def open_line(runs: Runs) -> AsyncIterator[None]:
    """Take runs from the line of all processes within the block, if the history is one of several processes."""
    place = runs.serving.history.place
    if isinstance(place, FolderPlace):
        yield
        return
    from decisor.history.postgres import PostgresPlace
    from decisor.server.jobs import ProcessLine

    assert isinstance(place, PostgresPlace)
    runs.jobs = jobs = ProcessLine(runs, place)
    await jobs.open()
    try:
        yield
    finally:
        await runs.close()
        await jobs.close()


def guarded_app(serving: ServerSettings, routers: Sequence[APIRouter] = ()) -> tuple[ASGIApp, AppState]:
    """Return the guarded application and its state."""
    # Asked for by name, for the package looks for the folder of several processes when it is imported.
    metrics = Metrics(serving.at_once) if find_spec("prometheus_client") else None
    state = AppState(serving, f"decisor-{serving.port}", metrics)
    app = make_app(state, routers)
    login = serving.users.login
    own = [urlsplit(login.address).netloc] if login else []
    hosts = hosts_of(serving.host, serving.port, (*serving.allow_hosts, *own))
    files = "/api/files/" if serving.takes_files else ""
    inside = ("/api/", "/metrics")
    guard = RequestGuard(app, hosts, serving.users, ENTER, inside, "/api/session", state.cookie, files)
    return CountedRequests(guard, metrics) if metrics else guard, state


def fault_response(status: int, text: str) -> JSONResponse:
    return JSONResponse({"error": text}, status)


async def reply_invalid_request(request: Request, error: Exception) -> JSONResponse:
    """Reply with the fields that do not fit, and why. The values that were sent are not sent back."""
    assert isinstance(error, RequestValidationError)
    lines = [f"{'.'.join(map(str, one['loc'][1:])) or 'the body'}: {one['msg']}" for one in error.errors()]
    return fault_response(422, "; ".join(lines[:5])[:1_000])


async def reply_http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)


async def reply_crash(request: Request, error: Exception) -> JSONResponse:
    """Reply that the request crashed, without details; the log has them."""
    logger.error("%s %s crashed", request.method, request.url.path, exc_info=error)
    return fault_response(500, f"It crashed: {type(error).__name__}. The log of the server has more.")


async def reply_error(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, Refusal):
        return fault_response(error.status, str(error))
    status = next(status for kind, status in STATUSES if isinstance(error, kind))
    return fault_response(status, redact(str(error)))


KEEP_SECONDS = 75
UNRESPONSIVE_SECONDS = 15
"""After how long a process that answers nothing is replaced."""


class WebServer(uvicorn.Server):
    """A uvicorn server of the page and its API.

    ``ready`` is called when it answers. At the first signal it ends its runs and streams, and waits for nothing.
    """

    def __init__(self, config: uvicorn.Config, state: AppState, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.state, self.ready = state, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Streams end with their runs, and uvicorn waits for open responses.
        await self.state.runs.close()
        await super().shutdown(sockets)


def bind_socket(host: str, port: int) -> socket.socket:
    """Bind a socket to a host and port; port 0 takes any free one.

    Raises:
        SetupError: it cannot, as where another server listens.
    """
    try:
        (family, _, _, _, address), *_ = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        with contextlib.ExitStack() as stack:
            listening = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
            # The port of a server that just ended is held for a while (TIME_WAIT).
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            # From here on the socket is the caller's.
            stack.pop_all()
    except OSError as error:
        why = error.strerror or str(error)
        raise SetupError(f"Cannot listen on {host}, port {port}: {why}. Take another with --port.") from error
    return listening


def make_web_server(serving: ServerSettings, ready: Callable[[], None], routers: Sequence[APIRouter] = ()) -> WebServer:
    app, state = guarded_app(serving, routers)
    return WebServer(make_uvicorn_config(app, http=make_connection_class()), state, ready)


def make_uvicorn_config(app: Any, **own: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        server_header=False,
        date_header=False,
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=GRACE_SECONDS,
        h11_max_incomplete_event_size=MOST_HEAD,
        # X-Forwarded-For and the like are anybody's to send.
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_SECONDS,
        **own,
    )


def make_process_app(serving: ServerSettings) -> ASGIApp:
    """Build the application of one process of several."""
    show_log(serving.log)
    gc.set_threshold(*RARE_CYCLES)
    with contextlib.suppress(SetupError):
        return guarded_app(serving, [import_lab("evaluation_pages", "--evaluation").router])[0]
    return guarded_app(serving)[0]


def run_web_processes(serving: ServerSettings, listening: socket.socket, count: int, ready: Callable[[], None]) -> None:
    """Serve with several processes until Ctrl-C or SIGTERM. One that dies is replaced; SIGHUP replaces one by one."""
    from uvicorn.supervisors import Multiprocess

    app = partial(make_process_app, serving)
    config = make_uvicorn_config(
        app, factory=True, http=ProcessConnection, workers=count, timeout_worker_healthcheck=UNRESPONSIVE_SECONDS
    )
    listening.listen(BACKLOG)
    with TemporaryDirectory(prefix="decisor-metrics-") as folder:
        os.environ.setdefault(FOLDER, folder)
        ready()
        Multiprocess(config, [listening]).run()


def run_web_server(
    serving: ServerSettings, listening: socket.socket, ready: Callable[[], None], routers: Sequence[APIRouter] = ()
) -> None:
    """Serve until Ctrl-C or SIGTERM. ``serving`` has the port of the socket; routers: of rooms above."""
    show_log(serving.log)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with contextlib.suppress(KeyboardInterrupt), collect_cycles_rarely():
        make_web_server(serving, ready, routers).run(sockets=[listening])


def run_worker(serving: ServerSettings) -> None:
    """Do runs of the line until Ctrl-C or SIGTERM, without a page."""

    async def work() -> None:
        async with open_server(AppState(serving, "")):
            await asyncio.Event().wait()

    show_log(serving.log)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    with contextlib.suppress(KeyboardInterrupt), collect_cycles_rarely():
        asyncio.run(work())
