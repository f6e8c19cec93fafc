"""``decisor definitions``: what words mean in a database, written, checked, imported and approved."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from decisor.cli import corrections
from decisor.cli.findings import print_findings
from decisor.cli.settings import place_named
from decisor.errors import SetupError
from decisor.outside import one_line

app = typer.Typer(no_args_is_help=True, help="What words mean in your data: check, draft, import, propose, approve.")
FileOf = Annotated[Path, typer.Argument(metavar="FILE", help="The definitions (TOML).")]
DbOf = Annotated[str, typer.Option("--db", metavar="URL", help="The database that they are about, or a connection.")]
JsonOf = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
OutOf = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Where it is written; else it is printed.")]


app.command("propose")(corrections.propose_command)
app.command("approve")(corrections.approve_command)
app.command("remove")(corrections.remove_command)
app.command("list")(corrections.list_command)


@app.command("check")
def check_command(file: FileOf, db: DbOf, as_json: JsonOf = False) -> None:
    """Check definitions on their database; every fault has its line. The exit code is 1 where there is one."""
    from decisor.session.definitions_file import check_file

    findings = asyncio.run(check_file(file, place_named(db)))
    print_findings(file, findings, as_json)


@app.command("draft")
def draft_command(
    db: DbOf, out: OutOf = None,
    lm: Annotated[str | None, typer.Option("--lm", metavar="MODEL[@URL]", help="Who improves it, or none.")] = None,
) -> None:  # fmt: skip
    """Draft definitions from schema, keys and measured uniqueness, each with its reason; an LM, if any, goes on
    from that."""
    from decisor.session.definitions_draft import counts, draft_definitions

    whole = asyncio.run(draft_definitions(place_named(db), lm))
    write(whole.text(), out)
    tell(counts(whole), out)


@app.command("import")
def import_command(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="semantic_manifest.json of dbt.")],
    out: OutOf = None,
) -> None:
    """Import dbt's semantic manifest. What is left out is said."""
    from decisor.definitions.imported import imported
    from decisor.session.definitions_draft import counts

    whole = imported(source)
    write(whole.text(), out)
    for note in whole.notes if out else ():
        print(f"Left out: {one_line(note, 200)}", file=sys.stderr)
    tell(counts(whole), out)


@app.command("schema")
def schema_command() -> None:
    """The JSON Schema of a definitions file."""
    from decisor.definitions.schema import DEFINITIONS

    print(json.dumps(DEFINITIONS, indent=2))


def tell(counts: Mapping[str, int], out: Path | None) -> None:
    words = ", ".join(f"{count} {name}" for name, count in counts.items()) or "nothing"
    check = f". Check it: decisor definitions check {out} --db URL" if out else ""
    print(f"{words}{check}", file=sys.stderr)


def write(text: str, out: Path | None) -> None:
    """Raises SetupError where the file is there, or cannot be written."""
    if out is None:
        print(text, end="")
        return
    if out.exists():
        raise SetupError(f"{out} is there already: name another --out file.")
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SetupError(f"Cannot write {out}: {error.strerror}.") from error
