"""``decisor serve`` and ``decisor mcp``: the page and its API, and the tools of the Model Context Protocol.

``decisor serve`` runs until Ctrl-C. An MCP client starts ``decisor mcp``, or calls it over HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from decisor.cli.output import print_folder_file
from decisor.cli.request_options import DATA, takes_request
from decisor.errors import SetupError
from decisor.session.config import Config, resolve_config
from decisor.session.request import AskRequest
from decisor.system.extras import import_lab, require_package

if TYPE_CHECKING:
    from decisor.history.store import History
    from decisor.mcp.server import HttpListener
    from decisor.server.settings import ServerSettings
    from decisor.server.users import Users
    from decisor.session.sources import Sources


HostOf = Annotated[str, typer.Option("--host", help="Address to listen on; a token is required beyond localhost.")]
AllowHostOf = Annotated[
    list[str] | None, typer.Option("--allow-host", metavar="NAME", help="Host name of a proxy before the server.")
]
AtOnceOf = Annotated[
    int, typer.Option("--at-once", min=1, max=5_000, help="Maximum number of simultaneous runs; others wait.")
]
LLMsOf = Annotated[
    list[str] | None, typer.Option("--llm", metavar="MODEL[@URL]", help="LLM to offer on the page. Repeatable.")
]
UsersOf = Annotated[
    Path | None, typer.Option("--users", metavar="FILE", help="TOML file of users, groups and sign-in.")
]
LogOf = Annotated[Literal["text", "json"], typer.Option("--log", help="Form of the log on standard error.")]


@takes_request(*DATA, "limits", leave_out=["actions"])
def serve_command(
    request: AskRequest,
    llm: LLMsOf = None,
    demo: Annotated[bool, typer.Option("--demo", help="Serve sample data with a decision model.")] = False,
    evaluation: Annotated[
        list[str] | None, typer.Option("--evaluation", metavar="RUN", help="Run store of an evaluation to show.")
    ] = None,
    host: HostOf = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes any free one.")] = 8765,
    allow_host: AllowHostOf = None,
    users: UsersOf = None,
    new_user: Annotated[
        str, typer.Option("--new-user", metavar="NAME", help="Print a token and its lines for --users.")
    ] = "",
    history: Annotated[
        bool, typer.Option("--history/--no-history", help="Whether to keep runs after the server stops.")
    ] = True,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Whether to open the page.")] = True,
    takes_files: Annotated[bool, typer.Option("--files/--no-files", help="Whether people may upload files.")] = True,
    at_once: Annotated[
        int, typer.Option("--at-once", min=0, max=5_000, help="Maximum of simultaneous runs; 0 leaves them to others.")
    ] = 256,
    store: Annotated[
        str, typer.Option("--store", metavar="URL", help="PostgreSQL for runs of several processes; see --workers.")
    ] = "",
    workers: Annotated[
        int, typer.Option("--workers", min=1, max=256, help="Number of processes; more than one need --store.")
    ] = 1,
    log: LogOf = "text",
) -> None:
    """Start the web page and the HTTP API. Ctrl-C stops them."""
    with require_package("FastAPI and uvicorn", "serve"):
        from decisor.server.app import bind_socket, run_web_processes, run_web_server
    from decisor.server.security import is_local_host

    if new_user:
        print_user(new_user)
        return
    if workers > 1 and not store:
        raise SetupError("--workers needs a store that all processes write to: --store postgresql://HOST/NAME")
    if not at_once and not store:
        raise SetupError("--at-once 0 leaves runs to other processes. Name their store: --store postgresql://HOST/NAME")
    if demo and request.names_data:
        raise SetupError("--demo has its own data. Leave out --db, --graph, --docs and --tools.")
    folder, config = contextlib.ExitStack(), resolve_config()
    data = folder.enter_context(demo_sources()) if demo else None
    serving, token = read_server_settings(request, llm or [], users, is_local_host(host), data)
    # Port 0 takes any port that is free.
    listening = bind_socket(host, port)
    serving = replace(
        serving,
        evaluations=name_evaluations(evaluation or []),
        host=host,
        port=listening.getsockname()[1],
        allow_hosts=tuple(allow_host or ()),
        at_once=at_once,
        takes_files=takes_files,
        log=log,
    )
    address = f"http://{format_host(host)}:{serving.port}/"

    def ready() -> None:
        # Browsers send no fragment (#TOKEN), so no proxy and no log gets the token.
        print(f"Decisor is at {address}{f'#{token}' if token else ''} (Ctrl-C ends it)", flush=True)
        if browser:
            import webbrowser

            webbrowser.open(address + (f"#{token}" if token else ""))

    routers = []
    # The page of evaluations needs the lab: without --evaluation it may be missing.
    with contextlib.nullcontext() if evaluation else contextlib.suppress(SetupError):
        routers = [import_lab("evaluation_pages", "--evaluation").router]
    print_folder_file(config)
    # The shop is gone with the server, and so are its runs.
    with folder, open_server_history(history and config.keeps_history and not demo, store) as place:
        serving = replace(serving, history=place)
        if workers > 1:
            run_web_processes(serving, listening, workers, ready)
        else:
            run_web_server(serving, listening, ready, routers)


@takes_request(*DATA, "limits", leave_out=["actions"])
def worker_command(
    request: AskRequest,
    store: Annotated[str, typer.Option("--store", metavar="URL", help="PostgreSQL with the runs of the servers.")],
    llm: LLMsOf = None,
    users: UsersOf = None,
    at_once: AtOnceOf = 256,
    log: LogOf = "text",
) -> None:
    """Do runs that servers put in the line of a store. Ctrl-C gives them back.

    Data, LLMs and users are to be those of decisor serve --store; there is no page and no port.
    """
    with require_package("FastAPI and uvicorn", "serve"):
        from decisor.server.app import run_worker
    serving, _ = read_server_settings(request, llm or [], users, is_local=True)
    with open_server_history(True, store) as place:
        run_worker(replace(serving, at_once=at_once, log=log, history=place))


def read_server_settings(
    request: AskRequest, llm: list[str], users: Path | None, is_local: bool, data: Sources | None = None
) -> tuple[ServerSettings, str]:
    """Return the data, LLMs, limits and users of a server, and the token to print, '' for none.

    data: in place of those that the request or the config files name.
    """
    from decisor.server.settings import ServerSettings, names_of_llms
    from decisor.session.open_sources import sources_of_request

    config = resolve_config()
    if data is None:
        # Take the data that are named, else those of the config files.
        if not request.names_data:
            db, docs = list_configured_sources(config)
            request = request.model_copy(update={"db": tuple(db), "docs": tuple(docs)})
        data = sources_of_request(request, config)
        check_database_files(data)
    # Prices come from the config files; without a name it is the configured LLM.
    llms = names_of_llms([spec for name in llm or [""] if (spec := config.llm(name or None))])
    who, token = read_server_users(users, data, is_local, list(llms))
    return ServerSettings(data, llms, config.limits(request.limits), who), token


@contextmanager
def open_server_history(lasts: bool, store: str = "") -> Iterator[History]:
    """Yield the person's history, or one that is gone with the server. store: URL of one that many processes share."""
    from decisor.history.store import History

    if store:
        from decisor.history.postgres import PostgresPlace

        yield History(PostgresPlace(store))
        return
    if lasts:
        yield History()
        return
    with TemporaryDirectory(prefix="decisor-") as folder:
        yield History(Path(folder) / "history")


