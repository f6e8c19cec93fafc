"""Files of definitions: read for a session, checked on a database, and looked up by decision models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from decisor.decision_models.format import Model
from decisor.definitions.format import Definitions
from decisor.errors import SetupError
from decisor.finding import Finding
from decisor.session.definitions import dialect_of
from decisor.session.opening import open_first
from decisor.session.sources import Place

if TYPE_CHECKING:
    from decisor.definitions.measure import Rows


def read_definitions(files: Sequence[tuple[str, Path]], databases: Sequence[str]) -> dict[str, Definitions]:
    """By the database that each file is about: the one that is named, or the only one.

    Raises:
        SetupError: a file cannot be read, or says not which database it is about.
    """
    if not files:
        return {}
    from decisor.definitions.parse import read

    whole: dict[str, Definitions] = {}
    for name, path in files:
        if name and name not in databases:
            raise SetupError(f"{path} is about {name}, and there is no such database; there is "
                             f"{', '.join(databases) or 'none'}.")  # fmt: skip
        if not name and len(databases) != 1:
            raise SetupError(f"Which database is {path} about? Write --definitions NAME={path}; there is "
                             f"{', '.join(databases) or 'none'}.")  # fmt: skip
        at = name or databases[0]
        if at in whole:
            raise SetupError(f"{path} is the second file of definitions of {at}: one database has one.")
        whole[at] = read(path)
    return whole


async def check_file(file: Path, db: Place) -> list[Finding]:
    """What its checks say of a file, and those of its definitions that are whole, on its database.

    Raises:
        SetupError: the file or the database cannot be read.
    """
    from decisor.definitions.check import check
    from decisor.definitions.parse import DefinitionsFault, parse_sound, text_of

    try:
        definitions, wrong = parse_sound(text_of(file))
    except DefinitionsFault as error:
        raise SetupError(f"{file}: {error}") from error
    tool = await open_first(db)
    try:
        findings = await check(definitions, cast("Rows", tool))  # of a graph nothing is quoted
        return sorted([*(Finding(0, line, words) for line, words in wrong), *findings], key=lambda one: one.line)
    finally:
        await tool.close()


def with_metrics(model: Model, definitions: Definitions | None, source: object) -> Model:
    """A decision model whose measures have the queries of the metrics that they name, in the SQL of its copy.

    Raises:
        SetupError: a metric is not defined, or cannot be computed on a copy.
    """
    named = [one for one in model.measures if one.metric]
    if not named:
        return model
    import sqlglot
    from sqlglot.errors import SqlglotError

    there = {metric.name: metric for metric in definitions.metrics} if definitions else {}
    queries = {}
    for measure in named:
        if measure.metric not in there:
            names = (
                f"there is {', '.join(there)}" if there else "there are no definitions: give them with --definitions"
            )
            raise SetupError(f"measure.{measure.name} names the metric {measure.metric}; {names}.")
        query = there[measure.metric].whole()
        try:
            queries[measure.name] = sqlglot.transpile(query, read=dialect_of(source) or None, write="duckdb")[0]
        except SqlglotError as error:
            raise SetupError(f"The metric {measure.metric} cannot be computed on a copy: {error}") from error
    unit = {one.name: one.unit or there[one.metric].unit for one in named}
    measures = [replace(one, sql=queries[one.name], unit=unit[one.name]) if one.metric else one
                for one in model.measures]  # fmt: skip
    return replace(model, measures=tuple(measures))
