"""``decisor definitions propose``, ``approve``, ``remove`` and ``list``: corrections, kept by consent."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from decisor.cli.console import print_json
from decisor.errors import SetupError

FileOf = Annotated[Path, typer.Argument(metavar="FILE", help="The definitions (TOML).")]
NameOf = Annotated[str, typer.Argument(metavar="NAME", help="As list says it: reading.revenue.")]
ByOf = Annotated[str, typer.Option("--by", metavar="AUTHOR", help="Who says so; else who is logged in.")]


def propose_command(
    file: FileOf,
    words: Annotated[str, typer.Option("--words", help="Words of questions.")] = "",
    means: Annotated[str, typer.Option("--means", help="What they mean.")] = "",
    metric: Annotated[str, typer.Option("--metric", help="A metric of the file that they are measured by.")] = "",
    question: Annotated[str, typer.Option("--question", help="A question that was answered wrongly.")] = "",
    trace: Annotated[
        Path | None, typer.Option("--trace", help="The run that answered it, in place of --question.")
    ] = None,
    sql: Annotated[str, typer.Option("--sql", help="The query that answers it.")] = "",
    answer: Annotated[str, typer.Option("--answer", help="Or the right answer.")] = "",
    why: Annotated[str, typer.Option("--why", help="The reason.")] = "",
    by: ByOf = "",
) -> None:
    """Propose what words mean, or the right query or answer of a question. Nothing uses it before it is approved."""
    from decisor.definitions.format import Example, Origin, Reading, title
    from decisor.definitions.proposals import proposals_of, propose

    question = question or (question_of(trace) if trace else "")
    if bool(words and means) == bool(question and (sql or answer)):
        raise SetupError("Propose either --words with --means, or --question (or --trace) with --sql or --answer.")
    if words:
        whole: Reading | Example = propose(file, Reading(words, [words], means, metric, Origin(why=why)), by or user())
    else:
        whole = propose(file, Example(" ".join(question.split()[:6]), question, sql, answer, Origin(why=why)),
                        by or user())  # fmt: skip
    name = title(whole)
    print(f"{name} is proposed in {proposals_of(file)}. Keep it: decisor definitions approve {file} {name}")


def approve_command(file: FileOf, name: NameOf, by: ByOf = "") -> None:
    """Move a proposal into the definitions; from then on questions are answered by it, and say so."""
    from decisor.definitions.format import title
    from decisor.definitions.proposals import approve

    one = approve(file, name, by or user())
    print(f"{title(one)} is in {file}{one.origin}. Take it back: decisor definitions remove {file} {title(one)}")


def remove_command(file: FileOf, name: NameOf) -> None:
    """Take a definition, or a proposal, out."""
    from decisor.definitions.format import title
    from decisor.definitions.proposals import remove

    one, place = remove(file, name)
    print(f"{title(one)} is out of {place}.")


def list_command(
    file: FileOf, as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False
) -> None:
    """List what is defined, and what is proposed, with author, day and reason."""
    lines = list(listed(file))
    if as_json:
        print_json({"file": str(file), "definitions": lines})
        return
    for one in lines:
        mark = "proposed " if one["state"] == "proposed" else ""
        origin = ", ".join(part for part in (one["by"], one["on"], one["why"]) if part)
        print(f"{mark}{one['says']}{f' ({origin})' if origin else ''}")
    if not lines:
        print(f"{file}: nothing is defined or proposed")


def listed(file: Path) -> Iterator[dict[str, str]]:
    from decisor.definitions.format import title
    from decisor.definitions.parse import text_of
    from decisor.definitions.proposals import proposals_of, read_text
    from decisor.definitions.show import line

    places = [(file, "approved"), (proposals_of(file), "proposed")]
    if not any(place.exists() for place, _ in places):
        raise SetupError(f"There is neither {file} nor {proposals_of(file)}.")
    for place, state in places:
        for one in read_text(place, text_of(place)) if place.exists() else ():
            yield {"name": title(one), "state": state, "says": line(one), "by": one.origin.by, "on": one.origin.on,
                   "why": one.origin.why}  # fmt: skip


def question_of(trace: Path) -> str:
    """Of a recorded run."""
    from decisor.trace.events import RunStart, events_of
    from decisor.trace.file import read_trace

    start = next(events_of(read_trace(trace), RunStart), None)
    return start.question.text if start else ""


def user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
