"""A person approves a decision, and takes that back; an approval is of the record as it was."""

import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from decision_record.record_shops import computed, from_rows
from decisor.cli import run_command_line
from decisor.decision_record.build import change_approvals
from decisor.decision_record.page import read_record, render_record_page, write_record
from decisor.decision_record.record import add_approval, check_approval, make_approval_change, withdraw_approvals
from decisor.errors import SetupError
from decisor.history.place import FolderPlace
from decisor.history.store import Approval, History, RunMark

FULL = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1024, -1))"
"""A process that writes no file of more than a kilobyte."""
Capture = pytest.CaptureFixture[str]


def test_an_approval_is_kept_with_the_run_and_stands_in_its_record(tmp_path: Path, capsys: Capture) -> None:
    _, result = from_rows(tmp_path, history=True)
    assert run_command_line(["history", "approve", "last", "--by", "Bo Smith", "--note", "until May"]) == 0
    assert "is approved by Bo Smith." in capsys.readouterr().err
    (approval,) = History().read(1).approvals
    record = result.record()
    assert (approval.by, approval.note, approval.content) == ("Bo Smith", "until May", record.digest)
    assert record.approvals == (approval,) and check_approval(approval, record.digest) == "holds"
    assert run_command_line(["history", "show", "1"]) == 0
    assert "Approved by Bo Smith" in capsys.readouterr().out
    assert run_command_line(["history", "show", "1", "--record", str(tmp_path / "r.html")]) == 0
    page = (tmp_path / "r.html").read_text()
    assert "Bo Smith" in page and "until May" in page and "<script" not in page


def test_who_approved_may_take_it_back_and_approve_again(tmp_path: Path, capsys: Capture) -> None:
    from_rows(tmp_path, history=True)
    assert run_command_line(["history", "approve", "1", "--by", "Bo"]) == 0
    assert run_command_line(["history", "approve", "1", "--by", "Bo"]) == 2
    assert "approved this already" in capsys.readouterr().err
    assert run_command_line(["history", "approve", "1", "--by", "Bo", "--withdraw", "--note", "old rents"]) == 0
    (approval,) = History().read(1).approvals
    assert (approval.why, check_approval(approval, approval.content)) == ("old rents", "withdrawn")
    assert run_command_line(["history", "approve", "1", "--by", "Bo", "--withdraw"]) == 2
    assert run_command_line(["history", "approve", "1", "--by", "Bo"]) == 0
    assert [bool(one.withdrawn) for one in History().read(1).approvals] == [True, False]


def test_who_approves_may_say_when_to_look_at_it_again(tmp_path: Path, capsys: Capture) -> None:
    _, result = from_rows(tmp_path)
    result.save_record(file := tmp_path / "r.json")
    for day in ("2020-01-01", "next May"):
        assert run_command_line(["history", "approve", str(file), "--by", "Bo", "--review", day]) == 2
        assert "no day from today on" in capsys.readouterr().err
    assert run_command_line(["history", "approve", str(file), "--by", "Bo", "--review", "2999-01-31"]) == 0
    record = read_record(file).record
    assert [one.review for one in record.approvals] == ["2999-01-31"]
    assert "To be looked at again on 2999-01-31." in render_record_page(record)
    # The day is sealed with the approval.
    file.write_text(file.read_text().replace("2999-01-31", "2998-01-31"))
    assert any("was changed after it was made" in fault for fault in read_record(file).faults)


def test_no_approval_or_mark_of_those_that_come_at_once_is_lost(tmp_path: Path) -> None:
    from_rows(tmp_path, history=True)
    names = [f"person {number}" for number in range(12)]

    def approve(name: str) -> None:
        change_approvals(History(), 1, "", make_approval_change(name))
        History().mark(1, RunMark("right", name))

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(approve, names))
    run = History().read(1)
    assert sorted(one.by for one in run.approvals) == sorted(names) and run.mark is not None


