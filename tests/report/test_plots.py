"""Every plot that a run has data for is on the page, and on a phone nothing of it is cut off."""

import random
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from decisor.lab.report.document import make_report
from decisor.lab.report.page import write_page
from decisor.types import Usage
from report.browser import FOUND, browser
from report.made import Made, run

JUDGED = {"judge": Usage(1, 400, 30, 0.0005, 0.5), "simulator": Usage(12, 40_000, 3_000, 0.12, 9.0)}
CUT = """const shown = e => !e.closest('details:not([open])') && e.getClientRects().length;
return [...document.querySelectorAll('.chart svg text')].filter(e => { const own = e.getBoundingClientRect(),
    around = e.ownerSVGElement.getBoundingClientRect(); return own.left < around.left - 0.5 ||
    own.right > around.right + 0.5 }).filter(shown).map(e => e.textContent)"""
OUTSIDE = """return [...document.querySelectorAll('main .results *')].filter(e => e.getBoundingClientRect().right >
    document.querySelector('main .results').getBoundingClientRect().right + 1).map(e => e.textContent)"""


def deep(made: Made) -> Made:
    """As a plan over documents, with a judge."""
    depth = random.Random(made.outcome.case).choice((0, 1, 2, 2, 3, 4))
    return Made(replace(made.outcome, counts={**made.outcome.counts, "depth": depth}, beside=JUDGED), made.entries)


def rated(made: Made, repeat: int) -> Made:
    """As a search that rates its answers, right where the rating is high."""
    at = int(made.outcome.case.split("-")[1])
    state = "right" if at > 20 else "wrong"
    metrics = {**made.outcome.metrics, "elo": float(at)}
    return Made(replace(made.outcome, repeat=repeat, metrics=metrics, state=state), made.entries)  # type: ignore[arg-type]


def every() -> list[Made]:
    searched = [rated(one, repeat) for one in run(40, 3, {"radagent": 0.7}, "game24") for repeat in range(2)]
    return [*run(20), *map(deep, run(20, 2, {"reasoning_dag": 0.6, "rag": 0.4}, "hotpotqa")), *searched]


@pytest.mark.skipif(not FOUND, reason="needs chromium and chromedriver")
def test_on_a_phone_every_plot_is_there_and_no_label_is_cut_off(tmp_path: Path) -> None:
    made = every()
    events = {one.outcome.key: one.entries for one in made}
    out = StringIO()
    write_page(make_report([one.outcome for one in made]), lambda one: events[one.key], out)
    file = tmp_path / "page.html"
    file.write_text(out.getvalue(), "utf-8")
    with browser() as one:
        one.size(390, 844)
        one.open(file.as_uri())
        titles = set(one.run("return [...document.querySelectorAll('figcaption')].map(e => e.textContent)"))
        assert titles == {
            "Accuracy against calls allowed",
            "Accuracy against dollars a case",
            "Accuracy by number of replans",
            "Questions of one retrieval or several",
            "Accuracy by depth of the plan",
            "How deep plans are",
            "Accuracy by Elo of the answer",
            "Repeats",
            "Accuracy against seconds a case (critical path)",
        }
        whiskers = one.run("return document.querySelectorAll('.results .plotcell svg.forest').length")
        assert whiskers >= 4, "accuracy with its interval stands in the table of results"
        assert "100" in one.run(
            "return [...document.querySelectorAll('.chart svg text')].map(e => e.textContent).join()"
        )
        assert one.run(CUT) == []
        assert one.run(OUTSIDE) == [] and one.run("return document.documentElement.scrollWidth") == 390
        told = one.run("return document.querySelectorAll('.results')[1].textContent")
        assert "beside it: judge 1 call" in told and "simulator 12 calls" in told
