"""Every technique has its heading, every field its line."""

from dataclasses import fields
from pathlib import Path

from decisor.techniques import TECHNIQUES, find_technique_class

PAGE = (Path(__file__).parents[2] / "docs" / "techniques.md").read_text()


def test_every_technique_and_setting_is_in_the_docs() -> None:
    for name in TECHNIQUES:
        kind = find_technique_class(name)
        assert f"## {name}\n" in PAGE
        section = PAGE.split(f"## {name}\n")[1].split("\n## ")[0]
        assert [field.name for field in fields(kind) if f"`{field.name}`" not in section] == []
