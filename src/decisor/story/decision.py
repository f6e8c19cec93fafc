"""The end of a run: the decision, its ranking as bars, its evidence and what it cost."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, assert_never

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from decisor.plurals import counted
from decisor.rankings import compared, excluded, varied
from decisor.render.text import clean, number, one_line
from decisor.story.answer_charts.terminal import chart_lines
from decisor.story.charts import study_lines
from decisor.story.figure_cells import cells_of
from decisor.story.lines import passage_line
from decisor.story.rows import groups_of, row_lines
from decisor.types import Decision, Ranking, Record, Study, Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from decisor.story.answer_charts.chart import Chart

BARS, ROWS = 10, 20
FEW_RECORDS = 6
"""Of one observation; more are a table."""
WIDTH = 32
MOST_NAMED = 5
MOST_CHARACTERS = 400
"""Of an evidence line where no terminal is narrower."""
BEST = "; this is the best supported answer until then"


def show_decision(
    decision: Decision, records: Sequence[Record], console: Console, charts: Sequence[Chart] = ()
) -> None:
    console.print()
    answer = one_line(decision.answer, 300) or "none"
    console.print(Text.assemble(("Decision: ", "bold"), (answer, "bold green" if decision.answer else "bold red")))
    if why := ended(decision):
        console.print(Text(f"  {why}", style="yellow"))
    for reason in decision.reasons:
        if reason.startswith("No LM planned this"):
            continue  # said at the end, with how to name one
        console.print(Padding(Text(clean(reason)), (0, 0, 0, 2), expand=False))
    for line in beside(decision):
        console.print(Padding(Text(clean(line), style="dim"), (0, 0, 0, 2), expand=False))
    if decision.ranking and decision.ranking.options:
        show_ranking(decision.ranking, console, decision.reasons)
    show_charts(charts, console)
    show_evidence(decision, records, console)


def beside(decision: Decision) -> tuple[str, ...]:
    """The next best candidate and what was assumed, a line each.

    >>> beside(Decision("oak", runner_up="elm, 412", assumptions=("rents are monthly",)))
    ('Runner-up: elm, 412', 'Assumption: rents are monthly')
    """
    runner_up = (f"Runner-up: {decision.runner_up}",) if decision.runner_up else ()
    return (*runner_up, *(f"Assumption: {text}" for text in decision.assumptions))


def ended(decision: Decision) -> str:
    """How the run ended, in words; '' where it just answered."""
    best = BEST if decision.answer else ""
    match decision.stopped:
        case "answered":
            return ""
        case "budget":
            return f"A limit ended the run{best}."
        case "steps":
            return f"The technique's step limit ended the run{best}."
        case "no_answer":
            return "The data do not decide it."
        case "failed":
            return "The run failed."
        case _:
            assert_never(decision.stopped)


def show_ranking(ranking: Ranking, console: Console, known: Sequence[str] = ()) -> None:
    """Bars run from the worst candidate (nothing) to the best (full width), as differences are often small.
    ``known``: what stands above already."""
    options = [option for option in ranking.options if math.isfinite(option.outcome)]
    if not options:
        return
    best, worst = options[0].outcome, options[-1].outcome
    word = "largest" if ranking.goal == "max" else "smallest"
    console.print()
    console.print(
        Text(f"Ranking: {clean(ranking.measure)}, {word} first, {counted(ranking.count, 'candidate')}", style="bold")
    )
    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right", style="dim")
    grid.add_column(overflow="ellipsis", no_wrap=True, max_width=32)
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(no_wrap=True)
    for place, option in enumerate(options[:BARS], 1):
        share = 1.0 if best == worst else (option.outcome - worst) / (best - worst)
        tied = option.name in ranking.ties
        bar = Text(bar_of(share), style="green" if tied or place == 1 else "cyan")
        cells = (f"  {place}", Text(one_line(option.name, 40)), bar, number(option.outcome))
        between = "" if option.low is None or option.high is None else f"{number(option.low)} to {number(option.high)}"
        grid.add_row(*cells, Text(between, style="dim"))
    console.print(grid)
    if len(options) > BARS:
        console.print(Text(f"    … and {len(options) - BARS} more, the last with {number(worst)}", style="dim"))
    for line in (compared(ranking), *excluded(ranking), varied(ranking)):
        if line and ranking.candidates is not None and not any(line in text for text in known):
            console.print(Text(f"    {clean(line)}", style="dim"))
    console.print(Text("    A bar's length: how far from the last candidate (none) to the first (full).", style="dim"))
    if any(option.low is not None for option in options[:BARS]):
        console.print(Text("    Beside it: what 90 % of its outcomes lie between while the inputs vary.", style="dim"))


def show_charts(charts: Sequence[Chart], console: Console) -> None:
    for chart in charts:
        head, *lines = chart_lines(chart)
        console.print()
        console.print(Text(clean(head), style="bold"))
        for line in lines:
            console.print(Text(clean(line)), no_wrap=True, overflow="ellipsis")


def show_studies(studies: Sequence[Study], console: Console) -> None:
    """Each with a title; long lines are cut where the terminal ends."""
    for study in studies:
        head, *lines = study_lines(study)
        console.print()
        console.print(Text(head, style="bold"))
        for line in lines:
            console.print(Text(line), no_wrap=True, overflow="ellipsis")


def bar_of(share: float) -> str:
    """
    >>> bar_of(1.0) == "█" * 32, bar_of(0.0), bar_of(0.5 / 32)
    (True, '', '▌')
    """
    eighths = round(max(0.0, min(1.0, share)) * WIDTH * 8)
    return "█" * (eighths // 8) + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[eighths % 8]


def show_evidence(decision: Decision, records: Sequence[Record], console: Console) -> None:
    if not records and not decision.evidence.figures and not decision.evidence.objections:
        return
    console.print()
    console.print(Text("Evidence", style="bold"))
    width = min(console.width - 16, MOST_CHARACTERS)
    tables = {group[0].id: group for group in groups_of(records) if len(group) > FEW_RECORDS}
    in_tables = {record.id for group in tables.values() for record in group}
    for record in records:
        if record.id in tables:
            show_table(tables[record.id], console)
        elif record.id not in in_tables:
            console.print(
                Text.assemble("  ", (f"[{one_line(record.id)}]", "cyan"), " ", record_line(record, width, decision))
            )
    for one in decision.evidence.objections:
        console.print(
            Padding(Text(f"Objection: {one_line(one.text, 500)}", style="bold red"), (0, 0, 0, 2), expand=False)
        )
    for line in doubts(decision):
        console.print(Padding(Text(line, style="yellow"), (0, 0, 0, 2), expand=False))


def show_table(records: Sequence[Record], console: Console) -> None:
    for line in row_lines(records[:ROWS], with_ids=True):
        console.print(Text(f"  {line}"), no_wrap=True, overflow="ellipsis")
    if len(records) > ROWS:
        console.print(
            Text(f"  … and {counted(len(records) - ROWS, 'row')} more; --html and --json have all", style="dim")
        )


def doubts(decision: Decision) -> tuple[str, ...]:
    """The pitfalls of the queries that it rests on, a line each.

    >>> from decisor.types import Evidence, Pitfall
    >>> doubts(Decision("oak", Evidence(("o1.r1",), pitfalls=(Pitfall("limit_order", "Left to chance.", ("o1.r1",)),))))
    ('Doubtful [o1.r1]: Left to chance.',)
    """
    return tuple(
        f"Doubtful [{', '.join(map(one_line, one.records[:MOST_NAMED]))}]: {one_line(one.text, 500)}"
        for one in decision.evidence.pitfalls
    )


def record_line(record: Record, width: int, decision: Decision) -> str:
    """Of a passage where it stands; of a row its name, then the columns that hold a figure of the decision."""
    if record.text:
        return passage_line(record, max(width, 40))
    cells = [f"{name} {number(v) if isinstance(v, float) else v}" for name, v in record.fields.items()]
    deciding = {cell.column for one in decision.evidence.figures for cell in cells_of(one, {record.id: record})}
    order = sorted(range(len(cells)), key=lambda at: (at > 0, at not in deciding, at))
    return one_line(", ".join(cells[at] for at in order), max(width, 40))


def show_dim(text: str, console: Console) -> None:
    console.print(Text(clean(text), style="dim"))


def usage_line(usage: Usage, technique: str, lm: str) -> str:
    cost = "price unknown" if usage.dollars is None else f"${usage.dollars:.4f}"
    cached = f" ({usage.cache_reads:,} from a cache)" if usage.cache_reads else ""
    guess = ", in part estimated" if usage.estimates else ""
    calls = f"{counted(usage.calls, 'LM call')} to {clean(lm)}, {usage.tokens:,} tokens{cached}, {cost}{guess}"
    return f"{one_line(technique)}: {counted(usage.actions, 'action')}, {calls if lm else 'no LM calls'}"
