"""Python functions as tools: schemas from hints, arguments fitted or complained about, failures as observations."""

import asyncio
import dataclasses
import datetime
import enum
import functools
import json
import math
import threading
import uuid
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from decisor.errors import SetupError, ToolError
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.run import Run
from decisor.tools.arguments import SchemaMisfit, fit_to_schema
from decisor.tools.python_function import FunctionTool, load_function
from decisor.tools.toolbox import Toolbox
from decisor.types import Action, Observation, Record, Value


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass(frozen=True)
class Site:
    city: str
    rent: float = 1.0


class Row(TypedDict):
    name: str


def price(
    city: str,
    units: int = 1,
    colour: Colour = Colour.RED,
    day: datetime.date | None = None,
    kind: Literal["new", "used"] = "new",
    sites: list[Site] | None = None,
    tax: Annotated[Decimal, "a share"] = Decimal(0),
) -> dict[str, object]:
    """What units cost in a city.

    Args:
        city: where they are bought
        units (int): how many
    """
    return {
        "city": city,
        "units": units,
        "colour": colour.name,
        "day": str(day),
        "kind": kind,
        "sites": sites,
        "tax": tax,
    }


def odd(loop: asyncio.AbstractEventLoop) -> None: ...


async def fields_of(tool: FunctionTool, text: str) -> Mapping[str, Any]:
    return (await tool.call(text)).records[0].fields


def test_the_schema_comes_from_hints_and_the_docstring() -> None:
    tool = FunctionTool(price)
    told = tool.describe()
    assert told.startswith("What units cost in a city.")
    for line in (
        'Input: one JSON object, such as {"city": "..."}',
        "- city (text, required): where they are bought",
        "- units (whole number): how many",
        '- colour (one of "red", "blue")',
        '- kind (one of "new", "used")',
        "- day (text, date or null)",
        "- sites (list of {city: text, rent?: number} or null)",
        "- tax (number): a share",
    ):
        assert line in told


async def test_arguments_become_what_the_hints_name() -> None:
    written = '{"city": "Ghent", "units": "3", "colour": "blue", "day": "2026-11-21", "sites": [{"city": "Lier"}]}'
    told, site = (await FunctionTool(price).call(written)).records
    assert told.fields == {
        "city": "Ghent",
        "units": 3,
        "colour": "BLUE",
        "day": "2026-11-21",
        "kind": "new",
        "tax": "0",
    }
    assert site.fields == {"city": "Lier", "rent": 1.0}


@pytest.mark.parametrize("written", ["Ghent", '"Ghent"', '{"city": "Ghent",}', "```json\n{'city': 'Ghent'}\n```"])
async def test_a_bare_value_stands_for_the_only_required_argument(written: str) -> None:
    assert (await fields_of(FunctionTool(price), written))["city"] == "Ghent"


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("{}", "city is missing."),
        ('{"city": 1, "units": "many"}', 'units must be a whole number, not "many"'),
        ('{"city": "a", "unit": 1}', "There is no unit; there is city, units"),
        ('{"city": "a", "units": 1.5}', "whole number"),
        ('{"city": "a", "colour": "green"}', 'one of "red", "blue"'),
        ('{"city": "a", "day": "2026-13-45"}', "cannot be used"),
        ('{"city": "a", "sites": [{"rent": 1}]}', "sites[0].city is missing"),
        ('{"city": ["a"]}', "city must be text"),
        ('{"city": "a", "units": true}', "whole number"),
    ],
)
async def test_what_does_not_fit_goes_back_with_what_would(written: str, complaint: str) -> None:
    with pytest.raises(ToolError) as caught:
        await FunctionTool(price).call(written)
    assert complaint in str(caught.value)


async def test_an_exception_of_the_function_is_an_observation_and_the_run_goes_on() -> None:
    def divide(a: float, b: float) -> float:
        return a / b

    def leave() -> None:
        raise SystemExit(3)

    run = Run(ScriptedLLM([]), Toolbox([FunctionTool(divide), FunctionTool(leave)]))
    failed = await run.act(Action("divide", '{"a": 1, "b": 0}'))
    assert failed.error and "ZeroDivisionError" in failed.note
    left = await run.act(Action("leave", ""))
    assert left.error and "SystemExit" in left.note
    assert (await run.act(Action("divide", '{"a": 1, "b": 4}'))).records[0].fields == {"value": 0.25}


async def test_a_slow_function_is_given_up_and_a_hanging_one_is_not_started_for_ever() -> None:
    go_on = threading.Event()

    def wait() -> None:
        go_on.wait()

    tool = FunctionTool(wait, seconds=0.02)
    for _ in range(3):
        with pytest.raises(ToolError, match=r"took longer than 0\.02 s"):
            await tool.call("")
    with pytest.raises(ToolError, match="still busy"):
        await tool.call("")
    go_on.set()
    for thread in tool.running:
        await asyncio.to_thread(thread.join)
    tool.seconds = 30.0
    assert (await tool.call("")).note == "(it returned nothing)"


