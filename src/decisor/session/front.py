"""The front door: ``decisor.ask`` and ``decisor.open``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from os import PathLike
from typing import Unpack

from decisor.session.data import Data, ask_once, opened
from decisor.session.options import Options
from decisor.session.readers import for_reader
from decisor.session.result import Result
from decisor.session.sources import Names, Places, sources_of
from decisor.session.sync import in_thread
from decisor.session.tools import Tools
from decisor.session.watching import watched
from decisor.types import Question

Model = str | PathLike[str] | None
Rows = Mapping[str, str] | None


def ask(
    question: str | Question, *, db: Places = (), graph: Places = (), docs: Places = (), tools: Tools = (),
    model: Model = None, tables: Names = (), deny_tables: Names = (), definitions: Places = (),
    rows: Rows = None, mask: Names = (), reveal: bool = False, audit: Model = None, who: str = "",
    **options: Unpack[Options],
) -> Result:  # fmt: skip
    """Decide a question from data, and say what the answer rests on. Also in a notebook.

        result = decisor.ask("Which site should we open?", db="sqlite:///sites.db", lm="gpt-4.1-mini")
        print(result)
        result.answer, result.ranking, result.evidence, result.usage

    ``db``, ``graph``: URLs of databases; ``db`` also files (CSV, Excel, Parquet, ...), DataFrames, or
    ``{"name": table}``; ``docs``: folders, files, or indexes of documents; ``tools``: functions, ``"module:function"``,
    or OpenAPI documents. Each is one or several; ``"name=URL"`` gives one a name. ``model``: a file with a decision
    model. ``tables``: of databases and graphs, only these may be read; ``deny_tables``: these may be neither read nor
    seen; ``"name.table"`` is of one source alone. ``definitions``: a file of what words mean in these data.
    ``rows``: ``{"orders": "region = 'EU'"}``, the rows of a table that may be read; ``mask``: ``"customers.email"``,
    columns of which only tokens are sent to an LM; ``reveal``: the result has values again; ``audit``: a file that each
    query is noted in, for ``who``, whom the record of the decision names too. Other options: rules, goal, lm,
    technique, settings, limits, on_event, on_text, calling, trace.

    Raises:
        SetupError: something named cannot be used, or there is nothing that could decide.
        LMError: the endpoint failed for good.
    """
    sources = sources_of(db, graph, docs, tools, model, tables, deny_tables, definitions)
    sources = replace(for_reader(sources, rows, mask, reveal, audit, who), who=who)
    with watched(options) as own:
        return in_thread(ask_once(sources, question, own))


@asynccontextmanager
async def open(
    *, db: Places = (), graph: Places = (), docs: Places = (), tools: Tools = (), model: Model = None,
    tables: Names = (), deny_tables: Names = (), definitions: Places = (),
    rows: Rows = None, mask: Names = (), reveal: bool = False, audit: Model = None, who: str = "",
) -> AsyncIterator[Data]:  # fmt: skip
    """Open data once and ask many times, many at once.

        async with decisor.open(db="sqlite:///sites.db", docs="reports/") as data:
            result = await data.ask("Which site should we open?", lm="gpt-4.1-mini")

    Raises:
        SetupError: something named cannot be opened.
    """
    sources = sources_of(db, graph, docs, tools, model, tables, deny_tables, definitions)
    async with opened(replace(for_reader(sources, rows, mask, reveal, audit, who), who=who)) as data:
        yield data
