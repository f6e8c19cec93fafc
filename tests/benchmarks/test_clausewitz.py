"""Reading savegame text made for the test."""

from collections.abc import Iterator

import pytest

from decisor.errors import ParseError
from decisor.lab.dqa.savegames import SaveBlock, iterate_save_sections, parse_save_text

SAVE = """EU4txt
date=1445.1.1 # a comment { with braces
name="The \\"old\\" {realm}"
list={ 1 2 "three four" }
node={ name=a } node={ name=b }
colour = rgb { 1 2 3 }
limit >= 5
empty={}
provinces={
 -1={ trade="north" owner=AAA }
 -2={ trade="south" }
}
"""


def test_every_kind_of_entry_is_read() -> None:
    save = parse_save_text(SAVE)
    assert save.text("date") == "1445.1.1"
    assert save.text("name") == 'The "old" {realm}'
    assert save.block("list").values() == ("1", "2", "three four")
    assert [node.text("name") for node in save.all("node") if isinstance(node, SaveBlock)] == ["a", "b"]
    assert save.number("limit") == 5
    assert save.block("empty") == SaveBlock(())
    assert save.block("provinces").block("-1").text("trade") == "north"


def test_an_opened_section_gives_its_entries_one_by_one_and_others_are_passed_over() -> None:
    found = list(iterate_save_sections(SAVE.splitlines(), opened={"provinces"}, sections={"date"}))
    assert [path for path, _ in found] == [("date",), ("provinces", "-1"), ("provinces", "-2")]


def test_a_save_is_read_as_a_stream() -> None:
    read = 0

    def lines() -> Iterator[str]:
        nonlocal read
        yield "provinces={"
        for read in range(1, 10_001):
            yield f"-{read}={{ trade=node{read % 7} history={{ {read} }} }}"
        yield "}"

    entries = iterate_save_sections(lines(), opened={"provinces"})
    assert next(entries)[0] == ("provinces", "-1")
    assert read < 5
    assert sum(1 for _ in entries) == 9_999


def test_a_string_may_run_over_lines() -> None:
    assert parse_save_text('a="one\ntwo" b=3').items == (("a", "one\ntwo"), ("b", "3"))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a={ b=1", "ends at line 1 inside a block"),
        ("a=1 }", "never opened"),
        ("a={ b= }", "'b' has no value"),
        ('a="b', "inside quotes"),
        ("a=" * 1 + "{" * 300 + "}" * 300, "nested"),
    ],
)
def test_text_that_does_not_match_up_is_a_parse_error(text: str, complaint: str) -> None:
    with pytest.raises(ParseError, match=complaint):
        parse_save_text(text)
