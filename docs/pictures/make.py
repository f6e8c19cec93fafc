"""The picture of the README: the demo's run in 20 seconds, drawn from what the demo really does.

python docs/pictures/make.py    writes demo.svg beside this file

Five scenes in one SVG with CSS keyframes, which run inside an <img>: plan, query, replan, compare, decide. No text is
below 16 px in a picture of 390 px, so that a phone shows it. Where nothing may move, the last scene stands alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path

from decisor.demo.demo import QUESTION, UNSUPPORTED, compute_decision, replay_recorded_run, write_shop
from decisor.trace.events import ActionResult, Plan, PlanChange

HERE = Path(__file__).parent
WIDTH, HEIGHT, SECONDS, MARGIN = 390, 440, 20, 20
SCENES = {"Plan": (0, 3.6), "Query": (3.6, 7.4), "Replan": (7.4, 11.6), "Compare": (11.6, 15.2), "Decide": (15.2, 20)}
"""Each with its first and last second."""
SHORT = {
    "compute for each supplier the profit of the year without it, and how many products nobody else has": (
        "compute the profit without each supplier"
    ),
    "of those that leave no product without a supplier take the largest profit": (
        "take the largest that keeps every product"
    ),
}
"""Steps of the recorded plan that are too long for a phone. A new recording needs new words."""
STYLE = """
svg{--paper:#fbfaf7;--ink:#1b1b19;--soft:#5c5b56;--line:#d9d6ce;--accent:#0a5c73;--tint:#e1eff2;--red:#b02a1b}
@media(prefers-color-scheme:dark){svg{--paper:#121416;--ink:#ecebe8;--soft:#a5a7a6;--line:#3a3f43;--accent:#72c7dc;
--tint:#14333b;--red:#ff9480}}
text{font:16px Inter,-apple-system,"Segoe UI",Roboto,Arial,sans-serif;fill:var(--ink)}
.code{font:16px ui-monospace,Menlo,Consolas,monospace}.big{font-size:30px;font-weight:600;letter-spacing:-.6px}
.mid{font-size:20px;font-weight:600}.b{font-weight:600}.s{fill:var(--soft)}.a{fill:var(--accent)}.r{fill:var(--red)}
.n{text-anchor:end}.c{text-anchor:middle}.gone{text-decoration:line-through;fill:var(--soft)}
.wave{text-decoration:underline wavy var(--red);fill:var(--red)}.paper{fill:var(--paper)}.tint{fill:var(--tint)}
.line{stroke:var(--line)}.now{stroke:var(--ink);stroke-dasharray:3 3}.box{fill:none;stroke:var(--red);stroke-width:1.5}
circle{fill:var(--ink)}circle.a{fill:var(--accent)}circle.ring{fill:none;stroke:var(--soft);stroke-width:1.5}
.t{opacity:0}.last{opacity:1}@media(prefers-reduced-motion:reduce){.t{animation:none!important}}
"""


@dataclass(frozen=True)
class Choice:
    """A supplier with the profit of the year without it, in EUR."""

    name: str
    profit: float
    is_allowed: bool


@dataclass(frozen=True)
class Story:
    """What the run did, as far as the picture tells it."""

    first_plan: tuple[str, ...]
    returns: tuple[tuple[str, int, float, int], ...]
    """Supplier, returns, per cent of its purchases, of them damaged in transport."""
    why: str
    second_plan: tuple[str, ...]
    today: float
    choices: tuple[Choice, ...]
    """Best first."""
    answer: str
    claim: str
    """The sentence of the answer with the figure that no row shows."""


def run_demo(folder: Path) -> Story:
    """Run the demo in a folder and return its story; fail where the run no longer fits the picture."""
    shop = folder / "shop.db"
    write_shop(shop)
    result, computed = replay_recorded_run(shop), compute_decision(shop).ranking
    assert computed is not None and result.answer == computed.options[0].name
    events = [entry.event for entry in result.trace]
    first = next(event for event in events if isinstance(event, Plan))
    second = next(event for event in events if isinstance(event, PlanChange))
    returns, profits = (event.observation.records for event in events if isinstance(event, ActionResult))
    rows = [record.fields for record in returns][:3]
    out = {one.name for one in computed.excluded}
    choices = [
        Choice(str(row["name"]), float(str(row["profit_without"])), row["name"] not in out)
        for row in (record.fields for record in profits)
    ]
    assert {one.name: round(one.outcome, 2) for one in computed.options}.items() <= {
        one.name: one.profit for one in choices
    }.items()
    claim = next(text for text in " ".join(result.decision.reasons).split(". ") if UNSUPPORTED in text)
    return Story(
        tuple(step.capitalize() for step in first.steps),
        tuple(
            (str(row["name"]), int(str(row["returns"])), float(str(row["percent"])), int(str(row["damaged"])))
            for row in rows
        ),
        second.why.partition(":")[0].replace("most of", "Most of", 1) + ".",
        tuple(SHORT[step].capitalize() for step in second.steps),
        float(str(profits[0].fields["profit_today"])),
        tuple(choices),
        result.answer,
        claim.rstrip(".") + ".",
    )


class Picture:
    """Marks that appear at a second and stay until their scene ends."""

    def __init__(self) -> None:
        self.marks: list[str] = []
        self.frames: dict[tuple[float, float], str] = {}

    def add(self, start: float, scene: str, *marks: str) -> None:
        end = SCENES[scene][1]
        name = self.frames.setdefault((start, end), f"k{len(self.frames)}")
        kind = "t last" if scene == "Decide" else "t"
        self.marks.append(f'<g class="{kind}" style="animation:{name} {SECONDS}s linear infinite">{"".join(marks)}</g>')

    def keyframes(self) -> str:
        def percent(second: float) -> str:
            return f"{100 * second / SECONDS:.2f}%"

        return "".join(
            f"@keyframes {name}{{0%,{percent(start)}{{opacity:{int(start == 0)}}}{percent(start + 0.3)},"
            f"{percent(end - 0.2)}{{opacity:1}}{percent(end)},100%{{opacity:{int(end == SECONDS)}}}}}"
            for (start, end), name in self.frames.items()
        )


def write_text(x: float, y: float, words: object, kind: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(str(words))}</text>'


def draw_rule(x1: float, x2: float, y1: float, y2: float, kind: str = "line") -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:g}" y2="{y2:g}"/>'


def wrap_words(words: str, letters: int) -> list[str]:
    lines = [""]
    for word in words.split():
        if len(lines[-1]) + len(word) < letters:
            lines[-1] = f"{lines[-1]} {word}".strip()
        else:
            lines.append(word)
    return lines


def write_block(y: float, words: str, kind: str = "", x: float = MARGIN, letters: int = 42) -> tuple[str, float]:
    """Return lines of text, and the place below them."""
    lines = wrap_words(words, letters)
    return "".join(write_text(x, y + 22 * n, line, kind) for n, line in enumerate(lines)), y + 22 * len(lines)


def write_steps(y: float, steps: Iterable[str], mark: str, kind: str = "", mark_kind: str = "a b") -> tuple[str, float]:
    drawn = ""
    for step in steps:
        body, below = write_block(y, step, kind, MARGIN + 24, 38)
        drawn, y = drawn + write_text(MARGIN, y, mark, mark_kind) + body, below + 8
    return drawn, y


def draw_plan(picture: Picture, story: Story) -> None:
    command = ("decisor ask --db shop.db", f'"{QUESTION.text}"')
    picture.add(0, "Plan", *(write_text(MARGIN, 40 + 24 * n, line, "code b") for n, line in enumerate(command)))
    picture.add(1.2, "Plan", write_text(MARGIN, 104, "Plan", "mid"), write_steps(138, story.first_plan, "○")[0])


def draw_query(picture: Picture, story: Story) -> None:
    def row(y: float, cells: Iterable[object], kind: str = "") -> str:
        places = zip((MARGIN, 218, 280, 370), cells, strict=True)
        return "".join(write_text(x, y, cell, f"{kind} n" if n else kind) for n, (x, cell) in enumerate(places))

    title = write_text(MARGIN, 44, "Query 1", "s"), write_text(MARGIN, 74, "Returns by supplier", "mid")
    head = row(122, ("", "returns", "%", "damaged"), "s") + draw_rule(MARGIN, 370, 134, 134)
    picture.add(3.6, "Query", *title, head)
    for n, cells in enumerate(story.returns):
        picture.add(4.2 + 0.35 * n, "Query", row(162 + 34 * n, cells, "" if n else "b"))
    name, returns, _, damaged = story.returns[0]
    lines = f"{name} has the most returns:", f"{damaged} of {returns} were damaged in transport."
    tint = '<rect class="tint" x="296" y="140" width="80" height="32" rx="4"/>'
    words = (write_text(MARGIN, 288 + 24 * n, line) for n, line in enumerate(lines))
    picture.add(5.6, "Query", tint, write_text(370, 162, damaged, "b n a"), *words)


def draw_replan(picture: Picture, story: Story) -> None:
    why, y = write_block(84, story.why)
    picture.add(7.4, "Replan", write_text(MARGIN, 46, "It changes its plan", "mid a"), why)
    old, y = write_steps(y + 24, story.first_plan[1:], "−", "gone", "s")
    picture.add(8.6, "Replan", old)
    picture.add(9.6, "Replan", write_steps(y + 12, story.second_plan, "+", "b")[0])


def draw_comparison(picture: Picture, story: Story) -> None:
    profits = [choice.profit for choice in story.choices]
    low, high = min(profits) - 4000, max(profits) + 3000

    def place(value: float) -> float:
        return 140 + 160 * (value - low) / (high - low)

    now = place(story.today)
    today = f'<text x="{now:.1f}" y="84" class="s c">today</text>' + draw_rule(now, now, 92, 350, "now")
    picture.add(11.6, "Compare", write_text(MARGIN, 46, "Profit without each supplier, EUR", "b"), today)
    ticks = [tick for tick in range(int(low) // 20_000 * 20_000, int(high), 20_000) if tick > low]
    axis = (
        f'<text x="{place(tick):.1f}" y="368" class="s c">{tick // 1000}k</text>'
        + draw_rule(place(tick), place(tick), 92, 350)
        for tick in ticks
    )
    picture.add(11.8, "Compare", *axis)
    for n, choice in enumerate(story.choices):
        kind = ("a b" if choice.name == story.answer else "") if choice.is_allowed else "s"
        y, dot = 116 + 36 * n, kind if choice.is_allowed else "ring"
        circle = f'<circle class="{dot}" cx="{place(choice.profit):.1f}" cy="{y - 5}" r="6"/>'
        figure = write_text(370, y, f"{choice.profit:,.0f}", f"{kind} n")
        picture.add(12 + 0.15 * n, "Compare", write_text(MARGIN, y, choice.name, kind), circle, figure)
    picture.add(13.6, "Compare", write_text(MARGIN, 392, "○ not allowed: a product is lost", "s"))


def draw_decision(picture: Picture, story: Story) -> None:
    profit = next(choice.profit for choice in story.choices if choice.name == story.answer)
    reason = f"Profit grows from {story.today:,.0f} to {profit:,.0f}, and no product is lost."
    answer = write_text(MARGIN, 64, f"Drop {story.answer}", "big"), write_text(MARGIN, 98, format_gain(story), "mid a")
    picture.add(15.2, "Decide", *answer, write_block(142, reason)[0])
    # The figure keeps to one line with its unit, so that its mark is whole.
    before, _, after = story.claim.partition(UNSUPPORTED)
    first, second = before.rsplit(" ", 2)[0], before.rsplit(" ", 2)[1]
    claim = f'<tspan class="wave b">{UNSUPPORTED}</tspan>{escape(after)}'
    picture.add(
        16.6,
        "Decide",
        write_text(MARGIN, 236, first),
        f'<text x="{MARGIN}" y="260">{escape(second)} {claim}</text>',
    )
    box = f'<rect class="box" x="{MARGIN}" y="282" width="350" height="76" rx="8"/>'
    flag = write_text(MARGIN + 16, 312, f"No row shows {UNSUPPORTED}.", "b r")
    picture.add(17.4, "Decide", box, flag, write_text(MARGIN + 16, 338, "Every other figure has its row.", "s"))


def format_gain(story: Story) -> str:
    profit = next(choice.profit for choice in story.choices if choice.name == story.answer)
    return f"{profit - story.today:+,.0f} EUR a year"


def draw(story: Story) -> str:
    """Return the story as an animated SVG that fetches nothing."""
    picture = Picture()
    for scene in (draw_plan, draw_query, draw_replan, draw_comparison, draw_decision):
        scene(picture, story)
    for n, (name, (start, _)) in enumerate(SCENES.items()):
        bar = f'<rect x="{MARGIN + 71 * n}" y="404" width="66" height="4" rx="2"'
        picture.marks.append(f'{bar} fill="var(--line)"/>')
        picture.add(start, name, f'{bar} fill="var(--accent)"/>', write_text(MARGIN, 430, name, "s"))
    title = f"{QUESTION.text} Plan, query, replan, compare, decide: drop {story.answer}, {format_gain(story)}."
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img"><title>{escape(title)} No row shows {UNSUPPORTED}.</title><style>{STYLE}{picture.keyframes()}'
        f'</style><rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="14"/>{"".join(picture.marks)}</svg>\n'
    )


def make(folder: Path) -> str:
    return draw(run_demo(folder))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        (HERE / "demo.svg").write_text(make(Path(place)), "utf-8")
