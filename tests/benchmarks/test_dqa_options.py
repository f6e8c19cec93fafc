"""Options of the benchmark that name a database are used, or refused."""

import pytest

from decisor.cli import run_command_line

NOBODY = "mysql://127.0.0.1:9999"


@pytest.mark.parametrize(
    "words",
    [
        ("-t", "exact", "--db", NOBODY),
        ("-t", "exact", "--graph", "bolt://127.0.0.1:9"),
        ("-t", "exact", "--fresh"),
        ("-t", "exact", "--db", NOBODY, "--graph", "bolt://h"),
        ("-t", "exact", "--form", "sql", "--graph", "bolt://h"),
    ],
)
def test_a_database_where_nobody_listens_is_no_result(
    words: tuple[str, ...], tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    data = f"{tmp_path}/made"
    assert (
        run_command_line(
            ["bench", "dqa", "generate", "--scenario", "locating", "--size", "tiny", "--questions", "2", "--out", data]
        )
        == 0
    )
    capsys.readouterr()
    assert run_command_line(["bench", "dqa", "run", "--data", data, *words]) == 2
    assert "100 %" not in capsys.readouterr().out
