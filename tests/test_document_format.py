"""The reader of JSON and TOML documents: values by their types, faults with their place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

import pytest
from annotated_types import Ge, Gt, Le

from decisor.system.serialization import SECTION_NAME, DecodeError, DocumentFormat, SectionName, TextRule
from decisor.system.structured_files import FileFault, TomlFile

Name = Annotated[str, TextRule(r"^[A-Za-z_]\w*$")]


@dataclass(frozen=True)
class Site:
    """A place to build."""

    name: Annotated[str, SectionName()]
    goal: Literal["min", "max"]
    sql: Annotated[str, TextRule()] = ""
    """A query of one number."""
    tags: Annotated[tuple[str, ...], TextRule(is_list=True)] = ()
    cost: float | None = None
    source: str = ""


@dataclass(frozen=True)
class Sites:
    """Places to build."""

    title: Annotated[str, TextRule()]
    site: Mapping[Name, Site] = field(default_factory=dict)
    take: Annotated[int, Ge(1)] | str = 1
    share: Annotated[float, Gt(0), Le(1000)] = 1.0
    change: Annotated[str, TextRule(is_list=True, joint=";\n")] = ""
    bound: int | float | str = 0


SITES = DocumentFormat(Sites, is_closed=True, keys={"name": SECTION_NAME, "source": "from"})


def read(text: str) -> Sites:
    file = TomlFile(text)
    file.name_sections("site")
    return file.decode(SITES, "a list of sites")


def test_a_toml_file_is_read_into_its_classes() -> None:
    assert read('title = "x"\n[site.elm]\ngoal = "min"\ntags = "new"\nfrom = "plot"\ncost = 2') == Sites(
        "x", {"elm": Site("elm", "min", tags=("new",), cost=2.0, source="plot")}
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[site.a]\ngoal = 'min'", "a list of sites needs title."),
        ("title = 'x'\n[site.a]\ngoal = 'low'", 'line 3: site.a.goal is to be "min" or "max", not "low".'),
        ("title = 'x'\n[site.a]\ngoal = 'min'\ntags = ['u', ' ']", "line 4: site.a.tags.2 is empty."),
        ("title = 'x'\n[site.a]\ngoal = 'min'\ntags = 3", "line 4: site.a.tags is to be a text or a list, not 3."),
        (
            "title = 'x'\n[site.a]\ngoal = 'min'\nname = 'b'",
            "line 4: site.a.name is not known here; there is goal, sql, tags, cost, from.",
        ),
        (
            "title = 'x'\n[site.a]\ngoal = 'min'\ncost = inf",
            "line 4: site.a.cost is to be a finite number, not Infinity.",
        ),
        ("title = 'x'\n[site.'a b']\ngoal = 'min'", "line 2: site.a b is not a name that can stand here."),
        ("title = true\nsite = 3", "line 1: title is to be a text, not true; line 2: site is to be a table, not 3."),
        ("title = 'x'\ntake = [1]", "line 2: take is to be a whole number or a text, not a list."),
        ("title = 'x'\ntake = 0", "line 2: take is to be at least 1, not 0."),
        ("title = 'x'\nshare = 0", "line 2: share is to be above 0, not 0."),
        ("title = 'x'\nshare = 5000", "line 2: share is to be at most 1,000, not 5000."),
        ("title = 'x'\nbound = nan", "line 2: bound is to be a finite number, not NaN."),
        ("title = 'x'\nbound = []", "line 2: bound is to be a number or a text, not a list."),
        ("title = 'x'\nchange = ['a', '']", "line 2: change.2 is empty."),
        ("title = ", "line 1: this is not TOML: Invalid value."),
    ],
)
def test_every_fault_of_a_toml_file_has_its_line_and_what_was_found(text: str, complaint: str) -> None:
    with pytest.raises(FileFault) as error:
        read(text)
    assert str(error.value) == complaint


def test_a_list_of_texts_is_joined_where_one_text_is_meant() -> None:
    assert [read(f"title = 'x'\nchange = {text}").change for text in ("['a', 'b']", "'a'", "''", "[]")] == [
        "a;\nb",
        "a",
        "",
        "",
    ]


def test_an_open_format_ignores_unknown_keys_and_takes_no_text_for_a_number() -> None:
    @dataclass(frozen=True)
    class Step:
        count: int
        share: float = 0.0

    steps = DocumentFormat(Step)
    assert steps.decode('{"count": 2, "later": [1], "share": 1}') == Step(2, 1.0)
    for text in ('{"count": "2"}', '{"count": true}', '{"count": 2.0}', "[2]", "{"):
        with pytest.raises(DecodeError):
            steps.decode(text)


def test_the_schema_is_described_by_the_lines_under_the_fields() -> None:
    site = SITES.json_schema("Sites")["$defs"]["Site"]
    assert site["properties"]["sql"] == {"type": "string", "pattern": r"\S", "description": "A query of one number."}
    assert "name" not in site["properties"] and site["required"] == ["goal"] and site["additionalProperties"] is False
