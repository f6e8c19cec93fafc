"""``decisor serve``: the page and its API, until Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from decisor.budget import Limits
from decisor.cli.again import each, sources_named
from decisor.cli.settings import tell_folder_file
from decisor.config.current import Config, current, default_places
from decisor.errors import SetupError
from decisor.extras import needs
from decisor.history.past_run import Inputs
from decisor.session.tools import AUDIT, AUTH, DENY, MASK, METHODS, ROW_VALUES, ROWS, SCAN, TABLES, split, split_all

if TYPE_CHECKING:
    from decisor.history.store import History
    from decisor.server.users import Users
    from decisor.session.sources import Sources

DB = "A database, or files, as of decisor ask. Several times; NAME=URL gives it a name."
AT_ONCE = "Runs at a time; more wait in line."


def command(
    db: Annotated[list[str] | None, typer.Option("--db", metavar="URL", help=DB)] = None,
    graph: Annotated[list[str] | None, typer.Option("--graph", metavar="URL", help="A graph.")] = None,
    docs: Annotated[list[str] | None, typer.Option("--docs", metavar="INDEX|FOLDER", help="Documents.")] = None,
    model: Annotated[Path | None, typer.Option("--model", help="A decision model of the first database.")] = None,
    tables: Annotated[list[str] | None, typer.Option("--tables", metavar="NAME,...", help=TABLES)] = None,
    deny_tables: Annotated[list[str] | None, typer.Option("--deny-tables", metavar="NAME,...", help=DENY)] = None,
    rows: Annotated[list[str] | None, typer.Option("--rows", metavar="TABLE=CONDITION", help=ROWS)] = None,
    mask: Annotated[list[str] | None, typer.Option("--mask", metavar="TABLE.COLUMN,...", help=MASK)] = None,
    definitions: Annotated[
        list[str] | None, typer.Option("--definitions", metavar="[NAME=]FILE", help="What words mean in the data.")
    ] = None,
    tools: Annotated[list[str] | None, typer.Option("--tools", metavar="SPEC", help="Functions and web APIs.")] = None,
    allow_methods: Annotated[str, typer.Option("--allow-methods", help=METHODS)] = "",
    base_url: Annotated[str, typer.Option("--base-url", metavar="URL", help="Call the APIs of --tools here.")] = "",
    auth: Annotated[list[str] | None, typer.Option("--auth", metavar="[SCHEME=]VARIABLE", help=AUTH)] = None,
    row_values: Annotated[str, typer.Option("--row-values", metavar="ask|allow|refuse", help=ROW_VALUES)] = "",
    lm: Annotated[
        list[str] | None,
        typer.Option("--lm", metavar="MODEL[@URL]", help="An LM to choose on the page. Several times."),
    ] = None,
    evaluation: Annotated[
        list[str] | None, typer.Option("--evaluation", metavar="RUN", help="The store of an evaluation to show.")
    ] = None,
    host: Annotated[str, typer.Option("--host", help="Where to listen. Beyond this machine a token is needed.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes any that is free.")] = 8765,
    allow_host: Annotated[
        list[str] | None, typer.Option("--allow-host", metavar="NAME", help="A name that a proxy answers to.")
    ] = None,
    max_scan: Annotated[str, typer.Option("--max-scan", metavar="ROWS|BYTES", help=SCAN)] = "",
    audit: Annotated[Path | None, typer.Option("--audit", metavar="FILE", help=AUDIT)] = None,
    users: Annotated[
        Path | None, typer.Option("--users", metavar="FILE", help="Users with their tokens (TOML).")
    ] = None,
    new_user: Annotated[
        str, typer.Option("--new-user", metavar="NAME", help="Print a token, and the lines for it.")
    ] = "",
    history: Annotated[bool, typer.Option("--history/--no-history", help="Whether runs outlast the server.")] = True,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
    at_once: Annotated[int, typer.Option("--at-once", min=1, max=5_000, help=AT_ONCE)] = 256,
    calls: Annotated[int | None, typer.Option("--calls", min=1, help="At most so many LM calls a run.")] = None,
    tokens: Annotated[int | None, typer.Option("--tokens", min=1, help="At most so many tokens a run.")] = None,
    dollars: Annotated[float | None, typer.Option("--dollars", min=0, help="At most so many dollars a run.")] = None,
    seconds: Annotated[float | None, typer.Option("--seconds", min=0, help="At most so long a run.")] = None,
) -> None:
    """Serve the page and its API, until Ctrl-C."""
    with needs("FastAPI and uvicorn", "serve"):
        from decisor.server.serve import bound, serve
        from decisor.server.serving import Serving, names_of_lms
    from decisor.server.hosts import is_loopback

    if new_user:
        print_user(new_user)
        return
    config = current()
    if not (db or graph or docs or tools):
        db, docs = names_in_config(config)
    own = Inputs(
        each(db), each(graph), each(docs), each(tools), tuple(split(allow_methods)), base_url, each(auth),
        str(model or ""), each(split_all(tables)), each(split_all(deny_tables)), each(definitions),
        each(rows), tuple(split_all(mask)), audit=str(audit or ""), max_scan=max_scan,
        row_values=row_values,
    )  # fmt: skip
    sources = sources_named(own, config)
    check_files(sources)
    who, token = users_of(users, sources, is_loopback(host))
    listening = bound(host, port)
    serving = Serving(
        sources, names_of_lms(lms_of(lm or [], config)), config.limits(Limits(calls, tokens, dollars, seconds)), who,
        evaluations_of(evaluation or []),
        host, listening.getsockname()[1], tuple(allow_host or ()), at_once,
    )  # fmt: skip
    address = f"http://{in_address(host)}:{serving.port}/"

    def ready() -> None:
        print(f"Decisor is at {address}{f'#{token}' if token else ''} (Ctrl-C ends it)", flush=True)
        if browser:
            open_page(address + (f"#{token}" if token else ""))

    tell_folder_file(config)
    with history_in(history and config.keeps_history) as place:
        serve(replace(serving, history=place), listening, ready)


@contextmanager
def history_in(lasts: bool) -> Iterator[History]:
    """The person's, or one that is gone with the server."""
    from decisor.history.store import History

    if lasts:
        yield History()
        return
    with TemporaryDirectory(prefix="decisor-") as folder:
        yield History(Path(folder) / "history")