def test_a_record_in_a_file_is_approved_there(tmp_path: Path, capsys: Capture) -> None:
    path, result = from_rows(tmp_path)
    file = tmp_path / "r.json"
    result.save_record(file)
    assert run_command_line(["history", "approve", str(file), "--by", "Bo"]) == 0
    assert [one.by for one in read_record(file).record.approvals] == ["Bo"]
    assert run_command_line(["history", "verify", str(file), "--db", f"sqlite:///{path}"]) == 0
    file.write_text(file.read_text().replace('"by": "Bo"', '"by": "Cleo"'))
    assert run_command_line(["history", "verify", str(file), "--db", f"sqlite:///{path}"]) == 1
    assert "The approval by Cleo was changed after it was made." in capsys.readouterr().out
    assert run_command_line(["history", "approve", str(file), "--by", "Dan"]) == 2
    assert "was changed after it was made" in capsys.readouterr().err


def test_a_record_is_whole_where_an_approval_of_it_does_not_fit_on_the_disk(tmp_path: Path) -> None:
    _, result = from_rows(tmp_path)
    path, link = tmp_path / "r.json", tmp_path / "link.json"
    result.save_record(path)
    path.chmod(0o640)
    link.symlink_to(path)
    before, there = path.read_bytes(), set(tmp_path.iterdir())
    code = f"{FULL}; from decisor.cli import run_command_line; sys.exit(run_command_line(sys.argv[1:]))"
    full = [sys.executable, "-c", code]
    ended = subprocess.run(
        [*full, "history", "approve", str(link), "--by", "Bo"], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (2, f"decisor: Cannot write {link}: File too large.\n")
    assert path.read_bytes() == before and set(tmp_path.iterdir()) == there
    assert run_command_line(["history", "approve", str(link), "--by", "Bo"]) == 0
    assert link.is_symlink() and read_record(path).record.approvals[0].by == "Bo"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_an_approval_of_another_content_says_so(tmp_path: Path, capsys: Capture) -> None:
    from_rows(tmp_path, history=True)
    assert run_command_line(["history", "approve", "1", "--by", "Bo"]) == 0
    trace = FolderPlace().trace_of(1)
    trace.write_text(trace.read_text().replace('"answer": "elm"', '"answer": "oak"'))
    assert run_command_line(["history", "show", "1", "--record", str(tmp_path / "r.html")]) == 0
    assert "The record was changed after this approval." in (tmp_path / "r.html").read_text()
    assert run_command_line(["history", "show", "1", "--record", str(tmp_path / "r.json")]) == 0
    assert read_record(tmp_path / "r.json").faults[0].startswith("Bo approved another content of this record")


def test_nobody_approves_without_a_name_nor_what_has_no_answer(tmp_path: Path, capsys: Capture) -> None:
    from_rows(tmp_path, history=True)
    assert run_command_line(["history", "approve", "1"]) == 2
    assert "--by NAME" in capsys.readouterr().err
    assert run_command_line(["history", "approve", "7", "--by", "Bo"]) == 2
    with pytest.raises(SetupError, match="no approval by Bo"):
        withdraw_approvals(add_approval((), Approval("Ann", "", "0" * 64)), "Bo")


def test_the_page_says_where_the_same_person_asked_and_approved(tmp_path: Path) -> None:
    computed(tmp_path, history=True)
    assert run_command_line(["history", "approve", "1", "--by", "Ann"]) == 0
    assert run_command_line(["history", "show", "1", "--record", str(tmp_path / "r.html")]) == 0
    assert "The same person asked." in (tmp_path / "r.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("where", ["history", "file"])
def test_two_processes_that_approve_at_once_lose_no_approval(tmp_path: Path, where: str) -> None:
    _, result = from_rows(tmp_path, history=True)
    file = tmp_path / "r.json"
    write_record(result.record(), file)
    code = "import sys\nfrom decisor.cli import run_command_line as run\n" + "".join(
        f"assert run(['history', 'approve', sys.argv[1], '--by', sys.argv[2] + '{n}']) == 0\n" for n in range(6)
    )
    what = "1" if where == "history" else str(file)
    both = [
        subprocess.Popen([sys.executable, "-c", code, what, who], stderr=subprocess.PIPE, text=True)
        for who in ("Ann", "Bo")
    ]
    complaints = [one.communicate(timeout=60)[1] for one in both]
    assert [one.returncode for one in both] == [0, 0], complaints
    approvals = History().read(1).approvals if where == "history" else read_record(file).record.approvals
    assert sorted(one.by for one in approvals) == [f"{who}{n}" for who in ("Ann", "Bo") for n in range(6)]
