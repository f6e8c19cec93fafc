"""Measure what the rules on wrong queries find, and how often they speak of a right one.

    DECISOR_DATA=../shared/data python performance/wrong_queries.py [--show RULE] [--spider FOLDER]

Two minutes. Needs the folders ``nl2sql_bugs`` (queries of NL2SQL systems, labelled right or wrong), ``defog`` and
``acme`` (right queries on real rows), laid out as their own READMEs say. All that lies there may be learned from; other
databases of that corpus, which are kept elsewhere, say what it is worth.

Prints, per rule, database and in all, wrong and right queries that are flagged, precision and recall (with 95 %
intervals of Wilson); flagged right queries of each corpus, and to how many of their questions unmet_question objects
(it speaks of no mistake of the query and is counted apart); flagged wrong ones by kind of mistake; milliseconds a
query; of the flagged wrong ones, how many have no other kind of mistake than was told, and how many an obedient policy
mends (see ``ObedientPolicy``); questions that cannot be answered (of defog, and Spider's asked of another database) to
which unmet_question objects, with a query that answers anyway. ``--show RULE`` lists what one rule says, ``--show all``
what all say, ``--show missed`` the wrong queries that none flags. ``--spider FOLDER`` adds the
right queries of Spider's development set (its dev.json and tables.json); the rows of its tables are made up too. The
rows of nl2sql_bugs are made up, so rules that read stored values are left out there.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import sqlglot
from sqlglot import exp

from careless_policy import write_turn
from decisor.databases.pitfalls.question import AskedQuestion, QuestionLog
from decisor.databases.sql import SqlTool
from decisor.errors import ToolError
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.budget import Budget
from decisor.runtime.run import Run
from decisor.techniques import build_technique
from decisor.tools.toolbox import Toolbox
from decisor.types import Message, Pitfall, Question, Table
from head import words

DATA = Path(os.environ.get("DECISOR_DATA", "../shared/data"))
STORED = {"unstored_value", "limit_order", "text_dates", "not_in_nulls"}
"""Rules that read stored values."""
MADE_UP = ("nl2sql_bugs", "spider")
ROUNDS = 3
WRITTEN = ("Value Mismatch", "Explicit Condition Missing", "Explicit Condition Mismatch", "Data Format Mismatch")
JOINED = ("Join Condition Mismatch", "Table Mismatch", "Table Missing", "Table Redundancy")
COUNTED = ("DISTINCT", "Aggregate Functions", "Clause Missing", "Subquery Missing")
MISTAKES: Mapping[str, Sequence[str]] = defaultdict(
    tuple,
    {
        **dict.fromkeys(("unfounded_value", "lost_number", "lost_text"), WRITTEN),
        "lost_condition": (*WRITTEN, "Implicit Condition Missing", "Attribute Mismatch", "Attribute Missing"),
        "never_true": (*WRITTEN, "String Functions", "Date/Time Functions"),
        "and_or": ("Logical Operator Mismatch", "Explicit Condition Mismatch"),
        "keyless_join": JOINED,
        "idle_table": ("Table Redundancy",),
        "fan_out": (*COUNTED, "Table Redundancy"),
        "ungrouped_column": ("Clause Missing",),
        "lost_order": ("Clause Missing", "ASC/DESC"),
        "lost_measure": ("Aggregate Functions", "Math Functions", "DISTINCT"),
        "lost_output": ("Attribute Mismatch", "Aggregate Functions"),
    },
)
"""The labels of mistakes that the findings of a rule speak of."""


@dataclass
class Case:
    """A query with its question, and what is known of it."""

    corpus: str
    id: str
    database: Path
    question: str
    rules: str
    sql: str
    is_right: bool
    mistakes: tuple[str, ...] = ()
    found: list[Pitfall] = field(default_factory=list)
    is_unmet: bool = False
    """Whether unmet_question objects, which speaks of the question and not of a mistake of the query."""


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf8").splitlines() if line.strip()]


def make_texts_differ(path: Path) -> None:
    """Make all texts outside keys differ, and those of keys for different things: rows that are made up say nothing of
    which names are unique, and number the keys of all tables alike."""
    with closing(sqlite3.connect(path)) as db, db:
        target_of = {}
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for _, _, target, column, key, *_ in db.execute(f'PRAGMA foreign_key_list("{table}")'):
                primary = [row[1] for row in db.execute(f'PRAGMA table_info("{target}")') if row[5]]
                target_of[table.lower(), column.lower()] = (target.lower(), (key or primary[0]).lower())
        for table in tables:
            for _, column, kind, _, _, key in db.execute(f'PRAGMA table_info("{table}")').fetchall():
                place = (table.lower(), column.lower())
                suffix = "rowid"
                if key or place in target_of or place in target_of.values():
                    while place in target_of and target_of[place] != place:
                        place = target_of[place]
                    suffix = f"' {place[0]}'"
                if kind.upper().startswith(("TEXT", "VARCHAR")):
                    db.execute(f'UPDATE OR IGNORE "{table}" SET "{column}" = "{column}" || {suffix}')


def read_bugs(data: Path, built: Path) -> list[Case]:
    folder = data / "nl2sql_bugs"
    script = [sys.executable, str(folder / "score.py"), "build", str(built)]
    subprocess.run(script, check=True, stdout=subprocess.DEVNULL)
    for path in built.glob("*.sqlite"):
        make_texts_differ(path)
    return [
        Case(
            "nl2sql_bugs",
            str(row["id"]),
            built / f"{row['db']}.sqlite",
            row["question"],
            row["evidence"] or "",
            row["sql"],
            row["right"],
            tuple(sorted({error["sub"] for error in row["errors"]})),
        )
        for row in read_lines(folder / "queries.jsonl")
    ]


def read_spider(folder: Path, data: Path, built: Path) -> list[Case]:
    """Read Spider, its databases filled with made-up rows as those of nl2sql_bugs are."""
    rows = json.loads((folder / "dev.json").read_text(encoding="utf8"))
    names = {row["db_id"] for row in rows}
    schemas: dict[str, Any] = {}
    for db in json.loads((folder / "tables.json").read_text(encoding="utf8")):
        titles, types = db["table_names_original"], db["column_types"]
        places = [(titles[at] if at >= 0 else "", name) for at, name in db["column_names_original"]]
        kinds = {"text": "TEXT", "number": "NUMERIC", "time": "DATETIME"}
        tables: dict[str, Any] = {name: {} for name in titles if not name.startswith("sqlite_")}
        for title, table in tables.items() if db["db_id"] in names else ():
            columns = [
                {"name": name, "type": kinds.get(types[at], "TEXT")}
                for at, (home, name) in enumerate(places)
                if home == title
            ]
            keys = [places[at][1] for at in db["primary_keys"] if places[at][0] == title]
            links = [(places[one][1], *places[other]) for one, other in db["foreign_keys"] if places[one][0] == title]
            lines = [f'"{column["name"]}" {column["type"]}' for column in columns]
            lines += [f"PRIMARY KEY ({', '.join(map(quote, keys))})"] if keys else []
            lines += [f'FOREIGN KEY ("{own}") REFERENCES "{target}" ("{key}")' for own, target, key in links]
            table |= {"name": title, "columns": columns, "primary_keys": keys}
            table |= {"ddl": f'CREATE TABLE "{title}" ({", ".join(lines)})'}
            table |= {"foreign_keys": [{"from": own, "to_table": to, "to_column": key} for own, to, key in links]}
        schemas |= {db["db_id"]: {"tables": tables}} if db["db_id"] in names else {}
    script = built / "score.py"
    script.write_text((data / "nl2sql_bugs" / "score.py").read_text(encoding="utf8"), encoding="utf8")
    (built / "schema.json").write_text(json.dumps(schemas), encoding="utf8")
    subprocess.run([sys.executable, str(script), "build", str(built)], check=True, stdout=subprocess.DEVNULL)
    for name in names:
        make_texts_differ(built / f"{name}.sqlite")
    return [
        Case("spider", str(at), built / f"{row['db_id']}.sqlite", row["question"], "", row["query"], True)
        for at, row in enumerate(rows)
    ]


def quote(name: str) -> str:
    return f'"{name}"'


def swap_databases(cases: list[Case]) -> list[Case]:
    """Ask each question of the next database."""
    databases = sorted({case.database for case in cases})
    return [replace(case, database=databases[databases.index(case.database) - 1]) for case in cases]


def read_unanswerable(data: Path) -> list[Case]:
    folder = data / "defog"
    return [
        Case(
            "defog", row["id"], folder / "databases" / row["db"] / f"{row['db']}.sqlite", row["question"], "", "", False
        )
        for row in read_lines(folder / "unanswerable.jsonl")
    ]


async def count_unmet(cases: list[Case]) -> int:
    """Return to how many questions is objected if a query that counts a table's rows answers them."""
    found = 0
    for database, group in groupby(sorted(cases, key=lambda case: str(case.database)), key=lambda case: case.database):
        tool = await SqlTool.open(f"sqlite:///{database}")
        assert tool.pitfalls is not None
        query = f'SELECT COUNT(*) FROM "{tool.tables[0].name}"'
        result = await tool.worker.run(query)
        for case in group:
            log = QuestionLog(AskedQuestion(case.question, is_alone=True))
            found += any(
                pitfall.kind == "unmet_question" for pitfall in await tool.pitfalls.look(query, result, log=log)
            )
        await tool.close()
    return found


