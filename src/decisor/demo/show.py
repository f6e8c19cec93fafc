"""The demo from end to end: a recorded run on the shop, the same question computed, and a page with the decision."""

from __future__ import annotations

import tempfile
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

from decisor.demo.question import QUESTION, REPLIES, UNSUPPORTED
from decisor.demo.shop import write_shop
from decisor.errors import SetupError
from decisor.extras import how_to_call
from decisor.lms.scripted import ScriptedLM
from decisor.private_file import check_place
from decisor.session.front import ask
from decisor.session.result import Result
from decisor.story.live import LiveView

if TYPE_CHECKING:
    from rich.console import Console

RECORDED = "recorded replies"
TRIALS = {"trials": "40"}
PAGE = "decision.html"
YOUR_TURN = """\
Your turn: an example that needs no model, then a file of your own with one (Ollama's are free: https://ollama.com, then
`ollama pull qwen3:8b`; or set OPENAI_API_KEY or ANTHROPIC_API_KEY, and leave out --lm):

    {decisor} ask --example trade
    {decisor} ask "Which supplier should we drop?" --db YOUR.csv --lm qwen3:8b@localhost:11434"""


def show(console: Console, folder: Path) -> Path:
    """Everything on the console, and the page below ``folder``: its path.

    Raises:
        SetupError: the page cannot be written.
    """
    path = free_place(folder / PAGE)
    check_place(path, "Name a folder for the page: decisor demo --folder FOLDER")
    with tempfile.TemporaryDirectory() as own:
        shop = Path(own) / "shop.db"
        write_shop(shop)
        heading(
            console,
            "1. A recorded run",
            "The replies of the model were recorded, so this needs none. The shop is made up; the queries run now.",
        )
        result = recorded_run(shop, console)
        heading(
            console,
            "2. The same question without a model",
            "A decision model (25 lines) says what dropping a supplier does; every candidate is computed.",
        )
        computed_decision(shop, console)
    result.html(path)
    heading(console, "3. The page", f"{path} holds the whole run: plan, queries, rows, and what each figure rests on.")
    console.print(YOUR_TURN.format(decisor=how_to_call()), markup=False, soft_wrap=True)
    return path


def recorded_run(shop: Path, console: Console | None = None) -> Result:
    """The recorded replies played to the technique, on the real shop.

    Raises:
        SetupError: the recording does not fit the shop any more.
    """
    lm, settings = ScriptedLM(REPLIES, name=RECORDED), {"calling": "text"}
    place = f"sqlite:///{shop}"
    if console is None:
        result = ask(QUESTION, db=place, lm=lm, technique="plan_rag", settings=settings)
    else:
        with LiveView(console) as view:
            result = ask(QUESTION, db=place, lm=lm, technique="plan_rag", settings=settings, on_event=view.hear)
        result.show(console)
    if [UNSUPPORTED in one.text for one in result.evidence.objections] != [True]:
        raise SetupError(f"The recording is stale: {[one.text for one in result.evidence.objections]}")
    return result


def computed_decision(shop: Path, console: Console | None = None) -> Result:
    """Every supplier computed by the decision model."""
    with as_file(files("decisor.demo") / "shop.toml") as model:
        result = ask(QUESTION, db=f"sqlite:///{shop}", model=model, lm="none", technique="exact", settings=TRIALS)
    if console is not None:
        result.show(console)
    return result


def heading(console: Console, title: str, text: str) -> None:
    console.print()
    console.print(title, style="bold", markup=False)
    console.print(text, style="dim", markup=False)
    console.print()


def free_place(path: Path) -> Path:
    """The path itself, or with a number where a file is there."""
    number, place = 1, path
    while place.exists():
        number += 1
        place = path.with_stem(f"{path.stem}-{number}")
    return place