async def test_the_event_loop_goes_on_while_a_function_blocks() -> None:
    ticked = threading.Event()

    def block() -> bool:
        return ticked.wait(20)

    async def tick() -> None:
        await asyncio.sleep(0.005)
        ticked.set()

    ticking = asyncio.create_task(tick())
    assert await fields_of(FunctionTool(block), "") == {"value": True}
    await ticking


async def test_async_functions_partials_objects_and_classes_are_tools_too() -> None:
    async def later(n: int) -> int:
        await asyncio.sleep(n)
        return n

    class Add:
        def __call__(self, a: int, b: int) -> int:
            return a + b

    assert await fields_of(FunctionTool(later), "0") == {"value": 0}
    with pytest.raises(ToolError, match="took longer"):
        await FunctionTool(later, seconds=0.01).call("5")
    partial: Any = functools.partial(Add().__call__, b=2)
    partial.__name__ = "add_two"
    assert await fields_of(FunctionTool(partial), '{"a": 1}') == {"value": 3}
    assert await fields_of(FunctionTool(Add()), '{"a": 1, "b": 5}') == {"value": 6}
    assert await fields_of(FunctionTool(Site), '{"city": "Lier"}') == {"city": "Lier", "rent": 1.0}


async def test_rows_are_records_and_long_results_are_cut_and_said() -> None:
    def rows(n: int) -> list[dict[str, object]]:
        return [{"n": number, "text": "x" * 5000, "bad": math.nan} for number in range(n)]

    seen = await FunctionTool(rows).call("201")
    assert (len(seen.records), seen.truncated, seen.total) == (200, True, 201)
    assert seen.records[1].id == "r2" and seen.records[1].fields["n"] == 1 and seen.records[1].fields["bad"] == "nan"
    assert str(seen.records[0].fields["text"]).endswith("... (1,000 more characters)")

    def own() -> Observation:
        return Observation((Record("r1", text="as it is"),))

    assert (await FunctionTool(own).call("")).records[0].text == "as it is"


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (lambda x, /: x, "by position only"),
        (odd, "which JSON cannot hold"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused_when_it_is_named(function: Any, complaint: str) -> None:
    with pytest.raises(SetupError, match=complaint):
        FunctionTool(function)


class Order(BaseModel):
    sku: str = Field(pattern=r"^[A-Z]{2}\d+$")
    lines: list[Site] = []


async def test_what_pydantic_knows_of_an_argument_holds_and_its_complaint_is_one_line() -> None:
    def buy(order: Order, share: Annotated[float, Field(gt=0)], at: uuid.UUID | None = None) -> str:
        return f"{order.sku} {type(order.lines[0]).__name__} {share} {at}"

    tool = FunctionTool(buy)
    assert "- order ({sku: text, lines?: list of {city: text, rent?: number}}, required)" in tool.describe()
    written = '{"order": {"sku": "AB1", "lines": [{"city": "Lier"}]}, "share": "0.5"}'
    assert await fields_of(tool, written) == {"value": "AB1 Site 0.5 None"}
    with pytest.raises(ToolError) as caught:
        await tool.call('{"order": {"sku": "x"}, "share": -1, "at": "y"}')
    complaint = str(caught.value)
    assert complaint.startswith("An argument cannot be used: order.sku: ") and "\n" not in complaint
    assert 'you wrote "x".' in complaint and "share: Input should be greater than 0; you wrote -1" in complaint


def test_typed_dicts_and_tuples_have_schemas_and_stars_are_left_out() -> None:
    def take(row: Row, pair: tuple[int, str], *more: int, **rest: int) -> None: ...

    told = FunctionTool(take).describe()
    assert "- row ({name: text}, required)" in told and "- pair (list of whole number or text, required)" in told
    assert "more" not in told and "rest" not in told


def test_a_spec_names_a_function_of_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plants_of_test.py").write_text("def find(city: str) -> str:\n    return city\nNUMBER = 3\n")
    (tmp_path / "broken_of_test.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    assert load_function("plants_of_test:find")("Ghent") == "Ghent"
    for spec, complaint in (
        ("plants_of_test:fnd", "has find"),
        ("plants_of_test:NUMBER", "not a function but int"),
        ("broken_of_test:x", "ZeroDivisionError"),
        ("no_such_module_here:x", "no module no_such_module_here"),
    ):
        with pytest.raises(SetupError, match=complaint):
            load_function(spec)


KINDS = st.sampled_from(["integer", "number", "string", "boolean", "null", "array", "object"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)


@given(value=VALUES, kinds=st.lists(KINDS, min_size=1, max_size=3))
@settings(deadline=None)
def test_fitting_gives_a_value_of_a_kind_asked_for_and_fits_it_again_unchanged(value: Value, kinds: list[str]) -> None:
    try:
        once = fit_to_schema(value, {"type": kinds}, {})
    except SchemaMisfit:
        return
    python = {
        "integer": int,
        "number": (int, float),
        "string": str,
        "boolean": bool,
        "null": type(None),
        "array": list,
        "object": dict,
    }
    assert any(isinstance(once, python[kind]) for kind in kinds)  # type: ignore[arg-type]
    assert fit_to_schema(once, {"type": kinds}, {}) == once
    json.dumps(once)
