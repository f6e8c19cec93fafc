"""A paper's table with ours in its cells, and how it is written: for a terminal, Markdown, HTML, LaTeX and JSON.

A cell reads ours / published, then the difference and its 95 % interval. The published figure is taken as exact, so the
interval is that of ours. Where one of the two is missing a dash stands; what nobody had to run it says so.

The runs for the tables are suites for ``decisor eval``, with their estimated cost. Calls and tokens of a case are
measured: on the outcomes of the same LLM that a store holds already, else by functions that play a model
(``lab/published/usage.toml``, made by ``performance/reproduce_usage.py``). A real model writes more than they do, so an
estimate from them is low.
"""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

from decisor.errors import SetupError
from decisor.lab.benchmark import Outcome, find_bench_class, find_bench_data
from decisor.lab.evaluation.runner import Suite
from decisor.lab.evaluation.store import open_store
from decisor.lab.evaluation.suite import SuiteRequest, format_columns, label_bench, label_technique, parse_suite_entry
from decisor.lab.report.document import escape_markdown_cell
from decisor.lab.reproduction.papers import (
    CellFigure,
    MeasuredRun,
    Paper,
    PaperRow,
    PaperTable,
    PublishedCell,
    Subject,
    keep_shared_cases,
    measure_cell,
    measure_size,
)
from decisor.lab.statistics import Interval, mean
from decisor.llms.prices import price_of_llm
from decisor.system.settings import setting_fields
from decisor.system.wording import format_count
from decisor.techniques import asks_llm, find_technique_class
from decisor.views.markup import Html, join, scroll_table_html, tag

NOT_OF_A_CASE = ("judge", "simulate", "live", "key_env", "evaluations", "corpus", "mode")
"""Settings of a benchmark that say who answers or judges: they do not tell one table's benchmark from another's."""
READING = "Each cell: ours / published (difference; 95 % interval of the difference)."
COUNTED_FROM_FILES = "Ours: counted from the files at hand."
DASH = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class FilledCell:
    """A cell with both figures."""

    ours: CellFigure | None
    published: PublishedCell
    digits: int = 1
    never: bool = False
    """Whether nobody here had what it needs."""

    @property
    def difference(self) -> float | None:
        """Ours minus the published figure; None if either is missing or a count stands beside it."""
        figure = self.published[1] if isinstance(self.published, tuple) else self.published
        if self.ours is None or isinstance(figure, str) or self.ours.count == 0:
            return None
        return self.ours.value - figure

    @property
    def interval(self) -> Interval | None:
        """The interval of the difference, else of ours."""
        if self.ours is None or self.ours.interval is None:
            return None
        low, high = self.ours.interval.low, self.ours.interval.high
        shift = 0.0 if self.difference is None else self.difference - self.ours.value
        return Interval(low + shift, high + shift)

    def lines(self) -> tuple[str, str]:
        """Return both figures, and the difference with its interval; the second is '' if there is none."""
        nothing = "not run here" if self.never else DASH
        if self.ours is None:
            known = self.published != ""
            return f"{nothing} / {format_published(self.published, self.digits)}" if known else nothing, ""
        digits = 0 if self.ours.is_whole else self.digits
        share = f"{self.ours.value:.{digits}f}"
        ours = share if self.ours.count is None else f"{self.ours.count} ({share})"
        figures = f"{ours} / {format_published(self.published, digits)}"
        if self.difference is None:
            own = self.interval
            return figures, f"{own.low:.{digits}f} to {own.high:.{digits}f}" if own else ""
        difference = format_signed(self.difference, digits)
        if self.interval is None:
            return figures, difference
        low, high = (format_signed(end, digits) for end in (self.interval.low, self.interval.high))
        return figures, f"{difference}; {low} to {high}"

    def text(self) -> str:
        """Format the cell in one line.

        >>> FilledCell(CellFigure(61.5, Interval(54.6, 68.0)), 64.3).text().replace(MINUS, "-")
        '61.5 / 64.3 (-2.8; -9.7 to +3.7)'
        >>> FilledCell(None, (376, 66.8)).text(), FilledCell(CellFigure(50.0, None, 3), "").text()
        ('– / 376 (66.8)', '3 (50.0) / –')
        """
        figures, difference = self.lines()
        return f"{figures} ({difference})" if difference else figures


