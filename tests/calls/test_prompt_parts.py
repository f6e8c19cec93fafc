"""A prompt that is too long loses whole records: what a retriever put last, then what is oldest."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path
from string import Template as PlainTemplate

import pytest

import decisor.techniques
from decisor.runtime.prompt import (
    PromptSection,
    PromptTemplate,
    PromptText,
    estimate_prompt_tokens,
    estimate_tokens,
    join_texts,
    replace_with_notices,
    sections_of,
    shorten_prompt,
)
from decisor.techniques.shared.answer import Trajectory
from decisor.techniques.shared.passages import format_passages
from decisor.types import Action, Message, Observation, Question, Record, Step


def rows(number: int, count: int) -> Step:
    records = tuple(
        Record(f"o{number}.r{row}", {"name": f"site {row}", "rent": 100 + row}) for row in range(1, count + 1)
    )
    return Step(Action("sql", "SELECT name, rent FROM site"), Observation(records))


def passages(count: int) -> list[Record]:
    return [
        Record(f"o1.r{n}", text=f"Passage {n} tells of ports and of what they cost.", score=1 / n)
        for n in range(1, count + 1)
    ]


def shortened(text: str, room: int) -> tuple[str, tuple[str, ...]]:
    short = shorten_prompt([Message("user", text)], room, estimate_prompt_tokens, estimate_tokens)
    assert short is not None
    return short.messages[0].content, short.left_out


def test_a_text_keeps_its_records_through_all_that_a_technique_does_with_it() -> None:
    shown = Trajectory(Question("Which?"), (rows(1, 2), rows(2, 1))).show()
    prompt = PromptTemplate("# So far\n$steps").substitute(steps=shown) + "\nGo on."
    ids = [section.id for section in sections_of("Begin. " + join_texts("\n", [prompt, "end"]))]
    assert ids == ["o1.r1", "o1.r2", "o2.r1"]
    assert prompt == PlainTemplate("# So far\n$steps").substitute(steps=str(shown)) + "\nGo on."


def test_the_oldest_observation_loses_its_rows_first_and_a_line_says_how_many() -> None:
    shown = Trajectory(Question("Which?"), (rows(1, 20), rows(2, 20))).show()
    text, left_out = shortened(shown, estimate_prompt_tokens([Message("user", shown)]) - 150)
    assert left_out[0] == "o1.r20" and all(id.startswith("o1.") for id in left_out)
    assert f"({len(left_out)} records are left out here, because the prompt would be too long.)" in text
    assert "[o1.r1] | site 1 | 101\n" in text and "[o1.r20]" not in text and text.count("[o2.r") == 20


def test_of_passages_those_that_rank_last_go_first() -> None:
    shown = join_texts(
        "\n",
        [
            format_passages(passages(6)),
            format_passages([replace(one, id=one.id.replace("o1", "o2")) for one in passages(6)]),
        ],
    )
    text, left_out = shortened(shown, estimate_prompt_tokens([Message("user", shown)]) - 60)
    assert left_out[:4] == ("o1.r6", "o2.r6", "o1.r5", "o2.r5")
    assert "[o1.r1]" in text and "[o2.r1]" in text


def test_a_record_is_left_out_whole_or_not_at_all() -> None:
    shown = format_passages(passages(9))
    for room in range(40, estimate_prompt_tokens([Message("user", shown)]), 7):
        text, left_out = shortened(shown, room)
        lines = [line for line in text.splitlines() if not line.startswith("(")]
        assert set(lines) <= set(shown.splitlines()) and len(lines) + len(left_out) == 9
        assert estimate_prompt_tokens([Message("user", text)]) <= room


def test_a_long_note_is_left_out_as_a_record_is() -> None:
    step = Step(Action("api", "x"), Observation(note="word " * 400))
    text, left_out = shortened(Trajectory(Question("?"), (step,)).show(), 100)
    assert len(left_out) == 1 and "word word" not in text and "1 record is left out here" in text


def test_a_prompt_without_records_cannot_be_made_shorter() -> None:
    assert shorten_prompt([Message("user", "word " * 400)], 100, estimate_prompt_tokens, estimate_tokens) is None


def test_the_same_record_in_two_places_goes_from_both() -> None:
    line = "[o1.r1] | " + "far " * 100
    one = PromptText(f"{line}\n", [PromptSection("o1.r1", line)])
    text, left_out = shortened(join_texts("between\n", [one, one]), 60)
    assert left_out == ("o1.r1",) and "far" not in text and text.count("left out here") == 1


SHOWING = {"show", "show_passages", "show_documents", "show_observation", "show_steps"}
"""What gives a text with records in it."""


def test_no_technique_makes_a_plain_text_of_records_on_the_way_into_a_prompt() -> None:
    """An f-string and the standard library's Template forget what a Text knows."""
    wrong = []
    for path in (Path(decisor.techniques.__file__).parent).rglob("*.py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == "string":
                wrong.append(f"{path.name}: from string import Template")
            if isinstance(node, ast.JoinedStr):
                calls = [part.func for part in ast.walk(node) if isinstance(part, ast.Call)]
                names = {getattr(call, "id", getattr(call, "attr", "")) for call in calls}
                wrong += [f"{path.name}: {ast.unparse(node)}"] * bool(names & SHOWING)
    assert not wrong


@pytest.mark.parametrize("text", ["$a", "${a}b", "$$a $a", "$a$b$a", "no place", "$$", "$a_b ${b}", "100 $$a ${a}$"])
def test_a_template_reads_as_that_of_the_standard_library_does(text: str) -> None:
    values = {"a": "x$b", "b": 2, "a_b": ""}
    try:
        expected = PlainTemplate(text).substitute(values)
    except ValueError as error:
        with pytest.raises(ValueError, match=re.escape(str(error))):
            PromptTemplate(text).substitute(values)
    else:
        assert PromptTemplate(text).substitute(values) == expected


def test_a_record_that_ends_as_another_does_leaves_that_whole() -> None:
    first, second = (
        PromptText("[1] cost of [2] b", [PromptSection("o1.r1", "[1] cost of [2] b")]),
        PromptSection("o1.r2", "[2] b"),
    )
    text = join_texts("\n", [first, PromptText(second.line, [second]), "Which?"])
    assert str(replace_with_notices(text, [second])) == (
        "[1] cost of [2] b\n(1 record is left out here, because the prompt would be too long.)\nWhich?"
    )
