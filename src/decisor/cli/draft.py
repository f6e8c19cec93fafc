"""``decisor model draft``: an LM writes the file, the machine checks it, a person approves it."""

from __future__ import annotations

import sys
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decisor.budget import Limits
from decisor.cli.ask import LM, SETTING, print_object, question_text, read_rules, read_settings
from decisor.cli.console import console
from decisor.cli.exits import Exit, exit_of
from decisor.cli.settings import place_named
from decisor.errors import SetupError
from decisor.types import Question

if TYPE_CHECKING:
    from decisor.session.drafting import Draft

DB = "The database it is about: a URL or a file."
APPROVE = "Is this what you mean? [y = write it, n = do not, or say what is wrong] "


def command(
    question: Annotated[str, typer.Argument(help="What is to be decided. - reads it from standard input.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the model is written.")],
    db: Annotated[str, typer.Option("--db", metavar="URL", help=DB)],
    rules: Annotated[Path | None, typer.Option("--rules", help="A text file with the rules to decide by.")] = None,
    goal: Annotated[str, typer.Option("--goal", help="What is to be reached, in words.")] = "",
    lm: Annotated[str | None, typer.Option("--lm", metavar="MODEL[@URL]", help=LM)] = None,
    settings: Annotated[list[str] | None, typer.Option("--option", "-o", metavar="NAME=VALUE", help=SETTING)] = None,
    calls: Annotated[int | None, typer.Option("--calls", min=1, help="At most so many LM calls.")] = None,
    tokens: Annotated[int | None, typer.Option("--tokens", min=1, help="At most so many tokens.")] = None,
    trace: Annotated[Path | None, typer.Option("--trace", help="Write what happens to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Draft a model of a question, check it on real rows, and write it. At a terminal it asks what the rules leave
    open, one question at a time, and for approval. The exit code is 4 where two models differ: both are written."""
    from decisor.session.drafting import draft
    from decisor.tools.person import ask_line, person_is_there

    if out.exists():
        raise SetupError(f"{out} is there already: name another --out file.")
    whole = Question(question_text(question), read_rules(rules), goal)
    with redirect_stdout(sys.stderr) if as_json else nullcontext():  # a person's own tools may print
        drafts = draft(whole, db=place_named(db), settings=read_settings(settings or []), lm=lm, trace=trace,
                       limits=Limits(calls, tokens))  # fmt: skip
    if as_json:
        print_object(drafts.result)
    else:
        drafts.result.show(console())
    for path, text in files_of(drafts, out):
        if not drafts.models and person_is_there() and not as_json:
            show(text, db)
            if (answer := ask_line(APPROVE).strip()).lower() not in ("y", "yes"):
                print(f"Not written. To say more, put it into the rules{f': {answer}' if len(answer) > 1 else ''}.")
                raise typer.Exit(Exit.NO_ANSWER)
        write(path, text)
        print(f"Written: {path}. Run it again without an LM: decisor model rank {path} --db URL", file=sys.stderr)
    raise typer.Exit(exit_of(drafts.result.decision))


def files_of(draft: Draft, out: Path) -> list[tuple[Path, str]]:
    """The file that was asked for, or FILE.first and FILE.second where two models differ."""
    if draft.models:
        return [(out.with_suffix(f".{name}{out.suffix}"), text)
                for name, text in zip(("first", "second"), draft.models, strict=True)]  # fmt: skip
    return [(out, draft.model)] if draft.model else []


def show(text: str, db: str) -> None:
    """What a person approves: the model in plain words, with real rows."""
    import asyncio

    from decisor.decision_models.parse import parse
    from decisor.decision_models.show import show as lines
    from decisor.session.models import opened_model

    async def run() -> list[str]:
        async with opened_model(parse(text), place_named(db)) as model:
            return await asyncio.to_thread(lambda: list(lines(model)))

    print("\n".join(asyncio.run(run())), file=sys.stderr)


def write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SetupError(f"Cannot write {path}: {error.strerror}.") from error
