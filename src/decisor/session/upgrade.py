"""A model file of the first form in the present one, where both give every candidate the same outcome."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from decisor.decision_models.machine import OpenModel
from decisor.decision_models.model_file import ModelFile, load, read_model
from decisor.decision_models.parse import is_old, parse, text_of
from decisor.errors import SetupError, ToolError
from decisor.plurals import counted
from decisor.session.models import opened_model
from decisor.session.opening import open_first
from decisor.session.sources import Place
from decisor.tools.databases.sandbox.blocking import open_scratch

AGREE = 1e-9


async def upgraded(file: Path, db: Place, graph: Place = "") -> str:
    """The new text. Nothing is guessed: both are computed on the same data, for all candidates.

    Raises:
        SetupError: it is of the present form already, an outcome differs, or a statement does not run.
    """
    if not is_old(text_of(file)):
        raise SetupError(f"{file} is no file of the first form (measure, candidates, outcome): nothing to upgrade.")
    old = read_model(file)
    text = rewritten(old)
    names, before = await outcomes_of_old(old, db, graph)
    async with opened_model(parse(text), db, graph) as model:
        after = await asyncio.to_thread(outcomes_of_new, model, names)
    wrong = np.flatnonzero(~np.isclose(before, after, rtol=AGREE, atol=0, equal_nan=True))
    if len(wrong):
        at = int(wrong[0])
        raise SetupError(
            f"{file} is not upgraded: {len(wrong):,} of {len(names):,} outcomes differ. {names[at]} has "
            f"{before[at]:.10g} with SQLite, {after[at]:.10g} with DuckDB (7 / 2 is 3 in SQLite, for one)."
        )
    return text


async def outcomes_of_old(old: ModelFile, db: Place, graph: Place) -> tuple[list[str], NDArray[np.float64]]:
    """Names, and float64 of the same length."""
    source = await open_first(db, graph)
    try:
        scratch = await load(old, source, open_scratch)
        try:
            names = list(await asyncio.to_thread(scratch.candidates))
            return names, await asyncio.to_thread(scratch.outcomes, names)
        finally:
            await asyncio.to_thread(scratch.close)
    finally:
        await source.close()


def outcomes_of_new(model: OpenModel, names: list[str]) -> NDArray[np.float64]:
    """Raises SetupError where the candidates are others."""
    try:
        outcomes = model.outcomes([model.candidates.find(name) for name in names], most=0)
    except ToolError as error:
        raise SetupError(f"It is not upgraded: {error}") from error
    if len(model.candidates) != len(names):
        raise SetupError(f"It is not upgraded: {counted(len(names), 'candidate')} become {len(model.candidates)}.")
    return outcomes.values[:, 0]


def rewritten(old: ModelFile) -> str:
    """
    >>> print(rewritten(ModelFile("rent", "min", "SELECT name FROM site", "SELECT :candidate")))
    decide = "the candidate"
    choice = "SELECT candidate FROM (SELECT name FROM site) AS choices(candidate)"
    <BLANKLINE>
    [measure.rent]
    goal = "min"
    sql = "SELECT $candidate"
    <BLANKLINE>
    """
    name = re.sub(r"\W+", "_", old.measure).strip("_") or "outcome"
    name = f"m_{name}" if name[0].isdigit() else name
    candidates = old.candidates.strip().rstrip(";")
    choice = f"SELECT candidate FROM ({candidates}) AS choices(candidate)"
    lines = ['decide = "the candidate"', f"choice = {quoted(choice)}"]
    if old.change:
        lines.append("change = [" + ", ".join(quoted(parameter(one)) for one in old.change) + "]")
    if old.seconds != 20.0:
        lines.append(f"seconds = {old.seconds:g}")
    lines += ["", f"[measure.{name}]", f'goal = "{old.goal}"', f"sql = {quoted(parameter(old.outcome))}", ""]
    if old.copy:
        lines += ["[copy]", *(f"{quoted(table)} = {quoted(query)}" for table, query in old.copy.items()), ""]
    if old.vary:
        lines += ["[input]", *(f'{quoted(column)} = {{ spread = "5 % each" }}' for column in old.vary), ""]
    return "\n".join(lines)


def parameter(sql: str) -> str:
    return re.sub(r"(?<![:\w]):candidate\b", "$candidate", sql.strip().rstrip(";"))


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
