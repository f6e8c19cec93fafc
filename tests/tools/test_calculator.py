"""The calculator reads arithmetic and nothing else."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as some

from decisor.errors import ToolError
from decisor.tools.calculator import CalculatorTool, calculate


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 + 3 * 4", 14),
        ("(2 + 3) * 4", 20),
        ("8 / 4 / 2", 1),
        ("1 + " * 900 + "007", 907),
        ("--3", 3),
        ("2 * -3", -6),
        ("2**3", 8),
        ("1e3 + .5", 1000.5),
        ("avg(1, 2, 6)", 3),
        ("sum(0.1, 0.2, 0.3)", 0.6),
        ("round(2.345, 2)", 2.35),
        ("round(2.6)", 3),
        ("sqrt(16)", 4),
        ("MIN(3, abs(-2))", 2),
    ],
)
def test_arithmetic(text: str, value: float) -> None:
    assert calculate(text) == pytest.approx(value, abs=0.01 if "345" in text else 1e-12)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("2 +", "ends too early"),
        ("(2", r"'\)' is missing"),
        ("2 3", "not expected there"),
        ("1,000", "not expected there"),
        ("__import__(1)", "'__import__' is not expected"),
        ("sqrt(-1)", "no value"),
        ("9 ^ 9 ^ 9", "no value"),
        ("max(1)", "max takes 2 values"),
        ("abs(1, 2)", "abs takes 1 values"),
        ("2 $ 3", r"'\$' cannot be read"),
        ("(" * 300 + "1" + ")" * 300, "nested"),
        ("2^" * 200 + "1", "no value"),
        ("-" * 5000 + "1", "nested"),
        ("()", "not expected|no arithmetic"),
        ("max", r"'\(' is missing"),
        ("2(3)", "no arithmetic"),
        ("1+" * 9000 + "1", "at most"),
        ("1e400", "too large"),
        ("(-8) ^ 0.5", "no value"),
    ],
)
def test_what_is_no_arithmetic_is_the_models_mistake(text: str, complaint: str) -> None:
    with pytest.raises(ToolError, match=complaint):
        calculate(text)


@given(some.text(alphabet="0123456789.+-*/^(), minaxbsqrtvgue", max_size=60))
def test_any_text_gives_a_number_or_a_mistake(text: str) -> None:
    with contextlib.suppress(ToolError):
        assert isinstance(calculate(text), float)


async def test_each_line_is_a_citable_record() -> None:
    observation = await CalculatorTool().call("1 + 1\n7 / 2")
    assert [(record.id, record.fields["value"]) for record in observation.records] == [("r1", 2.0), ("r2", 3.5)]
    assert observation.note == "1 + 1 = 2\n7 / 2 = 3.5"
