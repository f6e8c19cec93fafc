"""Figures that others published, to stand beside ours. None of them was measured here.

A benchmark's figures are ``FIGURES`` in the module ``paper_figures`` of its room; each names its source. Names of
techniques are ours where we have the technique, with the model it ran on in brackets. Values are in percent but for
ranks and seconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from decisor.benchmarks.protocol import BENCHES

RADAGENT = "RaD-Agent (arXiv 2308.12519), tables 1-2, GPT-3.5-turbo-0613, 100 calls a case"
NAMES = {"2wiki": "twowiki", "2wikimultihopqa": "twowiki", "arc_challenge": "arc", "hotpot": "hotpotqa"}


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """One published figure. ``group``: the part of the benchmark it is about, '' for all of it."""

    benchmark: str
    technique: str
    metric: str
    value: float
    source: str
    group: str = ""


def figure_table(benchmark: str, source: str, metrics: str, rows: str, group: str = "") -> tuple[PublishedFigure, ...]:
    """From a table whose lines are ``technique: value value ...`` under its metrics, ``-`` where nothing was published.

    >>> figure_table("b", "s", "acc f1", "cot: 6 -")
    (PublishedFigure(benchmark='b', technique='cot', metric='acc', value=6.0, source='s', group=''),)
    """
    table = []
    for line in rows.strip().splitlines():
        technique, _, values = line.partition(":")
        for metric, value in zip(metrics.split(), values.split(), strict=True):
            if value != "-":
                table.append(PublishedFigure(benchmark, technique.strip(), metric, float(value), source, group))
    return tuple(table)


def figures_for(benchmark: str) -> tuple[PublishedFigure, ...]:
    """What was published for a benchmark, by the name it has here; a suffix after a colon, slash or space is left out
    (for Decision QA it may say sql or graph; without one the means of both forms are meant).

    >>> {figure.source for figure in figures_for("webshop small")} == {RADAGENT, "WebShop (NeurIPS 2022)"}
    True
    """
    text = benchmark.casefold()
    name = name_of(benchmark)
    own = [figure for figure in figures_of_room(name) if figure.benchmark == name]
    if name == "dqa":  # by form where the name says which, else the means of both forms
        form = next((form for form in ("sql", "graph") if form in text), "")
        own = [figure for figure in own if figure.group.partition(" ")[2] == form]
    return tuple(own)


def name_of(benchmark: str) -> str:
    """What a benchmark is called here, by what a report calls it.

    >>> name_of("2Wiki:dev"), name_of("dqa form=graph")
    ('twowiki', 'dqa')
    """
    name = re.split(r"[:/ ]", benchmark.casefold())[0]
    return NAMES.get(name, name)


def figures_of_room(name: str) -> tuple[PublishedFigure, ...]:
    """All figures in the room of a benchmark of ours; none where nothing was published, or there is no such one."""
    module = f"{BENCHES[name].rpartition('.')[0]}.paper_figures" if name in BENCHES else ""
    if not module or find_spec(module) is None:
        return ()
    table: tuple[PublishedFigure, ...] = import_module(module).FIGURES
    return table
