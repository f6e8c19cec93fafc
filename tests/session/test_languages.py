"""Questions, rules and numbers in other languages: asked, answered, and the figures checked."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import decisor
from decisor.cli import run_command_line
from decisor.session.result import Result
from servers.openai_server import serve_threaded

QUERY = "SELECT ort, miete FROM standort ORDER BY miete"
GERMAN = [
    f"Plan: [Schritt 1: Mieten vergleichen]\nThought: Ich beginne mit den Mieten.\nAction: sql\nAction input: {QUERY}",
    "Thought: Köln ist am günstigsten.\nFinal answer: Köln\n"
    "Because: Köln kostet 1.234,5 € [o1.r1], München 2.345,75 € [o1.r2].",
]
FRENCH = [
    f"Plan : [Étape 1 : comparer les loyers]\nThought : D’abord les loyers.\nAction : sql\nAction input : {QUERY}",
    "Thought : Le moins cher.\nFinal answer : Köln\n"
    "Because : Köln coûte 1\u202f234,5 € [o1.r1], München 2 345,75 € [o1.r2] ; « le moins cher ».",
]
CHINESE = [
    f"Plan： [第一步：比较租金。]\nThought： 先看租金，再决定。\nAction： sql\nAction input： {QUERY}",
    "Thought： 科隆最便宜。\nFinal answer： Köln\n"
    "Because： 科隆的租金是１２３４.５元［o1.r1］，慕尼黑是2,345.75元【o1.r2】。",
]
WIDE = [
    f"Plan：[第一步]\nAction：sql\nAction input：{QUERY}；",
    "Final answer：Köln\nBecause：１，２３４．５元 [o1.r1]，低于2345.75元〔o1.r2〕。",
]


@pytest.fixture
def sites(tmp_path: Path) -> Path:
    path = tmp_path / "standorte.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE standort (ort TEXT, miete REAL)")
        database.executemany("INSERT INTO standort VALUES (?, ?)", [("Köln", 1234.5), ("München", 2345.75)])
    return path


def answered(sites: Path, replies: list[str], question: str, rules: str = "") -> tuple[Result, list[dict[str, Any]]]:
    bodies: list[dict[str, Any]] = []

    def reply(body: dict[str, Any]) -> str:
        bodies.append(body)
        return replies[min(len(bodies), len(replies)) - 1]

    with serve_threaded(reply) as base_url:
        llm = f"m@{base_url}"
        result = decisor.ask(question, rules=rules, db=f"sqlite:///{sites}", llm=llm, technique="plan_rag")
    return result, bodies


LANGUAGES = {
    "German": (GERMAN, "Welcher Standort ist am günstigsten?", "Die Miete darf höchstens 2.000,50 € betragen."),
    "French": (FRENCH, "Quel site est le moins cher ?", "Le loyer ne dépasse pas 2 000,50 €."),
    "Chinese": (CHINESE, "哪个地点最便宜？", "租金不得超过２０００.５元。"),
    "Chinese in wide letters": (WIDE, "哪个地点最便宜？", "租金不得超过２０００.５元。"),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_question_in_another_language_is_decided_with_its_evidence(sites: Path, language: str) -> None:
    replies, question, rules = LANGUAGES[language]
    result, bodies = answered(sites, replies, question, rules)
    prompt = bodies[0]["messages"][-1]["content"]
    assert question in prompt and rules in prompt
    assert len(bodies) == 2, "no reply had to be asked for again"
    assert result.answer == "Köln"
    assert result.evidence.ids == ("o1.r1", "o1.r2")
    assert result.evidence.objections == (), "the figures are those of the records"


@pytest.mark.parametrize("language", ["German", "French", "Chinese"])
def test_a_figure_that_no_record_shows_is_noticed_in_any_language(sites: Path, language: str) -> None:
    replies, question, _ = LANGUAGES[language]
    wrong = [text.replace("234,5 ", "834,5 ").replace("１２３４.５", "１８３４.５") for text in replies]
    result, _ = answered(sites, wrong, question)
    assert len(result.evidence.objections) == 1


def test_the_command_takes_and_shows_any_language(sites: Path, tmp_path: Path, capsys: Any) -> None:
    rules = tmp_path / "规则.txt"
    rules.write_text("租金不得超过２０００.５元。", "utf-8")
    replies = iter(CHINESE)
    with serve_threaded(lambda _: next(replies)) as base_url:
        code = run_command_line(
            [
                "ask",
                "哪个地点最便宜？",
                "--db",
                str(sites),
                "--rules",
                str(rules),
                "--llm",
                f"m@{base_url}",
                "-t",
                "plan_rag",
                "-o",
                "calling=text",
            ]
        )
    shown, how = capsys.readouterr()
    assert code == 0, shown
    assert "哪个地点最便宜？" in how and "第一步：比较租金。" in how and "Decision: Köln" in shown
    assert "Unsupported" not in shown