def read_defog(data: Path) -> list[Case]:
    folder = data / "defog"
    return [
        Case(
            "defog",
            row["id"],
            folder / "databases" / row["db"] / f"{row['db']}.sqlite",
            row["question"],
            row["full_instructions"] or row["instructions"] or "",
            query["sql"],
            True,
        )
        for row in read_lines(folder / "questions.jsonl")
        for query in row["sqlite"]
    ]


def read_acme(data: Path) -> list[Case]:
    folder = data / "acme"
    return [
        Case("acme", row["id"], folder / "acme.sqlite", row["question"], "", query.get("sqlite") or query["sql"], True)
        for row in read_lines(folder / "questions.jsonl")
        for query in row["gold"]
    ]


async def look_at(cases: list[Case]) -> list[float]:
    """Fill in what the rules find; return the seconds of each query, parsing counted and stored data known."""
    seconds: list[float] = []
    for database, group in groupby(sorted(cases, key=lambda case: str(case.database)), key=lambda case: case.database):
        tool = await SqlTool.open(f"sqlite:///{database}")
        assert tool.pitfalls is not None
        for case in group:
            asked = AskedQuestion(case.question, case.rules, is_alone=True)
            result: Table | None = Table(("n",), ((1,),))
            if case.corpus not in MADE_UP:
                try:
                    result = await tool.worker.run(case.sql)
                except ToolError:
                    result = None
            best = 9.0
            for number in range(ROUNDS + 1):
                began = time.thread_time()
                case.found = await tool.pitfalls.look(case.sql, result, log=QuestionLog(asked))
                if number:
                    best = min(best, time.thread_time() - began)
            seconds.append(best)
            case.is_unmet = any(pitfall.kind == "unmet_question" for pitfall in case.found)
            case.found = [pitfall for pitfall in case.found if pitfall.kind != "unmet_question"]
            if case.corpus in MADE_UP:
                case.found = [pitfall for pitfall in case.found if pitfall.kind not in STORED]
        await tool.close()
    return seconds