@dataclass(frozen=True)
class FilledTable:
    """A table of a paper with ours in its cells."""

    paper: str
    name: str
    title: str
    place: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[FilledCell, ...]], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class RunData:
    """Measured outcomes for the cells."""

    outcomes: Sequence[Outcome]
    data: Path | None = None
    """Folder of the released files of Decision QA."""
    ranks: Mapping[str, float] | None = None
    """Mean preference ranks, by label of a technique."""
    settings: Mapping[str, str] | None = None
    """Settings that were added to each technique that has them."""

    def of(self, cell: Subject, model: str) -> list[Outcome]:
        """Return the outcomes that a cell is about, of one LLM; of no LLM if the technique asks none."""
        labels = {select_label_parts(label_bench(text)) for text in cell.benches}
        technique = add_settings(cell.technique, self.settings or {})
        label = label_technique(technique)
        part = [
            one
            for one in self.outcomes
            if drop_part_llms(one.technique) == label
            and one.model in (model, "none")
            and (not cell.group or one.group == cell.group)
            and select_label_parts(one.benchmark) in labels
        ]
        return keep_shared_cases(part, len(labels)) if len(labels) > 1 else part


def select_label_parts(label: str) -> frozenset[str]:
    """Return the parts of a benchmark's label that tell which cases it has and how they are shown.

    >>> sorted(select_label_parts("toolbench judge=m@http://host every_answer=yes"))
    ['every_answer=yes', 'toolbench']
    """
    name, *parts = label.split(" ")
    known = set(setting_fields(find_bench_class(name))) - set(NOT_OF_A_CASE)
    return frozenset([name, *(part for part in parts if part.partition("=")[0] in known)])


def drop_part_llms(label: str) -> str:
    """Return a technique's label without the LLMs of its parts.

    >>> drop_part_llms("reasoning_dag critic=yes planner_llm=gpt-4o")
    'reasoning_dag critic=yes'
    """
    return re.sub(r" \w+_llm=\S+", "", label)


def add_settings(technique: str, settings: Mapping[str, str]) -> str:
    """Add the settings that a technique has and its entry does not name; those of LLMs of its parts too.

    >>> add_settings("plan_rag replan=no", {"max_steps": "5", "replan": "yes", "critic": "no"})
    'plan_rag replan=no max_steps=5'
    """
    from decisor.techniques import find_technique_class
    from decisor.techniques.shared.judge import map_llm_settings
    from decisor.techniques.shared.prompts_file import OWN

    name = technique.split(" ")[0]
    kind = find_technique_class(name)
    known = {*setting_fields(kind), *map_llm_settings(kind), *OWN}
    named = {part.partition("=")[0] for part in technique.split(" ")[1:]}
    more = [f"{key}={value}" for key, value in settings.items() if key in known and key not in named]
    return " ".join([technique, *more])


def fill_table(paper: Paper, table: PaperTable, run: RunData, models: Sequence[str]) -> list[FilledTable]:
    """Fill a table: once for each LLM, or once in all if its rows are of LLMs of their own."""
    if any(row.model for row in table.rows):
        return [fill_rows(paper, table, run, models, add_own_rows(table, models))]
    return [fill_rows(paper, table, run, [model], table.rows) for model in models or [""]]


def add_own_rows(table: PaperTable, models: Sequence[str]) -> list[PaperRow]:
    """Return the rows of a table, and for each LLM that no row is of, one for each of its techniques."""
    others = [model for model in models if not any(is_model_of(row.model, model) for row in table.rows if row.model)]
    shown = {row.technique: row for row in reversed(table.rows) if row.model and not row.never}
    own = [
        replace(row, head=f"{label_technique(row.technique)}, {model}", model=re.escape(model), published=())
        for model in others
        for row in reversed(shown.values())
    ]
    return [*table.rows, *own]


def is_model_of(pattern: str, model: str) -> bool:
    return re.search(pattern, model, re.IGNORECASE) is not None


def fill_rows(
    paper: Paper, table: PaperTable, run: RunData, models: Sequence[str], rows: Sequence[PaperRow]
) -> FilledTable:
    filled = []
    used: dict[tuple[str, str, str], None] = {}
    for row in rows:
        model = next((name for name in models if not row.model or is_model_of(row.model, name)), "")
        cells = []
        for at, column in enumerate(table.columns):
            cell = table.subject(row, column)
            own = run.of(cell, model) if cell.measure and cell.technique else []
            used |= dict.fromkeys((one.model, one.benchmark, one.case) for one in own)
            ours = measure_subject(cell, own, run, table, model)
            published = row.published[at] if row.published else ""
            cells.append(FilledCell(ours, published, table.digits, bool(cell.never) and ours is None))
        filled.append((row.head, tuple(cells)))
    never = {table.subject(row, column).never for row in table.rows for column in table.columns} - {""}
    notes = [
        READING,
        describe_runs(list(used)) if any(cell.technique for cell in table.subjects()) else COUNTED_FROM_FILES,
        f"Published: {paper.published_with}.",
        *([f"Nobody has run this here with {' or '.join(sorted(never))}."] if never else []),
        table.note.strip(),
    ]
    heads = (table.row_head, *(column.head for column in table.columns))
    return FilledTable(
        paper.title, table.name, table.title, table.place, heads, tuple(filled), tuple(note for note in notes if note)
    )


