"""How a table is filled and written: which outcomes belong to a cell, and what a cell says."""

from dataclasses import replace
from pathlib import Path

import pytest

from decisor.lab.benchmark import Outcome
from decisor.lab.reproduction.papers import CellFigure, PaperColumn, PaperRow, PaperTable, read_paper
from decisor.lab.reproduction.tables import (
    MINUS,
    FilledCell,
    FilledTable,
    RunData,
    fill_table,
    format_html,
    format_latex,
    format_markdown,
)
from decisor.lab.statistics import Interval, wilson

SQL, GRAPH = "dqa schema=bare", "dqa form=graph schema=bare"


def outcome(case: str, right: bool, bench: str = SQL, **more: object) -> Outcome:
    group = "building" if case.startswith("b") else "locating"
    one = Outcome(bench, case, "plan_rag preset=paper", "gpt-4", 0, "right" if right else "wrong", group)
    return replace(one, **more)  # type: ignore[arg-type]


def filled(name: str, outcomes: list[Outcome], models: list[str], paper: str = "planrag") -> FilledTable:
    (table,) = fill_table(read_paper(paper), read_paper(paper).table(name), RunData(outcomes), models)
    return table


def cell(table: FilledTable, row: str, column: str) -> FilledCell:
    cells = dict(table.rows)[row]
    return dict(zip(table.heads[1:], cells, strict=True))[column]


def test_a_run_of_one_form_fills_that_form_of_table_5_and_nothing_of_the_mean_of_both() -> None:
    outcomes = [outcome("l1", True), outcome("l2", False)]
    assert cell(filled("5", outcomes, ["gpt-4"]), "PlanRAG-LM", "Locating, RDB").text().startswith("50.0 / 64.5 ")
    assert cell(filled("5", outcomes, ["gpt-4"]), "PlanRAG-LM", "Locating, GDB").text() == "– / 64.0"
    assert cell(filled("4", outcomes, ["gpt-4"]), "PlanRAG-LM", "Locating").text() == "– / 64.3"
    both = [*outcomes, outcome("l1", False, GRAPH)]
    # l2 was not run as a graph: it counts in neither form.
    assert cell(filled("4", both, ["gpt-4"]), "PlanRAG-LM", "Locating").text().startswith("50.0 / 64.3 ")


def test_the_difference_has_the_interval_of_ours() -> None:
    outcomes = [outcome(f"l{n}", n < 12) for n in range(20)]
    one = cell(filled("5", outcomes, ["gpt-4"]), "PlanRAG-LM", "Locating, RDB")
    within = wilson(12, 20)
    assert one.difference == pytest.approx(60 - 64.5)
    assert one.interval is not None
    assert (one.interval.low, one.interval.high) == pytest.approx((100 * within.low - 64.5, 100 * within.high - 64.5))


def test_a_run_with_other_settings_or_of_a_described_schema_is_no_run_of_the_papers() -> None:
    others = [outcome("l1", True, technique="plan_rag"), outcome("l2", True, "dqa")]
    assert cell(filled("5", others, ["gpt-4"]), "PlanRAG-LM", "Locating, RDB").text() == "– / 64.5"


def test_llms_of_parts_and_a_judge_are_no_settings_of_the_paper() -> None:
    part = Outcome(
        "popqa judge=m@http://h/v1 longtail=yes", "a", "reasoning_dag preset=paper planner_llm=gpt-4o", "l", 0, "right"
    )
    part = replace(part, metrics={"acc": 1.0, "llm_eval": 0.0})
    table = filled("4", [part], ["l"], "plan-rag")
    assert [one.text() for one in dict(table.rows)["Plan-RAG-8B"]] == [
        "100.00 / 36.09 (+63.91; −15.44 to +63.91)",
        "0.00 / 42.74 (−42.74; −42.74 to +36.61)",
    ]