def names_in_config(config: Config) -> tuple[list[str], list[str]]:
    """What is asked where nothing is named: the databases and the documents of the config files."""
    from decisor.tools.databases.files.places import names_files

    if usual := default_places(config):
        return list(usual), []
    is_data = {
        name: "://" in one.url or one.url.startswith("${") or names_files(one.absolute) or Path(one.absolute).is_file()
        for name, one in config.connections.items()
    }
    return [name for name, data in is_data.items() if data], [name for name, data in is_data.items() if not data]


def check_files(sources: Sources) -> None:
    """Raises SetupError where a database is a file, and is not there: else the first question would say so."""
    from decisor.tools.databases.files.places import files_of, names_files

    for source in sources.databases:
        scheme, slashes, path = source.place.rpartition(":///")
        if not slashes and names_files(source.place):
            files_of(source.place)
        elif scheme in ("", "sqlite", "duckdb") and "://" not in path and not Path(path).exists():
            raise SetupError(f"There is no file {path}. Check the path.")


def lms_of(names: list[str], config: Config) -> list[str]:
    """Each with its price, where a file says it; that of a file where none is named."""
    wanted: list[str | None] = [*names] or [None]
    return [spec for name in wanted if (spec := config.lm(name))]


def users_of(file: Path | None, sources: Sources, is_local: bool) -> tuple[Users, str]:
    """Who may use it, and the token that is to be printed, '' for none. Raises SetupError where what is kept from a
    user is of no source."""
    from decisor.server.users import Users, new_token, one_user, read_users
    from decisor.session.pool import members_of
    from decisor.session.readers import as_seen_by

    if file is not None:
        users = read_users(file, list(members_of(sources)))
        for user in users.by_digest.values():
            try:
                as_seen_by(user.reader, sources)
            except SetupError as error:
                raise SetupError(f"{file}: {user.name}: {error}") from error
        return users, ""
    if is_local:
        return Users(), ""
    token = new_token()
    return one_user(token), token


def evaluations_of(places: list[str]) -> dict[str, str]:
    """Each by the name of its file. Raises SetupError where two have one name, or a file is not there."""
    from decisor.session.sources import name_from

    names: dict[str, str] = {}
    for place in places:
        name = name_from(place)
        if name in names:
            raise SetupError(f"Two evaluations are called {name}: rename one of the files.")
        if "://" not in place and not Path(place).is_file():
            raise SetupError(f"There is no run store {place}. Make one with: decisor eval ... --store {place}")
        names[name] = place
    return names


def print_user(name: str) -> None:
    from decisor.server.users import NAME, digest_of, new_token

    if not NAME.fullmatch(name):
        raise SetupError(f"{name!r:.80} is no name of a user: take letters, digits, and . _ @ -")
    token = new_token()
    key = name if name.replace("-", "_").isidentifier() else f'"{name}"'
    print(f'The token of {name}, which is nowhere else: {token}\n\n[{key}]\ntoken = "{digest_of(token)}"\n'
          '# connections = ["sales"]  # all without this line')  # fmt: skip


def in_address(host: str) -> str:
    """As it stands in an address."""
    import socket

    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


def open_page(address: str) -> None:
    import webbrowser

    webbrowser.open(address)
