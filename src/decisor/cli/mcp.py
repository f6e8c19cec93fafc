"""``decisor mcp``: what Decisor does as tools of the Model Context Protocol, for a client that starts or calls it."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decisor.budget import Limits
from decisor.cli.again import each, sources_named, with_defaults
from decisor.cli.ask import DB, DEFINITIONS, DOCS, GRAPH, LM, SETTING, TOOLS, read_settings
from decisor.cli.serve import AT_ONCE, check_files, history_in, in_address, users_of
from decisor.config.current import Config, current
from decisor.errors import SetupError
from decisor.extras import needs
from decisor.history.past_run import Inputs
from decisor.session.tools import AUDIT, AUTH, DENY, MASK, METHODS, ROW_VALUES, ROWS, SCAN, TABLES, split, split_all

if TYPE_CHECKING:
    from decisor.mcp.http import Listening
    from decisor.session.sources import Sources

USERS = "Users with their tokens (TOML), as of decisor serve: whose connections, rows and history."
SKILL = "Print a skill file for coding agents: when and how to use the tools."
HTTP = "Serve streamable HTTP, where a client calls it, and not standard input and output, where a client starts it."


def command(
    db: Annotated[list[str] | None, typer.Option("--db", metavar="URL", help=DB)] = None,
    graph: Annotated[list[str] | None, typer.Option("--graph", metavar="URL", help=GRAPH)] = None,
    docs: Annotated[list[str] | None, typer.Option("--docs", metavar="INDEX|FOLDER", help=DOCS)] = None,
    model: Annotated[Path | None, typer.Option("--model", help="A decision model of the first database.")] = None,
    definitions: Annotated[
        list[str] | None, typer.Option("--definitions", metavar="[NAME=]FILE", help=DEFINITIONS)
    ] = None,
    tables: Annotated[list[str] | None, typer.Option("--tables", metavar="NAME,...", help=TABLES)] = None,
    deny_tables: Annotated[list[str] | None, typer.Option("--deny-tables", metavar="NAME,...", help=DENY)] = None,
    rows: Annotated[list[str] | None, typer.Option("--rows", metavar="TABLE=CONDITION", help=ROWS)] = None,
    mask: Annotated[list[str] | None, typer.Option("--mask", metavar="TABLE.COLUMN,...", help=MASK)] = None,
    audit: Annotated[Path | None, typer.Option("--audit", metavar="FILE", help=AUDIT)] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="A made-up shop with its decision model: needs no data.")
    ] = False,
    tools: Annotated[list[str] | None, typer.Option("--tools", metavar="SPEC", help=TOOLS)] = None,
    allow_methods: Annotated[str, typer.Option("--allow-methods", help=METHODS)] = "",
    base_url: Annotated[str, typer.Option("--base-url", metavar="URL", help="Call the APIs of --tools here.")] = "",
    auth: Annotated[list[str] | None, typer.Option("--auth", metavar="[SCHEME=]VARIABLE", help=AUTH)] = None,
    row_values: Annotated[str, typer.Option("--row-values", metavar="ask|allow|refuse", help=ROW_VALUES)] = "",
    lm: Annotated[str | None, typer.Option("--lm", metavar="MODEL[@URL]", help=LM)] = None,
    technique: Annotated[str, typer.Option("--technique", "-t", help="See decisor techniques.")] = "",
    settings: Annotated[list[str] | None, typer.Option("--option", "-o", metavar="NAME=VALUE", help=SETTING)] = None,
    calls: Annotated[int | None, typer.Option("--calls", min=1, help="At most so many LM calls a run.")] = None,
    tokens: Annotated[int | None, typer.Option("--tokens", min=1, help="At most so many tokens a run.")] = None,
    dollars: Annotated[float | None, typer.Option("--dollars", min=0, help="At most so many dollars a run.")] = None,
    seconds: Annotated[float | None, typer.Option("--seconds", min=0, help="At most so long a run.")] = None,
    max_scan: Annotated[str, typer.Option("--max-scan", metavar="ROWS|BYTES", help=SCAN)] = "",
    at_once: Annotated[int, typer.Option("--at-once", min=1, max=5_000, help=AT_ONCE)] = 256,
    no_history: Annotated[bool, typer.Option("--no-history", help="Runs are gone with the server.")] = False,
    http: Annotated[bool, typer.Option("--http", help=HTTP)] = False,
    host: Annotated[str, typer.Option("--host", help="Where to listen. Beyond this machine a token is needed.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes any that is free.")] = 8766,
    allow_host: Annotated[
        list[str] | None, typer.Option("--allow-host", metavar="NAME", help="A name that a proxy answers to.")
    ] = None,
    token: Annotated[bool, typer.Option("--token", help="Ask for a token on this machine too.")] = False,
    users: Annotated[Path | None, typer.Option("--users", metavar="FILE", help=USERS)] = None,
    skill: Annotated[bool, typer.Option("--skill", help=SKILL)] = False,
) -> None:
    """Serve tools to a client of MCP: decide, describe_data, query, whatif, explain_run, verify_run and approve_run."""
    if skill:
        from importlib.resources import files

        print(files("decisor.mcp").joinpath("skill.md").read_text("utf-8"), end="")
        return
    with needs("the MCP SDK", "mcp"):
        from decisor.mcp.run import run
    config = current()
    own = Inputs(
        each(db), each(graph), each(docs), each(tools), tuple(split(allow_methods)), base_url, each(auth),
        model=str(model or ""), tables=tuple(split_all(tables)),
        deny_tables=tuple(split_all(deny_tables)), definitions=each(definitions), rows=each(rows),
        mask=tuple(split_all(mask)), audit=str(audit or ""), max_scan=max_scan, technique=technique,
        settings=read_settings(settings or []), lm=lm or "", limits=Limits(calls, tokens, dollars, seconds),
        row_values=row_values,
    )  # fmt: skip
    inputs = with_defaults(own, config)
    keeps = config.keeps_history and not no_history and not demo
    if inputs.technique:
        from decisor.techniques import technique as technique_of

        technique_of(inputs.technique, **inputs.settings)  # a client would hear of a wrong one only when it asks
    if users and not http:
        raise SetupError("--users says whose token may do what over HTTP: give --http too.")
    data = demo_sources() if demo else contextlib.nullcontext(sources_in(inputs, config))
    with data as sources, history_in(keeps) as history, contextlib.suppress(KeyboardInterrupt):
        listening = listening_on(host, port, allow_host or [], token, users, sources) if http else None
        asyncio.run(run(sources, inputs, config.lm(inputs.lm or None), history, listening, at_once))


def sources_in(inputs: Inputs, config: Config) -> Sources:
    """What is named; where nothing is, every connection of the config files. Raises SetupError where that is nothing,
    or a file that is not there: a client would see it only when it asks."""
    if not any((inputs.db, inputs.graph, inputs.docs, inputs.tools)):
        inputs = replace(inputs, db=tuple(config.connections))
    sources = sources_named(inputs, config)
    if not sources:
        raise SetupError("Which data? Name them with --db, --graph, --docs or --tools, or try: decisor mcp --demo")
    check_files(sources)
    return sources


@contextlib.contextmanager
def demo_sources() -> Iterator[Sources]:
    """The shop of ``decisor demo`` with its decision model, as long as the block runs."""
    from importlib.resources import as_file, files

    from decisor.demo.shop import write_shop
    from decisor.session.sources import sources_of

    with tempfile.TemporaryDirectory() as folder, as_file(files("decisor.demo").joinpath("shop.toml")) as model:
        write_shop(Path(folder) / "shop.db")
        yield sources_of(f"shop=sqlite:///{folder}/shop.db", model=model)


def listening_on(
    host: str, port: int, names: list[str], wants_token: bool, users: Path | None, sources: Sources
) -> Listening:
    """A place to listen, which is said on standard error with the token that it asks for."""
    with needs("uvicorn", "mcp"):
        from decisor.mcp.http import PATH, Listening
        from decisor.server.serve import bound
    from decisor.server.hosts import hosts_of, is_loopback

    who, token = users_of(users, sources, is_loopback(host) and not wants_token)
    socket = bound(host, port)
    socket.listen()  # so that who reads the address finds it open
    port = socket.getsockname()[1]
    words = f"MCP is served at http://{in_address(host)}:{port}{PATH} (Ctrl-C ends it)"
    print(f"{words}\nToken: {token}" if token else words, file=sys.stderr, flush=True)
    return Listening(socket, hosts_of(host, port, names), who)