def measure_subject(
    cell: Subject, own: Sequence[Outcome], run: RunData, table: PaperTable, model: str
) -> CellFigure | None:
    """Return our figure of a cell; None if there is none."""
    if not cell.measure:
        return None
    if cell.measure.startswith("size "):
        return measure_size(run.data, cell.group, cell.measure.removeprefix("size ")) if run.data else None
    other = {
        name: run.of(replace(cell, technique=name, group=""), model) for name in (table.splitter, table.rater) if name
    }
    measured = MeasuredRun(own, other.get(table.splitter, ()), other.get(table.rater, ()), run.ranks or {})
    return measure_cell(cell.measure, measured)


def describe_runs(used: Sequence[tuple[str, str, str]]) -> str:
    """Say which LLM ours are of, and how many cases of each benchmark.

    >>> describe_runs([("gpt-4", "dqa", "a"), ("gpt-4", "dqa", "b"), ("none", "dqa", "a")])
    'Ours: gpt-4; dqa 2 cases.'
    """
    if not used:
        return "Ours: nothing has been run."
    models = [model for model in dict.fromkeys(model for model, _, _ in used) if model != "none"]
    cases = {
        bench: {case for _, name, case in used if name == bench} for bench in dict.fromkeys(name for _, name, _ in used)
    }
    counts = ", ".join(f"{bench} {format_count(len(ids), 'case')}" for bench, ids in cases.items())
    return f"Ours: {', '.join(map(escape_markdown_cell, models)) or 'no LLM'}; {counts}."


def format_published(cell: PublishedCell, digits: int) -> str:
    """Format a published figure as the paper prints it.

    >>> [format_published(cell, 1) for cell in (30, 3.96, 64.0, (376.0, 66.8), "")]
    ['30', '3.96', '64.0', '376 (66.8)', '–']
    """
    if isinstance(cell, tuple):
        return f"{cell[0]:g} ({cell[1]:.{digits}f})"
    if isinstance(cell, float):
        # A paper may print one figure of a table with more digits than the others.
        return max(f"{cell:.{digits}f}", f"{cell:g}", key=len)
    return str(cell) or DASH


def format_signed(value: float, digits: int) -> str:
    text = f"{value:+.{digits}f}"
    return text.replace("-", MINUS)


def format_markdown(table: FilledTable) -> str:
    """Format a filled table as Markdown, notes below it."""
    # Names of LLMs are somebody's words; everything else is ours.
    rows = [[escape_markdown_cell(head), *(cell.text() for cell in cells)] for head, cells in table.rows]
    rule = f"|---|{'---:|' * (len(table.heads) - 1)}"
    lines = [f"| {' | '.join(row)} |" for row in (table.heads, *rows)]
    notes = (" ".join(note.split()) for note in table.notes)
    return "\n".join([f"### {describe_table(table)}", "", lines[0], rule, *lines[1:], "", *notes]) + "\n"


def describe_table(table: FilledTable) -> str:
    return f"{table.paper}, {table.name} ({table.place}): {table.title}"


LATEX = re.compile(r"[&%$#_{}~^\\]")
LATEX_OF = {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}


def format_latex(table: FilledTable) -> str:
    r"""Format a filled table as LaTeX (booktabs): ours before the published figure, the difference small below.

    >>> escape_latex("50 % of a_b | –")
    '50 \\% of a\\_b | --'
    """
    lines = [
        r"\begin{table}",
        rf"\caption{{{escape_latex(describe_table(table))}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(table.heads) - 1)}}}",
        r"\toprule",
        " & ".join(map(escape_latex, table.heads)) + r" \\",
        r"\midrule",
    ]
    for head, cells in table.rows:
        texts = [escape_latex(head)]
        for figures, difference in (map(escape_latex, cell.lines()) for cell in cells):
            texts.append(rf"{figures} {{\scriptsize ({difference})}}" if difference else figures)
        lines.append(" & ".join(texts) + r" \\")
    notes = escape_latex(" ".join(table.notes))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", rf"\par\small {notes}", r"\end{table}"]) + "\n"


