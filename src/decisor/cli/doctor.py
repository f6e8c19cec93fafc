"""``decisor doctor``: what was found on this machine, and what the sandbox says of statements."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from decisor.cli.again import sources_named
from decisor.cli.console import print_json
from decisor.cli.doctor_parts import DATABASES, DOCUMENTS, OTHERS, part_lines, there
from decisor.cli.settings import tell_folder_file
from decisor.config.current import current
from decisor.errors import SetupError
from decisor.history.past_run import Inputs
from decisor.plurals import plural

if TYPE_CHECKING:
    from decisor.session.sources import Sources


def command(
    db: Annotated[
        str,
        typer.Option(
            "--db", metavar="URL", help="A database or graph to try: a URL, files, or the name of a connection."
        ),
    ] = "",
    statements: Annotated[
        Path | None, typer.Option("--statements", help="JSON lines with a field `statement`, for the sandbox.")
    ] = None,
    tools: Annotated[list[str] | None, typer.Option("--tools", metavar="SPEC", help="Show these tools.")] = None,
    lm: Annotated[
        str | None,
        typer.Option("--lm", metavar="MODEL[@URL]", help="The LM to test, or none; with settings, as for ask."),
    ] = None,
    question: Annotated[
        str,
        typer.Option("--question", metavar="TEXT", help="Which tables of --db an LM is shown for it, and the cost."),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """Say what was found here (LM, drivers), or what the sandbox says of statements without running them."""
    if statements is not None:
        if not db:
            raise SetupError("--statements needs --db URL: whether a statement may run depends on the database.")
        judge(named(db), statements, as_json)
        return
    if tools:
        show_tools(tools, as_json)
        return
    if question and not db:
        raise SetupError("--question needs --db URL: it says which tables of it an LM is shown.")
    raise typer.Exit(examine(named(db) if db else None, lm, as_json, question))


def named(db: str) -> Sources:
    """A database or graph as decisor ask takes it: a connection by its name, a URL or files."""
    config = current()
    if db in config.connections:
        tell_folder_file(config)
    return sources_named(Inputs(db=(db,)), config)


def show_tools(specs: list[str], as_json: bool) -> None:
    """Each tool as an LM is shown it, and the operations of documents that are left out, with why."""
    from decisor.session.checks import check_tools

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


def judge(sources: Sources, path: Path, as_json: bool) -> None:
    """A line for each statement: allowed, or why not."""
    from decisor.render.text import one_line
    from decisor.session.checks import judge_statements

    rows = read_statements(path)
    verdicts = judge_statements(sources, [row["statement"] for row in rows])
    for row, verdict in zip(rows, verdicts, strict=True):
        if as_json:
            line = {"statement": row["statement"], "allowed": verdict.allowed, "reason": verdict.reason}
            print_json({"id": row["id"], **line} if "id" in row else line)
        else:
            word = "allowed" if verdict.allowed else f"refused: {one_line(verdict.reason, 200)}"
            print(f"{one_line(row['statement'], 80)}\n    {word}")
    if not as_json:
        print(f"{sum(verdict.allowed for verdict in verdicts)} of {len(verdicts)} allowed")


def read_statements(path: Path) -> list[dict[str, Any]]:
    """Raises SetupError, with the line, where a line holds no statement."""
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


def examine(sources: Sources | None, lm: str | None, as_json: bool, question: str = "") -> int:
    """The LM (tested by a small call), the drivers, and the database where one is named. 0 where all named works."""
    from decisor.session.checks import check_database, check_lm, find_lms
    from decisor.tools.databases.sandbox.platforms import here

    limits = here()
    places = find_lms(lm)
    lm_check = check_lm(lm) if any(place.chosen and place.model for place in places) else None
    drivers, documents, others = there(DATABASES), there(DOCUMENTS), there(OTHERS)
    database = check_database(sources, question) if sources else None
    good = (lm_check is None or lm_check.probe.ok or lm_check.busy) and (database is None or database.ok)
    if as_json:
        from decisor.cli.doctor_lm import as_object

        values = {
            "python": sys.version.split()[0], "lms": [asdict(place) for place in places],
            "lm_test": as_object(lm_check) if lm_check else None, "drivers": drivers, "documents": documents,
            "others": others, "sandbox": asdict(limits), "database": asdict(database) if database else None,
        }  # fmt: skip
        print_json(values)
        return 0 if good else 1
    from decisor.cli.doctor_lm import lines_of
    from decisor.render.text import one_line

    print("Language models, in the order they are looked for")
    for place in places:
        mark = "→" if place.chosen else " "
        what = " at ".join(part for part in (place.model, place.where) if part)
        print(f"  {mark} {place.place}: {one_line(f'{what} {place.note}', 160)}")
    print("\n".join(f"  {line}" for line in lines_of(lm_check)))
    print("Databases")
    print("\n".join(part_lines(DATABASES, drivers)))
    print("\n".join(f"    sandbox: {line}" for line in limits.lines or ["every limit holds on this system"]))
    print("Documents")
    print("\n".join(part_lines(DOCUMENTS, documents)))
    print("Other parts")
    print("\n".join(part_lines(OTHERS, others)))
    if database is not None:
        print(f"{one_line(database.url, 100)}: {'opens' if database.ok else one_line(database.error, 300)}")
        print("\n".join(f"    {line}" for line in database.layers))
        if database.role:
            print("    an account that only reads:", *(f"        {line}" for line in database.role), sep="\n")
        print(database.schema)
        if database.tables:
            beyond = f", and {database.others:,} more" if database.others else ""
            count = len(database.tables)
            print(f"About {database.tokens:,} tokens: {count:,} {plural(count, 'table')} with columns{beyond}.")
    return 0 if good else 1