def share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "-"


def wilson(part: int, whole: int) -> str:
    """Format the 95 % interval of a share (Wilson 1927)."""
    if not whole:
        return "-"
    z, rate = 1.96, part / whole
    center = rate + z * z / (2 * whole)
    spread = z * math.sqrt(rate * (1 - rate) / whole + z * z / (4 * whole * whole))
    return " to ".join(f"{(center + sign * spread) / (1 + z * z / whole):.2f}" for sign in (-1, 1))


def is_flagged(case: Case, kinds: set[str]) -> bool:
    """Return whether a rule of these kinds or strengths flags the query."""
    return any({pitfall.kind, pitfall.strength} & kinds for pitfall in case.found)


def print_row(name: str, cases: list[Case], kinds: set[str]) -> None:
    bugs = [case for case in cases if case.corpus == "nl2sql_bugs"]
    hits = [case for case in bugs if is_flagged(case, kinds)]
    wrong = sum(not case.is_right for case in hits)
    rows = [sum(is_flagged(case, kinds) for case in cases if case.corpus == corpus) for corpus in ("defog", "acme")]
    total = sum(not case.is_right for case in bugs)
    print(
        f"{name:22} wrong {wrong:4} right {len(hits) - wrong:4} precision {share(wrong, len(hits))} "
        f"({wilson(wrong, len(hits))}) "
        f"recall {share(wrong, total)} ({wilson(wrong, total)})   defog {rows[0]:3} acme {rows[1]:3}"
    )