def escape_latex(text: str) -> str:
    escaped = LATEX.sub(lambda match: LATEX_OF.get(match[0], f"\\{match[0]}"), text)
    return escaped.replace(MINUS, "$-$").replace(DASH, "--")


def format_html(tables: Sequence[FilledTable]) -> str:
    """Format filled tables as one HTML page that needs nothing else."""
    parts = []
    for table in tables:
        head = join(*(tag("th", name) for name in table.heads))
        body = join(*(tag("tr", tag("th", name, scope="row"), *map(render_cell, cells)) for name, cells in table.rows))
        notes = [tag("p", note) for note in table.notes]
        parts.append(tag("section", tag("h2", describe_table(table)), scroll_table_html(head, body), *notes))
    title = tables[0].paper if tables else ""
    page_head = tag("head", tag("meta", charset="utf-8"), tag("title", title), tag("style", Html(STYLE)))
    return f'<!doctype html>\n<html lang="en">{page_head}{tag("body", *parts)}</html>\n'


def render_cell(cell: FilledCell) -> Html:
    figures, difference = cell.lines()
    ours, slash, published = figures.partition(" / ")
    return tag("td", tag("b", ours), slash, published, tag("br"), tag("small", difference))


STYLE = """\
body { font: 15px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; }
table { border-collapse: collapse; } th, td { padding: .3em .7em; border-bottom: 1px solid #ccc; text-align: right; }
th:first-child { text-align: left; } h2 { font-size: 1.1em; } p { margin: .3em 0; } small { color: #555; }
"""


LEAST_CASES = 5
"""From so many cases of a store on, its own usage counts."""


def plan_suites(
    tables: Iterable[PaperTable], request: SuiteRequest, data: Path | None, judge: str, settings: Mapping[str, str]
) -> list[SuiteRequest]:
    """Return the suites that fill tables, each technique on the benchmarks that it is needed for.

    Left out are cells that need a judge if there is none, and cells that need weights that no LLM has.

    Args:
        request: LLMs (none: only techniques that ask none), limits, store, settings of benchmarks (``benches``).
        data: folder of the released files, None for ``$DECISOR_DATA``.
        judge: MODEL@URL for the benchmarks that a judge scores; without one their cells stay unscored.
        settings: added to each technique that has them.
    """
    of_bench = dict(map(parse_suite_entry, request.benches))
    wanted: dict[tuple[str, float], dict[str, None]] = {}
    for table in tables:
        for cell in table.subjects():
            lacks_judge, models = cell.judge and not judge, [parse_suite_entry(model)[0] for model in request.models]
            own_weights = cell.model and cell.never and not any(is_model_of(cell.model, model) for model in models)
            for bench in cell.benches if cell.technique and not lacks_judge and not own_weights else ():
                key = complete_bench(bench, of_bench, data, judge), min(table.share, request.share)
                technique = add_settings(cell.technique, settings)
                if request.models or not asks_llm(find_technique_class(parse_suite_entry(technique)[0])):
                    wanted.setdefault(key, {})[technique] = None
    # Benchmarks with the same techniques are one suite.
    suites: dict[tuple[tuple[str, ...], float], list[str]] = {}
    for (bench, share), techniques in wanted.items():
        suites.setdefault((tuple(techniques), share), []).append(bench)
    return [
        replace(request, benches=tuple(benches), techniques=techniques, share=share)
        for (techniques, share), benches in suites.items()
    ]


def complete_bench(text: str, of_bench: Mapping[str, Mapping[str, str]], data: Path | None, judge: str) -> str:
    """Return a benchmark's entry with the settings of the command. Raise SetupError if they name other cases."""
    name, settings = parse_suite_entry(text)
    own = of_bench.get(name, {})
    if changed := [key for key in own if settings.get(key, own[key]) != own[key]]:
        raise SetupError(f"The table needs {name} {changed[0]}={settings[changed[0]]}, not {own[changed[0]]}.")
    judged = {"judge": judge} if judge and "judge" in setting_fields(find_bench_class(name)) else {}
    place = {} if data is None else {"data": str(find_bench_data(data, name))}
    return shlex.join([name, *(f"{key}={value}" for key, value in {**place, **judged, **settings, **own}.items())])


def find_dqa_folder(data: Path | None, benches: Sequence[str]) -> Path | None:
    """Return the folder of Decision QA, as ``-b "dqa data=DIR"``, ``--data`` or ``$DECISOR_DATA`` name it."""
    own = dict(map(parse_suite_entry, benches)).get("dqa", {}).get("data")
    shared = data or (Path(place) if (place := os.environ.get("DECISOR_DATA")) else None)
    return Path(own) if own else find_bench_data(shared, "dqa") if shared else None