def list_configured_sources(config: Config) -> tuple[list[str], list[str]]:
    """Return the names of the databases and of the documents in the config files.

    They are served if no data are named.
    """
    from decisor.databases.files.store import names_files

    if usual := config.default_places:
        return list(usual), []
    is_data = {
        name: "://" in one.url or one.url.startswith("${") or names_files(one.absolute) or Path(one.absolute).is_file()
        for name, one in config.connections.items()
    }
    return [name for name, data in is_data.items() if data], [name for name, data in is_data.items() if not data]


def check_database_files(sources: Sources) -> None:
    """Raise SetupError if the file of a database does not exist. Otherwise the first question would say so."""
    from decisor.databases.files.store import find_data_files, names_files

    for source in sources.databases:
        scheme, slashes, path = source.place.rpartition(":///")
        if not slashes and names_files(source.place):
            find_data_files(source.place)
        elif scheme in ("", "sqlite", "duckdb") and "://" not in path and not Path(path).exists():
            raise SetupError(f"There is no file {path}. Check the path.")


def read_server_users(
    file: Path | None, sources: Sources, is_local: bool, llms: Sequence[str] = ()
) -> tuple[Users, str]:
    """Return the users of the server and the token to print, '' for none. llms: names that the file may have.

    Raise SetupError if the rows or columns kept from a user are of no source.
    """
    from decisor.server.users import Users, new_token, read_users, user_of_rights, users_of_token
    from decisor.session.access import restrict_sources_to_reader
    from decisor.session.pool import split_into_members

    if file is not None:
        users = read_users(file, list(split_into_members(sources)), llms)
        groups = [user_of_rights(f"group {name}", {name: rights}) for name, rights in users.groups.items()]
        # A mistake in a user's rows is told at the start, not at that user's first question.
        for user in (*groups, *users.by_digest.values()):
            try:
                restrict_sources_to_reader(user.reader, sources)
            except SetupError as error:
                raise SetupError(f"{file}: {user.name}: {error}") from error
        return users, ""
    if is_local:
        return Users(), ""
    token = new_token()
    return users_of_token(token), token


def name_evaluations(places: list[str]) -> dict[str, str]:
    """Return each run store by the name of its file.

    Raise SetupError if two have one name, or a file does not exist.
    """
    from decisor.session.sources import name_from_place

    names: dict[str, str] = {}
    for place in places:
        name = name_from_place(place)
        if name in names:
            raise SetupError(f"Two evaluations are called {name}. Rename one of the files.")
        if "://" not in place and not Path(place).is_file():
            raise SetupError(f"There is no run store {place}. Make one with: decisor eval ... --store {place}")
        names[name] = place
    return names


