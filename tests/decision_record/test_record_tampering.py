"""A record that was changed says so, and says where."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from decision_record.record_shops import computed, from_rows
from decisor.cli import run_command_line
from decisor.decision_record.build import seal_record
from decisor.decision_record.page import check_record, record_to_json, write_record
from decisor.decision_record.record import add_approval, derive_schema, published_schema
from decisor.errors import SetupError
from decisor.history.store import Approval


def plain_record(folder: Path) -> Any:
    _, result = from_rows(folder)
    record = result.record()
    return json.loads(
        record_to_json(replace(record, approvals=add_approval((), Approval("Bo", "", record.digest, "Fine by me"))))
    )


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each text, number and truth value."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from leaves(value[key], (*path, key))
    elif value is not None:
        yield path


def other(value: Any) -> Any:
    return not value if isinstance(value, bool) else value + 1 if isinstance(value, int | float) else f"{value}x"


def with_change(plain: Any, path: tuple[Any, ...]) -> Any:
    copy = json.loads(json.dumps(plain))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = other(place[path[-1]])
    return copy


def test_the_shipped_schema_is_that_of_the_classes() -> None:
    assert published_schema() == derive_schema(), "write it anew from decisor.decision_record.record.derive_schema()"
    jsonschema.Draft202012Validator.check_schema(json.loads(published_schema()))


def test_records_meet_the_schema_and_nothing_may_be_missing_or_more(tmp_path: Path) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(published_schema()))
    _, result = computed(tmp_path)
    for plain in (plain_record(tmp_path), json.loads(record_to_json(result.record()))):
        validator.validate(plain)
        assert check_record(plain).faults == ()
        for part in ("digest", "approvals"):
            less = {key: value for key, value in plain.items() if key != part}
            assert not validator.is_valid(less)
            with pytest.raises(SetupError, match=f"it needs {part}"):
                check_record(less)
        more = {**plain, "content": {**plain["content"], "note": "x"}}
        assert not validator.is_valid(more)
        with pytest.raises(SetupError, match=r"content\.note is not known here; there is request, decision"):
            check_record(more)
        wrong = with_change(plain, ("content", "decision", "stopped"))
        assert not validator.is_valid(wrong)
        with pytest.raises(SetupError, match=r"does not meet the schema: content\.decision\.stopped"):
            check_record(wrong)


def test_no_number_or_word_can_be_changed_without_its_part_being_named(tmp_path: Path) -> None:
    plain = plain_record(tmp_path)
    assert check_record(plain).faults == ()
    of_words = (("decision", "stopped"), ("evidence", "objections", 0, "kind"), ("alternatives", "goal"))
    paths = [path for path in leaves(plain["content"]) if path not in of_words]
    assert len(paths) > 50
    for path in paths:
        faults = check_record(with_change(plain, ("content", *path))).faults
        assert faults[0] == f"{path[0]} was changed after the record was made: its digest is another.", path
        assert any(fault.startswith("Bo approved another content") for fault in faults), path


def test_a_changed_cell_names_its_row(tmp_path: Path) -> None:
    plain = plain_record(tmp_path)
    row = ("content", "evidence", "queries", 0, "rows", 1, "fields", "rent")
    assert "The row o1.r2 was changed after the record was made." in check_record(with_change(plain, row)).faults


def test_each_word_of_an_approval_is_sealed(tmp_path: Path) -> None:
    plain = plain_record(tmp_path)
    for name in plain["approvals"][0]:
        who = "Box" if name == "by" else "Bo"
        assert check_record(with_change(plain, ("approvals", 0, name))).faults == (
            f"The approval by {who} was changed after it was made.",
        )


def test_digests_and_what_they_are_of_are_all_held_against_the_content(tmp_path: Path) -> None:
    plain = plain_record(tmp_path)
    assert "decision was changed" in check_record(with_change(plain, ("digests", "decision"))).faults[0]
    assert check_record(with_change(plain, ("digest",))).faults == ("The digest is not that of the content.",)


def test_the_number_of_the_run_is_sealed(tmp_path: Path) -> None:
    plain = plain_record(tmp_path)
    changed = ("The number of the run was changed after the record was made.",)
    assert check_record(with_change(plain, ("run",))).faults == changed
    assert check_record(with_change(plain, ("run_digest",))).faults == changed


@pytest.mark.slow
def test_a_forger_who_makes_all_digests_anew_is_caught_by_the_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, result = computed(tmp_path)
    content = result.record().content
    assert content.alternatives is not None
    first, *rest = content.alternatives.options
    cheaper = replace(content.alternatives, options=(replace(first, outcome=1000.0), *rest))
    write_record(seal_record(replace(content, alternatives=cheaper)), tmp_path / "forged.json")
    assert run_command_line(["history", "verify", str(tmp_path / "forged.json"), "--db", url]) == 0
    assert "Mainz + Linz: 1,000 EUR -> 228,614 EUR" in capsys.readouterr().out
    path, result = from_rows(tmp_path)
    content = result.record().content
    query = content.evidence.queries[0]
    row = replace(query.rows[0], fields={"name": "elm", "rent": 4.0})
    evidence = replace(content.evidence, queries=(replace(query, rows=(row, query.rows[1])),))
    write_record(seal_record(replace(content, evidence=evidence)), tmp_path / "forged.json")
    assert run_command_line(["history", "verify", str(tmp_path / "forged.json"), "--db", f"sqlite:///{path}"]) == 1
    assert "[o1.r1] rent 4 -> rent 400" in capsys.readouterr().out


def test_what_is_no_record_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.json"
    for text in (
        "",
        "[]",
        '{"format": "decisor decision record 9"}',
        '{"format": "decisor decision record 1"}',
        "{" * 5000,
    ):
        path.write_text(text)
        assert run_command_line(["history", "record", str(path), "--html", str(tmp_path / "r.html")]) == 2
        assert capsys.readouterr().err.count("\n") == 1, text


def test_the_page_of_a_changed_record_says_so_and_shows_no_approval_as_holding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = plain_record(tmp_path)
    (tmp_path / "r.json").write_text(json.dumps(with_change(plain, ("content", "decision", "answer"))))
    assert run_command_line(["history", "record", str(tmp_path / "r.json"), "--html", str(tmp_path / "r.html")]) == 0
    assert "decision was changed" in capsys.readouterr().err
    page = (tmp_path / "r.html").read_text()
    assert "This record was changed after it was made" in page and "The record was changed after this approval." in page
    assert '<span class="state">approved</span>' not in page


def test_a_name_may_not_stand_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = json.dumps(plain_record(tmp_path)).replace('"answer": "elm"', '"answer": "oak", "answer": "elm"')
    (tmp_path / "r.json").write_text(text)
    assert run_command_line(["history", "record", str(tmp_path / "r.json"), "--html", str(tmp_path / "r.html")]) == 2
    assert "a name stands twice" in capsys.readouterr().err