def test_rows_of_a_named_llm_are_filled_by_it_alone_and_others_have_rows_of_their_own() -> None:
    outcomes = [outcome("l1", True, model="gpt-3.5-turbo"), outcome("l1", False, model="mine")]
    table = filled("11", outcomes, ["gpt-3.5-turbo", "mine"])
    assert cell(table, "GPT-3.5, PlanRAG-LM", "Locating, RDB").text().startswith("100.0 / 0 (")
    assert cell(table, "Phi-2, PlanRAG", "Locating, RDB").text() == "– / 0"
    assert cell(table, "plan_rag preset=paper, mine", "Locating, RDB").text().startswith("0.0 / – (")


def test_two_llms_have_a_table_each_where_the_paper_names_none() -> None:
    paper = read_paper("planrag")
    tables = fill_table(paper, paper.table("5"), RunData([outcome("l1", True)]), ["gpt-4", "mine"])
    assert [table.notes[1] for table in tables] == [
        "Ours: gpt-4; dqa schema=bare 1 case.",
        "Ours: nothing has been run.",
    ]


def test_what_nobody_could_run_says_so_in_the_cell() -> None:
    table = filled("1", [], ["m"], "radagent")
    assert cell(table, "RadAgent", "WebShop").text() == "not run here / 59.36"
    assert cell(table, "RadAgent", "Game of 24, found").text() == "– / 43.0"
    assert any("1.18 million products" in note and "RapidAPI" in note for note in table.notes)


def test_found_and_selected_are_two_columns_and_the_published_figure_stands_beside_found() -> None:
    one = Outcome("game24", "900", "radagent preset=paper", "m", 0, "wrong", metrics={"found": 1.0, "selected": 0.0})
    table = filled("1", [one], ["m"], "radagent")
    assert cell(table, "RadAgent", "Game of 24, found").text().startswith("100.0 / 43.0 (")
    assert cell(table, "RadAgent", "Game of 24, selected").text().startswith("0.0 / – (")


def test_a_table_of_sizes_says_that_it_was_counted() -> None:
    assert filled("3", [], []).notes[1] == "Ours: counted from the files at hand."


HOSTILE = FilledTable(
    "P & Q",
    "table 1",
    "50 % of_all",
    "page 1",
    ("Row", "A|B"),
    (("x | <b>&", (FilledCell(CellFigure(61.5, Interval(54.6, 68.0)), 64.3),)),),
    ("A note.",),
)


def test_markdown_keeps_a_row_a_row() -> None:
    lines = format_markdown(HOSTILE).splitlines()
    assert lines[4] == "| x \\| \\<b\\>\\& | 61.5 / 64.3 (−2.8; −9.7 to +3.7) |"


def test_latex_escapes_its_own_signs() -> None:
    text = format_latex(HOSTILE)
    assert r"\caption{P \& Q, table 1 (page 1): 50 \% of\_all}" in text
    assert r"61.5 / 64.3 {\scriptsize ($-$2.8; $-$9.7 to +3.7)} \\" in text
    assert text.count("{") == text.count("}")


def test_html_shows_names_as_text() -> None:
    page = format_html([HOSTILE])
    assert "x | &lt;b&gt;&amp;" in page and "<b>61.5</b> / 64.3" in page and f"{MINUS}2.8; " in page


def test_the_words_of_a_row_count_before_those_of_a_column_and_of_the_table() -> None:
    table = PaperTable(technique="cot", measure="accuracy", benches=("game24",))
    row = PaperRow(head="r", technique="dfs", techniques={"B": "bfs"}, measures={"B": "rank"})
    one, other = PaperColumn(head="A", measure="mean found"), PaperColumn(head="B", benches=("webshop",))
    a, b = table.subject(row, one), table.subject(row, other)
    assert (a.technique, a.measure, a.benches) == ("dfs", "mean found", ("game24",))
    assert (b.technique, b.measure, b.benches) == ("bfs", "rank", ("webshop",))


def test_a_missing_folder_of_data_leaves_our_sizes_out(tmp_path: Path) -> None:
    paper = read_paper("planrag")
    (table,) = fill_table(paper, paper.table("3"), RunData((), tmp_path), [])
    assert cell(table, "Rows", "Locating").text() == "– / 2038.8"