def print_user(name: str) -> None:
    from decisor.server.users import NAME, digest_of_token, new_token

    if not NAME.fullmatch(name):
        raise SetupError(f"{name!r:.80} is not a user name. Use letters, digits and . _ @ -")
    token = new_token()
    # A TOML key of letters, digits, _ and - needs no quotes.
    key = name if name.replace("-", "_").isidentifier() else f'"{name}"'
    print(
        f'Token of {name}, shown only now: {token}\n\n[{key}]\ntoken = "{digest_of_token(token)}"\n'
        '# connections = ["sales"]  # without this line: all'
    )


def format_host(host: str) -> str:
    """Return a host as it stands in an address."""
    import socket

    # These stand for every address of the machine, and nobody can call them.
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


USERS = "TOML file of users, as for decisor serve."
SKILL = "Print a skill file for coding agents."
HTTP = "Serve over streamable HTTP, not standard input and output."


@takes_request(*DATA, "technique", "settings", "llm", "limits", leave_out=["actions"])
def mcp_command(
    request: AskRequest,
    demo: Annotated[bool, typer.Option("--demo", help="Serve sample data with a decision model.")] = False,
    at_once: AtOnceOf = 256,
    no_history: Annotated[bool, typer.Option("--no-history", help="Do not keep runs after the server stops.")] = False,
    http: Annotated[bool, typer.Option("--http", help=HTTP)] = False,
    host: HostOf = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes any free one.")] = 8766,
    allow_host: AllowHostOf = None,
    token: Annotated[bool, typer.Option("--token", help="Require a token on localhost too.")] = False,
    users: Annotated[Path | None, typer.Option("--users", metavar="FILE", help=USERS)] = None,
    skill: Annotated[bool, typer.Option("--skill", help=SKILL)] = False,
) -> None:
    """Serve tools to an MCP client.

    They are decide, describe_data, query, whatif, explain_run, verify_run and approve_run.
    """
    if skill:
        from importlib.resources import files

        print(files("decisor.mcp").joinpath("skill.md").read_text("utf-8"), end="")
        return
    with require_package("the MCP SDK", "mcp"):
        from decisor.mcp.server import serve_mcp
    config = resolve_config()
    from decisor.session.open_sources import complete_request

    request = complete_request(request, config)
    keeps = config.keeps_history and not no_history and not demo
    if request.technique:
        from decisor.techniques import build_technique

        # A client would hear of a wrong setting only when it asks.
        build_technique(request.technique, **{name: str(value) for name, value in request.settings.items()})
    if users and not http:
        raise SetupError("--users needs --http.")
    data = demo_sources() if demo else contextlib.nullcontext(sources_to_serve(request, config))
    with data as sources, open_server_history(keeps) as history, contextlib.suppress(KeyboardInterrupt):
        listening = open_mcp_socket(host, port, allow_host or [], token, users, sources) if http else None
        asyncio.run(serve_mcp(sources, request, history, listening, at_once))


def sources_to_serve(request: AskRequest, config: Config) -> Sources:
    """Return the named data, or every connection of the config files if none are named.

    Raise SetupError if there are none, or if a file does not exist: a client would see it only when it asks.
    """
    from decisor.session.open_sources import sources_of_request

    if not request.names_data:
        request = request.model_copy(update={"db": tuple(config.connections)})
    sources = sources_of_request(request, config)
    if not sources:
        raise SetupError("No data source given. Use --db, --graph, --docs or --tools, or try: decisor mcp --demo")
    check_database_files(sources)
    return sources


@contextlib.contextmanager
def demo_sources() -> Iterator[Sources]:
    """Yield the shop of ``decisor demo`` with its decision model, as long as the block runs."""
    from importlib.resources import as_file, files

    from decisor.demo.demo import write_shop
    from decisor.session.sources import build_sources

    with tempfile.TemporaryDirectory() as folder, as_file(files("decisor.demo").joinpath("shop.toml")) as model:
        write_shop(Path(folder) / "shop.db")
        yield build_sources(f"shop=sqlite:///{folder}/shop.db", model=model)


def open_mcp_socket(
    host: str, port: int, names: list[str], wants_token: bool, users: Path | None, sources: Sources
) -> HttpListener:
    """Open the socket of the server; print its address and token on standard error."""
    with require_package("uvicorn", "mcp"):
        from decisor.mcp.server import PATH, HttpListener
        from decisor.server.app import bind_socket
    from decisor.server.security import hosts_of, is_local_host

    who, token = read_server_users(users, sources, is_local_host(host) and not wants_token)
    socket = bind_socket(host, port)
    socket.listen()  # so that who reads the address finds it open
    port = socket.getsockname()[1]
    words = f"MCP is served at http://{format_host(host)}:{port}{PATH} (Ctrl-C ends it)"
    print(f"{words}\nToken: {token}" if token else words, file=sys.stderr, flush=True)
    return HttpListener(socket, hosts_of(host, port, names), who)