def print_figures(cases: list[Case], seconds: list[float]) -> None:
    kinds = {pitfall.kind for case in cases for pitfall in case.found}
    for name in ("wrong", "ask", *sorted(kinds)):
        print_row(name, cases, {name})
    print_row("all", cases, kinds)
    for database in sorted({case.database for case in cases if case.corpus == "nl2sql_bugs"}):
        print_row(database.stem, [case for case in cases if case.database == database], kinds)
    for corpus in sorted({case.corpus for case in cases}):
        right = [case for case in cases if case.corpus == corpus and case.is_right]
        flagged = sum(bool(case.found) for case in right)
        objected = sum(any(pitfall.strength == "wrong" for pitfall in case.found) for case in right)
        rate = share(flagged, len(right))
        unmet = sum(case.is_unmet for case in right)
        print(
            f"right queries of {corpus}: {len(right)}, flagged {flagged} ({rate}), by 'wrong' {objected}; "
            f"to the question of {unmet} unmet_question objects"
        )
    wrong = [case for case in cases if not case.is_right]
    for mistake, number in Counter(mistake for case in wrong for mistake in case.mistakes).most_common():
        seen = sum(bool(case.found) for case in wrong if mistake in case.mistakes)
        print(f"  {mistake:30} {seen:3} of {number:3}")
    milliseconds = sorted(1000 * second for second in seconds)
    last = milliseconds[int(0.99 * (len(milliseconds) - 1))]
    median = statistics.median(milliseconds)
    print(f"milliseconds a query: median {median:.2f}, 99 of 100 under {last:.2f}, most {milliseconds[-1]:.2f}")


@dataclass
class ObedientPolicy:
    """A model that sends a wrong query first, and corrects what it is told if that is what is wrong with it.

    It knows one right query for the same question, and sends it once a finding that it read names a fault: the place of
    the finding is no part of the right query (for idle_table: the table is not), or the number, text, column or value
    that is said to be lost is part of the right query and not of its own. Else it answers by the query that it has.
    """

    wrong: Case
    right: str
    queries: list[str] = field(default_factory=list)

    def __call__(self, messages: Sequence[Message]) -> Message:
        results = [message.content for message in messages if message.role == "tool"]
        if not self.queries:
            self.queries.append(self.wrong.sql)
            return write_turn(("plan", {"steps": ["query", "decide"]}), ("sql", {"query": self.wrong.sql}))
        told = [pitfall for pitfall in self.wrong.found if any(pitfall.text in result for result in results)]
        if len(self.queries) == 1 and any(map(self.names_fault, told)):
            self.queries.append(self.right)
            return write_turn(("sql", {"query": self.right}))
        return write_turn(("decide", {"answer": "the rows", "because": f"as queried [o{len(self.queries)}.r1]"}))

    def names_fault(self, pitfall: Pitfall) -> bool:
        written, right = (list_parts(sql) for sql in (self.wrong.sql, self.right))
        if pitfall.kind == "lost_order":
            return pitfall.place not in right if pitfall.place else "limit" in right and "limit" not in written
        if pitfall.kind == "lost_measure":
            return bool((right - written) & {"avg", "div", "sub", "distinct"}) or "100" in written - right
        if pitfall.kind == "lost_output":
            return list_outputs(self.wrong.sql).isdisjoint(list_outputs(self.right))
        if pitfall.kind.startswith("lost_"):
            stated = re.findall(r"'(?:[^']|'')*'|[\w.]+", pitfall.text.partition(", and no query")[0].lower())
            return any(name.strip("'") in right - written for name in stated)
        if pitfall.place.endswith("…"):  # a part that is cut cannot be read
            return False
        return bool(pitfall.place) and not list_parts(f"SELECT {pitfall.place}", self.wrong.sql) - NO_PARTS <= right


NO_PARTS = frozenset({"select", "paren"})