@dataclass(frozen=True)
class CaseUsage:
    """The mean usage of a case."""

    calls: float
    prompt_tokens: float
    completion_tokens: float


@dataclass(frozen=True)
class Estimate:
    """Cost of the open cases of a technique on a benchmark with an LLM."""

    bench: str
    technique: str
    model: str
    cases: int
    usage: CaseUsage | None
    """Of one case; None if it was never measured."""
    dollars: float | None
    """Of all; None if usage or price is not known."""
    source: str
    """Where the usage is from: this store, scripted replies, or nothing."""


@cache
def read_measured_usage() -> Mapping[tuple[frozenset[str], str], CaseUsage]:
    """Read the usage of scripted replies, by benchmark and technique."""
    rows = tomllib.loads(files("decisor.lab").joinpath("published", "usage.toml").read_text("utf-8"))["usage"]
    return {
        (select_label_parts(bench), technique): CaseUsage(calls, prompt, completion)
        for bench, technique, calls, prompt, completion in rows
    }


def measure_usage(outcomes: Sequence[Outcome]) -> CaseUsage:
    """Return the mean usage of outcomes, without what judges cost."""
    return CaseUsage(
        mean(one.usage.calls for one in outcomes),
        mean(one.usage.prompt_tokens for one in outcomes),
        mean(one.usage.completion_tokens for one in outcomes),
    )


def estimate_suite(suite: Suite, outcomes: Iterable[Outcome]) -> list[Estimate]:
    """Estimate the remaining cost of a suite, given the outcomes in its store.

    Techniques that ask no LLM cost nothing and are left out.
    """
    finished: dict[tuple[str, str, str], list[Outcome]] = {}
    for one in outcomes:
        finished.setdefault((one.benchmark, one.technique, one.model), []).append(one)
    estimates = []
    for label, bench in suite.benches.items():
        ids = {case.id for case in suite.sample.draw(bench.cases())}
        for technique in suite.techniques:
            for model in () if technique in suite.alone else suite.models:
                done = finished.get((label, technique, model), [])
                left = suite.repeats * len(ids) - sum(one.case in ids for one in done)
                source, usage = "this store", measure_usage(done) if len(done) >= LEAST_CASES else None
                if usage is None:
                    usage = read_measured_usage().get((select_label_parts(label), drop_part_llms(technique)))
                    source = "scripted replies" if usage else "not measured"
                price, cases = price_of_llm(suite.models[model]), max(0, left)
                dollars = None if cases else 0.0
                if price is not None and usage is not None:
                    dollars = cases * price.dollars(round(usage.prompt_tokens), round(usage.completion_tokens))
                estimates.append(Estimate(label, technique, model, cases, usage, dollars, source))
    return estimates


def estimate_suites(opened: Sequence[tuple[SuiteRequest, Suite]], place: str) -> list[Estimate]:
    """Estimate the remaining cost of suites, given their store."""
    outcomes = []
    if Path(place).exists():
        with closing(open_store(place, create=False)) as store:
            outcomes = store.outcomes()
    return [estimate for _, suite in opened for estimate in estimate_suite(suite, outcomes)]


def format_estimates(estimates: Sequence[Estimate]) -> str:
    """Format estimates as columns: calls, tokens and dollars of each technique, and the sum."""
    rows = [("benchmark", "technique", "LLM", "cases", "calls", "tokens", "dollars", "measured by")]
    for one in estimates:
        calls = tokens = "not known"
        if one.usage is not None:
            calls = f"{one.cases * one.usage.calls:,.0f}"
            tokens = f"{one.cases * (one.usage.prompt_tokens + one.usage.completion_tokens):,.0f}"
        dollars = "not known" if one.dollars is None else f"{one.dollars:,.2f}"
        rows.append((one.bench, one.technique, one.model, str(one.cases), calls, tokens, dollars, one.source))
    total, unknown = sum(one.dollars or 0.0 for one in estimates), any(one.dollars is None for one in estimates)
    lines = format_columns(rows, len(rows[0]))
    lines.append(f"{'At least ' if unknown else 'About '}${total:,.2f}, without judges and simulators.")
    if any(one.source == "scripted replies" for one in estimates):
        lines.append("Scripted replies are short: an LLM writes more, and a wrong query costs a call.")
    return "\n".join(lines) + "\n"
