"""What becomes of the errors of a careless reader under the technique agent, and what a perfect one is charged with.

    python performance/careless_policy.py [--n 60] [--perfect 100] [--seed 1] [--kind KIND] [--show 0]
        [--dqa DIR] [--technique agent|plan_rag] [--limit 100]

A policy plays a model with native tool calls on five small databases, or on released questions of Decision QA. The
perfect ones play plan_rag in words too. It plans, makes one query and decides, with one
error of a known kind. If the answer is sent back, it mends what it was told and nothing else: an error that no
objection names stays. Right in the end is an answer that names the best candidate with its true figure. Some kinds
leave rows that agree with the answer, so the data cannot show them; their lines say why. Bars: of the others 90 % are
objected to, 95 % of these end right, and at most 1 % of the answers of a perfect policy are objected to.
It measures the objections, not a model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).parent))

from decisor.databases.sql import SqlTool
from decisor.lab.statistics import wilson
from decisor.runtime.budget import Budget
from decisor.runtime.run import Run
from decisor.techniques import build_technique
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import UnreadableReply, events_of
from decisor.types import Completion, Message, Question, Sampling, ToolCall, Usage
from planted.careless_worlds import World, fill_world, list_worlds
from planted.dqa_worlds import DqaWorld, list_dqa_worlds

SHOWABLE = {
    "no row": "an invented name",
    "no row, stored": "a candidate of the database that no row shown holds",
    "other figure": "the figure of another candidate",
    "unit": "another unit than the column's",
    "scale": "a thousand times as much, or as little",
    "invented": "a figure that no row holds",
    "unordered limit": "the first row of a LIMIT without ORDER BY",
    "own order": "the second row of its own order, as if it were the best",
    "one candidate": "the only candidate that its query names",
    "copied form": "the example of the form for a reason",
    "measure read": "the best by another column of a right table",
    "measure queried": "the best of a query for another measure, in the unit of the right one",
    "home": "what the question wants to reach, in each row",
    "home, queried": "what the question wants to reach, in the query alone",
}
HIDDEN = {
    "scale, misread": "8,400 is 8.4 with a decimal comma, and 2.518 is 2518 with a point for thousands",
    "unit, unnamed": "no column name has a unit, so nothing contradicts another one",
    "forgotten rule": "the rows agree with the answer; only the words of the rule say that a condition is missing",
    "forgotten, shown": "a column of the rule is shown, but only its words say which values it allows",
    "its own unit": "as measure queried, in its own unit: the rows hold the wrong measure alone and agree with it",
}
UNSAID = "skipping, unsaid"
"""The first rows break the rule, and the reasons do not say so: the same answer as a second row taken for the best."""
PERFECT = ("ordered", "first rows", "one row", "explored", "unordered", "skipping", "runner-up")
"""Ways to be right: all rows in order; the first 3; the first alone; after a look at some rows; rows without an order;
with candidates that break the rule among the rows; with a runner-up."""
PHRASES = (
    "{name} has the {extreme} {noun}, {value} [{id}], before {second} with {value2} [{id2}].",
    "{name}: {value} [{id}].",
    "At {value} [{id}], {name} is the best; {second} comes next with {value2} [{id2}].",
    "The {noun} of {name} is {value} [{id}]; the next is {second} at {value2} [{id2}].",
    "The {extreme} {noun} is {value} ({name}) [{id}].",
    "Of the candidates that the rules allow, {name} comes first with {value} [{id}].",
    "[{id}] {name} has {value}; [{id2}] {second} has {value2}.",
    "- {name}: {value} [{id}]\n- {second}: {value2} [{id2}]",
    "I choose {name}. Its {noun} is {value} [{id}]. The next one, {second}, has {value2} [{id2}].",
    "{name} ({value}) comes before {second} ({value2}) [{id}, {id2}].",
    "The {extreme} {noun} is {value}, that of {name} [{id}], against {value2} for {second} [{id2}].",
    "{value} is the {extreme} {noun} [{id}].",
)
ALONE = tuple(phrase for phrase in PHRASES if "{second}" not in phrase)
Row = dict[str, str]


@dataclass(frozen=True)
class Claim:
    """An answer as the policy writes it."""

    answer: str
    because: str
    wrong: tuple[str, ...] = ()
    """What is false in it: a figure, a unit, a name, a query. An objection that names one of them mends it."""


@dataclass
class CarelessPolicy:
    """A model that plans, queries and decides with one error, and mends what it is told."""

    world: World
    kind: str
    allowed: Sequence[str]
    """Candidates that the rules allow, best first."""
    dice: random.Random
    phrase: int = 0
    mended: bool = False
    """Whether an objection named its error."""
    objections: list[str] = field(default_factory=list)
    claim: Claim | None = None
    first: Claim | None = None
    """The claim that it made before any objection."""
    name: str = "careless policy"
    price: None = None

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        if sampling.tools:
            return Completion(("",), Usage(1, 100, 10), turn=self.take_turn(messages))
        # plan_rag shows its past in one prompt, and the steps are written as text.
        results = messages[1].content.partition("\n# So far\n")[2].split("\nObservation:\n")[1:]
        words = {"plan": "", "sql": "", "decide": "Re-plan: N\n"}
        for call in self.take_turn([Message("tool", text.partition("\nAction: ")[0]) for text in results]).calls:
            values = json.loads(call.arguments)
            if call.name == "plan":
                words["plan"] = (
                    f"Plan: [{', '.join(f'Step {at}: {text}' for at, text in enumerate(values['steps'], 1))}]\n"
                )
            elif call.name == "sql":
                words["sql"] = f"Thought: I query.\nAction: sql\nAction input: {values['query']}"
            else:
                words["decide"] += f"Final answer: {values['answer']}\nBecause: {values['because']}\n"
                words["decide"] += f"Runner-up: {values.get('runner_up', 'none')}"
        text = words["plan"] + ("Re-plan: N\n" * bool(results) + words["sql"] if words["sql"] else words["decide"])
        return Completion((text,), Usage(1, 100, 10))

    def take_turn(self, messages: Sequence[Message]) -> Message:
        results = [message.content for message in messages if message.role == "tool"]
        tables = [text for text in results if "\n[o" in text]
        if not results:
            plan: tuple[str, dict[str, object]] = (
                "plan",
                {"steps": [f"{self.world.noun} of every candidate", "choose the best"]},
            )
            return write_turn(plan, ("sql", {"query": self.first_query()}))
        if self.kind == "explored" and len(tables) == 1:
            return write_turn(("sql", {"query": self.world.query()}))
        if results[-1].startswith("Please check:"):
            self.objections = [line[2:] for line in results[-1].splitlines() if line.startswith("- ")]
            self.mended = any(self.bears_on_error(text) for text in self.objections)
            # What its query left out can only be had by another one.
            if self.mended and self.kind in ("unordered limit", "one candidate", "measure queried", *HIDDEN):
                return write_turn(("sql", {"query": self.world.query()}))
        rows = read_rows(tables[-1])
        self.claim = self.true_claim(rows) if self.mended or self.kind in (UNSAID, *PERFECT) else self.false_claim(rows)
        self.first = self.first or self.claim
        return write_turn(
            ("decide", {"answer": self.claim.answer, "because": self.claim.because, **self.runner_up(rows)})
        )

    def bears_on_error(self, objection: str) -> bool:
        wrong = self.claim.wrong if self.claim else ()
        return any(re.search(rf"(?<![\w.,]){re.escape(text)}(?![\w]|[.,]\d)", objection) for text in wrong)

    def first_query(self) -> str:
        world = self.world
        if self.kind == "one candidate":
            name = self.dice.choice(self.allowed[1:])
            condition = self.dice.choice(["{} = '{}'", "LOWER({}) = LOWER('{}')", "{} LIKE '{}%'", "{} IN ('{}')"])
            return world.query(also=condition.format(world.name, name))
        queries = {
            "no row, stored": world.query(tail=" LIMIT 3"),
            "unordered limit": world.query(order=False, tail=f" LIMIT {self.dice.choice([1, 2, 3])}"),
            "forgotten rule": world.query(rule=False),
            "forgotten, shown": world.query(rule=False, columns=(world.rule_column,)),
            "measure queried": world.query(measure=world.other),
            "its own unit": world.query(measure=world.other),
            "measure read": world.query(columns=(" AS ".join(world.other),)),
            "home": world.query(columns=(world.home_column,)),
            "unit, unnamed": world.query(measure=(world.measure[0], "total")),
            "first rows": world.query(tail=" LIMIT 3"),
            "one row": world.query(tail=" LIMIT 1"),
            "explored": f"SELECT * FROM {world.first_table} LIMIT 3",
            "unordered": world.query(order=False),
            "skipping": world.query(rule=False, columns=(world.rule_column,)),
            UNSAID: world.query(rule=False, columns=(world.rule_column,)),
        }
        return queries.get(self.kind) or world.query()

    @property
    def best(self) -> str:
        return self.allowed[0]

    def true_claim(self, rows: list[Row]) -> Claim:
        """Return what the rows show. The best is known: what is measured are the objections."""
        at = next(at for at, row in enumerate(rows) if row["name"] == self.best)
        factor = 1 if self.world.goal == "min" else -1
        allowed = [row for row in rows[:at] + rows[at + 1 :] if self.world.allows(row)]
        others = sorted(allowed, key=lambda row: factor * float(row[self.measure(rows)]))
        claim = self.write(rows[at], others[0] if others else None)
        passed = [row for row in rows[:at] if not self.world.allows(row)]
        if self.kind == "skipping" and passed:
            reason = self.dice.choice(
                [
                    "{} comes before it, but is not allowed by the rules [{}].",
                    "{} is not eligible [{}].",
                    "{} is excluded by the rules [{}].",
                    "I left out {}, which breaks the rule [{}].",
                ]
            )
            text = " ".join(reason.format(row["name"], row["id"]) for row in passed)
            return replace(claim, because=f"{claim.because} {text}")
        return claim

    def false_claim(self, rows: list[Row]) -> Claim:  # one case a kind
        world, dice, kind, first = self.world, self.dice, self.kind, rows[0]
        second = rows[1] if len(rows) > 1 else None
        value = first[self.measure(rows)]
        if kind in ("no row", "no row, stored"):
            shown = {row["name"] for row in rows}
            stored = [name for name in world.names if name not in shown]
            name = dice.choice(world.invented if kind == "no row" else stored)
            return replace(self.write(first | {"name": name}, second), answer=name, wrong=(name,))
        if kind == "other figure":
            other = dice.choice(rows[1:])[self.measure(rows)]
            return replace(self.write(first, second, value=other), wrong=self.spellings(other))
        if kind in ("unit", "unit, unnamed"):
            claim = self.write(first, second, unit=world.wrong_unit)
            return replace(claim, wrong=(world.wrong_unit, *self.spellings(value)))
        if kind == "scale":
            # 2.518 is 2518 as well, and 8,400 is 8.4: a reader of another country writes them so.
            other = dice.choice([f"{float(value) * 1000:.0f}", f"{float(value) / 1000:.2g}", f"{value} thousand"])
            written = f"{other} {world.unit}"
            return replace(self.write(first, second, written=written), wrong=(written, other, value))
        if kind == "scale, misread":
            other = f"{float(value) * 1000:,.0f}" if float(value) < 1000 else f"{float(value) / 1000:.3f}"
            written = f"{other} {world.unit}"
            return replace(self.write(first, second, written=written), wrong=(written, other))
        if kind == "invented":
            other = self.invent_figure(rows)
            if dice.random() < 0.5:
                return replace(self.write(first, second, value=other), wrong=self.spellings(other))
            claim, more = self.write(first, second), f" Its last figure was {other} {world.unit} [{first['id']}]."
            return replace(claim, because=claim.because + more, wrong=(other,))
        if kind == "own order":
            return replace(self.write(rows[1], dice.choice([rows[0], rows[2]])), wrong=(rows[1]["name"],))
        if kind == "copied form":
            text = dice.choice(["costs 12.5 [o1.r2]", f"{first['name']} costs 12.5 [o1.r2].", "It costs 12.5 [o1.r2]."])
            return Claim(first["name"], text, ("12.5", "o1.r2"))
        if kind == "measure read":
            alias, is_max = world.other[1], world.goal == "max"
            row, rival = sorted(rows, key=lambda row: float(row[alias]), reverse=is_max)[:2]
            claim = self.write(row, rival, value=row[alias], value2=rival[alias], unit=world.other_unit)
            because = claim.because.replace(world.noun, alias.rpartition("_")[0] or alias)
            return replace(claim, because=because, wrong=(row["name"],))
        if kind in ("home", "home, queried"):
            texts = [
                f"{world.home} is reached at {self.show(value)} [{first['id']}].",
                f"The {world.extreme} {world.noun} is that of {world.home}: {self.show(value)} [{first['id']}].",
                f"{first['name']} to {world.home} takes {self.show(value)} [{first['id']}], which is the best.",
            ]
            return Claim(world.home, dice.choice(texts), (world.home,))
        wrong = {
            "unordered limit": ("ORDER BY", first["name"]),
            "one candidate": (first["name"], "no other candidate"),
            "measure queried": (world.other[1],),
            "its own unit": (world.other[1],),
        }
        unit = world.other_unit if kind == "its own unit" else world.unit
        return replace(self.write(first, second, unit=unit), wrong=wrong.get(kind, (world.rule, world.rule_column)))

    def runner_up(self, rows: list[Row]) -> dict[str, str]:
        return {"runner_up": rows[1]["name"]} if self.kind == "runner-up" else {}

    def measure(self, rows: list[Row]) -> str:
        return list(rows[0])[2]

    def write(
        self,
        row: Row,
        second: Row | None,
        value: str = "",
        value2: str = "",
        unit: str | None = None,
        written: str = "",
    ) -> Claim:
        """Write a claim: this row is the best, before the second."""
        measure = list(row)[2]
        phrases = PHRASES if second else ALONE
        unit = self.world.unit if unit is None else unit
        text = phrases[self.phrase // 2 % len(phrases)].format(
            name=row["name"],
            extreme=self.world.extreme,
            noun=self.world.noun,
            value=written or self.show(value or row[measure], unit),
            id=row["id"],
            second=second["name"] if second else "",
            value2=self.show(value2 or second[measure], unit) if second else "",
            id2=second["id"] if second else "",
        )
        return Claim(row["name"], text)

    def show(self, value: str, unit: str | None = None) -> str:
        number = f"{float(value):,}".removesuffix(".0") if self.phrase % 2 else value
        return f"{number} {self.world.unit if unit is None else unit}".strip()

    def spellings(self, value: str) -> tuple[str, ...]:
        return (value, self.show(value, ""), self.show(value))

    def invent_figure(self, rows: list[Row]) -> str:
        known = [float(row[self.measure(rows)]) for row in rows]
        while True:
            figure = self.dice.uniform(0.6, 1.7) * self.dice.choice(known)
            figure = round(figure, 1) if figure > 10 else float(f"{figure:.4g}")
            if all(abs(figure - number) > 0.02 * number for number in known):
                return f"{figure:.7g}"

    def is_right(self, answer: str) -> bool:
        """Return whether the last answer names the best with its figure, and nothing false."""
        return self.claim is not None and answer == self.best and not self.claim.wrong


def write_turn(*calls: tuple[str, dict[str, object]]) -> Message:
    written = (ToolCall(f"c{at}", name, json.dumps(value)) for at, (name, value) in enumerate(calls))
    return Message("assistant", "", tuple(written))


def read_rows(result: str) -> list[Row]:
    """Read the rows of a result as the model sees them: id, name, measure and other columns, in this order."""
    lines = result.splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith("[o"))
    columns = ["id", "name", *lines[at - 1].split(" | ")[2:]]
    rows = [line.split(" | ") for line in lines[at:] if line.startswith("[o")]
    return [dict(zip(columns, [row[0].strip("[]"), *row[1:]], strict=True)) for row in rows]


async def play_kind(
    kind: str, n: int, options: argparse.Namespace, released: Sequence[DqaWorld]
) -> tuple[int, int, int]:
    """Return how many answers of a kind were given, objected to, and of these right in the end."""
    objected = right = 0
    show, is_true = options.show, kind in (UNSAID, *PERFECT)
    worlds = list(list_worlds(with_home=kind.startswith("home")))
    if kind == "measure queried":
        worlds = [world for world in worlds if world.other_unit != world.unit]
    fitting = [one for one in released if one.fits(kind) or (is_true and len(one.allowed) > 1)]
    random.Random(f"{options.seed} {kind}").shuffle(fitting)  # of both kinds of question
    n = len(fitting) if released and is_true else n if fitting or not released else 0
    with tempfile.TemporaryDirectory() as folder:
        for at in range(n):
            dice = random.Random(f"{options.seed} {kind} {at}")
            if fitting:
                chosen = fitting[at % len(fitting)]
                world, path, allowed = chosen.world, chosen.path, chosen.allowed
            else:
                world, path = worlds[at % len(worlds)], Path(folder) / "world.db"
                allowed = fill_world(world, path, dice)
            policy = CarelessPolicy(world, kind, allowed, dice, phrase=dice.randrange(2 * len(PHRASES)))
            tool = await SqlTool.open(f"sqlite:///{path}")
            try:
                run = Run(policy, Toolbox([tool]), Budget())
                decision = await build_technique(options.technique)(Question(world.question, world.rules), run)
            finally:
                await tool.close()
            complaints = [event.text for event in events_of(run.trace.entries, UnreadableReply)]
            is_right = policy.is_right(decision.answer)
            objected += bool(complaints)
            right += bool(complaints) and is_right
            is_odd = bool(complaints) if is_true else not (complaints and is_right)
            if is_odd and show > 0:
                show -= 1
                print(f"--- {kind}, {world.first_table}: best {policy.best}; {policy.first}")
                print("\n".join(complaints or ["(no objection)"]))
    return n, objected, right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=60, help="answers of each kind")
    parser.add_argument("--perfect", type=int, default=100, help="answers of each way to be right")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", action="append", help="kinds to play (default: all)")
    parser.add_argument("--show", type=int, default=0, help="misses and false alarms of each kind to print")
    parser.add_argument("--dqa", type=Path, help="folder of the released questions of Decision QA")
    parser.add_argument("--limit", type=int, help="questions of each scenario")
    parser.add_argument("--technique", choices=("agent", "plan_rag"), default="agent")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(options, Path(folder)))


async def measure(options: argparse.Namespace, folder: Path) -> None:
    released = [one async for one in list_dqa_worlds(options.dqa, options.limit, folder)] if options.dqa else []
    # Released worlds have neither a rule to forget nor units.
    known = [*SHOWABLE, *PERFECT] if released else [*SHOWABLE, *HIDDEN, *PERFECT, UNSAID]
    chosen = [kind for kind in options.kind or known if kind in PERFECT or options.technique == "agent"]
    for title, kinds in (("The data can show", SHOWABLE), ("The data cannot show", HIDDEN), ("True", PERFECT)):
        counts = [0, 0, 0]
        for kind in [kind for kind in kinds if kind in chosen and not (released and kind == "skipping")]:
            number = options.perfect if kinds is PERFECT else options.n
            found = await play_kind(kind, number, options, released)
            counts = [total + count for total, count in zip(counts, found, strict=True)]
            print_share(kind, *found)
            if kind in HIDDEN:
                print(f"    ({HIDDEN[kind]})")
        bars = {"The data can show": " (bars 90 and 95 %)", "True": " (bar 1 %)"}.get(title, "")
        print_share(f"{title}, all{bars}", *counts)
    if UNSAID in chosen:
        print_share(
            f"Not counted, as it is asked for its reason: {UNSAID}",
            *await play_kind(UNSAID, options.perfect, options, released),
        )


def print_share(name: str, n: int, objected: int, right: int) -> None:
    print(f"  {name:<16} objected to {share(objected, n)}, of these right {share(right, objected)}", flush=True)


def share(part: int, total: int) -> str:
    if not total:
        return "none"
    interval = wilson(part, total)
    return f"{part / total:.1%} of {total} (95 %: {interval.low:.1%} to {interval.high:.1%})"


if __name__ == "__main__":
    main()
