"""Options of the benchmark that name a database are used, or refused."""

import pytest

from decisor.cli import run_command_line

NOBODY = "mysql://127.0.0.1:9999"


@pytest.mark.parametrize(
    "bench",
    [f"db={NOBODY}", "form=graph db=bolt://127.0.0.1:9", "fresh=yes", "form=sql db=bolt://h"],
)
def test_a_database_where_nobody_listens_is_no_result(
    bench: str, tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    data = f"{tmp_path}/made"
    assert (
        run_command_line(
            ["bench", "dqa", "generate", "--scenario", "locating", "--size", "tiny", "--questions", "2", "--out", data]
        )
        == 0
    )
    capsys.readouterr()
    assert (
        run_command_line(["eval", "-b", f"dqa data={data} {bench}", "-t", "exact", "--store", f"{tmp_path}/r.db"]) == 2
    )
    assert "100.0" not in capsys.readouterr().out