def list_outputs(sql: str) -> set[str]:
    query = sqlglot.parse_one(sql, dialect="sqlite")
    return {name.lower() for name in query.named_selects} if isinstance(query, exp.Query) else set()


def list_parts(sql: str, around: str = "") -> set[str]:
    """Return the operations, comparisons, names and literals of a query in lower case, tables for aliases.

    Args:
        around: the query that the SQL is a part of, for its aliases.
    """
    tree = sqlglot.parse_one(sql, dialect="sqlite")
    tables = [table for text in filter(None, (sql, around)) for table in find_tables(text)]
    name_of_alias = {table.alias_or_name.lower(): table.name.lower() for table in tables}
    for column in tree.find_all(exp.Column):
        # The key of a join is told by its table, any other column is told by its name.
        is_key = isinstance(column.parent, exp.EQ) and isinstance(column.parent.expression, exp.Column)
        name = name_of_alias.get(column.table.lower(), column.table) if is_key else ""
        column.set("table", exp.to_identifier(name.lower()) if name else None)
    parts: set[str] = set()
    for node in tree.walk():
        parts |= {node.key, node.sql(dialect="sqlite").lower()}
        parts |= {node.name.lower()} if isinstance(node, exp.Literal | exp.Identifier) else set()
    return parts


def find_tables(sql: str) -> list[exp.Table]:
    return list(sqlglot.parse_one(sql, dialect="sqlite").find_all(exp.Table))


async def play(cases: list[Case]) -> str:
    """Play each flagged wrong query whose question has a right one by an obedient policy, with the technique agent."""
    right_of = {(case.database, case.question): case.sql for case in cases if case.is_right}
    flagged = [case for case in cases if not case.is_right and case.found]
    known = [case for case in flagged if (case.database, case.question) in right_of]
    mended = 0
    for case in known:
        tool = await SqlTool.open(f"sqlite:///{case.database}")
        policy = ObedientPolicy(case, right_of[case.database, case.question])
        asked = AskedQuestion(case.question, case.rules)
        try:
            run = Run(ScriptedLLM(policy), Toolbox([tool.compare_with(asked)]), Budget())
            await build_technique("agent")(Question(case.question, case.rules), run)
        finally:
            await tool.close()
        mended += policy.queries[-1] == policy.right
    return f"{mended} of {len(known)} (of {len(flagged)} flagged; the questions of the others have no right query)"


async def main(shown: str, spider: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        cases = [*read_bugs(DATA, Path(folder)), *read_defog(DATA), *read_acme(DATA)]
        unanswerable = {"defog": read_unanswerable(DATA)}
        if spider:
            made = Path(folder) / "spider"
            made.mkdir()
            cases += (known := read_spider(Path(spider), DATA, made))
            unanswerable["spider, of another database"] = swap_databases(known)
        seconds = await look_at(cases)
        played = await play(cases)
        unmet = {name: f"{await count_unmet(group)} of {len(group)}" for name, group in unanswerable.items()}
    for case in cases if shown else ():
        for pitfall in case.found:
            if pitfall.kind == shown or shown == "all":
                print(
                    f"{'right' if case.is_right else 'WRONG'} {case.corpus} {case.id} {case.mistakes}: {pitfall.text}"
                )
        if shown == "missed" and not case.is_right and not case.found:
            print(f"{case.id} {case.mistakes}\n  {case.question}\n  {case.rules}\n  {' '.join(case.sql.split())}")
    print_figures(cases, seconds)
    print(f"flagged wrong queries that an obedient policy mends: {played}")
    flagged = [case for case in cases if case.found and not case.is_right]
    told = sum(
        {*case.mistakes} <= {name for pitfall in case.found for name in MISTAKES[pitfall.kind]} for case in flagged
    )
    print(f"flagged wrong queries with no other kind of mistake than the findings speak of: {told} of {len(flagged)}")
    print(f"questions that cannot be answered, objected to: {unmet}")


if __name__ == "__main__":
    arguments = words(__doc__)
    shown = arguments[arguments.index("--show") + 1] if "--show" in arguments else ""
    spider = arguments[arguments.index("--spider") + 1] if "--spider" in arguments else ""
    asyncio.run(main(shown, spider))
