"""``decisor definitions``: what words mean in a database, drafted, checked, imported, proposed and approved.

A proposal has no effect before somebody approves it.
"""

from __future__ import annotations

import asyncio
import getpass
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer

from decisor.cli.output import find_place, print_findings, print_json
from decisor.errors import SetupError
from decisor.system.text import fit_on_one_line

app = typer.Typer(no_args_is_help=True, help="Define words of your data: draft, check, import, propose, approve.")
FileOf = Annotated[Path, typer.Argument(metavar="FILE", help="Definitions file (TOML).")]
DbOf = Annotated[str, typer.Option("--db", metavar="URL", help="Database of the definitions, or a connection.")]
JsonOf = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
OutOf = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="File to write; default: print.")]
NameOf = Annotated[str, typer.Argument(metavar="NAME", help="Name as in list, such as reading.revenue.")]
ByOf = Annotated[str, typer.Option("--by", metavar="AUTHOR", help="Author (default: your account).")]


@app.command("propose")
def propose_definition_command(
    file: FileOf,
    words: Annotated[str, typer.Option("--words", help="Words of questions to define.")] = "",
    means: Annotated[str, typer.Option("--means", help="Meaning of the words.")] = "",
    metric: Annotated[str, typer.Option("--metric", help="Metric of the file that measures them.")] = "",
    question: Annotated[str, typer.Option("--question", help="Question that was answered wrongly.")] = "",
    trace: Annotated[
        Path | None, typer.Option("--trace", help="Trace with the question, instead of --question.")
    ] = None,
    sql: Annotated[str, typer.Option("--sql", help="The right query.")] = "",
    answer: Annotated[str, typer.Option("--answer", help="The right answer.")] = "",
    why: Annotated[str, typer.Option("--why", help="The reason.")] = "",
    by: ByOf = "",
) -> None:
    """Propose the meaning of words, or the right query or answer of a question.

    A proposal has no effect before it is approved.
    """
    from decisor.semantics.definitions import ApprovedExample, Reading, section_title
    from decisor.semantics.draft import path_of_proposals, propose_definition

    if trace and not question:
        from decisor.trace.events import RunStart, events_of
        from decisor.trace.file import read_trace

        question = next((start.question.text for start in events_of(read_trace(trace), RunStart)), "")
    # One of the two forms is meant: both at once are as unclear as none.
    if bool(words and means) == bool(question and (sql or answer)):
        raise SetupError("Propose either --words with --means, or --question (or --trace) with --sql or --answer.")
    if words:
        whole: Reading | ApprovedExample = propose_definition(
            file, Reading(words, [words], means, metric, why=why), by or login_name()
        )
    else:
        whole = propose_definition(
            file, ApprovedExample(" ".join(question.split()[:6]), question, sql, answer, why=why), by or login_name()
        )
    name = section_title(whole)
    print(f"{name} is proposed in {path_of_proposals(file)}. Approve it: decisor definitions approve {file} {name}")


@app.command("approve")
def approve_definition_command(file: FileOf, name: NameOf, by: ByOf = "") -> None:
    """Approve a proposal. Later answers use it, and say so."""
    from decisor.semantics.definitions import section_title
    from decisor.semantics.draft import approve_definition

    one = approve_definition(file, name, by or login_name())
    print(
        f"{section_title(one)} is in {file}{one.signature()}. Undo: "
        f"decisor definitions remove {file} {section_title(one)}"
    )


@app.command("remove")
def remove_definition_command(file: FileOf, name: NameOf) -> None:
    """Remove a definition or a proposal."""
    from decisor.semantics.definitions import section_title
    from decisor.semantics.draft import remove_definition

    one, place = remove_definition(file, name)
    print(f"{section_title(one)} is removed from {place}.")


@app.command("list")
def list_definitions_command(file: FileOf, as_json: JsonOf = False) -> None:
    """List definitions and proposals with author, day and reason."""
    lines = list(list_definition_lines(file))
    if as_json:
        print_json({"file": str(file), "definitions": lines})
        return
    for one in lines:
        mark = "proposed " if one["state"] == "proposed" else ""
        origin = ", ".join(part for part in (one["by"], one["on"], one["why"]) if part)
        print(f"{mark}{one['says']}{f' ({origin})' if origin else ''}")
    if not lines:
        print(f"{file}: no definitions or proposals")


def list_definition_lines(file: Path) -> Iterator[dict[str, str]]:
    from decisor.semantics.definitions import read_definitions_text, section_title
    from decisor.semantics.draft import parse_with_metrics_beside, path_of_proposals
    from decisor.semantics.relevant import format_definition

    places = [(file, "approved"), (path_of_proposals(file), "proposed")]
    if not any(place.exists() for place, _ in places):
        raise SetupError(f"There is neither {file} nor {path_of_proposals(file)}.")
    for place, state in places:
        for one in parse_with_metrics_beside(place, read_definitions_text(place)) if place.exists() else ():
            yield {
                "name": section_title(one),
                "state": state,
                "says": format_definition(one),
                "by": one.by,
                "on": one.on,
                "why": one.why,
            }


def login_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


@app.command("check")
def check_definitions_command(file: FileOf, db: DbOf, as_json: JsonOf = False) -> None:
    """Check definitions on their database; print one line for each fault. The exit code is 1 if one is an error."""
    from decisor.session.definitions import check_definitions_file

    findings = asyncio.run(check_definitions_file(file, find_place(db)))
    print_findings(file, findings, as_json)


@app.command("draft")
def draft_definitions_command(
    db: DbOf,
    out: OutOf = None,
    llm: Annotated[
        str | None, typer.Option("--llm", metavar="MODEL[@URL]", help="LLM to improve the draft, or none.")
    ] = None,
) -> None:
    """Draft definitions from schema, keys and measured uniqueness, each with its reason.

    An LLM, if any, improves the draft.
    """
    from decisor.session.definitions import count_definitions, draft_definitions

    whole = asyncio.run(draft_definitions(find_place(db), llm))
    write_definitions(whole.text(), out)
    print_definition_counts(count_definitions(whole), out)


@app.command("import")
def import_manifest_command(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="semantic_manifest.json of dbt.")], out: OutOf = None
) -> None:
    """Import dbt's semantic manifest and name everything left out."""
    from decisor.semantics.dbt import import_dbt_manifest
    from decisor.session.definitions import count_definitions

    whole = import_dbt_manifest(source)
    write_definitions(whole.text(), out)
    for note in whole.notes if out else ():
        print(f"Left out: {fit_on_one_line(note, 200)}", file=sys.stderr)
    print_definition_counts(count_definitions(whole), out)


@app.command("schema")
def print_definitions_schema() -> None:
    """Print the JSON Schema of a definitions file."""
    from decisor.semantics.definitions import DEFINITIONS_FILE

    print(json.dumps(DEFINITIONS_FILE.json_schema("Decisor's definitions"), indent=2))


def print_definition_counts(counts: Mapping[str, int], out: Path | None) -> None:
    words = ", ".join(f"{count} {name}" for name, count in counts.items()) or "nothing"
    check = f". Check it: decisor definitions check {out} --db URL" if out else ""
    print(f"{words}{check}", file=sys.stderr)


def write_definitions(text: str, out: Path | None) -> None:
    """Write definitions to a new file, or print them if no file is named.

    Raise SetupError if the file exists or cannot be written.
    """
    if out is None:
        print(text, end="")
        return
    if out.exists():
        raise SetupError(f"{out} already exists. Name another --out file.")
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SetupError(f"Cannot write {out}: {error.strerror}.") from error
