"""``decisor doctor`` on what is installed by choice: each extra once, with the command that adds it."""

import tomllib
from pathlib import Path

import pytest

from decisor.cli.doctor import DATABASES, DOCUMENTS, OTHERS, find_installed_parts, is_installed, part_lines

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
ALL = DATABASES | DOCUMENTS | OTHERS


def test_every_extra_of_the_package_is_listed() -> None:
    extras = tomllib.loads(PROJECT.read_text("utf-8"))["project"]["optional-dependencies"]
    assert {extra for _, extra in ALL.values()} == {*extras, "", "weights"}


@pytest.mark.parametrize("parts", [DATABASES, DOCUMENTS, OTHERS])
def test_an_extra_that_is_missing_has_one_line(parts: dict[str, tuple[str, str]]) -> None:
    lines = list(part_lines(parts, {name: extra == "" for name, (_, extra) in parts.items()}))
    assert len(lines) == len({extra for _, extra in parts.values() if extra}) + sum(
        extra == "" for _, extra in parts.values()
    )
    assert all(line.endswith(": ready") or " install " in line for line in lines)


def test_of_an_extra_that_is_there_in_part_only_the_rest_is_missing() -> None:
    state = find_installed_parts(DOCUMENTS) | {
        "words (tantivy)": True,
        "PDF (pypdf)": False,
        "HTML (selectolax)": False,
    }
    lines = list(part_lines(DOCUMENTS, state))
    assert "    words (tantivy): ready" in lines
    assert [line for line in lines if "HTML (selectolax), PDF (pypdf): not installed" in line]


def test_a_module_of_a_package_that_is_not_there_is_not_there() -> None:
    assert not is_installed("no_such_package.part") and is_installed("json")
